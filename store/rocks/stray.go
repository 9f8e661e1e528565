package rocks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
	"kvferry/store/rocks/lsm"
	"kvferry/store/rocks/sst"
)

// Tables that the MANIFEST does not list are not read. A killed server leaves two kinds: the output of a flush, whose
// entries are still in the logs, and the output of a compaction, whose inputs are still listed. An engine gives up logs
// and inputs only after the edit that replaces them, and removes deleted files some time later. So an entry that is in
// no listed table and in no log was once in the MANIFEST, and the MANIFEST has lost that edit.

// strays examines the tables in the directory that the MANIFEST does not list. complete means that these tables have no
// rows of their own.
func (db *database) strays(ctx context.Context) (complete bool, err error) {
	known := map[string]bool{}
	for _, ks := range db.spaces {
		for _, t := range ks.Tables {
			known[t.Name] = true
		}
		for _, b := range ks.blobs.order {
			known[b.name] = true
		}
	}
	entries, err := disk.ReadDir(db.dir)
	if err != nil {
		return false, err
	}
	complete = true
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		if ext == blobExt && !known[e.Name()] {
			db.report(record.Finding{Kind: "unreferenced-blobs", Severity: record.Note, Place: record.InFile(e.Name()),
				Detail: "the blob file is not listed in the MANIFEST; kvferry does not read it"})
		}
		if !base.IsTable(ext) || known[e.Name()] {
			continue
		}
		f, clear, err := db.stray(ctx, e.Name(), strings.TrimSuffix(e.Name(), ext))
		if err != nil {
			return false, err
		}
		complete = complete && clear
		f.Place = record.InFile(e.Name())
		db.report(f)
	}
	return complete, nil
}

// stray judges a table that the MANIFEST does not list; clear means that it has no rows of its own. A running server
// may still be writing the table.
func (db *database) stray(ctx context.Context, name, number string) (f record.Finding, clear bool, err error) {
	f = record.Finding{Kind: "unreferenced-table", Severity: record.Note,
		Detail: "the table is not listed in the MANIFEST; kvferry does not read it"}
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil || db.version.Mentioned[n] {
		return f, true, nil
	}
	if db.opts.AllowLive && store.CheckLive(db.dir, lockFile) != nil {
		return f, false, nil
	}
	s := &strayTable{db: db, number: n, at: map[*lsm.Table]*lsm.Cursor{}}
	lost, err := s.lost(ctx, name)
	if lost == "" && err == nil && s.gone != "" && n >= db.version.NextFile {
		// engines delete a table after the edit that replaces it
		lost = fmt.Sprintf("%s, which it names, does not exist", s.gone)
	}
	switch {
	case ctx.Err() != nil:
		return f, false, context.Cause(ctx)
	case disk.IsAccess(err):
		return f, false, err
	case lost != "":
		db.behind = base.Corrupt(db.version.Path, db.version.Size, "end",
			fmt.Errorf("it is lost: the MANIFEST does not name %s, and %s", name, lost))
		f.Kind, f.Severity = "manifest-behind", record.Error
		f.Detail = "the MANIFEST does not name this table, so it is not read, and " + lost +
			": the MANIFEST has lost records, at its end or before; bring back the MANIFEST that belongs to the tables"
	case err != nil && n >= db.version.NextFile:
		f.Kind, f.Severity = "manifest-behind", record.Warning
		f.Detail = fmt.Sprintf("the MANIFEST names files up to number %d and not this table, which is not read: a flush or compaction "+
			"was cut short, or the end of the MANIFEST is lost; the table cannot be compared: %v",
			max(db.version.NextFile, 1)-1, err)
	case err == nil && s.unsure != nil:
		f.Kind, f.Severity = "manifest-behind", record.Warning
		f.Detail = fmt.Sprintf("the MANIFEST does not name this table, so it is not read. It is older than the MANIFEST: a compaction may have removed its rows, "+
			"such as the row of key %s, which exists nowhere else, or the MANIFEST has lost a record", record.Quote(s.unsure))
	case err == nil:
		f.Detail += ", and its contents are also in the tables and logs that are listed"
		if s.unread != "" {
			f.Detail += fmt.Sprintf(", although %s cannot be read", s.unread)
		}
	}
	return f, lost == "" && err == nil && s.unsure == nil, nil
}

