package floyd

// Kinds of findings.
const (
	// FindWrongInstance: a key is not in the instance of its slot, where the engine looks for it.
	FindWrongInstance = "wrong-instance"
	// FindTruncatedKey: the engine did not write the end of a key.
	FindTruncatedKey = "truncated-key"
	// FindSlots: the number of slots that the keys were spread by is not the shipped configuration's.
	FindSlots = "slot-number"
)
