package record

import (
	"errors"
	"io"
)

// ErrLater is returned by Cursor.End if the cursor has findings that matter only if the record is not left out: End is
// called again when its class is known.
var ErrLater = errors.New("the class of the record is not known")

// Cursor reads records one by one. Gather makes it a Reader.
type Cursor interface {
	// Next moves to the next record, after End of the current one. It returns io.EOF after the last.
	Next() (*Header, error)
	// Read fills dst with the next elements and returns their number. It returns io.EOF with the last elements or, with
	// 0, after them, and never 0, nil. The header is valid until Next, the elements until the next call of either.
	Read(dst []Element) (int, error)
	// Heavy reports whether the current record is large, or its elements cost so much to read that this waits until they
	// are wanted.
	Heavy() bool
	// End skips unread elements and sets the Rows of the record. It may change its class if the record is not as its
	// header says. It may return ErrLater, once for a record.
	End(*Record) error
	Close() error
}

// Limits of a batch. Records that are kept while the cursor moves on are copied, which pays for small ones only.
const (
	gatherRecords = 64
	gatherElems   = 128
	gatherBytes   = 8 << 10
	gatherFirst   = 32 // elements of the first batch, with room for a small record and what follows it
	copyElems     = 16
	copyBytes     = 1 << 10
	holdBytes     = 64 << 10 // more is freed before the next batch is read
)

// Gather returns a reader of the records of a cursor. If whole is not nil, it is called first for each batch: it may
// fill the empty batch with the next records of the cursor, if they are whole.
func Gather(c Cursor, whole func(*Batch) error) Reader { return &gathered{Cursor: c, whole: whole} }

type gathered struct {
	Cursor
	whole   func(*Batch) error
	batch   Batch
	out     Batch   // the same
	head    *Header // of the last record
	records []Record
	elems   []Element
	asked   bool   // the cursor has asked for the class of the last record
	copied  int    // elements of the batch that are in the arena
	arena   []byte // never grows: elements point into it
	err     error  // follows the batch
}

// Next returns the next records, in a Batch that others may cut.
func (g *gathered) Next() (*Batch, error) {
	b, err := g.next()
	if err != nil {
		return nil, err
	}
	g.out = *b
	return &g.out, nil
}

func (g *gathered) next() (*Batch, error) {
	b := &g.batch
	g.release()
	if b.More {
		return g.goOn()
	}
	*b = Batch{}
	if g.err != nil {
		return nil, g.err
	}
	if g.whole != nil {
		if g.err = g.whole(b); g.err != nil || len(b.Records) > 0 {
			return b, g.err
		}
	}
	g.grow()
	b.Records, b.Elems, g.arena, g.copied = g.records[:0], g.elems[:0], g.arena[:0], 0
	for more := true; more && len(b.Records) < gatherRecords; {
		more = g.one(b)
	}
	g.records = b.Records
	if len(b.Records) == 0 {
		return nil, g.err
	}
	return b, nil
}

// grow makes room for the next batch. That for the first is small: most lookups need no more.
func (g *gathered) grow() {
	switch len(g.elems) {
	case 0:
		g.elems, g.arena = make([]Element, gatherFirst), make([]byte, 0, copyBytes)
	case gatherFirst:
		g.elems, g.arena = make([]Element, gatherElems), make([]byte, 0, gatherBytes)
	}
}

// release frees large elements.
func (g *gathered) release() {
	if len(g.batch.Elems) > 0 && BatchBytes(g.batch.Elems) > holdBytes {
		clear(g.batch.Elems)
	}
}

// one adds the next record of the cursor. It returns false if the batch ends there.
func (g *gathered) one(b *Batch) bool {
	n := len(b.Records)
	if g.head, g.err = g.Cursor.Next(); g.err != nil {
		return false
	}
	g.asked = false
	b.Records = append(b.Records, Record{Header: *g.head, First: len(b.Elems), Class: Copied})
	r := &b.Records[n]
	if b.More = g.Heavy(); b.More {
		return false
	}
	if g.err = g.read(b, r); g.err != nil {
		b.Records, b.More = b.Records[:n], false
		return false
	}
	return !b.More && g.keep(b, r)
}

// goOn returns the next piece of the last record.
func (g *gathered) goOn() (*Batch, error) {
	b := &g.batch
	last := b.Records[len(b.Records)-1]
	if last.N > 0 {
		g.grow()
	}
	last.Header, last.First, last.N = *g.head, 0, 0
	*b = Batch{Records: append(g.records[:0], last), Elems: g.elems[:0], Cont: true}
	g.arena, g.copied = g.arena[:0], 0
	r := &b.Records[0]
	if last.Class == Copied && !last.Skip {
		return b, g.read(b, r)
	}
	err := g.Cursor.End(r)
	if err == ErrLater {
		err = g.Cursor.End(r)
	}
	return b, err
}

// read reads elements of a record until it ends or they are many.
func (g *gathered) read(b *Batch, r *Record) error {
	for {
		from := len(b.Elems)
		n, err := g.Cursor.Read(g.elems[from:])
		b.Elems = g.elems[:from+n]
		r.N += n
		if err == io.EOF {
			err = g.Cursor.End(r)
			if b.More = err == ErrLater && !g.asked; b.More {
				g.asked = true
				return nil
			}
			return err
		}
		if err != nil {
			return err
		}
		if b.More = g.head.Sought || len(b.Elems) == len(g.elems) || !g.copy(b.Elems); b.More { // a lookup may want no more
			return nil
		}
	}
}

// keep copies a small record, so that the cursor can move on.
func (g *gathered) keep(b *Batch, r *Record) bool {
	if r.Type == Stream || len(b.Elems) > len(g.elems)-copyElems || !g.copy(b.Elems) || len(r.Key) > cap(g.arena)-len(g.arena) {
		return false
	}
	r.Key = g.hold(r.Key)
	return true
}

// copy copies the last elements if they are few and small.
func (g *gathered) copy(elems []Element) bool {
	size := 0
	for i := range elems[g.copied:] {
		e := &elems[g.copied+i]
		size += len(e.Name) + len(e.Value)
	}
	if len(elems)-g.copied > copyElems || size > min(copyBytes, cap(g.arena)-len(g.arena)) {
		return false
	}
	for ; g.copied < len(elems); g.copied++ {
		e := &elems[g.copied]
		e.Name, e.Value = g.hold(e.Name), g.hold(e.Value)
	}
	return true
}

// hold copies bytes into the arena.
func (g *gathered) hold(b []byte) []byte {
	if b == nil {
		return nil
	}
	at := len(g.arena)
	g.arena = append(g.arena, b...)
	return g.arena[at:len(g.arena):len(g.arena)]
}

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
