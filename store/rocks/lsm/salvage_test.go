package lsm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
	"kvferry/store/rocks/lsm"
)

// TestSalvageModel damages random parts of random databases, by wrong checksums, by invalid entries under correct
// checksums, and by losing whole tables. Single rows, batches, seeks and spans return what the model makes of the
// remaining entries.
func TestSalvageModel(t *testing.T) {
	for seed := range int64(200 / testsst.SweepStep(4)) {
		r := rand.New(rand.NewSource(seed))
		d, order, entries, tombs := orderedDB(t, r, seed)
		dir := d.Finish()
		sound := openTest(t, dir, store.Options{})
		ds := choose(r, partsOf(t, sound), 1+r.Intn(20))
		ds = append(ds, chooseTables(r, ofTables(t, sound), r.Intn(8))...)
		sound.Close()
		for i := range ds {
			ds[i].apply(t, dir, r)
		}
		m := &model{cmp: order.Compare, tombs: withoutTombs(tombs, ds), merger: testsst.JoinMerger}
		m.read(without(entries, ds))
		o := store.Options{Merger: testsst.JoinMerger, Memory: []int64{0, 4096}[seed%2], Salvage: true, Resort: seed%5 == 4}
		db, found := openFindings(t, dir, o)
		checkModel(t, seed, db.Keyspaces()[0], m, r)
		wantSkips(t, *found, ds)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// salvageDB is a database of several files and levels, with a model of it. One of part 5 has a fifth of the rows.
func salvageDB(t testing.TB, spec testsst.Spec, part int) (dir string, entries []testsst.Entry) {
	d := testsst.NewDB(t)
	seq := uint64(1)
	add := func(level, from, to, step int, kind byte) {
		var list []testsst.Entry
		for i := from; i < to/part; i += step {
			e := testsst.NewEntry(fmt.Sprintf("key%04d", i), seq, kind, "")
			if kind == base.KindPut {
				e.Value = fmt.Sprintf("value of level %d, number %d", level, i)
			}
			list = append(list, e)
			seq++
		}
		entries = append(entries, list...)
		d.Table(0, level, spec, list...)
	}
	add(2, 0, 100, 1, base.KindPut)
	add(2, 100/part, 250, 1, base.KindPut)
	add(1, 50/part, 200, 3, base.KindPut)
	add(0, 0, 250, 7, base.KindDelete)
	add(0, 10, 240, 11, base.KindPut)
	return d.Finish(), entries
}

// TestSalvageEveryPart damages every block, partition and index of a database in turn, and all of a kind at once.
func TestSalvageEveryPart(t *testing.T) {
	for _, spec := range []testsst.Spec{{BlockSize: 200},
		{BlockSize: 300, IndexType: testsst.TwoLevelIndex, Codec: testsst.Snappy},
		{BlockSize: 1, IndexType: testsst.TwoLevelIndex, Checksum: testsst.XXH64}, {BlockSize: 250, Codec: testsst.Zlib, Restarts: 3}} {
		dir, entries := salvageDB(t, spec, 1)
		sound := openTest(t, dir, store.Options{})
		parts := partsOf(t, sound)
		sound.Close()
		sets := [][]damage{nil}
		for _, p := range parts {
			sets = append(sets, []damage{{p, -1}})
		}
		of := func(is func(p *part) bool) (set []damage) {
			for _, p := range parts {
				if is(p) {
					set = append(set, damage{p, -1})
				}
			}
			return set
		}
		sets = append(sets, of(func(p *part) bool { return p.sep == nil }), of(func(p *part) bool { return p.below != nil }),
			of(func(p *part) bool { return p.below == nil }), of(func(*part) bool { return true }))
		for n, set := range sets {
			if !testsst.SweptAt(n, len(sets), 5) {
				continue
			}
			r := rand.New(rand.NewSource(int64(n)))
			broken := testsst.CopyDir(t, dir)
			for i := range set {
				set[i].apply(t, broken, r)
			}
			m := &model{cmp: bytes.Compare, merger: testsst.JoinMerger}
			m.read(without(entries, set))
			db, found := openFindings(t, broken, store.Options{Merger: testsst.JoinMerger, Salvage: true})
			checkModel(t, int64(n), db.Keyspaces()[0], m, r)
			checkWorkers(t, db.Keyspaces()[0], m)
			if _, err := db.Keyspaces()[0].Sample(20); err != nil {
				t.Fatal(err)
			}
			wantSkips(t, *found, set)
			db.Close()
			var block *store.BlockError
			if err := rowsError(broken, store.Options{Merger: testsst.JoinMerger}); (err != nil) != (len(set) > 0) ||
				err != nil && !errors.As(err, &block) {
				t.Fatalf("without salvage: %v", err)
			}
		}
	}
}

// checkWorkers reads spans at once.
func checkWorkers(t *testing.T, ks store.Keyspace, m *model) {
	t.Helper()
	cuts := [][]byte{nil, []byte("key0030"), []byte("key0099z"), []byte("key0100"), []byte("key0177"), nil}
	all := make([][]testsst.Row, len(cuts)-1)
	var wg sync.WaitGroup
	for i := range all {
		wg.Add(1)
		go func() {
			defer wg.Done()
			it, err := ks.Rows(cuts[i], cuts[i+1])
			for err == nil {
				var k, v []byte
				if k, v, err = it.Next(); err == nil {
					all[i] = append(all[i], testsst.Row{Key: bytes.Clone(k), Value: bytes.Clone(v)})
				}
			}
			if err != io.EOF {
				t.Error(err)
			}
			it.Close()
		}()
	}
	wg.Wait()
	if testsst.Show(slices.Concat(all...)) != testsst.Show(m.rows) {
		t.Fatalf("spans at once: %d rows, want %d", len(slices.Concat(all...)), len(m.rows))
	}
}

// TestSalvageGap: the finding names the key range of missing rows, and whether older ones may reappear.
func TestSalvageGap(t *testing.T) {
	dir, _ := salvageDB(t, testsst.Spec{BlockSize: 200, IndexType: testsst.TwoLevelIndex}, 1)
	sound := openTest(t, dir, store.Options{})
	defer sound.Close()
	details := map[string]string{}
	for _, tab := range sound.spaces[0].Tables {
		parts := partsOfTable(t, dir, tab)
		for _, p := range parts {
			if p.below != nil {
				continue // no rows are missing
			}
			broken := testsst.CopyDir(t, dir)
			(&damage{p, -1}).apply(t, broken, rand.New(rand.NewSource(1)))
			db, found := openFindings(t, broken, store.Options{Salvage: true})
			testsst.ReadRows(t, db.Keyspaces()[0], nil, nil)
			db.Close()
			if len(*found) != 1 {
				t.Fatalf("findings %+v", *found)
			}
			m := missingKeys.FindStringSubmatch((*found)[0].Detail)
			if m == nil {
				t.Fatalf("finding %+v", (*found)[0])
			}
			details[fmt.Sprintf("%s@%d", p.file, p.h.Off)] = (*found)[0].Detail
			checkGap(t, p, parts, m[1] == "after", m[2], m[3])
		}
	}
	for at, want := range map[string][2]string{
		"000010.sst@0": {"block: checksum mismatch: ", `; its rows are missing: keys from "key0000" up to "key0004"`},
		"000013.sst@0": {"block: checksum mismatch: ", `; its rows are missing: keys from "key0000" up to "key0077"; older tables with such keys: 2; rows deleted or changed since then keep their old state there`},
	} {
		if d := details[at]; !strings.HasPrefix(d, want[0]) || !strings.HasSuffix(d, want[1]) {
			t.Errorf("%s: %s\nwant %s", at, d, want)
		}
	}
}

// missingKeys is the text of a finding about the keys of missing rows.
var missingKeys = regexp.MustCompile(`its rows are missing: keys (from|after) "([^"]*)" up to "([^"]*)"`)

// checkGap checks that all keys of a part are in the gap and no others of its table.
func checkGap(t *testing.T, p *part, parts []*part, after bool, low, high string) {
	t.Helper()
	for _, q := range parts {
		if q.below != nil {
			continue
		}
		lost := q == p || slices.Contains(p.below, q)
		for id := range q.lost[0] {
			if in := (id.key > low || id.key == low && !after) && id.key <= high; in != lost {
				t.Errorf("%s, block at %d: %q to %q, but key %s is lost: %t", p.file, p.h.Off, low, high, id.key, lost)
			}
		}
	}
}

// TestSalvageTombstone: rows deleted by a tombstone in a damaged block reappear, and the finding warns of it.
func TestSalvageTombstone(t *testing.T) {
	d := testsst.NewDB(t)
	d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 1, "old"), testsst.Put("b", 2, "old"))
	name := d.Table(0, 0, testsst.Spec{BlockSize: 256}, testsst.Del("a", 3), testsst.Put("b", 4, "new"))
	dir := d.Finish()
	wantRows(t, openTest(t, dir, store.Options{}), 0, "b=new")
	b, _ := os.ReadFile(filepath.Join(dir, name))
	b[3] ^= 1
	d.File(name, b)
	db, found := openFindings(t, dir, store.Options{Salvage: true})
	wantRows(t, db, 0, "a=old b=old")
	if len(*found) != 1 || !strings.Contains((*found)[0].Detail, "; older tables with such keys: 1; rows ") {
		t.Errorf("findings %+v", *found)
	}
}

