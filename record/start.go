package record

// Start is the element at which a lookup of one key begins to read. A source that seeks it sets Header.Sought; others
// read all elements.
type Start struct {
	// Name is an element of a hash, set or sorted set. The first one read is the first at or after it in the order of
	// the source.
	Name []byte
	// Bytewise permits a seek only if the names of the record ascend bytewise.
	Bytewise bool
	// Index is the number of elements of a list before the first one read.
	Index int64
	// ByScore asks for the members of a sorted set in the order of their scores, from Score on, in place of Name. Scores
	// that differ by less than ScoreSlack may come in any order, and so may lower ones before those at Score.
	ByScore bool
	Score   float64
}

// ScoreSlack is more than the difference of scores that rows in the order of scores do not distinguish: nemo rounds them
// to 5 decimals, and they are float64s of up to 1e13.
const ScoreSlack = 1e-3
