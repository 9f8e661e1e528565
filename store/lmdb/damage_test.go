package lmdb

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/record"
	"kvferry/store"
)

// readAll opens an image and reads it in every way. It ignores the results, because only termination matters.
func readAll(dir string) (rows int, err error) { return readAllWith(dir, store.Options{}) }

func readAllWith(dir string, opts store.Options) (rows int, err error) {
	var errs []error
	opts.Report = func(f record.Finding) { errs = append(errs, errors.New(f.Detail)) }
	s, err := Open(context.Background(), dir, &opts)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	s.Files()
	for _, k := range s.Keyspaces() {
		got, err := scan(k, nil, nil)
		rows += len(got)
		errs = append(errs, err)
		_, err = scan(k, []byte("k\x00\x00\x05"), []byte("k\x00\x00\x40"))
		errs = append(errs, err)
		_, err = k.Sample(10)
		errs = append(errs, err, k.Unordered(func(*store.Entry) error { return nil }))
		k.Size()
	}
	return rows, errors.Join(errs...)
}

func smallImage() []byte {
	im := newImage(512)
	im.fan = 5
	im.database("0", rowsOf(40, 512))
	im.database("1", rowsOf(3, 512))
	return im.finish()
}

// TestFlips flips every byte of a small file, whole and one bit of it: an error, or rows, but never a panic or a hang.
func TestFlips(t *testing.T) {
	data := smallImage()
	dir := writeImage(t, data)
	f, err := os.OpenFile(filepath.Join(dir, dataFile), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	failed := 0
	for i := range data {
		bits := []byte{1 << (i % 8), 255}
		if os.Getenv("KVFERRY_LONG") != "" {
			bits = []byte{1, 2, 4, 8, 16, 32, 64, 128, 255}
		}
		for _, bit := range bits {
			if _, err := f.WriteAt([]byte{data[i] ^ bit}, int64(i)); err != nil {
				t.Fatal(err)
			}
			rows, err := readAll(dir)
			if rows > 43 && err == nil {
				t.Fatalf("flip %#x at %d: %d rows of 43 and no error", bit, i, rows)
			}
			left, salvaged := readAllWith(dir, store.Options{Salvage: true})
			if left < rows || (salvaged == nil) != (err == nil) {
				t.Fatalf("flip %#x at %d: %d rows of a salvage, %v; %d rows otherwise, %v", bit, i, left, salvaged, rows, err)
			}
			if err != nil {
				failed++
			}
		}
		if _, err := f.WriteAt(data[i:i+1], int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	if failed < len(data)/10 {
		t.Errorf("only %d flips were noticed", failed)
	}
}

// TestTruncated cuts the file at every length: rows in the missing part are an error.
func TestTruncated(t *testing.T) {
	data := smallImage()
	dir := writeImage(t, data)
	for n := len(data) - 1; n >= 0; n-- {
		if err := os.Truncate(filepath.Join(dir, dataFile), int64(n)); err != nil {
			t.Fatal(err)
		}
		if _, err := readAll(dir); err == nil {
			t.Fatalf("cut to %d bytes: no error", n)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(smallImage())
	im := newImage(512)
	im.database("0", rowsOf(2, 512))
	f.Add(im.finish())
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			t.Skip()
		}
		readAll(writeImage(t, data))
	})
}

func patch(data []byte, off int, b ...byte) []byte {
	out := bytes.Clone(data)
	copy(out[off:], b)
	return out
}

func TestDamageByName(t *testing.T) {
	im := newImage(512)
	im.fan = 2
	im.database("0", rowsOf(4, 512))
	data := im.finish()
	leaf := 2 * 512 // the first page written: a value of row 3 or a leaf
	for leaf < len(data) && le.Uint16(data[leaf+10:]) != pageLeaf {
		leaf += 512
	}
	branch := leaf
	for le.Uint16(data[branch+10:]) != pageBranch {
		branch += 512
	}
	big := 2 * 512
	for le.Uint16(data[big+10:]) != pageOverflow {
		big += 512
	}
	rootOf := bytes.Index(data, le.AppendUint64(le.AppendUint64(nil, 4), uint64(branch/512)))
	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"page number", patch(data, leaf, 77), "page number: have 77"},
		{"page kind", patch(data, leaf+10, pageBranch), "want a leaf page"},
		{"leaf2", patch(data, leaf+10, pageLeaf|pageLeaf2), "want a leaf page"},
		{"no nodes", patch(data, leaf+12, 16, 0), "bounds: have 16"},
		{"upper beyond page", patch(data, leaf+14, 2, 2), "bounds"},
		{"pointer", patch(data, leaf+16, 0xFF, 0xFF), "node pointer: have 65535"},
		{"key size", patch(data, int(le.Uint16(data[leaf+16:]))+leaf+6, 0xFF, 0xFF), "key: need 65,535 bytes"},
		{"data size", patch(data, int(le.Uint16(data[leaf+16:]))+leaf, 0xFF, 0xFF), "data: need 65,535 bytes"},
		{"node flags", patch(data, int(le.Uint16(data[leaf+16:]))+leaf+4, 9), "node flags: have 0x9"},
		{"database in database", patch(data, int(le.Uint16(data[leaf+16:]))+leaf+4, 2), "a database within a database"},
		{"child", patch(data, int(le.Uint16(data[branch+18:]))+branch, 0xEE), "page: have number 238"},
		{"cycle", patch(data, int(le.Uint16(data[branch+18:]))+branch, byte(branch/512)), "want a leaf page"},
		{"overflow number", patch(data, big, 99), "page number: have 99"},
		{"overflow kind", patch(data, big+10, pageLeaf), "want an overflow page"},
		{"overflow short", patch(data, big+12, 0), "pages: have 0"},
		{"overflow long", patch(data, big+12, 0xFF), "pages: have 255"},
		{"entries", patch(data, rootOf, 5), "entries: found 4 rows, but the database counts 5"},
		{"root", patch(data, rootOf+8, 1), "root: have page 1"},
		{"depth", patch(data, rootOf-26, 40), "depth: have 40"},
		{"depth zero", patch(data, rootOf-26, 0), "depth: have 0"},
	}
	for _, tt := range tests {
		_, err := readAll(writeImage(t, tt.data))
		var c *record.CorruptError
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		} else if !errors.As(err, &c) || c.Format != "lmdb" || filepath.Base(c.File) != dataFile {
			t.Errorf("%s: %#v does not name the file", tt.name, c)
		}
	}
}

