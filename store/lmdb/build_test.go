package lmdb

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/record"
	"kvferry/store"
)

// image builds LMDB files of any page size: enough of a writer to test the reader without the C library.
type image struct {
	psize int
	fan   int // children of a branch page; 0: as many as fit
	pages [][]byte
	main  []kv // databases: value is the tree
	flags map[string]uint16
}

type kv struct{ key, value string }

func newImage(psize int) *image {
	im := &image{psize: psize, flags: map[string]uint16{}}
	im.pages = append(im.pages, make([]byte, psize), make([]byte, psize))
	return im
}

func (im *image) alloc(flags uint16, n int) (uint64, []byte) {
	num := uint64(len(im.pages))
	buf := make([]byte, n*im.psize)
	le.PutUint64(buf, num)
	le.PutUint16(buf[10:], flags)
	for i := range n {
		im.pages = append(im.pages, buf[i*im.psize:(i+1)*im.psize])
	}
	return num, buf
}

func appendNode(lo, hi, flags uint16, key, data string) []byte {
	b := le.AppendUint16(nil, lo)
	b = le.AppendUint16(b, hi)
	b = le.AppendUint16(b, flags)
	b = le.AppendUint16(b, uint16(len(key)))
	b = append(b, key...)
	b = append(b, data...)
	if len(b)%2 == 1 {
		b = append(b, 0)
	}
	return b
}

// pack puts nodes on pages and returns the first index and number of each page.
func (im *image) pack(flags uint16, nodes [][]byte, fan int) (first []int, nums []uint64) {
	for at := 0; at < len(nodes); {
		num, buf := im.alloc(flags, 1)
		first, nums = append(first, at), append(nums, num)
		lower, upper := pageHeader, im.psize
		for n := 0; at < len(nodes) && lower+2 <= upper-len(nodes[at]) && (fan == 0 || n < fan); n++ {
			upper -= len(nodes[at])
			copy(buf[upper:], nodes[at])
			le.PutUint16(buf[lower:], uint16(upper))
			lower += 2
			at++
		}
		le.PutUint16(buf[12:], uint16(lower))
		le.PutUint16(buf[14:], uint16(upper))
	}
	return first, nums
}

// tree writes rows in the order given and returns their tree.
func (im *image) tree(rows []kv, sub bool) tree {
	t := tree{root: noPage, entries: uint64(len(rows))}
	if len(rows) == 0 {
		return t
	}
	var nodes [][]byte
	keys := make([]string, len(rows))
	for i, r := range rows {
		keys[i] = r.key
		size := len(r.value)
		n := appendNode(uint16(size), uint16(size>>16), 0, r.key, r.value)
		switch {
		case sub:
			n = appendNode(uint16(size), 0, nodeSub, r.key, r.value)
		case len(n) > im.psize/2-16:
			pages := (pageHeader-1+size)/im.psize + 1
			num, buf := im.alloc(pageOverflow, pages)
			le.PutUint32(buf[12:], uint32(pages))
			copy(buf[pageHeader:], r.value)
			t.overflow += uint64(pages)
			n = appendNode(uint16(size), uint16(size>>16), nodeBig, r.key, string(le.AppendUint64(nil, num)))
		}
		nodes = append(nodes, n)
	}
	first, nums := im.pack(pageLeaf, nodes, im.fan)
	t.leaf, t.depth = uint64(len(nums)), 1
	for len(nums) > 1 {
		var up [][]byte
		var upKeys []string
		for i, num := range nums {
			key := keys[first[i]]
			upKeys = append(upKeys, key)
			if i == 0 {
				key = ""
			}
			up = append(up, appendNode(uint16(num), uint16(num>>16), uint16(num>>32), key, ""))
		}
		keys = upKeys
		first, nums = im.pack(pageBranch, up, im.fan)
		t.branch += uint64(len(nums))
		t.depth++
	}
	t.root = nums[0]
	return t
}

func (t tree) encode() string {
	b := le.AppendUint32(nil, t.pad)
	b = le.AppendUint16(b, t.flags)
	b = le.AppendUint16(b, t.depth)
	for _, v := range []uint64{t.branch, t.leaf, t.overflow, t.entries, t.root} {
		b = le.AppendUint64(b, v)
	}
	return string(b)
}

func (im *image) database(name string, rows []kv) {
	t := im.tree(rows, false)
	t.flags = im.flags[name]
	im.main = append(im.main, kv{name, t.encode()})
}

// finish writes the meta pages; the second is the newer.
func (im *image) finish() []byte {
	main := tree{root: noPage}
	if len(im.main) > 0 {
		main = im.tree(im.main, true)
	}
	for i := range 2 {
		b := append([]byte(nil), make([]byte, pageHeader)...)
		le.PutUint16(b[10:], pageMeta)
		le.PutUint64(b, uint64(i))
		b = le.AppendUint32(b, metaMagic)
		b = le.AppendUint32(b, metaVersion)
		b = append(b, make([]byte, 16)...)
		free := tree{pad: uint32(im.psize), root: noPage}
		if i == 0 {
			b = append(b, free.encode()+tree{root: noPage}.encode()...)
		} else {
			b = append(b, free.encode()+main.encode()...)
		}
		b = le.AppendUint64(b, uint64(len(im.pages)-1))
		b = le.AppendUint64(b, uint64(i))
		copy(im.pages[i], b)
	}
	return bytes.Join(im.pages, nil)
}

