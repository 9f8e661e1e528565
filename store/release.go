package store

// Releaser is a Batcher whose last batch need not be in memory while other rows are read.
type Releaser interface {
	Batcher
	// Release frees the large values of rows, the last batch, if the batch is too large to wait in memory: it sets them
	// to nil, replaces the others by copies, and returns the index of the first freed row, or len(rows). Keys stay.
	Release(rows []Row) int
	// Reload reads the freed values again. Earlier views stay valid.
	Reload(rows []Row) error
}

// Waiting is the last batch of an iterator, whose values may be released until they are needed.
type Waiting struct {
	Rows []Row
	// Here is the number of leading rows whose values are loaded.
	Here int

	it    Releaser // nil: values always stay
	fresh bool     // the batch was not offered for release since it was read
}

// Wait returns a Waiting for the batches of an iterator.
func Wait(it Batcher) Waiting {
	r, _ := it.(Releaser)
	return Waiting{it: r}
}

// Set takes a batch that was just read.
func (w *Waiting) Set(rows []Row) { w.Rows, w.Here, w.fresh = rows, len(rows), w.it != nil }

// Release frees large values. It is cheap to call often.
func (w *Waiting) Release() {
	if w.fresh {
		w.fresh, w.Here = false, w.it.Release(w.Rows)
	}
}

// Reload loads all values, until they are released again.
func (w *Waiting) Reload() error {
	if w.Here == len(w.Rows) {
		return nil
	}
	w.Here, w.fresh = len(w.Rows), true
	return w.it.Reload(w.Rows)
}
