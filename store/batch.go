package store

import "kvferry/record"

// Row is a visible row, as views.
type Row struct{ Key, Value []byte }

// Batcher is an Iterator that hands out several rows at once.
type Batcher interface {
	Iterator
	// NextBatch sets as many of the next rows as can be had without copying values, from one to len(rows),
	// and returns how many; io.EOF after the last. Views live until the next call of Next, NextBatch or
	// SeekGE. Tally counts all of them; each but the first costs one visible entry.
	NextBatch(rows []Row) (int, error)
	// PlaceAt says where row i of the last batch stands.
	PlaceAt(i int) record.Place
}

// Batched returns it as a Batcher. An iterator that is none hands out single rows.
func Batched(it Iterator) Batcher {
	if b, ok := it.(Batcher); ok {
		return b
	}
	return single{it}
}

type single struct{ Iterator }

func (s single) NextBatch(rows []Row) (int, error) {
	key, value, err := s.Next()
	if err != nil {
		return 0, err
	}
	rows[0] = Row{key, value}
	return 1, nil
}

func (s single) PlaceAt(int) record.Place { return s.Place() }

// Buffer hands out the rows of an iterator one by one and reads them several at a time.
type Buffer struct {
	it   Batcher
	rows []Row
	next int // of rows
	room []Row
}

// bufferLen is how many rows a Buffer reads at once, at most.
const bufferLen = 64

// NewBuffer returns a buffer, which owns the iterator.
func NewBuffer(it Iterator) *Buffer {
	return &Buffer{it: Batched(it), room: make([]Row, bufferLen)}
}

// Pop returns the next row, nil when none is left. It lives until Fill.
func (b *Buffer) Pop() *Row {
	if b.next >= len(b.rows) {
		return nil
	}
	b.next++
	return &b.rows[b.next-1]
}

// Fill reads more rows when none is left; io.EOF after the last.
func (b *Buffer) Fill() error {
	n, err := b.it.NextBatch(b.room)
	b.rows, b.next = b.room[:n], 0
	return err
}

// Place says where the row that Pop returned last stands.
func (b *Buffer) Place() record.Place { return b.it.PlaceAt(b.next - 1) }

// Tally adds what the rows read so far cost in entries to t and forgets it.
func (b *Buffer) Tally(t *record.Tally) { b.it.Tally(t) }

// Close closes the iterator.
func (b *Buffer) Close() error { return b.it.Close() }