// TestSharedLeaf has a branch name one leaf twice: the walk stops, it does not multiply rows.
func TestSharedLeaf(t *testing.T) {
	im := newImage(512)
	im.fan = 2
	rows := rowsOf(64, 512)
	im.database("0", rows)
	data := im.finish()
	for off := 1024; off < len(data); off += 512 {
		if le.Uint16(data[off+10:]) != pageBranch {
			continue
		}
		first, second := off+int(le.Uint16(data[off+16:])), off+int(le.Uint16(data[off+18:]))
		if le.Uint16(data[off+12:]) >= 20 {
			copy(data[second:second+6], data[first:first+6])
		}
	}
	dir := writeImage(t, data)
	var order *store.OrderError
	if _, err := readAll(dir); !errors.As(err, &order) {
		t.Errorf("a leaf read twice: %v, want an order error", err)
	}
	k := find(t, openTest(t, dir, nil), "0")
	seen := map[string]bool{}
	if err := k.Unordered(func(e *store.Entry) error {
		if seen[string(e.Key)] {
			t.Errorf("row %q twice", e.Key)
		}
		seen[string(e.Key)] = true
		return nil
	}); err != nil || len(seen) == 0 {
		t.Errorf("salvage: %d rows, %v", len(seen), err)
	}
}

// anyOrder is an order without violations.
func anyOrder(string) *store.Comparer {
	return &store.Comparer{Name: "any", Compare: func(_, _ []byte) int { return -1 }}
}

