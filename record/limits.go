package record

import "context"

// Numbers that all packages share.
const (
	// BatchLen is the largest number of rows or elements read at once: few enough to stay in the L1 cache.
	BatchLen = 64
	// FirstLen is the number of those read first. It is small: most lookups need no more.
	FirstLen = 2
	// CheckEvery is the number of rows, records or commands between checks of a context.
	CheckEvery = 256
	// DefaultMemory is the memory limit of readers, passes and shards whose caller sets none.
	DefaultMemory = 64 << 20
)

// Room returns the room for the next batch: FirstLen at first, and eight times as much each time, up to BatchLen.
func Room[T any](room []T) []T {
	switch n := len(room); {
	case n == 0:
		return make([]T, FirstLen)
	case n < BatchLen:
		return make([]T, min(8*n, BatchLen))
	}
	return room
}

// Texts is the room for a batch of strings.
type Texts struct {
	Records []Record
	Elems   []Element
}

// Grow makes room for the next batch. What strings have in common, their type and rows, is set.
func (t *Texts) Grow(db string, rows Rows) {
	if t.Elems = Room(t.Elems); len(t.Records) == len(t.Elems) {
		return
	}
	t.Records = make([]Record, len(t.Elems))
	for i := range t.Records {
		t.Records[i] = Record{Header: Header{DB: db, Type: String, Len: 1}, First: i, Rows: rows}
	}
}

// Stopped returns why ctx ended, or nil. A loop calls it with its count of rounds; it asks ctx in one of CheckEvery.
func Stopped(ctx context.Context, n int) error {
	if n%CheckEvery != 0 {
		return nil
	}
	return context.Cause(ctx)
}
