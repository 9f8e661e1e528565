package store

// Releaser is a Batcher whose last batch need not be in memory while other rows are read.
type Releaser interface {
	Batcher
	// Release lets go of the large values of the last batch, which is rows, when they are larger than may wait. It sets them
	// to nil, the others to copies, and returns the first that is gone, or how many rows there are. Keys stay.
	Release(rows []Row) int
	// Reload reads again what was let go of. Views of before stay valid.
	Reload(rows []Row) error
}

// Waiting is the last batch of an iterator, whose values may be released until they are needed.
type Waiting struct {
	Rows []Row
	// Here is how many of the first rows have their values.
	Here int

	it    Releaser // nil: its values always stay
	fresh bool     // the batch was not looked at since it was read
}

// Wait makes w wait for batches of an iterator.
func Wait(it Batcher) Waiting {
	r, _ := it.(Releaser)
	return Waiting{it: r}
}

// Set takes a batch that was just read.
func (w *Waiting) Set(rows []Row) { w.Rows, w.Here, w.fresh = rows, len(rows), w.it != nil }

// Release lets go of large values. It is cheap to call often.
func (w *Waiting) Release() {
	if w.fresh {
		w.fresh, w.Here = false, w.it.Release(w.Rows)
	}
}

// Reload makes all values be there, until they are released again.
func (w *Waiting) Reload() error {
	if w.Here == len(w.Rows) {
		return nil
	}
	w.Here, w.fresh = len(w.Rows), true
	return w.it.Reload(w.Rows)
}