// TestSalvagePassesNewer: an unsupported part is reported and lost alone, however it is read; without a salvage it is
// an error.
func TestSalvagePassesNewer(t *testing.T) {
	b1, b2 := testsst.Put("b", 3, "value"), testsst.Put("b2", 4, "value")
	odd := func(kind byte) []testsst.Entry {
		return []testsst.Entry{b1, testsst.NewEntry("b", 5, kind, "x"), b2}
	}
	apart := func(_ int, b []byte) []byte { b[len(b)-1] |= 0x10; return b }
	for _, tt := range []struct {
		name    string
		spec    testsst.Spec
		entries []testsst.Entry
		want    string
	}{
		{"codec", testsst.Spec{Label: 0x7e}, []testsst.Entry{b1, b2}, "a z "},
		{"format version", testsst.Spec{Version: 8}, []testsst.Entry{b1, b2}, "a z "},
		{"checksum type", testsst.Spec{Checksum: 5}, []testsst.Entry{b1, b2}, "a z "},
		{"index type", testsst.Spec{IndexType: 4}, []testsst.Entry{b1, b2}, "a z "},
		{"keys and values apart", testsst.Spec{EditBlock: apart}, []testsst.Entry{b1, b2}, "a z "},
		{"timestamps", testsst.Spec{Props: map[string][]byte{"rocksdb.timestamp_min": {1}}}, []testsst.Entry{b1, b2}, "a z "},
		{"manager", testsst.Spec{Props: map[string][]byte{"rocksdb.compression": []byte("Mine;04;")}}, []testsst.Entry{b1, b2}, "a z "},
		{"wide columns", testsst.Spec{}, odd(base.KindWideColumns), "a b2 z "},
		{"value with a write time", testsst.Spec{}, odd(base.KindWriteTime), "a b2 z "},
		{"a kind of nobody", testsst.Spec{}, odd(0x66), "a b2 z "},
		{"a hidden row", testsst.Spec{}, []testsst.Entry{b1, testsst.NewEntry("b", 2, base.KindWideColumns, "x"), b2}, "a b b2 z "},
	} {
		d := testsst.NewDB(t)
		d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 1, ""))
		tt.spec.BlockSize = 256
		d.Table(0, 1, tt.spec, tt.entries...)
		d.Table(0, 1, testsst.Spec{}, testsst.Put("z", 9, ""))
		dir := d.Finish()
		var block *store.BlockError
		if err := rowsError(dir, store.Options{}); !errors.As(err, &block) || !errors.Is(err, base.ErrUnsupported) {
			t.Errorf("%s, without a salvage: %v", tt.name, err)
		}
		db, found := openFindings(t, dir, store.Options{Salvage: true})
		ks := db.Keyspaces()[0]
		for range 2 { // reported once
			rows, _ := testsst.ReadRows(t, ks, nil, nil)
			var got string
			for _, r := range rows {
				got += string(r.Key) + " "
			}
			if got != tt.want {
				t.Errorf("%s: rows %s, want %s", tt.name, got, tt.want)
			}
		}
		if err := ks.Unordered(func(*store.Entry) error { return nil }); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if len(*found) != 1 || (*found)[0].Kind != record.FindNewer || (*found)[0].Severity != record.Error ||
			(*found)[0].Place.File == "" {
			t.Errorf("%s: findings %+v", tt.name, *found)
		}
		db.Close()
	}
}

