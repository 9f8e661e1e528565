package lsm

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"sync"

	"github.com/cespare/xxhash/v2"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// With Options.Salvage iterators skip what cannot be read: a data block, a partition of an index, or an index, which
// is all rows of its table, and so is what says how they are to be read. Which rows there are then depends on the files
// alone, not on how an iterator came to a place:
//
//   - A block that cannot be loaded has no rows. One that loads has those before the first entry that is none; a
//     seek walks there from the start of the block, where it would jump otherwise.
//   - The same holds for partitions of an index and their entries.
//   - A table that cannot be opened has no rows: it is missing, of another size than the MANIFEST says, another one than
//     the MANIFEST names, or its footer, metaindex, properties or dictionary is damaged. No iterator comes to it. (Rows of LevelDB need no metaindex.)
//   - Range tombstones that cannot be read delete nothing. The other rows of their table are read.
//   - What this reader does not know is skipped in the same way, and reported as newer: a table of a newer format, a block
//     with an unknown flag or codec, and of a row of an unknown kind that row alone.
//   - Rows out of order are not skipped, nor errors of the system that may be gone the next time.
//
// What was skipped may have held newer versions or tombstones, so that older versions of its keys come back.
// Nobody can tell which; the finding says whether there are tables that could have some.

// What errors and findings call parts of a table.
const (
	FieldBlock    = "block"
	FieldFileSize = "file size"
	FieldIdentity = "identity" // the file is another table than the MANIFEST names
)

// WholeTable stands for a table that cannot be opened among the offsets of what was reported of it.
const WholeTable = math.MaxUint64

// rowSkip marks rows there, by the hash of their keys.
const rowSkip = 1 << 63

// allCounts stands there for what the properties count.
const allCounts = WholeTable - 1

// Skips remembers the blocks of a table that were reported.
type Skips struct {
	mu  sync.Mutex
	off map[uint64]bool
}

// First reports whether a block is seen for the first time.
func (s *Skips) First(off uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off[off] {
		return false
	}
	if s.off == nil {
		s.off = map[uint64]bool{}
	}
	s.off[off] = true
	return true
}

// whole reports whether all of the table was read, so far.
func (s *Skips) whole() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.off) == 0
}

// Salvages reports whether tables with an error are skipped.
func (ks *Keyspace) Salvages(err error) bool { return ks.Env.Salvage && base.IsDamage(err) }

// readable returns the tables that can be opened. Without a salvage these are all, or there is an error.
func (ks *Keyspace) readable() ([]*Table, error) {
	out := make([]*Table, 0, len(ks.Tables))
	for _, t := range ks.Tables {
		ok, err := ks.Opens(t)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, t)
		}
	}
	return out, nil
}

// Opens opens a table. False without an error is one that is skipped.
func (ks *Keyspace) Opens(t *Table) (bool, error) {
	info, err := t.Load()
	if err != nil {
		if !ks.Salvages(err) {
			return false, base.BlockError(err)
		}
		ks.lost(t, err)
		return false, nil
	}
	if err := info.TombErr; err != nil {
		if !ks.Salvages(err) {
			return false, base.BlockError(err)
		}
		ks.undeleted(t, err)
	}
	return true, nil
}

// isForeign reports whether a table is another one than the MANIFEST names.
func isForeign(err error) bool {
	var c *record.CorruptError
	return errors.As(err, &c) && c.Field == FieldIdentity
}

// lost reports, once, a table that cannot be opened, or that is another one.
func (ks *Keyspace) lost(t *Table, err error) {
	if !t.skips.First(WholeTable) {
		return
	}
	f := record.Finding{Kind: record.FindDamagedBlock, Severity: record.Error, Keyspace: ks.name,
		Place: record.Place{File: t.Name, Off: record.NoOffset, Level: t.Level}}
	var missing *store.MissingError
	var c *record.CorruptError
	switch {
	case errors.As(err, &missing):
		f.Kind = record.FindMissingFile
	case errors.As(err, &c):
		f.Place.Off = c.Off
		switch c.Field {
		case FieldFileSize:
			f.Kind = record.FindFileSize
		case FieldIdentity:
			f.Kind = record.FindForeignTable
		}
		f.Kind = Newer(f.Kind, err)
	}
	g := t.gap(nil)
	f.Detail = fmt.Sprintf("%s; its rows are missing: keys %s%s", Reason(err), &g, ks.comeBack(t, &g))
	ks.Env.Report(f)
}

// undeleted reports, once, range tombstones that cannot be read.
func (ks *Keyspace) undeleted(t *Table, err error) {
	off := t.info.RangeDel.Off
	if !t.skips.First(off) {
		return
	}
	g := t.gap(nil)
	ks.Unread(t.Place(off), err, fmt.Sprintf("%s; the range tombstones of this table are missing, so what they deleted is still there: keys %s%s",
		Reason(err), &g, ks.comeBack(t, &g)))
}

// Reason is the error of a table without the places that its finding has.
func Reason(err error) string {
	var c *record.CorruptError
	var path *fs.PathError
	var missing *store.MissingError
	switch {
	case errors.As(err, &c) && c.Field != "":
		return c.Reason()
	case errors.As(err, &path):
		return fmt.Sprintf("%s: %v", path.Op, path.Err)
	case errors.As(err, &missing):
		return missing.Why()
	}
	return err.Error()
}

// salvages reports whether the cursor reads past damage. A spool is our own: it is whole.
func (c *Cursor) salvages() bool { return c.ks.Env.Salvage && c.T.origins == nil }

