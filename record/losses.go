package record

import "slices"

// Kinds of losses that several targets have. --allow-loss accepts these names.
const (
	LossKeyTooLong      = "key-too-long"      // a collection's key is longer than the target's limit
	LossEmptyKey        = "empty-key"         // a collection has the empty key
	LossScoreRange      = "score-range"       // a score is beyond what the target accepts
	LossScorePrecision  = "score-precision"   // a score is rounded
	LossScoreNaN        = "score-nan"         // a score is not a number
	LossExpiry2038      = "expiry-2038"       // an expiry does not fit 32 bits of seconds
	LossExpiryMS        = "expiry-ms"         // an expiry in milliseconds is rounded up to seconds
	LossTooManyElements = "too-many-elements" // a collection has more elements than the target can count
	LossStream          = "stream"            // the target has no streams
	LossHyperLogLog     = "hyperloglog"       // a string that engines may count differently (a note)
	LossSameName        = "same-name"         // a key exists under several types, the target holds one
	LossStreamExpiry    = "stream-expiry"     // streams of the target do not expire
	LossBlankStream     = "blank-stream"      // the target cannot store a stream that never had an entry
	LossInnerNUL        = "inner-nul"         // the target drops the part of a key after a NUL
	LossStreamGroups    = "stream-groups"     // consumer groups and pending entries of a stream are lost
	LossExpiry2106      = "expiry-2106"       // an expiry does not fit 32 unsigned bits of seconds
	LossFieldExpiry     = "field-expiry"      // fields of a hash have an expiry of their own
	LossMemberExpiry    = "member-expiry"     // members of a set have an expiry of their own
	LossModule          = "module"            // a value that only its own server understands
	LossCommand         = "aof-command"       // the value of a key is unknown after a command with an unknown effect
	LossDamaged         = "damaged"           // data named by error findings may be missing or wrong
	LossNewer           = "newer"             // rows, values or sections in a form that this build does not know
	LossDatabase        = "database-number"   // servers of the target have no database of that number (a note)
	LossCluster         = "cluster-mode"      // keys of a cluster's node lose their slots
	LossGroupProgress   = "group-progress"    // counters of streams and groups on newer servers (a note)
)

// LossInfo describes a kind of loss, for docs/compatibility.md.
type LossInfo struct {
	Kind string
	Note bool // only reported, needs no permission
	Text string
	// Types are the types of the records concerned; 0 means any.
	Types TypeSet
}

var lossInfos = []LossInfo{
	{Kind: LossSameName, Text: "A name exists under several types, but the target holds only one. `--on-conflict keep=TYPES` chooses the type that keeps the name; `--on-conflict rename` renames the other types to `name:type`."},
	{Kind: LossStream, Types: Of(Stream), Text: "The target has no streams; they are left out."},
	{Kind: LossStreamGroups, Types: Of(Stream), Text: "Consumer groups and pending entries are left out; the entries of the stream are converted."},
	{Kind: LossFieldExpiry, Types: Of(Hash), Text: "Fields of a hash have an expiry; they are kept without it."},
	{Kind: LossMemberExpiry, Types: Of(Set, ZSet), Text: "Members of a set have an expiry, as on KeyDB and Dragonfly; they are kept without it. Expired members are left out."},
	{Kind: LossModule, Types: Of(Other), Text: "Module values and function libraries that the target does not support are left out."},
	{Kind: LossKeyTooLong, Text: "The key of a collection is longer than the target allows; the collection is left out."},
	{Kind: LossEmptyKey, Text: "The key of a collection is empty; the collection is left out."},
	{Kind: LossScoreRange, Types: Of(ZSet), Text: "A score is outside the range of the target; the member is left out."},
	{Kind: LossScorePrecision, Types: Of(ZSet), Text: "A score is rounded. SSDB's scores are 64-bit integers: when read from SSDB, scores beyond 2^53 become the nearest float64, and so do integers and decimals in Parquet files of other programs. When written to SSDB, fractions are cut off, as SSDB's ZADD does."},
	{Kind: LossScoreNaN, Types: Of(ZSet), Text: "A score is not a number, which no engine accepts; the member is left out."},
	{Kind: LossTooManyElements, Text: "A collection has more elements than the target can count; it is left out."},
	{Kind: LossExpiryMS, Text: "An expiry in milliseconds is rounded up to the next second, so keys never expire early. An expiry before 1970, which `--expired keep` converts, is moved to the start of 1970 if the target cannot represent it (a note)."},
	{Kind: LossExpiry2038, Text: "An expiry after 2038-01-19T03:14:07Z, the end of 32-bit seconds, is moved to that time."},
	{Kind: LossHyperLogLog, Types: Of(String), Note: true, Text: "A HyperLogLog becomes a string that the target cannot count, or may count differently after elements are added. Between Redis and Ardb only the flag for a stale count differs; it is converted."},
	{Kind: LossDatabase, Note: true, Text: "Servers of the target have no database of that number: Pika has up to 8 databases, 0 to 7. The database is written, but a server does not see it. If you convert it separately with `--db`, it becomes database 0."},
	{Kind: LossCluster, Text: "The source is a node of a Kvrocks cluster and `--cluster=false` or `--sst` writes its keys without slots: a server with `cluster-enabled yes` does not start on the target. Without these flags the target is in cluster mode as well."},
	{Kind: LossCommand, Text: "Commands of an append-only file with an unknown effect, such as a script or a command of a newer server, were skipped; the keys that they wrote are left out."},
	{Kind: LossNewer, Text: "The source has rows, values or sections in a form that this version of kvferry does not know, probably from a newer server; they are left out. A newer version of kvferry may read them."},
	{Kind: LossDamaged, Text: "`kvferry verify` finds errors in the source: the affected data may be missing or wrong. This includes unreadable tables, blocks and LMDB pages, but not tables out of order (`key-order`), which kvferry sorts without loss. If allowed, everything else is converted; data that the unreadable parts deleted or changed may be converted in its old state. A damaged log, MANIFEST or CURRENT stops the conversion in any case, unless `--type` and `--db` exclude the store."},
}

// LossInfos lists the kinds of losses that do not belong to one format.
func LossInfos() []LossInfo { return slices.Clone(lossInfos) }

// GroupProgress describes LossGroupProgress. Targets with this loss list it.
func GroupProgress() LossInfo {
	return LossInfo{Kind: LossGroupProgress, Note: true, Types: Of(Stream), Text: "The number of entries that a consumer group has read, the number ever added to a stream, and the largest id deleted from it are not in RDB files below version 10 (`--rdb-version`), on servers before 7.0 or in Ardb; servers treat them as unknown and count again."}
}
