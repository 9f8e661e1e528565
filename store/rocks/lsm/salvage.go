package lsm

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/cespare/xxhash/v2"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// With Env.Salvage iterators skip unreadable parts: a data block, an index partition, or a whole table if its index or
// other required metadata is damaged. The resulting rows depend only on the files, not on how an iterator reached a
// place:
//
//   - A damaged index is replaced by one made from the data blocks, if these have checksums; see sst/mend.go.
//   - A block that cannot be loaded has no rows. A loaded block has the rows before its first invalid entry; a
//     seek walks there from the start of the block instead of jumping.
//   - The same holds for index partitions and their entries.
//   - A table that cannot be opened has no rows: its file is missing, has the wrong size, is not the table that
//     the MANIFEST names, or its footer, metaindex, properties or dictionary is damaged. No iterator reaches it.
//     (Rows of LevelDB need no metaindex.)
//   - Unreadable range tombstones delete no rows. The other rows of their table are read.
//   - Unsupported features are skipped in the same way and reported as newer: a table of a newer format, a block
//     with an unknown flag or codec, and a single row of an unknown kind.
//   - Rows out of order are not skipped, nor system errors that may be gone the next time.
//
// Skipped parts may have held newer versions or tombstones, so older versions of their keys reappear. No reader can
// find out which; the finding reports whether tables exist that may hold such versions.

// rowSkip marks rows in Skips, which are identified by the hash of their keys.
const rowSkip = 1 << 63

// allCounts is the offset in Skips for a mismatch with the properties' counts.
const allCounts = WholeTable - 1

// Salvages reports whether a salvage skips tables with this error.
func (ks *Keyspace) Salvages(err error) bool { return ks.Env.Salvage && base.IsDamage(err) }

// readable returns the tables that can be opened. Without a salvage it returns all tables or an error.
func (ks *Keyspace) readable() ([]*Table, error) {
	out := make([]*Table, 0, len(ks.Tables))
	disk.Together(ks.Env.Dir, len(ks.Tables), func(i int) { _, _ = ks.Tables[i].Load() })
	for _, t := range ks.Tables {
		ok, err := ks.Opens(t)
		if ks.leaves(t, err) {
			ok, err, t.err = true, nil, err
		}
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, t)
		}
	}
	return out, nil
}

// leaves reports whether an error of opening a table is left to the cursors that reach its keys. Its range tombstones
// delete no others.
func (ks *Keyspace) leaves(t *Table, err error) bool {
	return ks.Env.OpenDamaged && !ks.Env.Resort && base.IsDamage(err) && len(t.Smallest) > 0 && len(t.Largest) > 0
}

// Opens opens a table. False without an error means that the table is skipped.
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

// isForeign reports whether err means that a file is not the table that the MANIFEST names.
func isForeign(err error) bool {
	var c *record.CorruptError
	return errors.As(err, &c) && c.Field == FieldIdentity
}