// strayTable compares an unlisted table with the listed tables and the logs.
type strayTable struct {
	db     *database
	number uint64
	t      *lsm.Table
	spaces []*family // that the table may belong to
	unread string    // an unreadable listed table that may have the same entries
	gone   string    // such a table whose file does not exist
	unsure []byte    // a key found nowhere else, which may have been deleted since
	// at has a cursor for each table in which entries were looked up; lookups ascend.
	at map[*lsm.Table]*lsm.Cursor
}

// maxLooked is the maximum number of open cursors.
const maxLooked = 32

// older reports whether the table is older than the MANIFEST: an edit before the MANIFEST may have deleted it.
func (s *strayTable) older() bool { return s.number < s.db.version.Number }

// holds reports whether a listed table has an entry, or one that replaced it. A compaction may have set the sequence
// number to 0 in either table.
func (s *strayTable) holds(ks *family, t *lsm.Table, key []byte, seq uint64) bool {
	if w := t.Cmp.Wrapping; w != nil {
		if _, ok := w.Number(key); ok {
			return true // the circle gives no order to look it up by
		}
	}
	if _, err := t.Load(); err != nil {
		s.unread = t.Name
		if t.Missing() {
			s.gone = t.Name
		}
		return true // reading that table reports the error
	}
	c := s.at[t]
	if c == nil {
		if len(s.at) >= maxLooked {
			s.close()
		}
		c = lsm.NewCursor(ks.Keyspace, []*lsm.Table{t}, nil)
		c.Strict = true // what a salvage skips may be the entry
		s.at[t] = c
	}
	ok := !c.Done && (c.At(key) || c.Seek(key))
	if ok && s.older() && c.At(key) && c.Tr>>8 > seq {
		return true
	}
	for ok && seq > 0 && c.At(key) && c.Tr>>8 > seq {
		ok = c.Next()
	}
	if c.Err != nil {
		s.unread = t.Name
		return true
	}
	return ok && c.At(key) && (seq == 0 || c.Tr>>8 == seq || c.Tr>>8 == 0)
}

// close ends all cursors.
func (s *strayTable) close() {
	for _, c := range s.at {
		c.Close()
	}
	clear(s.at)
}

// errLost stops reading at the first entry that is found nowhere else.
var errLost = errors.New("lost")

// lost describes an entry that only this table has, or returns "". An error means that the answer is unknown.
func (s *strayTable) lost(ctx context.Context, name string) (string, error) {
	file, err := s.db.files.Open(s.db.dir, name, false)
	if err != nil {
		return "", err
	}
	r := s.db.newSource(file, &sst.Options{Unlisted: true, Comparer: s.db.spaces[0].Comparer()})
	info, err := r.Reader.Open()
	if err != nil {
		return "", err
	}
	if info.External {
		return "", errors.New("it was made outside, to be ingested")
	}
	if info.HasFamily && info.Family > uint64(s.db.version.MaxFamily) {
		return fmt.Sprintf("it is of column family %d, which the MANIFEST does not know", info.Family), nil
	}
	err = s.choose(&info.Properties)
	if len(s.spaces) == 0 {
		return "", err
	}
	defer s.close()
	s.t = lsm.NewUnboundedTable(s.spaces[0].Keyspace, lsm.Meta{Name: name, Path: file.Path, Level: -1, Number: s.number}, r)
	if s.db.logErr != nil {
		return "", s.db.logErr
	}
	return s.compare(ctx)
}

// choose finds the column families that the table may belong to; an empty result without an error means a dropped
// family.
func (s *strayTable) choose(p *sst.Properties) error {
	var err error
	for _, ks := range s.db.spaces {
		switch {
		case p.HasFamily && p.Family != uint64(ks.id):
		case p.Comparator != "" && p.Comparator != ks.Comparer().Name:
			err = fmt.Errorf("it is in the order of %s", p.Comparator)
		default:
			if ks.holders == nil {
				ks.holders = newHolders(ks)
			}
			s.spaces = append(s.spaces, ks)
		}
	}
	return err
}

