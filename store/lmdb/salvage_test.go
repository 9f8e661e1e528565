package lmdb

import (
	"bytes"
	"errors"
	"io"
	"math/rand"
	"slices"
	"testing"

	"kvferry/record"
	"kvferry/store"
)

// below collects the pages of a tree with the keys of the rows that are lost with each.
func below(t *testing.T, k *keyspace, num uint64, depth int, lost map[uint64][]string) []string {
	t.Helper()
	leaf := depth == int(k.tree.depth)
	var all []string
	if !leaf {
		_, children, err := k.index(num, false)
		if err != nil {
			t.Fatal(err)
		}
		for _, child := range children {
			all = append(all, below(t, k, child, depth+1, lost)...)
		}
		lost[num] = all
		return all
	}
	c := &cursor{k: k, levels: make([]level, 1)}
	if err := c.load(0, num); err != nil {
		t.Fatal(err)
	}
	for i := range c.levels[0].page.n {
		n, err := c.levels[0].page.leaf(i)
		if err != nil {
			t.Fatal(err)
		}
		if n.flags == nodeBig {
			lost[n.child] = []string{string(n.key)}
		}
		all = append(all, string(n.key))
	}
	lost[num] = all
	return all
}

// salvageImage is a file of a tree that is three pages deep, with values in pages of their own.
func salvageImage() []byte {
	im := newImage(512)
	im.fan = 4
	rows := rowsOf(60, 512)
	for i := range rows {
		if i%13 == 7 {
			rows[i].value = string(bytes.Repeat([]byte{byte(i)}, 700))
		}
	}
	im.database("0", rows)
	im.database("1", rowsOf(3, 512))
	return im.finish()
}

// salvageTree opens the image: a tree with its rows, and those below each of its pages.
func salvageTree(t *testing.T) (data []byte, k *keyspace, rows []kv, lost map[uint64][]string) {
	t.Helper()
	data = salvageImage()
	k = find(t, openTest(t, writeImage(t, data), &store.Options{}), "0").(*keyspace)
	rows, err := scan(k, nil, nil)
	if err != nil || k.tree.depth < 3 {
		t.Fatalf("depth %d, %v", k.tree.depth, err)
	}
	lost = map[uint64][]string{}
	below(t, k, k.tree.root, 1, lost)
	return data, k, rows, lost
}

func without(rows []kv, lost []string) []kv {
	return slices.DeleteFunc(slices.Clone(rows), func(r kv) bool { return slices.Contains(lost, r.key) })
}

// TestSalvagePages damages every page of a tree, and several at once: scans, seeks and ranges, sorted or not, miss
// exactly the rows below them, and each page is reported once.
func TestSalvagePages(t *testing.T) {
	data, _, rows, lost := salvageTree(t)
	var pages []uint64
	for num := range lost {
		pages = append(pages, num)
	}
	slices.Sort(pages)
	r := rand.New(rand.NewSource(1))
	for n := range 3 * len(pages) {
		set := []uint64{pages[n%len(pages)]}
		if n >= len(pages) {
			set = append(set, pages[r.Intn(len(pages))], pages[r.Intn(len(pages))])
			slices.Sort(set)
			set = slices.Compact(set)
		}
		broken := bytes.Clone(data)
		var gone []string
		for _, num := range set {
			page := broken[num*512 : (num+1)*512]
			switch n % 3 {
			case 0:
				clear(page)
			case 1:
				r.Read(page)
			default:
				page[10] ^= 7 // its kind
			}
			gone = append(gone, lost[num]...)
		}
		checkSalvage(t, broken, set, without(rows, gone))
	}
}

// checkSalvage reads a damaged file.
func checkSalvage(t *testing.T, data []byte, pages []uint64, want []kv) {
	t.Helper()
	dir := writeImage(t, data)
	var found []record.Finding
	o := store.Options{Salvage: true, Report: func(f record.Finding) { found = append(found, f) }}
	k := find(t, openTest(t, dir, &o), "0")
	if got, err := scan(k, nil, nil); err != nil || !slices.Equal(got, want) {
		t.Fatalf("pages %d: %d rows, want %d, %v", pages, len(got), len(want), err)
	}
	named := map[int64]bool{}
	for _, f := range found {
		if f.Kind != record.FindDamagedPage || named[f.Place.Off] || !slices.Contains(pages, uint64(f.Place.Off/512)) {
			t.Fatalf("pages %d: %+v", pages, found)
		}
		named[f.Place.Off] = true
	}
	if len(found) == 0 {
		t.Fatalf("pages %d: nothing is said", pages)
	}
	for i := 0; i < len(want); i += 3 {
		if got, err := scan(k, []byte(want[i].key), nil); err != nil || !slices.Equal(got, want[i:]) {
			t.Fatalf("pages %d: %d rows from %q on, want %d, %v", pages, len(got), want[i].key, len(want)-i, err)
		}
	}
	checkSeek(t, k, want)
	if _, err := k.Sample(10); err != nil {
		t.Error(err)
	}
	count := 0
	if err := k.Unordered(func(*store.Entry) error { count++; return nil }); err != nil || count != len(want) ||
		len(found) != len(named) {
		t.Fatalf("pages %d: %d rows in the order of the tree, want %d, %v; %d findings", pages, count, len(want), err, len(found))
	}
	sorted := find(t, openTest(t, dir, &store.Options{Salvage: true, Resort: true}), "0")
	if got, err := scan(sorted, nil, nil); err != nil || !slices.Equal(got, want) {
		t.Fatalf("pages %d: sorted %d rows, want %d, %v", pages, len(got), len(want), err)
	}
	var block *store.BlockError
	if _, err := scan(find(t, openTest(t, dir, &store.Options{}), "0"), nil, nil); !errors.As(err, &block) {
		t.Fatalf("pages %d: without salvage: %v", pages, err)
	}
}

// checkSeek seeks forward from row to row, and to where rows were.
func checkSeek(t *testing.T, k store.Keyspace, want []kv) {
	t.Helper()
	it, err := k.Rows(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for i := 0; i < len(want); i += 1 + i%4 {
		if err := it.SeekGE([]byte(want[i].key)); err != nil {
			t.Fatal(err)
		}
		if key, value, err := it.Next(); err != nil || string(key) != want[i].key || string(value) != want[i].value {
			t.Fatalf("row %d: %q, %v, want %q", i, key, err, want[i].key)
		}
	}
	it.SeekGE([]byte("zzz"))
	if _, _, err := it.Next(); err != io.EOF {
		t.Errorf("behind the last row: %v", err)
	}
}

// TestSalvageNodes: a node that does not fit into its page loses only its row or its subtree.
func TestSalvageNodes(t *testing.T) {
	data, k, rows, lost := salvageTree(t)
	num, i := k.tree.root, 1
	for depth := 1; depth <= int(k.tree.depth); depth++ {
		leaf := depth == int(k.tree.depth)
		keys, children, err := k.index(num, leaf)
		if err != nil || len(children) <= i {
			t.Fatal(len(children), err)
		}
		broken := bytes.Clone(data)
		page := broken[num*512 : (num+1)*512]
		le.PutUint16(page[le.Uint16(page[pageHeader+2*i:])+6:], 0xfff0) // the length of its key
		var gone []string
		if leaf {
			gone = []string{string(keys[i])}
		} else {
			gone = lost[children[i]]
		}
		checkSalvage(t, broken, []uint64{num}, without(rows, gone))
		num = children[0]
	}
}