// lost reports, once, a table that cannot be opened or is the wrong table.
func (ks *Keyspace) lost(t *Table, err error) {
	if !t.skips.First(WholeTable) {
		return
	}
	f := record.Finding{Kind: record.FindDamagedBlock, Severity: record.Error, Keyspace: ks.name, Unread: t.Size + t.Lacks,
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

// undeleted reports, once, unreadable range tombstones.
func (ks *Keyspace) undeleted(t *Table, err error) {
	off := t.info.RangeDel.Off
	if !t.skips.First(off) {
		return
	}
	g := t.gap(nil)
	ks.Unread(t.Place(off), int64(t.info.RangeDel.Size), err, fmt.Sprintf("%s; the range tombstones of this table are missing, so rows that they deleted reappear: keys %s%s",
		Reason(err), &g, ks.comeBack(t, &g)))
}

// Reason returns the text of a table's error without the place, which the finding has already.
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

// salvages reports whether the cursor reads past damage. It does not for a spool, our own file.
func (c *Cursor) salvages() bool { return c.ks.Env.Salvage && !c.Strict && c.T.origins == nil }

// passes reports whether the walk continues after an unreadable part of the current table.
func (c *Cursor) passes(h blocks.Handle, sep []byte, err error) bool {
	if !c.salvages() || !base.IsDamage(err) {
		return false
	}
	c.ks.skipped(c.T, h, sep, err)
	return true
}

// damage ends the walk with an error of the current block; a salvage only ends the block.
func (c *Cursor) damage(err error) bool {
	err = c.T.failBlock(c.handle, err)
	if !c.passes(c.handle, c.walk.Separator(), err) {
		return c.stop(base.BlockError(err))
	}
	c.data, c.pos, c.counting = nil, 0, false
	return false
}

// skipped reports, once, a block whose rows are not read. sep is an upper bound of its keys; nil means the index.
func (ks *Keyspace) skipped(t *Table, h blocks.Handle, sep []byte, err error) {
	if isForeign(err) {
		ks.lost(t, err)
		return
	}
	var n *blocks.CountError
	var m *blocks.MendedError
	switch {
	case errors.As(err, &n):
		ks.miscounted(t, n)
		return
	case !t.skips.First(h.Off):
		return
	case errors.As(err, &m):
		ks.mended(t, h, m, err)
		return
	case errors.Is(err, blocks.ErrRestart), errors.Is(err, blocks.ErrSeparator):
		ks.Damaged(t.Place(h.Off), 0, true, Reason(err)+"; its rows are read one after the other, but the engine's lookups miss some of them")
		return
	}
	g := t.gap(sep)
	ks.Unread(t.Place(h.Off), max(g.size, int64(h.Size)), err,
		fmt.Sprintf("%s; its rows are missing: keys %s%s", Reason(err), &g, ks.comeBack(t, &g)))
}

// mended reports that a damaged index was replaced, and what is not proved without it.
func (ks *Keyspace) mended(t *Table, h blocks.Handle, m *blocks.MendedError, err error) {
	what := fmt.Sprintf("%s; kvferry reads the rows from %s, which have their own checksums", Reason(err),
		record.Count(int64(m.Blocks), "block"))
	if m.Rest != nil {
		g := t.gap(nil)
		what += fmt.Sprintf("; %v: rows are missing: keys %s%s", m.Rest, &g, ks.comeBack(t, &g))
	}
	ks.Damaged(t.Place(h.Off), m.Unread, m.Rest == nil, what)
	ks.Env.Report(record.Finding{Kind: record.FindDamagedBlock, Severity: record.Warning, Keyspace: ks.name,
		Place: t.Place(h.Off), Detail: "without the index it is not proved " + m.Unproved()})
}

// Newer returns the finding kind for an error: a newer engine may have written anything this reader does not support.
func Newer(kind string, err error) string {
	if errors.Is(err, base.ErrUnsupported) {
		return record.FindNewer
	}
	return kind
}

// Unread reports a part that was skipped because of err, of n bytes as far as that is known.
func (ks *Keyspace) Unread(p record.Place, n int64, err error, what string) {
	ks.Env.Report(record.Finding{Unread: n, Kind: Newer(record.FindDamagedBlock, err), Severity: record.Error, Keyspace: ks.name,
		Place: p, Detail: what})
}

// passesRow reports, once, a row of an unknown kind. A salvage skips only that row: it is lost and hides older rows of
// its key, like any newer row.
func (c *Cursor) passesRow(err error) bool {
	if c.suffix > 0 { // the log reader reported it
		return c.ks.Env.Salvage && errors.Is(err, base.ErrUnsupported)
	}
	return c.salvages() && c.ks.rowOfKind(c.T, c.buf[:c.ulen+base.TrailerLen], c.Place(), err)
}

// failKind returns the error of a row of an unknown or invalid kind.
func (c *Cursor) failKind(err error) error {
	p := c.Place()
	if c.suffix == 0 {
		return c.T.Fail(p.Off, "kind", err)
	}
	if !filepath.IsAbs(p.File) {
		p.File = disk.Join(c.ks.Env.Dir, p.File)
	}
	return &record.CorruptError{Keyspace: c.ks.name, Key: bytes.Clone(c.User()), File: p.File, Off: p.Off, Field: "kind",
		Err: err}
}

func (ks *Keyspace) rowOfKind(t *Table, key []byte, p record.Place, err error) bool {
	if !errors.Is(err, base.ErrUnsupported) {
		return false
	}
	user, _ := base.SplitKey(key)
	if t.skips.First(rowSkip | xxhash.Sum64(key)) {
		ks.Unread(p, 0, err, fmt.Sprintf("%s; the row is missing: key %s", Reason(err), record.Quote(user)))
	}
	return true
}

// miscounted reports, once, that a table does not match its properties. Its rows are still read.
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

// gap is the key range of missing rows: from low on, or after it, up to high; low is nil if unknown.
type gap struct {
	low, high []byte
	after     bool
	size      int64 // of the whole table; 0: the size of the rows is that of a block
}

// String describes the range.
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

// gap returns the range of the rows in the index part that ends at sep; nil means the whole table.
func (t *Table) gap(sep []byte) gap {
	g := gap{low: t.First, high: t.Last}
	if sep == nil {
		g.size = t.Size
		return g
	}
	if t.Cmp.Compare(sep, t.Last) < 0 {
		g.high = bytes.Clone(sep)
	}
	if low := t.Source.KeyBefore(sep); low != nil {
		g.low, g.after = low, true
	}
	if t.Cmp.Compare(g.low, g.high) > 0 {
		g.low = nil // the table's bounds enclose only readable rows
	}
	return g
}

// comeBack describes how many tables may hold older rows that the missing rows had deleted or changed.
func (ks *Keyspace) comeBack(t *Table, g *gap) string {
	ks.agesOnce.Do(func() { ks.ages = newAges(ks) })
	n := ks.ages.older(t, g)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; older tables with such keys: %d; rows deleted or changed since then keep their old state there", n)
}
