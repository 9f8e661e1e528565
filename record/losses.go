package record

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
	LossStreamGroups    = "stream-groups"     // consumer groups and pending entries of a stream
	LossDamaged         = "damaged"           // error findings: what they are about may be missing or wrong
)