func TestMetaPages(t *testing.T) {
	data := smallImage()
	for _, tt := range []struct {
		name string
		data []byte
		rows int
	}{
		{"first damaged", patch(data, 16, 0), 43},
		{"second damaged", patch(data, 512+16, 0), 0}, // falls back to the older, empty state
		{"second of a later version", patch(data, 512+20, 2), 0},
	} {
		var found []record.Finding
		s, err := Open(context.Background(), writeImage(t, tt.data),
			&store.Options{Report: func(f record.Finding) { found = append(found, f) }})
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		rows := 0
		for _, k := range s.Keyspaces() {
			got, err := scan(k, nil, nil)
			if err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
			rows += len(got)
		}
		if rows != tt.rows || len(found) != 1 || found[0].Kind != "lmdb-meta-page" {
			t.Errorf("%s: %d rows, findings %v", tt.name, rows, found)
		}
		s.Close()
	}
	for name, bad := range map[string][]byte{
		"magic":     patch(patch(data, 16, 0), 512+16, 0),
		"version":   patch(patch(data, 20, 9), 512+20, 9),
		"page size": patch(patch(data, 40, 3), 512+40, 3),
		"flags":     patch(patch(data, 10, 1), 512+10, 1),
		"empty":     nil,
	} {
		if _, err := Peek(writeImage(t, bad)); err == nil || !strings.Contains(err.Error(), "neither meta page is valid") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(context.Background(), t.TempDir(), nil); !errors.Is(err, store.ErrNotStore) {
		t.Errorf("no file: %v", err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, dataFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Peek(dir); !errors.Is(err, store.ErrNotStore) {
		t.Errorf("a directory: %v", err)
	}
}

func TestOrder(t *testing.T) {
	im := newImage(512)
	rows := rowsOf(100, 512)
	slices.Reverse(rows)
	im.database("0", rows)
	im.database("plain", rowsOf(100, 512))
	dir := writeImage(t, im.finish())
	s := openTest(t, dir, nil)
	k := find(t, s, "0")
	var order *store.OrderError
	if got, err := scan(k, nil, nil); !errors.As(err, &order) || len(got) != 1 {
		t.Errorf("whole: %d rows, %v", len(got), err)
	}
	if order.Keyspace != "0" || order.Off == 0 || string(order.Prev) != rows[0].key || string(order.Next) != rows[1].key {
		t.Errorf("%+v", order)
	}
	if _, err := scan(k, nil, []byte("k")); !errors.As(err, &order) {
		t.Errorf("up to a key: %v", err)
	}
	if it, err := k.Rows(nil, nil); err != nil || !errors.As(it.SeekGE([]byte("k")), &order) {
		t.Errorf("seek: %v", err)
	}
	reverse := func(name string) *store.Comparer {
		if name == "plain" {
			return nil
		}
		return &store.Comparer{Name: "reverse", Compare: func(a, b []byte) int { return bytes.Compare(b, a) }}
	}
	s = openTest(t, dir, &store.Options{Order: reverse})
	if got, err := scan(find(t, s, "0"), []byte(rows[10].key), []byte(rows[20].key)); err != nil ||
		!slices.Equal(got, rows[10:20]) {
		t.Errorf("reverse: %v %v", got, err)
	}
	if k := find(t, s, "plain"); !k.Comparer().IsBytewise() {
		t.Errorf("plain is compared by %s", k.Comparer().Name)
	}
	s = openTest(t, dir, &store.Options{Comparers: []store.Comparer{*reverse("")}})
	if k := find(t, s, "plain"); k.Comparer().Name != "reverse" {
		t.Errorf("the first comparer is not taken: %s", k.Comparer().Name)
	}
}

func TestKeyspaces(t *testing.T) {
	im := newImage(512)
	im.flags["dup"] = treeDupSort
	im.database("0", rowsOf(30, 512))
	im.database("dup", rowsOf(3, 512))
	dir := writeImage(t, im.finish())
	names, err := Peek(dir)
	if err != nil || !slices.Equal(names, []string{"0", "dup"}) {
		t.Fatalf("%q, %v", names, err)
	}
	s := openTest(t, dir, nil)
	dup := find(t, s, "dup")
	_, rows := dup.Rows(nil, nil)
	_, ents := dup.Entries(nil, nil)
	_, sample := dup.Sample(1)
	for _, err := range []error{rows, ents, sample, dup.Unordered(nil), dup.(*keyspace).CheckOrder()} {
		if err == nil || !strings.Contains(err.Error(), "MDB_DUPSORT") {
			t.Errorf("several values a key: %v", err)
		}
	}
	k := find(t, s, "0")
	it, err := k.Entries([]byte("k"), nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := it.Next()
	if err != nil || e.Kind != store.Put || e.Place.File == "" || it.Close() != nil {
		t.Errorf("%+v %v", e, err)
	}
	files := s.Files()
	if len(files) != 1 || files[0].Entries != 33 || files[0].Size%512 != 0 || k.Size() > files[0].Size || k.Size() == 0 {
		t.Errorf("%+v, size %d", files, k.Size())
	}
	stop := errors.New("stop")
	if err := k.Unordered(func(*store.Entry) error { return stop }); err != stop {
		t.Errorf("unordered goes on after %v", err)
	}
}

func TestSample(t *testing.T) {
	im := newImage(512)
	im.fan = 6
	rows := rowsOf(1000, 64)
	im.database("0", rows)
	im.database("leaf", rows[:4])
	im.database("none", nil)
	s := openTest(t, writeImage(t, im.finish()), nil)
	for _, tt := range []struct {
		name     string
		n, least int
	}{{"0", 1, 1}, {"0", 20, 20}, {"0", 1 << 20, 100}, {"leaf", 9, 4}, {"none", 9, 0}} {
		k := find(t, s, tt.name)
		got, err := k.Sample(tt.n)
		if err != nil || len(got) < tt.least || len(got) > 1000 {
			t.Errorf("%s: %d samples for %d, %v", tt.name, len(got), tt.n, err)
		}
		var sum int64
		for _, w := range got {
			sum += w.Bytes
		}
		if len(got) > 0 && (sum > k.Size() || sum < k.Size()/2) {
			t.Errorf("%s: samples stand for %d of %d bytes", tt.name, sum, k.Size())
		}
	}
}

// TestMainRows has rows beside the named databases.
func TestMainRows(t *testing.T) {
	im := newImage(512)
	im.database("0", rowsOf(5, 512))
	main := im.tree(im.main, true)
	if main.depth != 1 {
		t.Fatal("the main database is not one page")
	}
	// A second row of the main database, as a program that uses both would have it.
	buf := im.pages[main.root]
	n := appendNode(2, 0, 0, "row", "xy")
	upper := int(le.Uint16(buf[14:])) - len(n)
	copy(buf[upper:], n)
	le.PutUint16(buf[12:], 20)
	le.PutUint16(buf[14:], uint16(upper))
	le.PutUint16(buf[18:], uint16(upper))
	rows := im.main
	im.main = nil
	data := im.finish()
	copy(data[512+pageHeader+24+treeSize:], main.encode())
	s := openTest(t, writeImage(t, data), nil)
	if got, err := scan(find(t, s, ""), nil, nil); err != nil || !slices.Equal(got, []kv{{"row", "xy"}}) {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := scan(find(t, s, "0"), nil, nil); err != nil || len(got) != 5 || len(rows) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestGolden walks a file that Ardb wrote; its rows are counted by the file itself.
func TestGolden(t *testing.T) {
	dir := filepath.Join(fixtures.Unpack(t, "ardb-lmdb-basic"), "lmdb")
	before := stat(t, dir)
	s := openTest(t, dir, &store.Options{Order: anyOrder})
	var names []string
	total := 0
	for _, k := range s.Keyspaces() {
		names = append(names, k.Name())
		got, err := scan(k, nil, nil)
		if err != nil {
			t.Fatalf("%s: %v", k.Name(), err)
		}
		n := 0
		if err := k.Unordered(func(*store.Entry) error { n++; return nil }); err != nil || n != len(got) {
			t.Errorf("%s: %d rows unordered, %d in order, %v", k.Name(), n, len(got), err)
		}
		total += n
	}
	if want := []string{"0", "1", "10", "__LMDB_META__", "__TTL_DB__", "bar", "foo"}; !slices.Equal(names, want) {
		t.Errorf("databases %q, want %q", names, want)
	}
	if total < 40000 {
		t.Errorf("%d rows", total)
	}
	if after := stat(t, dir); after != before {
		t.Errorf("the directory changed: %s, was %s", after, before)
	}
}

// stat describes the files of a directory.
func stat(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString(e.Name() + info.ModTime().String() + record.HashBytes(data).String() + " ")
	}
	return b.String()
}

// TestResort sorts a tree in another order.
func TestResort(t *testing.T) {
	im := newImage(512)
	rows := rowsOf(500, 512)
	mixed := slices.Clone(rows)
	slices.Reverse(mixed[100:])
	im.database("0", mixed)
	im.database("twice", append(slices.Clone(rows[:9]), rows[4]))
	s := openTest(t, writeImage(t, im.finish()), &store.Options{Resort: true, Memory: 16 << 10, TempDir: t.TempDir()})
	k := find(t, s, "0")
	for _, b := range [][2]int{{0, 500}, {0, 30}, {77, 401}, {450, 500}} {
		var lo, hi []byte
		if b[0] > 0 {
			lo = []byte(rows[b[0]].key)
		}
		if b[1] < len(rows) {
			hi = []byte(rows[b[1]].key)
		}
		if got, err := scan(k, lo, hi); err != nil || !slices.Equal(got, rows[b[0]:b[1]]) {
			t.Errorf("rows %v: %d, %v", b, len(got), err)
		}
	}
	if got, err := k.Sample(100); err != nil || got != nil {
		t.Errorf("samples %v, %v", got, err)
	}
	it, err := k.Rows(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(it.SeekGE([]byte(rows[40].key)), it.SeekGE([]byte(rows[10].key))); err != nil {
		t.Fatal(err)
	}
	var tally record.Tally
	key, _, err := it.Next()
	it.Tally(&tally)
	if err != nil || string(key) != rows[40].key || tally.Visible != 1 || it.Place().File == "" || it.Close() != nil {
		t.Errorf("%q, %v, %+v", key, err, tally)
	}
	if got, err := scan(find(t, s, "twice"), nil, nil); err != nil || len(got) != 9 {
		t.Errorf("a key twice: %d rows, %v", len(got), err)
	}
}

// TestBranchKeys corrupts keys of branch pages, which searches use and scans do not. No range loses or repeats a row:
// either the tree is out of order, or the key still separates the same rows.
func TestBranchKeys(t *testing.T) {
	data, _, rows, lost := salvageTree(t)
	refused := 0
	for num := range lost {
		page := data[num*512 : (num+1)*512]
		if le.Uint16(page[10:])&pageBranch == 0 {
			continue
		}
		n := int(le.Uint16(page[12:])-pageHeader) / 2
		for i := 1; i < n; i++ {
			node := int(num*512) + int(le.Uint16(page[pageHeader+2*i:]))
			size := int(le.Uint16(data[node+6:]))
			for at := node + 8; at < node+8+size; at++ {
				for bit := range 8 {
					broken := bytes.Clone(data)
					broken[at] ^= 1 << bit
					if checkBranchKey(t, writeImage(t, broken), rows) {
						refused++
					}
				}
			}
		}
	}
	if refused == 0 {
		t.Error("no key was missed")
	}
}

// checkBranchKey reads a file with a wrong key in a branch page. It reports whether the reader noticed.
func checkBranchKey(t *testing.T, dir string, rows []kv) bool {
	t.Helper()
	k := find(t, openTest(t, dir, &store.Options{Salvage: true}), "0").(*keyspace)
	if got, err := scan(k, nil, nil); err != nil || !slices.Equal(got, rows) {
		t.Fatalf("%d rows, %v", len(got), err)
	}
	var order *store.OrderError
	if err := k.CheckOrder(); errors.As(err, &order) {
		sorted := find(t, openTest(t, dir, &store.Options{Salvage: true, Resort: true}), "0")
		if got, err := scan(sorted, nil, []byte(rows[30].key)); err != nil || !slices.Equal(got, rows[:30]) {
			t.Fatalf("sorted: %d rows, %v", len(got), err)
		}
		return true
	} else if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if got, err := scan(k, []byte(rows[i].key), nil); err != nil || !slices.Equal(got, rows[i:]) {
			t.Fatalf("%d rows from row %d on, %v", len(got), i, err)
		}
	}
	return false
}

// TestUnknown: an unknown form in a file is never read as the nearest known one. It is an error or, for a salvage, the
// finding newer and the loss of the value, row, page or database that has it.
func TestUnknown(t *testing.T) {
	im := newImage(512)
	im.fan = 4
	rows := rowsOf(8, 512)
	im.database("0", rows)
	im.database("1", rowsOf(3, 512))
	data := im.finish()
	k := find(t, openTest(t, writeImage(t, data), nil), "0").(*keyspace)
	_, children, err := k.index(k.tree.root, false)
	if err != nil || k.tree.depth != 2 {
		t.Fatal(k.tree.depth, err)
	}
	leaf, big := int(children[1])*512, 2*512
	for le.Uint16(data[big+10:]) != pageOverflow {
		big += 512
	}
	node := int(le.Uint16(data[leaf+pageHeader:])) + leaf
	at := bytes.Index(data, []byte(k.tree.encode()))
	meta := 512 + pageHeader
	for _, tt := range []struct {
		name, want string
		data       []byte
		lost       int // rows of "0"; -1: the file is not opened
	}{
		{"flag of a leaf", "flags: have 0x42", patch(data, leaf+10, pageLeaf|0x40), 4},
		{"high flag of a leaf", "flags: have 0x2002", patch(data, leaf+11, 0x20), 4},
		{"flag of a branch", "flags: have 0x81", patch(data, int(k.tree.root)*512+10, pageBranch|0x80), 8},
		{"flag of an overflow page", "flags: have 0x104", patch(data, big+11, 1), 1},
		{"flag of a node", "node flags: have 0x8", patch(data, node+4, 8), 1},
		{"flags of a node", "node flags: have 0x4001", patch(data, node+4, 1, 0x40), 1},
		{"flag of a database", "database flags: have 0x80", patch(data, at+4, 0x80), 8},
		{"high flag of a database", "database flags: have 0x8000", patch(data, at+5, 0x80), 8},
		{"pad of a database", "database pad: have 1", patch(data, at, 1), 8},
		{"flag of the main database", "database flags: have 0x1", patch(data, meta+24+treeSize+4, 1), -1},
	} {
		dir := writeImage(t, tt.data)
		if _, err := readAll(dir); !record.IsNewer(err) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
		var found []record.Finding
		s, err := Open(t.Context(), dir, &store.Options{Salvage: true, Report: func(f record.Finding) {
			found = append(found, f)
		}})
		if tt.lost < 0 {
			if !record.IsNewer(err) {
				t.Errorf("%s: opened with %v", tt.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		got, err := scan(find(t, s, "0"), nil, nil)
		if err != nil || len(got) != len(rows)-tt.lost {
			t.Errorf("%s: %d rows of %d, %v", tt.name, len(got), len(rows), err)
		}
		if other, err := scan(find(t, s, "1"), nil, nil); err != nil || len(other) != 3 {
			t.Errorf("%s: %d rows of the other database, %v", tt.name, len(other), err)
		}
		s.Close()
		if len(found) != 1 || found[0].Kind != record.FindNewer || found[0].Severity != record.Error ||
			!strings.Contains(found[0].Detail, tt.want) {
			t.Errorf("%s: findings %+v", tt.name, found)
		}
	}
	for name, b := range map[string][]byte{"dirty": {pageLeaf | pageDirty}, "kept": {pageLeaf, 0x80}, "loose": {pageLeaf, 0x40}} {
		if n, err := readAll(writeImage(t, patch(data, leaf+10, b...))); err != nil || n != len(rows)+3 {
			t.Errorf("%s page: %d rows, %v", name, n, err)
		}
	}
	if _, err := decodeMeta(patch(data[512:], pageHeader+4, 2)); !record.IsNewer(err) {
		t.Errorf("version 2: %v", err)
	}
	if _, err := k.env.database("x", make([]byte, treeSize+1)); !errors.Is(err, record.ErrTrailing) {
		t.Errorf("a longer database: %v", err)
	}
}
