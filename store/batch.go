package store

import "kvferry/record"

// Row is a visible row; key and value are views.
type Row struct{ Key, Value []byte }

// Batcher is an Iterator that returns several rows at once.
type Batcher interface {
	Iterator
	// NextBatch sets from one to len(rows) of the next rows, as many as are available without copying
	// values, and returns their number; io.EOF after the last. Views are valid until the next call of
	// Next, NextBatch or SeekGE. Tally counts all rows; each but the first costs one visible entry.
	NextBatch(rows []Row) (int, error)
	// PlaceAt returns the place of row i of the last batch.
	PlaceAt(i int) record.Place
}

// Batched returns it as a Batcher. Other iterators return single rows.
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

// Buffer returns the rows of an iterator one by one and reads them in batches.
type Buffer struct {
	it   Batcher
	wait Waiting
	next int // of its rows
	room []Row
}

// NewBuffer returns a buffer that owns the iterator.
func NewBuffer(it Iterator) *Buffer {
	b := Batched(it)
	return &Buffer{it: b, wait: Wait(b)}
}

// Pop returns the next row, or nil if Fill is needed first. It is valid until Fill.
func (b *Buffer) Pop() *Row {
	if b.next >= b.wait.Here {
		return nil
	}
	b.next++
	return &b.wait.Rows[b.next-1]
}

// Fill reloads released rows, or reads more rows if Pop has returned all; io.EOF after the last.
func (b *Buffer) Fill() error {
	if b.next < len(b.wait.Rows) {
		return b.wait.Reload()
	}
	b.room = record.Room(b.room)
	n, err := b.it.NextBatch(b.room)
	b.wait.Set(b.room[:n])
	b.next = 0
	return err
}

// Release frees large values, including the value of the last row from Pop.
func (b *Buffer) Release() { b.wait.Release() }

// Released reports whether the last row from Pop is without its value.
func (b *Buffer) Released() bool { return b.next > b.wait.Here }

// Last returns the last row from Pop with its value.
func (b *Buffer) Last() (*Row, error) {
	if b.Released() {
		if err := b.wait.Reload(); err != nil {
			return nil, err
		}
	}
	return &b.wait.Rows[b.next-1], nil
}

// Place returns the place of the last row from Pop.
func (b *Buffer) Place() record.Place { return b.it.PlaceAt(b.next - 1) }

// Tally adds the entries of the rows read so far to t and resets the count.
func (b *Buffer) Tally(t *record.Tally) { b.it.Tally(t) }

// Close closes the iterator.
func (b *Buffer) Close() error { return b.it.Close() }
