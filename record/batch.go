package record

// Batch holds records side by side, the last of which may go on in the next one. The rest of a record is a batch of its
// own.
//
// What can be done with records beyond reading them stands in the batch, so that no Reader between their source and
// their user can lose it: whoever passes a batch on passes on Held, and a change of a record's Class, Skip or elements
// is seen by all.
type Batch struct {
	Records []Record
	Elems   []Element // of all records; see Of
	Cont    bool      // the only record goes on from the last batch
	More    bool      // the last record goes on in the next batch
	Held    Holder    // frees large values; nil if the batch has none
}

// Holder frees the large values of a batch that waits while other records are read.
type Holder interface {
	// Release frees large values. Reload must be called before the elements are used.
	Release() error
	Reload() error
}

// Record is a record of a batch, or a piece of one.
type Record struct {
	Header
	First, N int // its elements in the batch
	// Class is the class of its rows; Copied unless the reader, a filter or the target says otherwise. A reader keeps
	// the class of a record that goes on, and skips the rest of its elements unless it is Copied.
	Class Class
	// Skip asks the reader to skip the rest of the elements, whatever the class.
	Skip bool
	// Hidden records are counted by class, but not written.
	Hidden bool
	// Gone and Lost are the numbers of elements that a filter took out as expired, and that the target cannot hold. Set
	// them at the end of the record.
	Gone, Lost int64
	// Rows are complete at the end of the record.
	Rows Rows
}

// Out reports whether the record is not part of the output.
func (r *Record) Out() bool { return r.Class != Copied || r.Hidden }

// Settle sets the class of a record that has none yet.
func (r *Record) Settle(c Class) {
	if r.Class == Copied {
		r.Class = c
	}
}

// Of returns the elements of record i.
func (b *Batch) Of(i int) []Element {
	r := &b.Records[i]
	return b.Elems[r.First : r.First+r.N : r.First+r.N]
}

// Begins reports whether record i begins in this batch.
func (b *Batch) Begins(i int) bool { return i > 0 || !b.Cont }

// Ends reports whether record i ends in this batch.
func (b *Batch) Ends(i int) bool { return !b.More || i < len(b.Records)-1 }

// Strings returns the number of whole strings of the output from record i on.
func (b *Batch) Strings(i int) int {
	end := len(b.Records)
	if b.More {
		end--
	}
	if !b.Begins(i) {
		return 0
	}
	n := i
	for n < end {
		if r := &b.Records[n]; r.Type != String || r.N != 1 || r.Out() {
			break
		}
		n++
	}
	return n - i
}

// Bytes returns the size of the keys, names and values in the batch.
func (b *Batch) Bytes() (n int64) {
	for i := range b.Records {
		n += int64(len(b.Records[i].Key)) + BatchBytes(b.Of(i))
	}
	return n
}

// BatchBytes returns the size of the names and values of elements.
func BatchBytes(elems []Element) (n int64) {
	for i := range elems {
		n += int64(len(elems[i].Name) + len(elems[i].Value))
	}
	return n
}

// Reader yields records in ascending (Key, Type) order, with keys compared bytewise. A keyless record follows a key
// of the same name and type.
type Reader interface {
	// Next returns the next records, and io.EOF after the last. A record may turn out to have no live elements; callers
	// treat it as absent. The batch and all its views are valid until the next call, and the caller may change them. The
	// piece of a record that goes on repeats its header.
	Next() (*Batch, error)
	// Close releases the reader and adds the rows that belong to no record to the ledger. Rows of records are counted by
	// whoever gives them their classes, with Books. Call it exactly once.
	Close() error
}

// Writer receives records in ascending (Key, Type) order.
type Writer interface {
	// Write writes the records of a batch that are not out. It does not retain them. A record without elements is not
	// written.
	Write(*Batch) error
	// Close flushes and completes the output. Call either Close or Abort, exactly once.
	Close() error
	// Abort discards the output and releases all resources.
	Abort()
}

// Sink receives records one by one.
type Sink interface {
	Begin(*Header) error
	// Elements appends elements. It does not retain them.
	Elements([]Element) error
	End() error
}

// Feeder passes the records of batches to a Sink. The zero value is ready to use.
type Feeder struct{ open bool }

// Feed passes on all records that are not out. If strings is not nil, it receives the n whole strings from a record of
// the batch on.
func (f *Feeder) Feed(b *Batch, s Sink, strings func(b *Batch, from, n int) error) error {
	for i := 0; i < len(b.Records); {
		n, err := 0, error(nil)
		if strings != nil {
			if n = b.Strings(i); n > 0 {
				err = strings(b, i, n)
			}
		}
		if n == 0 {
			n, err = 1, f.one(b, i, s)
		}
		if err != nil {
			return err
		}
		i += n
	}
	return nil
}

// one passes on record i of a batch.
func (f *Feeder) one(b *Batch, i int, s Sink) error {
	r := &b.Records[i]
	if b.Begins(i) {
		if f.open = !r.Out(); f.open {
			if err := s.Begin(&r.Header); err != nil {
				return err
			}
		}
	}
	if !f.open {
		return nil
	}
	if r.N > 0 && !r.Out() {
		if err := s.Elements(b.Of(i)); err != nil {
			return err
		}
	}
	if !b.Ends(i) {
		return nil
	}
	f.open = false
	return s.End()
}

// Kept is a header that owns its memory.
type Kept struct {
	Header
	room []byte
}

// Keep copies a header.
func (k *Kept) Keep(h *Header) {
	k.room = append(append(append(k.room[:0], h.Key...), h.Last...), h.MaxDeleted...)
	k.Header = *h
	n, m := len(h.Key), len(h.Key)+len(h.Last)
	k.Key = k.room[:n:n]
	if h.Last != nil {
		k.Last = k.room[n:m:m]
	}
	if h.MaxDeleted != nil {
		k.MaxDeleted = k.room[m:]
	}
}