// compare reads the table until it finds something that is nowhere else. It continues after damage.
func (s *strayTable) compare(ctx context.Context) (lost string, err error) {
	look := func(what string, key []byte, seq uint64) error {
		lost = fmt.Sprintf("the %s of key %s with sequence number %d is not in any of the tables and logs that are", what,
			record.Quote(key), seq)
		return errLost
	}
	info, err := s.t.Load()
	if err != nil {
		return "", err
	}
	damage := info.TombErr
	for _, d := range info.Tombstones {
		if !s.hasTombstone(d.Seq) {
			return lost, look("range tombstone", d.Start, d.Seq)
		}
	}
	read := 0
	err = s.t.Scan(func(e *store.Entry) error {
		if read++; read%1024 == 1 && ctx.Err() != nil {
			return ctx.Err()
		}
		if !s.has(e.Key, e.Seq) {
			return look("entry", e.Key, e.Seq)
		}
		return nil
	}, func(h blocks.Handle, err error) error {
		damage = cmp.Or(damage, s.t.Fail(int64(h.Off), lsm.FieldBlock, err))
		return nil
	})
	return lost, cmp.Or(err, damage)
}

// has reports whether an entry is in a log or in a listed table, or may have been dropped since: see mayBeIn.
func (s *strayTable) has(key []byte, seq uint64) bool {
	if s.logged(seq) {
		return true
	}
	for _, ks := range s.spaces {
		fits := func(t *lsm.Table) bool {
			return (s.db.levelDB || s.older() || mayHold(t, seq)) && s.holds(ks, t, key, seq)
		}
		if ks.holders.find(key, fits) != nil {
			return true
		}
	}
	if !slices.ContainsFunc(s.spaces, func(ks *family) bool { return ks.holders.find(key, s.mayBeIn) != nil }) {
		return false
	}
	if s.unsure == nil {
		s.unsure = append([]byte{}, key...)
	}
	return true
}

// hasTombstone is has for a range tombstone, whose key a compaction may have moved to the bounds of its table.
func (s *strayTable) hasTombstone(seq uint64) bool {
	return s.logged(seq) || slices.ContainsFunc(s.spaces, func(ks *family) bool { return ks.holders.mayHold(seq) })
}

// mayHold reports whether a table's sequence numbers in the MANIFEST allow for an entry with number seq, or for one
// that a compaction has since set to 0. LevelDB's MANIFEST has no such numbers.
func mayHold(t *lsm.Table, seq uint64) bool {
	return seq == 0 || t.MinSeq <= seq && seq <= t.MaxSeq
}

// mayBeIn reports whether a compaction may have made t from the table: an edit before the current MANIFEST may have
// deleted a table that is older than the MANIFEST.
func (s *strayTable) mayBeIn(t *lsm.Table) bool {
	return s.older() && s.number < t.Number
}

// logged reports whether a log has a sequence number.
func (s *strayTable) logged(seq uint64) bool {
	return slices.ContainsFunc(s.spaces, func(ks *family) bool { return ks.holders.seqs.Has(seq) })
}

// newHolders looks at all tables and logs of a column family.
func newHolders(ks *family) *holders {
	h := &holders{tables: slices.Clone(ks.Tables), compare: ks.Comparer().Compare, circle: ks.Comparer().Wrapping != nil}
	if !h.circle {
		slices.SortStableFunc(h.tables, func(t, u *lsm.Table) int { return h.compare(t.First, u.First) })
		h.ends = make([][]byte, len(h.tables))
		h.root(0, len(h.tables))
	}
	for _, t := range h.tables {
		h.bounds.ranges = append(h.bounds.ranges, seqRange{t.MinSeq, t.MaxSeq})
	}
	h.bounds.ranges = joined(h.bounds.ranges)
	var logs []*seqSet
	for _, l := range ks.st.logs {
		if ks.reads(l) {
			logs = append(logs, &l.seqs)
		}
	}
	h.seqs = union(logs)
	return h
}
