package record

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Tally counts the rows of one keyspace by class, and the physical entries behind them.
type Tally struct {
	Rows [NumClasses]int64

	// Entries is the number of entries read from tables and logs. Each is one of the five below.
	Entries      int64
	Visible      int64 // the newest of its key and not deleted: one row each
	Superseded   int64 // hidden by a newer entry of the same key
	Tombstones   int64 // deletes and single deletes, hidden or not
	RangeDeleted int64 // covered by a range tombstone
	Folded       int64 // merge operands of a row, except the entry counted as Visible
}

// Add adds u to t.
func (t *Tally) Add(u *Tally) {
	for i := range t.Rows {
		t.Rows[i] += u.Rows[i]
	}
	t.Entries += u.Entries
	t.Visible += u.Visible
	t.Superseded += u.Superseded
	t.Tombstones += u.Tombstones
	t.RangeDeleted += u.RangeDeleted
	t.Folded += u.Folded
}

// Total returns the number of classified rows.
func (t *Tally) Total() int64 {
	var n int64
	for _, c := range t.Rows {
		n += c
	}
	return n
}

// Check returns an error unless the classes add up to the visible rows, and the outcomes of entries to the entries
// read.
func (t *Tally) Check() error {
	if n := t.Total(); n != t.Visible {
		return fmt.Errorf("%s rows classified, %s rows read", Number(n), Number(t.Visible))
	}
	if n := t.Visible + t.Superseded + t.Tombstones + t.RangeDeleted + t.Folded; n != t.Entries {
		return fmt.Errorf("%s entries explained, %s entries read", Number(n), Number(t.Entries))
	}
	return nil
}

// Ledger accounts for every row of a source, keyspace by keyspace. It is safe for concurrent use:
// each reader counts in its own Tally and adds it on Close.
type Ledger struct {
	mu        sync.Mutex
	keyspaces map[string]*Tally
}

// Add adds a reader's counts for a keyspace. A nil Ledger ignores them.
func (l *Ledger) Add(keyspace string, t *Tally) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.keyspaces == nil {
		l.keyspaces = make(map[string]*Tally)
	}
	if l.keyspaces[keyspace] == nil {
		l.keyspaces[keyspace] = new(Tally)
	}
	l.keyspaces[keyspace].Add(t)
}

// Merge adds all of m.
func (l *Ledger) Merge(m *Ledger) {
	for name, t := range m.Snapshot() {
		l.Add(name, &t)
	}
}

// Snapshot returns a copy of the counts by keyspace.
func (l *Ledger) Snapshot() map[string]Tally {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make(map[string]Tally, len(l.keyspaces))
	for name, t := range l.keyspaces {
		out[name] = *t
	}
	return out
}

// Check returns an error for the first keyspace whose counts do not add up.
func (l *Ledger) Check() error {
	snap := l.Snapshot()
	for _, name := range slices.Sorted(maps.Keys(snap)) {
		t := snap[name]
		if err := t.Check(); err != nil {
			return fmt.Errorf("ledger of %s: %w", name, err)
		}
	}
	return nil
}