func writeImage(t testing.TB, data []byte) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, dataFile), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func openTest(t testing.TB, dir string, o *store.Options) store.Store {
	t.Helper()
	s, err := Open(context.Background(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func find(t testing.TB, s store.Store, name string) store.Keyspace {
	t.Helper()
	for _, k := range s.Keyspaces() {
		if k.Name() == name {
			return k
		}
	}
	t.Fatalf("no keyspace %q", name)
	return nil
}

// scan reads rows until the end or an error.
func scan(k store.Keyspace, lo, hi []byte) ([]kv, error) {
	it, err := k.Rows(lo, hi)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	var out []kv
	for {
		key, value, err := it.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, kv{string(key), string(value)})
	}
}

// rowsOf makes n rows in bytewise order, some with large values.
func rowsOf(n, psize int) []kv {
	var out []kv
	for i := range n {
		v := strings.Repeat(string(rune('a'+i%26)), i%40)
		if i%17 == 3 {
			v = strings.Repeat(v+"x", 1+psize*(i%5)/(len(v)+1))
		}
		out = append(out, kv{string([]byte{'k', byte(i >> 16), byte(i >> 8), byte(i)}), v})
	}
	return out
}

func TestPageSizes(t *testing.T) {
	for _, psize := range []int{512, 1024, 4096, 8192, 16384, 32768} {
		im := newImage(psize)
		want := rowsOf(1000, psize)
		im.database("0", want)
		im.database("empty", nil)
		im.database("one", want[:1])
		s := openTest(t, writeImage(t, im.finish()), nil)
		got, err := scan(find(t, s, "0"), nil, nil)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("page size %d: %d rows, %v; want %d", psize, len(got), err, len(want))
		}
		if got, err := scan(find(t, s, "empty"), nil, []byte("x")); err != nil || len(got) != 0 {
			t.Errorf("page size %d: empty: %v %v", psize, got, err)
		}
		if got, err := scan(find(t, s, "one"), nil, nil); err != nil || len(got) != 1 {
			t.Errorf("page size %d: one: %v %v", psize, got, err)
		}
	}
}

func TestRanges(t *testing.T) {
	for _, fan := range []int{3, 7, 0} {
		im := newImage(512)
		im.fan = fan
		all := rowsOf(400, 512)
		im.database("0", all)
		k := find(t, openTest(t, writeImage(t, im.finish()), nil), "0")
		bounds := []string{"", "k", all[0].key, all[1].key, all[1].key + "\x00", all[200].key, all[399].key, all[399].key + "z", "z"}
		for _, lo := range bounds {
			for _, hi := range bounds {
				var want []kv
				for _, r := range all {
					if r.key >= lo && r.key < hi {
						want = append(want, r)
					}
				}
				got, err := scan(k, []byte(lo), []byte(hi))
				if err != nil || !slices.Equal(got, want) {
					t.Fatalf("fan %d: [%q, %q): %d rows, %v; want %d", fan, lo, hi, len(got), err, len(want))
				}
			}
		}
	}
}

func TestSeekGE(t *testing.T) {
	im := newImage(512)
	all := rowsOf(300, 512)
	im.database("0", all)
	k := find(t, openTest(t, writeImage(t, im.finish()), nil), "0")
	it, err := k.Rows(nil, []byte(all[290].key))
	if err != nil {
		t.Fatal(err)
	}
	var tally record.Tally
	for i := 0; i < 290; i += 13 {
		if err := it.SeekGE([]byte(all[i].key)); err != nil {
			t.Fatal(err)
		}
		if i > 0 { // backward is no move
			if err := it.SeekGE([]byte(all[i-1].key)); err != nil {
				t.Fatal(err)
			}
		}
		key, value, err := it.Next()
		if want := max(i, 0); err != nil || string(key) != seekWant(all, i) || value == nil && all[want].value != "" {
			t.Fatalf("at %d: %q, %v", i, key, err)
		}
		if p := it.Place(); p.Off%512 != 0 || p.Off < 1024 || filepath.Base(p.File) != dataFile {
			t.Fatalf("place %+v", p)
		}
	}
	if err := it.SeekGE([]byte("z")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := it.Next(); err != io.EOF {
		t.Fatalf("after the end: %v", err)
	}
	it.Tally(&tally)
	if tally.Visible != 23 || tally.Entries != 23 {
		t.Errorf("tally %+v", tally)
	}
}

// seekWant is the key after SeekGE(i) and then SeekGE(i-1), which has not been returned yet.
func seekWant(all []kv, i int) string {
	if i == 0 {
		return all[0].key
	}
	return all[i-1].key
}
