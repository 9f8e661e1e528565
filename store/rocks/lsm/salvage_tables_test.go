package lsm_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
	"kvferry/store/rocks/lsm"
	"kvferry/store/rocks/sst"
)

// The cases of ofTables: the last loses the range tombstones of a table, the others the whole table.
const (
	partMissing   = "missing"
	partCut       = "cut off"
	partFooter    = "footer"
	partMetaindex = "metaindex"
	partMeta      = "properties or dictionary"
	partTombs     = "range tombstones"
)

// nowhere reports whether a part is no stretch of its file.
func (p *part) nowhere() bool { return p.what == partMissing || p.what == partCut }

// off is the offset of a part in its file.
func (p *part) off() int64 {
	if p.nowhere() {
		return record.NoOffset
	}
	return int64(p.h.Off)
}

// kind is the kind of finding that a part leads to.
func (p *part) kind() string {
	switch p.what {
	case partMissing:
		return record.FindMissingFile
	case partCut:
		return record.FindFileSize
	}
	return record.FindDamagedBlock
}

// ofTables lists, for every table of a sound database, the ways in which all of it can be lost, and its range tombstones.
func ofTables(t testing.TB, db *database) []*part {
	t.Helper()
	return ofEach(t, db, ofTable)
}

func ofTable(t testing.TB, dir string, tab *lsm.Table) (parts []*part) {
	t.Helper()
	r := embedded[*sst.Reader](tab.Source, "Reader")
	info, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	lost := lostWith(partsOfTable(t, dir, tab))
	tombs := map[uint64]bool{}
	for _, d := range info.Tombstones {
		tombs[d.Seq] = true
	}
	add := func(what string, h blocks.Handle) {
		p := &part{what: what, file: tab.Name, h: h, lost: []map[entryID]bool{lost}, tombs: tombs}
		if what == partTombs {
			p.lost[0] = nil
		}
		parts = append(parts, p)
	}
	add(partMissing, blocks.Handle{})
	add(partCut, blocks.Handle{})
	n := uint64(testsst.RocksFooter)
	if info.Legacy {
		n = testsst.LevelFooter
	}
	add(partFooter, blocks.Handle{Off: uint64(tab.Size) - n, Size: n - blocks.TrailerLen})
	if info.Legacy { // its rows need no more
		return parts
	}
	add(partMetaindex, info.Metaindex)
	err = r.EachMeta(func(name string, value []byte) error {
		if strings.Contains(name, "filter.") {
			return nil
		}
		f := &base.Fields{Buf: value}
		if h := blocks.ReadHandle(f, name); h == info.RangeDel {
			add(partTombs, h)
		} else {
			add(partMeta, h)
		}
		return f.Err
	})
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// chooseTables damages some of the parts of ofTables, except footers, where the result depends on the byte.
func chooseTables(r *rand.Rand, parts []*part, chance int) (out []damage) {
	gone := map[string]bool{}
	for _, i := range r.Perm(len(parts)) {
		p := parts[i]
		if r.Intn(30) >= chance || p.what == partFooter || p.what != partTombs && gone[p.file] {
			continue
		}
		gone[p.file] = gone[p.file] || p.what != partTombs
		out = append(out, damage{p, -1})
	}
	// Damage a file before removing it.
	slices.SortStableFunc(out, func(a, b damage) int {
		return bytes.Compare([]byte{flag(a.nowhere())}, []byte{flag(b.nowhere())})
	})
	return out
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// withoutTombs returns the remaining range tombstones.
func withoutTombs(tombs []lsm.Tombstone, ds []damage) []lsm.Tombstone {
	lost := map[uint64]bool{}
	for i := range ds {
		maps.Copy(lost, ds[i].tombs)
	}
	return slices.DeleteFunc(slices.Clone(tombs), func(d lsm.Tombstone) bool { return lost[d.Seq] })
}

// tombstoneDB is salvageDB with range tombstones over parts of it, one of them in a table of the deepest level.
func tombstoneDB(t testing.TB, spec testsst.Spec) (dir string, entries []testsst.Entry, tombs []lsm.Tombstone) {
	d := testsst.NewDB(t)
	if spec.LevelDB {
		d = testsst.NewLevelDB(t)
	}
	seq := uint64(1)
	add := func(level, from, to, step int, ranges ...int) {
		var list []testsst.Entry
		s := spec
		for i := from; i < to; i += step {
			list = append(list, testsst.Put(fmt.Sprintf("key%04d", i), seq,
				fmt.Sprintf("value of level %d, number %d", level, i)))
			seq++
		}
		for i := 0; i+1 < len(ranges) && !spec.LevelDB; i += 2 {
			e := testsst.NewEntry(fmt.Sprintf("key%04d", ranges[i]), seq, base.KindRangeDelete,
				fmt.Sprintf("key%04d", ranges[i+1]))
			s.Tombstones = append(s.Tombstones, e)
			tombs = append(tombs, lsm.Tombstone{Start: []byte(e.Key), End: []byte(e.Value), Seq: seq})
			seq++
		}
		entries = append(entries, list...)
		d.Table(0, level, s, list...)
	}
	add(2, 0, 100, 1)
	add(2, 100, 250, 1)
	add(1, 0, 250, 3, 20, 40, 90, 120)
	add(0, 0, 250, 7, 30, 60)
	add(0, 10, 240, 11)
	return d.Finish(), entries, tombs
}

// TestSalvageEveryTable loses every table of a database in turn and all at once, in every way: the contents of the
// other tables remain. Without Options.Salvage each loss is an error that marks itself as skippable.
func TestSalvageEveryTable(t *testing.T) {
	for _, spec := range []testsst.Spec{{BlockSize: 200, Dict: []byte("value of level number")},
		{BlockSize: 300, IndexType: testsst.TwoLevelIndex, Codec: testsst.Snappy}, {BlockSize: 300, LevelDB: true}} {
		dir, entries, tombs := tombstoneDB(t, spec)
		sound := openTest(t, dir, store.Options{})
		parts := ofTables(t, sound)
		sound.Close()
		byWhat := map[string][]damage{}
		var sets [][]damage
		for _, p := range parts {
			sets = append(sets, []damage{{p, -1}})
			byWhat[p.what] = append(byWhat[p.what], damage{p, -1})
		}
		for _, what := range []string{partMissing, partCut, partMetaindex, partTombs} {
			sets = append(sets, byWhat[what])
		}
		if len(byWhat[partMissing]) != 5 || !spec.LevelDB && (len(byWhat[partTombs]) != 2 || len(byWhat[partMeta]) < 5) {
			t.Fatalf("parts %v", byWhat)
		}
		for n, set := range sets {
			if len(set) > 0 && set[0].what != partFooter {
				checkLost(t, int64(n), dir, entries, tombs, set)
			}
		}
	}
}

// checkLost damages a copy of a database and reads it in all ways.
func checkLost(t *testing.T, seed int64, dir string, entries []testsst.Entry, tombs []lsm.Tombstone, set []damage) {
	t.Helper()
	r := rand.New(rand.NewSource(seed))
	broken := testsst.CopyDir(t, dir)
	for i := range set {
		set[i].apply(t, broken, r)
	}
	m := &model{cmp: bytes.Compare, merger: testsst.JoinMerger, tombs: withoutTombs(tombs, set)}
	m.read(without(entries, set))
	for _, resort := range []bool{false, true} {
		db, found := openFindings(t, broken, store.Options{Merger: testsst.JoinMerger, Salvage: true, Resort: resort})
		ks := db.Keyspaces()[0]
		checkModel(t, seed, ks, m, r)
		checkWorkers(t, ks, m)
		checkSamples(t, ks, m)
		checkUnordered(t, ks, m)
		wantSkips(t, *found, set)
		wantFiles(t, broken, db)
		if err := db.CheckBlocks(context.Background()); err != nil {
			t.Fatal(err)
		}
		db.Close()
	}
	var block *store.BlockError
	err := rowsError(broken, store.Options{Merger: testsst.JoinMerger})
	if !errors.As(err, &block) ||
		!slices.ContainsFunc(set, func(d damage) bool { return strings.Count(err.Error(), d.file) == 1 }) {
		t.Fatalf("%s of %s: without salvage: %v", set[0].what, set[0].file, err)
	}
}

// checkSamples takes samples: their weights do not exceed the existing bytes.
func checkSamples(t *testing.T, ks store.Keyspace, m *model) {
	t.Helper()
	samples, err := ks.Sample(20)
	if err != nil || len(samples) == 0 != (m.tally.Entries == int64(len(m.tombs))) {
		t.Fatalf("%d samples of %d rows, %v", len(samples), len(m.rows), err)
	}
	var sum int64
	for _, s := range samples {
		sum += s.Bytes
	}
	if sum > ks.Size() {
		t.Fatalf("samples stand for %d bytes of %d", sum, ks.Size())
	}
}

// checkUnordered reads in physical order: all entries that are left.
func checkUnordered(t *testing.T, ks store.Keyspace, m *model) {
	t.Helper()
	n := int64(0)
	if err := ks.Unordered(func(*store.Entry) error { n++; return nil }); err != nil || n != m.tally.Entries {
		t.Fatalf("%d entries in physical order, %d in that of keys, %v", n, m.tally.Entries, err)
	}
}

// wantFiles checks that the listed files exist.
func wantFiles(t *testing.T, dir string, db *database) {
	t.Helper()
	listed := map[string]bool{}
	for _, f := range db.Files() {
		info, err := os.Stat(filepath.Join(dir, f.Path))
		if err != nil || info.Size() != f.Size {
			t.Errorf("%+v is listed: %v", f, err)
		}
		listed[f.Path] = true
	}
	for _, tab := range db.spaces[0].Tables {
		if _, err := os.Stat(filepath.Join(dir, tab.Name)); (err == nil) != listed[tab.Name] {
			t.Errorf("%s: %v, listed is %t", tab.Name, err, listed[tab.Name])
		}
	}
}

// TestSalvageEveryLength cuts each table off at every length: all its rows are missing, and no others.
func TestSalvageEveryLength(t *testing.T) {
	dir, entries := salvageDB(t, testsst.Spec{BlockSize: 150}, 10)
	sound := openTest(t, dir, store.Options{})
	parts := slices.DeleteFunc(ofTables(t, sound), func(p *part) bool { return p.what != partCut })
	sound.Close()
	for _, p := range parts {
		path := filepath.Join(dir, p.file)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		set := []damage{{p, -1}}
		m := &model{cmp: bytes.Compare, merger: testsst.JoinMerger}
		m.read(without(entries, set))
		for n := range whole {
			if !testsst.SweptAt(n, len(whole), 5) {
				continue
			}
			if err := os.WriteFile(path, whole[:n], 0o644); err != nil {
				t.Fatal(err)
			}
			db, found := openFindings(t, dir, store.Options{Merger: testsst.JoinMerger, Salvage: true})
			rows, tally := testsst.ReadRows(t, db.Keyspaces()[0], nil, nil)
			if testsst.Show(rows) != testsst.Show(m.rows) || tally != m.tally {
				t.Fatalf("%s cut to %d: %d rows, want %d", p.file, n, len(rows), len(m.rows))
			}
			wantSkips(t, *found, set)
			db.Close()
		}
		if err := os.WriteFile(path, whole, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSalvageTableFindings: the findings name the missing keys, and whether older rows may reappear, which unreadable
// tables cannot cause.
func TestSalvageTableFindings(t *testing.T) {
	dir, _, _ := tombstoneDB(t, testsst.Spec{BlockSize: 200})
	older := func(n int) string {
		return fmt.Sprintf("; older tables with such keys: %d; rows deleted or changed since then keep their old state there", n)
	}
	const missing = "the MANIFEST lists this file, but it does not exist; its rows are missing: keys from "
	for _, c := range []struct {
		lost string // files that are gone
		want []string
	}{
		{"000010", []string{missing + `"key0000" up to "key0099"`}},
		{"000012", []string{missing + `"key0000" up to "key0249"` + older(2)}},
		{"000014", []string{missing + `"key0010" up to "key0230"` + older(4)}},
		{"000010 000013 000014", []string{missing + `"key0000" up to "key0099"`, missing + `"key0000" up to "key0245"` + older(2),
			missing + `"key0010" up to "key0230"` + older(2)}},
	} {
		broken := testsst.CopyDir(t, dir)
		for _, name := range strings.Fields(c.lost) {
			if err := os.Remove(filepath.Join(broken, name+".sst")); err != nil {
				t.Fatal(err)
			}
		}
		db, found := openFindings(t, broken, store.Options{Salvage: true})
		testsst.ReadRows(t, db.Keyspaces()[0], nil, nil)
		var got []string
		for _, f := range *found {
			got = append(got, f.Detail)
			if f.Kind != record.FindMissingFile || f.Severity != record.Error || f.Keyspace != "default" ||
				!strings.Contains(c.lost, strings.TrimSuffix(f.Place.File, ".sst")) {
				t.Errorf("finding %+v", f)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, c.want) {
			t.Errorf("without %s:\n%s\nwant\n%s", c.lost, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// TestSalvageRangeTombstones: without range tombstones a table returns the deleted rows, as the finding warns.
func TestSalvageRangeTombstones(t *testing.T) {
	d := testsst.NewDB(t)
	d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 1, "old"), testsst.Put("b", 2, "old"), testsst.Put("z", 3, "old"))
	name := d.Table(0, 0, testsst.Spec{Tombstones: []testsst.Entry{testsst.RangeDel("a", 9, "c")}}, testsst.Put("aa", 8, "own"),
		testsst.Put("m", 10, "new"))
	dir := d.Finish()
	db := openTest(t, dir, store.Options{})
	wantRows(t, db, 0, "m=new z=old")
	info, err := db.spaces[0].Tables[0].Load()
	if err != nil {
		t.Fatal(err)
	}
	at := info.RangeDel.Off
	b, _ := os.ReadFile(filepath.Join(dir, name))
	b[at+2] ^= 1
	d.File(name, b)
	db, found := openFindings(t, dir, store.Options{Salvage: true})
	wantRows(t, db, 0, "a=old aa=own b=old m=new z=old")
	const want = `; the range tombstones of this table are missing, so rows that they deleted reappear: keys from "a" up to "m"` +
		`; older tables with such keys: 1; rows deleted or changed since then keep their old state there`
	if len(*found) != 1 || (*found)[0].Place.Off != int64(at) ||
		!strings.HasPrefix((*found)[0].Detail, "range_del: checksum mismatch") ||
		!strings.HasSuffix((*found)[0].Detail, want) {
		t.Errorf("findings %+v, want %s", *found, want)
	}
}

// TestLevelDBMetaindex: like LevelDB, kvferry reads the rows of a table with a damaged metaindex, or with damaged
// properties from other writers. CheckBlocks finds the damage.
func TestLevelDBMetaindex(t *testing.T) {
	meta := func(off uint64, _ []byte) uint64 { return off }
	props := func(_ uint64, b []byte) uint64 {
		at := bytes.Index(b, []byte("rocksdb.properties")) + len("rocksdb.properties")
		off, _ := binary.Uvarint(b[at:])
		return off
	}
	for want, damaged := range map[string]func(metaindex uint64, table []byte) uint64{"metaindex: ": meta,
		"properties: ": props} {
		d := testsst.NewLevelDB(t)
		entries := testsst.SomeEntries(20)
		table := testsst.MakeTable(t, testsst.Spec{BlockSize: 100}, entries)
		// The table of another writer: as LevelDB's, with properties.
		ft, err := sst.DecodeFooter(table[len(table)-testsst.RocksFooter:], int64(len(table)))
		if err != nil {
			t.Fatal(err)
		}
		h := &testsst.TableWriter{T: t, Spec: testsst.Spec{LevelDB: true}, Out: table[:len(table)-testsst.RocksFooter]}
		h.Footer(ft.Metaindex, ft.Index)
		h.Out[damaged(ft.Metaindex.Off, h.Out)] ^= 1
		d.File("000010.ldb", h.Out)
		d.Name(0, 1, "000010.ldb", testsst.BoundsOf(bytes.Compare, &testsst.Spec{}, entries), 0)
		dir := d.Finish()
		for _, salvage := range []bool{false, true} {
			db, found := openFindings(t, dir, store.Options{Salvage: salvage})
			if rows, _ := testsst.ReadRows(t, db.Keyspaces()[0], nil, nil); len(rows) != 20 || len(*found) != 0 {
				t.Fatalf("%s%d rows, findings %+v", want, len(rows), *found)
			}
			checkUnordered(t, db.Keyspaces()[0], &model{tally: record.Tally{Entries: 20}})
			if f := db.Files()[2]; f.Entries != -1 {
				t.Errorf("%+v", f)
			}
			if err := db.CheckBlocks(context.Background()); err != nil {
				t.Fatal(err)
			}
			if len(*found) != 1 || (*found)[0].Severity != record.Warning || !strings.HasPrefix((*found)[0].Detail, want) {
				t.Errorf("findings %+v", *found)
			}
		}
	}
}

// TestSalvageFooterValues: a footer with impossible values is damaged, even if the rest is whole.
func TestSalvageFooterValues(t *testing.T) {
	for name, change := range map[string]func(footer []byte){
		"checksum type": func(b []byte) { b[0] = testsst.XXH3 + 1 },
		"version":       func(b []byte) { binary.LittleEndian.PutUint32(b[testsst.RocksFooter-12:], 256) },
		"magic":         func(b []byte) { b[testsst.RocksFooter-1] ^= 1 },
	} {
		d := testsst.NewDB(t)
		d.Table(0, 2, testsst.Spec{}, testsst.Put("a", 1, "old"))
		file := d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 2, "new"), testsst.Put("b", 3, "new"))
		dir := d.Finish()
		b, _ := os.ReadFile(filepath.Join(dir, file))
		change(b[len(b)-testsst.RocksFooter:])
		d.File(file, b)
		db, found := openFindings(t, dir, store.Options{Salvage: true})
		wantRows(t, db, 0, "a=old")
		if len(*found) != 1 || !strings.HasPrefix((*found)[0].Detail, "footer: ") ||
			(*found)[0].Place.Off != int64(len(b)-testsst.RocksFooter) {
			t.Errorf("%s: findings %+v", name, *found)
		}
	}
}

// TestSalvageStray: a table that the MANIFEST does not list is compared with the listed ones, existing or missing, and
// the finding mentions it, because it may hold their remaining rows.
func TestSalvageStray(t *testing.T) {
	d := testsst.NewDB(t)
	name := d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 1, ""), testsst.Put("c", 9, ""))
	d.Next = 8
	d.Write(testsst.Spec{}, []testsst.Entry{testsst.Put("b", 4, "")})
	dir := d.Finish()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
	db, found := openFindings(t, dir, store.Options{Salvage: true})
	wantRows(t, db, 0, "")
	var kinds []string
	for _, f := range *found {
		kinds = append(kinds, f.Kind+" "+f.Place.File)
	}
	if got := strings.Join(kinds, ", "); got != "unreferenced-table 000008.sst, missing-file "+name ||
		!strings.HasSuffix((*found)[0].Detail, "the tables and logs that are listed, although "+name+" cannot be read") {
		t.Errorf("findings %+v", *found)
	}
}

// TestSalvageVanished: a table that disappears after the database was opened is an error, not a gap.
func TestSalvageVanished(t *testing.T) {
	d := testsst.NewDB(t)
	name := d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 1, ""))
	db := openTest(t, d.Finish(), store.Options{Salvage: true})
	if err := os.Remove(filepath.Join(d.Dir, name)); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Keyspaces()[0].Rows(nil, nil); !errors.Is(err, os.ErrNotExist) || err == io.EOF {
		t.Errorf("error %v", err)
	}
}

// TestSalvageUnreadable: a table that the disk cannot read is skipped and reported once.
func TestSalvageUnreadable(t *testing.T) {
	d := testsst.NewDB(t)
	name := d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 1, ""), testsst.Put("b", 1, ""))
	db, found := openFindings(t, d.Finish(), store.Options{Salvage: true})
	breakTable(db, &fs.PathError{Op: "read", Path: name, Err: syscall.EIO})
	wantRows(t, db, 0, "")
	const want = `read: input/output error; its rows are missing: keys from "a" up to "b"`
	if len(*found) != 1 || (*found)[0].Detail != want || (*found)[0].Place.File != name ||
		(*found)[0].Kind != record.FindDamagedBlock {
		t.Errorf("findings %+v", *found)
	}
	db, found = openFindings(t, d.Finish(), store.Options{Salvage: true})
	breakTable(db, &fs.PathError{Op: "open", Path: name, Err: syscall.EACCES})
	if _, err := db.Keyspaces()[0].Rows(nil, nil); !errors.Is(err, syscall.EACCES) || len(*found) > 0 {
		t.Errorf("error %v, findings %+v", err, *found)
	}
	nothing := func(*store.Entry) error { return nil }
	if err := db.Keyspaces()[0].Unordered(nothing); !errors.Is(err, syscall.EACCES) || len(*found) > 0 {
		t.Errorf("unordered: error %v, findings %+v", err, *found)
	}
}

// breakTable makes the only table of a database one that cannot be opened.
func breakTable(db *database, err error) {
	ks := db.spaces[0]
	ks.SetTables([]*lsm.Table{lsm.NewBrokenTable(ks, ks.Tables[0].Meta, err)})
}
