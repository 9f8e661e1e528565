package record

import "io"

// Walker passes through the records of a Reader one by one, leaving out those that are out of the output.
type Walker struct {
	Reader Reader
	b      *Batch
	at     int  // of the current record
	from   int  // its elements before it were read
	head   Kept // of a record that goes on
}

// Walk returns a Walker at the start of a reader.
func Walk(r Reader) *Walker { return &Walker{Reader: r} }

// Next moves to the next record and skips unread elements of the current one. It returns io.EOF after the last record.
// The header is valid until the following call.
func (w *Walker) Next() (*Header, error) {
	for {
		if err := w.advance(); err != nil {
			return nil, err
		}
		r := &w.b.Records[w.at]
		if !w.b.Begins(w.at) || r.Out() {
			continue
		}
		w.from = 0
		if w.b.Ends(w.at) {
			return &r.Header, nil
		}
		w.head.Keep(&r.Header)
		return &w.head.Header, nil
	}
}

// advance moves to the next record of a batch.
func (w *Walker) advance() error {
	if w.b != nil {
		if w.at++; w.at < len(w.b.Records) {
			return nil
		}
		if w.b.More {
			w.b.Records[len(w.b.Records)-1].Skip = true
		}
	}
	return w.more()
}

// more reads the next batch.
func (w *Walker) more() error {
	b, err := w.Reader.Next()
	w.b, w.at, w.from = b, 0, 0
	if err != nil {
		w.b = nil
	}
	return err
}

// Read fills dst with the next elements of the current record and returns their number. It returns 0, io.EOF after the
// last element, and never 0, nil. Elements are valid until the next call.
func (w *Walker) Read(dst []Element) (int, error) {
	if len(dst) == 0 && w.b != nil {
		return 0, nil
	}
	next, err := w.Peek()
	n := copy(dst, next)
	w.from += n
	return n, err
}

// Peek returns elements that Read returns next, at least one; io.EOF after the last.
func (w *Walker) Peek() ([]Element, error) {
	for w.b != nil {
		if next := w.b.Of(w.at)[w.from:]; len(next) > 0 {
			return next, nil
		}
		if w.b.Ends(w.at) {
			break
		}
		if err := w.more(); err != nil {
			return nil, err
		}
	}
	return nil, io.EOF
}

// Rows skips unread elements and returns the rows of the current record.
func (w *Walker) Rows() (Rows, error) {
	for !w.b.Ends(w.at) {
		w.b.Records[w.at].Skip = true
		if err := w.more(); err != nil {
			return Rows{}, err
		}
	}
	return w.b.Records[w.at].Rows, nil
}

// Settle sets the class of the current record, if it has none yet.
func (w *Walker) Settle(c Class) { w.b.Records[w.at].Settle(c) }

// Close closes the reader.
func (w *Walker) Close() error { return w.Reader.Close() }
