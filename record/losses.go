package record

import "slices"

// Kinds of losses that more than one target reports. They are what --allow-loss takes.
const (
	LossKeyTooLong      = "key-too-long"      // a collection's key exceeds what the target can hold
	LossEmptyKey        = "empty-key"         // a collection has the empty key
	LossScoreRange      = "score-range"       // a score is beyond what the target accepts
	LossScoreNaN        = "score-nan"         // a score is not a number
	LossExpiry2038      = "expiry-2038"       // an expiry does not fit 32 bits of seconds
	LossExpiryMS        = "expiry-ms"         // an expiry in milliseconds is rounded up to seconds
	LossTooManyElements = "too-many-elements" // a collection has more elements than can be counted
	LossStream          = "stream"            // the target has no streams
	LossHyperLogLog     = "hyperloglog"       // a string that engines may count differently (a note)
	LossSameName        = "same-name"         // a name stands under several types, the target holds one
	LossStreamExpiry    = "stream-expiry"     // streams of the target do not expire
	LossBlankStream     = "blank-stream"      // a stream that never had an entry, which the target has not
	LossInnerNUL        = "inner-nul"         // the target does not keep what follows a NUL in a key
	LossStreamGroups    = "stream-groups"     // consumer groups and pending entries of a stream
	LossFieldExpiry     = "field-expiry"      // fields of a hash have an expiry of their own
	LossModule          = "module"            // a value that only its own server understands
	LossCommand         = "aof-command"       // a command of the source whose effect is not known was passed over
	LossDamaged         = "damaged"           // error findings: what they are about may be missing or wrong
)

// LossInfo describes a kind of loss, for docs/compatibility.md.
type LossInfo struct {
	Kind string
	Note bool // told, but needs no permission
	Text string
	// Types are those that records it is about have; 0 means any.
	Types TypeSet
}

var lossInfos = []LossInfo{
	{Kind: LossSameName, Text: "A name stands under several types and the target takes one. `--on-conflict keep=TYPES` says which type keeps it, `--on-conflict rename` calls the others `name:type`."},
	{Kind: LossStream, Types: Of(Stream), Text: "The target has no streams; they are left out."},
	{Kind: LossStreamGroups, Types: Of(Stream), Text: "Consumer groups and pending entries are left out; the entries of the stream are taken over."},
	{Kind: LossFieldExpiry, Types: Of(Hash), Text: "Fields of a hash have an expiry of their own; they are kept without it."},
	{Kind: LossModule, Types: Of(Other), Text: "Values of modules and libraries of functions, which only servers that have these understand, are left out."},
	{Kind: LossKeyTooLong, Text: "The key of a collection is longer than the target takes; the collection is left out."},
	{Kind: LossEmptyKey, Text: "A collection has the empty key; it is left out."},
	{Kind: LossScoreRange, Types: Of(ZSet), Text: "A score is beyond what the target takes; the member is left out."},
	{Kind: LossScoreNaN, Types: Of(ZSet), Text: "A score is not a number, which no engine takes; the member is left out."},
	{Kind: LossTooManyElements, Text: "A collection has more elements than the target counts; it is left out."},
	{Kind: LossExpiryMS, Text: "An expiry in milliseconds is rounded up to the next second: nothing expires earlier than it did."},
	{Kind: LossExpiry2038, Text: "An expiry beyond 2038-01-19T03:14:07Z, where 32 bits of seconds end, is brought forward to that moment."},
	{Kind: LossHyperLogLog, Types: Of(String), Note: true, Text: "A HyperLogLog is kept as a string that the target cannot count, or may count differently once it is added to. Where only the mark of a stale count differs (Redis and Ardb), it is moved."},
	{Kind: LossCommand, Text: "A command of an append-only file whose effect is not known, such as a script, was passed over: any later key may be wrong."},
	{Kind: LossDamaged, Text: "`kvferry verify` finds errors in the source: what they are about may be missing or wrong. Tables, blocks of tables and pages of LMDB files that cannot be read are among them: when this is allowed all else is converted, and what they had deleted or changed may be taken over as it was before. Where nothing can be passed over (a log, MANIFEST, CURRENT) the conversion stops all the same: `--type` and `--db` leave out the store."},
}

// LossInfos lists the kinds of losses that do not belong to one format.
func LossInfos() []LossInfo { return slices.Clone(lossInfos) }