// TestSalvageRefuses: system errors are not skipped.
func TestSalvageRefuses(t *testing.T) {
	whole := func(t *testing.T, where string) (dir string) {
		d := testsst.NewDB(t)
		name := d.Table(0, 1, testsst.Spec{}, testsst.Put("b", 1, "value"))
		d.Log(20, testsst.Batch(30, testsst.Op(base.KindPut, "l", "1")), testsst.Batch(31, testsst.Op(base.KindPut, "m", "2")))
		dir = d.Finish()
		switch where {
		case "directory":
			if err := errors.Join(os.Remove(filepath.Join(dir, name)), os.Mkdir(filepath.Join(dir, name), 0o755)); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	for _, where := range []string{"directory"} {
		err := rowsError(whole(t, where), store.Options{Salvage: true})
		var block *store.BlockError
		if err == nil || errors.As(err, &block) {
			t.Errorf("%s: %v", where, err)
		}
	}
}

// TestIsDamage: a read error of the disk is damage; a vanished or shrunken file is not.
func TestIsDamage(t *testing.T) {
	for err, want := range map[error]bool{
		&fs.PathError{Op: "read", Path: "x", Err: syscall.EIO}:    true,
		&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}: false,
		&fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}: false,
		&store.MissingError{File: "x", By: "the MANIFEST"}:        true,
		fs.ErrClosed: false,
		base.Corrupt("x", 0, "block", base.ErrChecksum):    true,
		base.Corrupt("x", 0, "block", base.ErrShrank):      false,
		base.Corrupt("x", 0, "block", base.ErrUnsupported): true,
		io.ErrUnexpectedEOF:                                false,
	} {
		if base.IsDamage(corruptOnce(err)) != want {
			t.Errorf("%v: damage is %t", err, !want)
		}
	}
}

