package floyd

// Kinds of findings.
const (
	// FindWrongInstance: a key is not in the instance that its slot says, where the engine looks for it.
	FindWrongInstance = "wrong-instance"
	// FindTruncatedKey: the engine did not write the end of a key.
	FindTruncatedKey = "truncated-key"
	// FindSlots: keys are spread by another number of slots than the one that the configuration is shipped with.
	FindSlots = "slot-number"
)
