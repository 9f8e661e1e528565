package blocks

import (
	"errors"
	"fmt"

	"kvferry/store/rocks/base"
)

// ErrEmpty says that an index names a data block without entries: no engine writes one, so its rows are gone.
var ErrEmpty = errors.New("data block without entries")

// ErrSeparator says that the index leads lookups of some keys of a block to the one before.
var ErrSeparator = errors.New("the index key of the block before is above the first key")

// Counts is what data blocks hold, counted as the engines count it for the properties of a table.
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

// Kind counts an entry of a kind, which ordinary puts need not.
func (c *Counts) Kind(kind byte) {
	switch kind {
	case base.KindDelete, base.KindSingleDelete, base.KindDeleteTimestamp:
		c.Deletes++
	case base.KindMerge:
		c.Merges++
	}
}

// Tombstones is what CountError calls deletes.
const Tombstones = "tombstones"

// CountError says that the data blocks of a table do not hold what its properties say.
type CountError struct {
	What        string
	Said, Found int64
}

// Error compares both.
func (e *CountError) Error() string {
	return fmt.Sprintf("%s by its properties: %d, found: %d", e.What, e.Said, e.Found)
}

// Count counts the entries of a data block. Every restart point has to be at an entry whose key stands there whole: seeks
// start there, so that a wrong one hides rows from those who seek and from nobody else.
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

// Counter counts the entries of a block while they are read one after the other. Whoever reads adds to the counts, and calls
// AtRestart for the entry that starts at Restart.
type Counter struct {
	Counts
	Restart int // offset of the restart point that comes next, -1 for none
	next    int // its index
}

// Start starts with the first entry of a block.
func (c *Counter) Start(b *Block) { *c = Counter{Restart: b.RestartAt(0)} }

// AtRestart takes an entry at a restart point. One that shares bytes with the key before is none.
func (c *Counter) AtRestart(b *Block) {
	if b.Entries[c.Restart] == 0 {
		c.next++
		c.Restart = b.RestartAt(c.next)
	}
}

// End says whether every restart point was at an entry.
func (c *Counter) End(b *Block) error {
	if c.next < b.NumRestarts() {
		return ErrRestart
	}
	return nil
}