// passes reports whether the walk continues after a part of the current table that cannot be read.
func (c *Cursor) passes(h blocks.Handle, sep []byte, err error) bool {
	if !c.salvages() || !base.IsDamage(err) {
		return false
	}
	c.ks.skipped(c.T, h, sep, err)
	return true
}

// damage ends the walk with an error of the current block, or ends the block.
func (c *Cursor) damage(err error) bool {
	err = c.T.failBlock(c.handle, err)
	if !c.passes(c.handle, c.walk.Separator(), err) {
		return c.stop(base.BlockError(err))
	}
	c.data, c.pos, c.counting = nil, 0, false
	return false
}

// skipped reports, once, a block of a table whose rows are not read. No key in it is after sep; nil means the index.
func (ks *Keyspace) skipped(t *Table, h blocks.Handle, sep []byte, err error) {
	if isForeign(err) {
		ks.lost(t, err)
		return
	}
	var n *blocks.CountError
	switch {
	case errors.As(err, &n):
		ks.miscounted(t, n)
		return
	case !t.skips.First(h.Off):
		return
	case errors.Is(err, blocks.ErrRestart), errors.Is(err, blocks.ErrSeparator):
		ks.Damaged(t.Place(h.Off), Reason(err)+"; its rows are read one after the other, but the engine's lookups miss some of them")
		return
	}
	g := t.gap(sep)
	ks.Unread(t.Place(h.Off), err, fmt.Sprintf("%s; its rows are missing: keys %s%s", Reason(err), &g, ks.comeBack(t, &g)))
}

// Newer is the kind of the finding of an error: what this reader does not know, a newer engine may have written.
func Newer(kind string, err error) string {
	if errors.Is(err, base.ErrUnsupported) {
		return record.FindNewer
	}
	return kind
}

// Unread reports what was skipped because of an error.
func (ks *Keyspace) Unread(p record.Place, err error, what string) {
	ks.Env.Report(record.Finding{Kind: Newer(record.FindDamagedBlock, err), Severity: record.Error, Keyspace: ks.name, Place: p, Detail: what})
}

// passesRow reports a row of a kind that is not known, once. A salvage leaves out that row alone: it is lost, and hides older
// ones of its key as any newer row does.
func (c *Cursor) passesRow(err error) bool {
	if c.suffix > 0 { // who read the log reported it
		return c.ks.Env.Salvage && errors.Is(err, base.ErrUnsupported)
	}
	return c.salvages() && c.ks.rowOfKind(c.T, c.buf[:c.ulen+base.TrailerLen], c.Place(), err)
}

// failKind is the error of a row of a kind that is not known, or that no table may hold.
func (c *Cursor) failKind(err error) error {
	p := c.Place()
	if c.suffix == 0 {
		return c.T.Fail(p.Off, "kind", err)
	}
	if !filepath.IsAbs(p.File) {
		p.File = filepath.Join(c.ks.Env.Dir, p.File)
	}
	return &record.CorruptError{Keyspace: c.ks.name, Key: bytes.Clone(c.User()), File: p.File, Off: p.Off, Field: "kind", Err: err}
}

func (ks *Keyspace) rowOfKind(t *Table, key []byte, p record.Place, err error) bool {
	if !errors.Is(err, base.ErrUnsupported) {
		return false
	}
	if user, _ := base.SplitKey(key); t.skips.First(rowSkip | xxhash.Sum64(key)) {
		ks.Unread(p, err, fmt.Sprintf("%s; the row is missing: key %s", Reason(err), record.Quote(user)))
	}
	return true
}

// miscounted reports, once, that a table does not hold what its properties say. Its rows are read.
func (ks *Keyspace) miscounted(t *Table, n *blocks.CountError) {
	if !t.skips.First(allCounts) {
		return
	}
	f := record.Finding{Kind: record.FindEntryCount, Severity: record.Error, Keyspace: ks.name, Detail: n.Error(),
		Place: record.Place{File: t.Name, Off: record.NoOffset, Level: t.Level}}
	if n.What == blocks.Tombstones {
		f.Kind = record.FindDeleteCount
	}
	ks.Env.Report(f)
}

// gap is where rows are missing: keys from low on, or after it, up to high; low is nil where it is not known.
type gap struct {
	low, high []byte
	after     bool
}

// String says which keys these are.
func (g *gap) String() string {
	if g.low == nil {
		return "up to " + record.Quote(g.high)
	}
	from := "from"
	if g.after {
		from = "after"
	}
	return fmt.Sprintf("%s %s up to %s", from, record.Quote(g.low), record.Quote(g.high))
}

// gap finds where the rows lie whose part of the index ends at sep: all of the table's with nil.
func (t *Table) gap(sep []byte) gap {
	g := gap{low: t.First, high: t.Last}
	if sep == nil {
		return g
	}
	if t.Cmp.Compare(sep, t.Last) < 0 {
		g.high = bytes.Clone(sep)
	}
	if low := t.Source.KeyBefore(sep); low != nil {
		g.low, g.after = low, true
	}
	if t.Cmp.Compare(g.low, g.high) > 0 {
		g.low = nil // the table's bounds are those of what can be read
	}
	return g
}

// comeBack says in how many tables older rows may be that a gap had deleted or changed.
func (ks *Keyspace) comeBack(t *Table, g *gap) string {
	ks.agesOnce.Do(func() { ks.ages = newAges(ks) })
	n := ks.ages.older(t, g)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; older tables with such keys: %d, in which what was deleted or changed since stands as it was", n)
}
