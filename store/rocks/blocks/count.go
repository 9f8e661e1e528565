package blocks

import (
	"errors"
	"fmt"

	"kvferry/record"
	"kvferry/store/rocks/base"
)

// ErrEmpty is the error of a data block without entries. No engine writes one, so its rows are lost.
var ErrEmpty = errors.New("data block without entries")

// ErrSeparator means that the index sends lookups of some keys of a block to the previous one.
var ErrSeparator = errors.New("the index key of the block before is above the first key")

// MendedError means that an index is damaged, and that its rows are read by one made from the data blocks.
type MendedError struct {
	Blocks  int
	Whole   bool  // no block is missing
	Counted bool  // the table has properties that the rows are compared with
	Rest    error // set if data after the last block was not read
	Unread  int64 // its bytes
	Err     error // the damage of the index
}

// Error describes the damage.
func (e *MendedError) Error() string { return e.Err.Error() }

// Unwrap returns the damage.
func (e *MendedError) Unwrap() error { return e.Err }

// Unproved says which properties of the table only its own index could prove.
func (e *MendedError) Unproved() string {
	switch {
	case e.Whole && e.Counted:
		return "that the blocks are in their order, but for the order of their rows"
	case e.Whole:
		return "that the blocks are in their order, but for the order of their rows, and that no rows are missing: the properties do not count them"
	}
	return "that no block is missing"
}

// Counts holds totals of data blocks, counted as the engines do for a table's properties.
type Counts struct {
	Entries, Deletes, Merges int64
	KeyBytes, ValueBytes     int64 // keys are internal keys
}

// Add adds the counts of other blocks.
func (c *Counts) Add(o *Counts) {
	c.Entries += o.Entries
	c.Deletes += o.Deletes
	c.Merges += o.Merges
	c.KeyBytes += o.KeyBytes
	c.ValueBytes += o.ValueBytes
}

// Kind counts an entry by kind; it need not be called for ordinary puts.
func (c *Counts) Kind(kind byte) {
	switch kind {
	case base.KindDelete, base.KindSingleDelete, base.KindDeleteTimestamp:
		c.Deletes++
	case base.KindMerge:
		c.Merges++
	}
}

// Tombstones is CountError's name for deletes.
const Tombstones = "tombstones"

// CountError is a mismatch between a table's data blocks and its properties.
type CountError struct {
	What        string
	Said, Found int64
}

// Error returns both counts.
func (e *CountError) Error() string {
	return fmt.Sprintf("%s by its properties: %s, found: %s", e.What, record.Number(e.Said), record.Number(e.Found))
}

// Count counts the entries of a data block. It requires every restart point to be at an entry with an unshared key:
// seeks start there, so a wrong restart point hides rows from seeks, but not from scans.
func (b *Block) Count() (Counts, error) {
	if len(b.Entries) == 0 {
		return Counts{}, ErrEmpty
	}
	var c Counter
	c.Start(b)
	e := Entries{Data: b.Entries}
	for {
		ok, err := e.Next()
		if err != nil {
			return Counts{}, err
		}
		if !ok {
			return c.Counts, c.End(b)
		}
		if len(e.Key) < base.TrailerLen {
			return Counts{}, fmt.Errorf("at %d of the block: %w", e.At, ErrEntry)
		}
		if e.At == c.Restart {
			c.AtRestart(b)
		}
		c.Entries++
		c.KeyBytes += int64(len(e.Key))
		c.ValueBytes += int64(len(e.Val))
		c.Kind(e.Key[len(e.Key)-base.TrailerLen])
	}
}

// Counter counts the entries of a block during sequential reading. The reader updates the counts and calls AtRestart
// for the entry that starts at Restart.
type Counter struct {
	Counts
	Restart int // offset of the next restart point, or -1
	next    int // its index
}

// Start begins at the first entry of a block.
func (c *Counter) Start(b *Block) { *c = Counter{Restart: b.RestartAt(0)} }

// AtRestart handles an entry at a restart point. An entry with a shared prefix is invalid there.
func (c *Counter) AtRestart(b *Block) {
	if b.Entries[c.Restart] == 0 {
		c.next++
		c.Restart = b.RestartAt(c.next)
	}
}

// End returns an error unless every restart point was at an entry.
func (c *Counter) End(b *Block) error {
	if c.next < b.NumRestarts() {
		return ErrRestart
	}
	return nil
}
