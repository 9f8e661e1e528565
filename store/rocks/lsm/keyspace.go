package lsm

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sync"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
)

// Keyspace is a column family made of tables and log entries: a store.Keyspace except for what only logs contain.
type Keyspace struct {
	Env    *Env
	name   string
	cmp    *store.Comparer
	Tables []*Table    // by level, then key
	Values ValueSource // nil: all values are in tables

	logRuns  []*Run // at most one
	logBytes int64
	logTombs []Tombstone
	spool    *disk.File // all spools of the keyspace that are not in memory, concatenated
	spooled  int64
	LogErr   error // the logs are damaged: returned by methods that need all rows

	// Shared by all iterators, set by Prepare.
	once  sync.Once
	err   error
	All   []*Run      // logs and tables, newest first
	tombs []Tombstone // by start of coverage
	frags []fragment

	agesOnce sync.Once
	ages     *ages // of its tables, if some are unreadable
}

// New returns a keyspace without tables.
func New(e *Env, name string, c *store.Comparer) *Keyspace {
	return &Keyspace{Env: e, name: name, cmp: c}
}

// SetTables sets the keyspace's tables.
func (ks *Keyspace) SetTables(tables []*Table) {
	slices.SortFunc(tables, func(a, b *Table) int {
		if a.Level != b.Level {
			return a.Level - b.Level
		}
		if c := base.CompareKeys(ks.cmp.Compare, a.Smallest, b.Smallest); c != 0 {
			return c
		}
		return cmp.Compare(a.Number, b.Number)
	})
	ks.Tables = tables
}

// SetLogs sets the keyspace's log entries, sorted; t is nil without entries. bytes is their size.
func (ks *Keyspace) SetLogs(t *Table, bytes int64) {
	if t != nil {
		ks.logRuns = []*Run{{Tables: []*Table{t}}}
	}
	ks.logBytes = bytes
}

// Name returns the name of the column family.
func (ks *Keyspace) Name() string { return ks.name }

// Comparer returns the column family's comparer.
func (ks *Keyspace) Comparer() *store.Comparer { return ks.cmp }

// Size returns the bytes of the tables plus the bytes of the log entries.
func (ks *Keyspace) Size() int64 {
	n := ks.logBytes
	for _, t := range ks.Tables {
		n += t.Size
	}
	return n
}

// cursorSize estimates the memory of a cursor: a block and a read window.
const cursorSize = 16 << 10

// IteratorSize estimates the memory of one cursor per sorted run.
func (ks *Keyspace) IteratorSize() int64 {
	if ks.Prepare() != nil {
		return 0
	}
	n := int64(len(ks.All)) * cursorSize
	if ks.Values != nil {
		n += ks.Values.Size()
	}
	return n
}

// makeRuns groups tables, sorted by level and key, into runs: level 0 by age, each deeper level as one run unless its
// tables overlap, which no engine produces.
func (ks *Keyspace) makeRuns(tables []*Table) []*Run {
	n, _ := slices.BinarySearchFunc(tables, 1, func(t *Table, level int) int { return cmp.Compare(t.Level, level) })
	runs := ks.freshRuns(tables[:n])
	for i := n; i < len(tables); {
		level := tables[i].Level
		j := i
		for j < len(tables) && tables[j].Level == level {
			j++
		}
		runs = append(runs, ks.levelRuns(tables[i:j])...)
		i = j
	}
	return runs
}

// manyFresh is the number of level-0 tables from which disjoint ones share a run.
const manyFresh = 32

// freshRuns makes runs of the level-0 tables, newest first: each its own run or, if there are many, as without a
// MANIFEST, each below all newer ones that it overlaps. Either way the entry of the newer table precedes an equal one.
func (ks *Keyspace) freshRuns(tables []*Table) []*Run {
	tables = slices.Clone(tables)
	slices.SortStableFunc(tables, func(a, b *Table) int { return cmp.Compare(b.Number, a.Number) })
	share := len(tables) >= manyFresh && ks.cmp.Wrapping == nil
	var runs []*Run
	for _, t := range tables {
		i, at := len(runs), 0
		if share {
			i, at = ks.below(runs, t)
		}
		if i == len(runs) {
			runs = append(runs, new(Run))
		}
		runs[i].Tables = slices.Insert(runs[i].Tables, at, t)
	}
	return runs
}

// below finds the highest run below all runs with a table that overlaps t, and t's position in it.
func (ks *Keyspace) below(runs []*Run, t *Table) (i, at int) {
	for i = len(runs); i > 0; i-- {
		tables := runs[i-1].Tables
		n, _ := slices.BinarySearchFunc(tables, t.First, func(u *Table, k []byte) int { return ks.cmp.Compare(u.Last, k) })
		if n < len(tables) && ks.cmp.Compare(tables[n].First, t.Last) <= 0 {
			break
		}
		at = n
	}
	return i, at
}

// levelRuns makes runs of the tables of one level, sorted by smallest key.
func (ks *Keyspace) levelRuns(tables []*Table) []*Run {
	var runs []*Run
next:
	for _, t := range tables {
		for i, r := range runs {
			last := r.Tables[len(r.Tables)-1]
			if base.CompareKeys(ks.cmp.Compare, last.Largest, t.Smallest) < 0 {
				r.Tables = append(r.Tables, t)
				continue next
			}
			if i == 0 {
				ks.Env.Report(record.Finding{Kind: "overlapping-tables", Severity: record.Warning, Keyspace: ks.name,
					Place: t.Place(0), Detail: fmt.Sprintf("overlaps %s of the same level; both are read", last.Name)})
			}
		}
		runs = append(runs, &Run{Tables: []*Table{t}})
	}
	return runs
}

// AddTombstone adds a range tombstone of the logs.
func (ks *Keyspace) AddTombstone(from, to []byte, seq uint64, p record.Place) {
	start, end := bytes.Clone(from), bytes.Clone(to)
	d := Tombstone{Start: start, End: end, Seq: seq, from: bound{key: start}, place: p}
	d.to = maxBound(ks.cmp.Compare, bound{key: end}, d.from)
	ks.logTombs = append(ks.logTombs, d)
}

// coverage returns the range tombstones' coverage from lo on; nil without tombstones.
func (ks *Keyspace) coverage(lo []byte) *coverage {
	if len(ks.frags) == 0 {
		return nil
	}
	c := &coverage{compare: ks.cmp.Compare, frags: ks.frags}
	if lo != nil {
		c.seek(lo)
	}
	return c
}

// tombstonesFrom returns the range tombstones that start to cover in [lo, hi).
func (ks *Keyspace) tombstonesFrom(lo, hi []byte) []Tombstone {
	from, to := 0, len(ks.tombs)
	search := func(key []byte) int {
		i, _ := slices.BinarySearchFunc(ks.tombs, key, func(d Tombstone, k []byte) int {
			if c := ks.cmp.Compare(d.from.key, k); c != 0 {
				return c
			}
			return 1
		})
		return i
	}
	if lo != nil {
		from = search(lo)
	}
	if hi != nil {
		to = search(hi)
	}
	return ks.tombs[from:max(from, to)]
}