// corruptOnce places errors as cursors do, except those that are no damage.
func corruptOnce(err error) error {
	if err == io.ErrUnexpectedEOF {
		return err
	}
	return base.Corrupt("y", 1, lsm.FieldBlock, err)
}

// TestReadAhead: a readable block is read even if the bytes behind it are unreadable.
func TestReadAhead(t *testing.T) {
	d := testsst.NewDB(t)
	name := d.Table(0, 1, testsst.Spec{BlockSize: 100}, testsst.SomeEntries(400)...)
	dir := d.Finish()
	db := openTest(t, dir, store.Options{})
	ks := db.spaces[0]
	it, err := ks.Rows(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	walk, err := ks.Tables[0].Source.Walk(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer walk.Close()
	for range 5 {
		if _, err := walk.Next(); err != nil {
			t.Fatal(err)
		}
	}
	h := walk.Handle()
	if err := os.Truncate(filepath.Join(dir, name), int64(h.Off+h.Size)+blocks.TrailerLen); err != nil {
		t.Fatal(err)
	}
	n := 0
	for err == nil {
		if _, _, err = it.Next(); err == nil {
			n++
		}
	}
	if n == 0 || errors.Is(err, io.EOF) || !errors.Is(err, base.ErrShrank) {
		t.Errorf("%d rows, then %v", n, err)
	}
}

// TestSalvageSweep flips every byte of every table. A flip in a part loses its rows, but in the index none; in the footer,
// which has no checksum, it loses no row or the whole table, or makes the table unsupported.
func TestSalvageSweep(t *testing.T) {
	dir, entries := salvageDB(t, testsst.Spec{BlockSize: 150, IndexType: testsst.TwoLevelIndex}, 10)
	sound := openTest(t, dir, store.Options{})
	parts := slices.Concat(partsOf(t, sound), slices.DeleteFunc(ofTables(t, sound), (*part).nowhere))
	files := sound.Files()
	sound.Close()
	for _, f := range files {
		if f.Kind != "table" {
			continue
		}
		path := filepath.Join(dir, f.Path)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for off := range b {
			if !testsst.SweptAt(off, len(b), 5) {
				continue
			}
			b[off] ^= 0x15
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
			b[off] ^= 0x15
			checkFlip(t, dir, f.Path, off, parts, entries)
			if t.Failed() {
				t.Fatalf("%s: byte %d", f.Path, off)
			}
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// checkFlip reads a database in which one byte was flipped.
func checkFlip(t *testing.T, dir, file string, off int, parts []*part, entries []testsst.Entry) {
	t.Helper()
	var set []damage
	for _, p := range parts {
		if p.file == file && off >= int(p.h.Off) && off < int(p.h.Off+p.h.Size)+blocks.TrailerLen {
			set = append(set, damage{p, -1})
		}
	}
	db, found := openFindings(t, dir, store.Options{Merger: testsst.JoinMerger, Salvage: true})
	defer db.Close()
	ks := db.Keyspaces()[0]
	rows, n := testsst.ReadRows(t, ks, nil, nil)
	for i := range *found { // a version or a type of the footer that is not known
		if f := &(*found)[i]; f.Kind == record.FindNewer {
			f.Kind = record.FindDamagedBlock
		}
	}
	if len(set) == 1 && set[0].what == partFooter {
		if len(*found) == 0 { // unused bytes
			set = nil
		} else if f := (*found)[0]; strings.Contains(f.Detail, "their own checksums") { // the index is elsewhere
			set[0].part = &part{file: file, h: blocks.Handle{Off: uint64(f.Place.Off)}, lost: []map[entryID]bool{nil}}
		} else { // where the footer says that something is
			p := *set[0].part
			p.h.Off = uint64((*found)[0].Place.Off)
			set[0].part = &p
		}
	}
	wantSkips(t, *found, set)
	m := &model{cmp: bytes.Compare, merger: testsst.JoinMerger}
	m.read(without(entries, set))
	if testsst.Show(rows) != testsst.Show(m.rows) || n != m.tally {
		t.Fatalf("%d rows of %d, findings %+v", len(rows), len(m.rows), *found)
	}
	checkSeeks(t, ks, m, rand.New(rand.NewSource(int64(off))))
}

// TestSalvageWithoutChecksums: without checksums only the block format reveals damage; reading still never panics, and
// iterators end.
func TestSalvageWithoutChecksums(t *testing.T) {
	dir, _ := salvageDB(t, testsst.Spec{BlockSize: 150, IndexType: testsst.TwoLevelIndex, NoChecksum: true}, 5)
	files, err := filepath.Glob(filepath.Join(dir, "*.sst"))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewSource(1))
	for range 3000 / testsst.SweepStep(5) {
		path := files[r.Intn(len(files))]
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		c := bytes.Clone(b)
		for range 1 + r.Intn(3) {
			c[r.Intn(len(c))] = byte(r.Intn(256))
		}
		if err := os.WriteFile(path, c, 0o644); err != nil {
			t.Fatal(err)
		}
		if s, err := rocks.Open(context.Background(), dir,
			&store.Options{Salvage: true, Comparers: testsst.Comparers, Merger: testsst.JoinMerger}); err == nil {
			testsst.ReadAll(t, s)
			s.Close()
		}
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
