package ardb

import (
	"bytes"
	"errors"
	"math"
	"slices"
	"testing"

	"kvferry/ardb/codec"
	"kvferry/format"
	"kvferry/internal/testkit/memstore"
	"kvferry/store"
)

// namespaced is a keyspace of LevelDB with a key of each namespace.
func namespaced(t *testing.T, namespaces ...codec.Data) store.Keyspace {
	t.Helper()
	st := memstore.New().Dir("d")
	if err := st.Keyspace(defaultCF, codec.LevelDBComparer()); err != nil {
		t.Fatal(err)
	}
	for _, ns := range namespaces {
		st.Put(defaultCF, codec.AppendKey(nil, codec.AppendData(nil, ns), []byte("k"), codec.KindMeta), []byte("v"))
	}
	return st.Keyspaces()[0]
}

func dbs(spaces []*space) (out []string) {
	for _, sp := range spaces {
		out = append(out, sp.DB)
	}
	return out
}

func TestSpaces(t *testing.T) {
	st := memstore.New().Dir("d")
	for _, name := range []string{"10", "", defaultCF, codec.TTLNamespace, "1", codec.LMDBNamespace} {
		if err := st.Keyspace(name, codec.Comparer()); err != nil {
			t.Fatal(err)
		}
	}
	for kind, want := range map[string][]string{kindRocksDB: {"", "1", "10"}, kindLMDB: {"1", "10", defaultCF}} {
		spaces, rest := spacesOf(st, kind)
		if !slices.Equal(dbs(spaces), want) || len(rest) != 3 {
			t.Errorf("%s: %q and %d others", kind, dbs(spaces), len(rest))
		}
	}
	sp := &space{Keyspace: st.Keyspaces()[0]}
	if sp.Part() != sp.Keyspace || !sp.Holds([]byte("anything")) {
		t.Error("a namespace of its own is not the whole keyspace")
	}
	if lo, hi := sp.Bounds(format.Span{}); lo != nil || hi != nil {
		t.Errorf("bounds %x and %x", lo, hi)
	}
	if lo, hi := sp.Bounds(format.Span{Lo: []byte("a"), Hi: []byte("b")}); !bytes.Equal(lo, codec.Bound(nil, []byte("a"))) ||
		!bytes.Equal(hi, codec.Bound(nil, []byte("b"))) {
		t.Errorf("bounds %x and %x", lo, hi)
	}
}

// TestFind: the namespaces of a LevelDB keyspace, including deleted ones, are disjoint parts of it.
func TestFind(t *testing.T) {
	ks := namespaced(t, text("10"), text("1"), codec.IntData(1), text(codec.TTLNamespace), codec.FloatData(0.5), codec.Data{})
	found, err := findSpaces(ks)
	if err != nil || !slices.Equal(dbs(found), []string{"1", "10", "int:1"}) {
		t.Fatalf("%q, %v", dbs(found), err)
	}
	buried, err := buriedSpaces(ks)
	slices.SortFunc(buried, func(a, b *space) int { return bytes.Compare([]byte(a.DB), []byte(b.DB)) })
	if err != nil || !slices.Equal(dbs(buried), dbs(found)) {
		t.Errorf("by entries: %q, %v", dbs(buried), err)
	}
	for _, sp := range append(found, expirySpace(ks)) {
		key := codec.AppendKey(nil, sp.NS, []byte("k"), codec.KindMeta)
		there, err := sp.Has(key)
		if !there || err != nil || !sp.Holds(key) {
			t.Errorf("%s: its key is there %v, %v", sp.DB, there, err)
		}
		if there, err := sp.Has(append(key[:len(key)-2], byte(codec.KindEnd), 0)); there || err != nil {
			t.Errorf("%s: a key that is not there is, %v", sp.DB, err)
		}
		n := 0
		if err := sp.Part().Unordered(func(*store.Entry) error { n++; return nil }); err != nil || n != 1 {
			t.Errorf("%s: %d rows, %v", sp.DB, n, err)
		}
		lo, hi := sp.Bounds(format.Span{})
		it, err := ks.Rows(lo, hi)
		if err != nil {
			t.Fatal(err)
		}
		for n = 0; ; n++ {
			if _, _, err := it.Next(); err != nil {
				break
			}
		}
		if n != 1 {
			t.Errorf("%s: %d rows between its bounds", sp.DB, n)
		}
	}
	if there, err := found[0].Has(codec.AppendKey(nil, codec.AppendText(nil, []byte("zzz")), nil, codec.KindMeta)); there ||
		err != nil {
		t.Errorf("past all rows: %v, %v", there, err)
	}
}

// TestBuriedCircle: the search terminates although the comparator orders integers in a circle.
func TestBuriedCircle(t *testing.T) {
	ks := namespaced(t, codec.IntData(0), codec.IntData(6e18), codec.IntData(-6e18), codec.IntData(math.MaxInt64-1))
	found, err := buriedSpaces(ks)
	if all := dbs(found); err != nil || len(all) == 0 || len(slices.Compact(slices.Sorted(slices.Values(all)))) != len(all) {
		t.Errorf("%q, %v", all, err)
	}
}

// failing is a keyspace whose iterators fail.
type failing struct{ store.Keyspace }

var errFail = errors.New("fail")

func (failing) Rows(_, _ []byte) (store.Iterator, error)         { return nil, errFail }
func (failing) Entries(_, _ []byte) (store.EntryIterator, error) { return nil, errFail }

func TestErrors(t *testing.T) {
	ks := failing{namespaced(t, text("0"))}
	_, found := findSpaces(ks)
	_, buried := buriedSpaces(ks)
	_, has := (&space{Keyspace: ks}).Has(nil)
	if found != errFail || buried != errFail || has != errFail {
		t.Errorf("%v, %v, %v", found, buried, has)
	}
}

// TestExpires looks up expiries of META rows.
func TestExpires(t *testing.T) {
	st := memstore.New().Dir("d")
	if err := st.Keyspace("0", codec.Comparer()); err != nil {
		t.Fatal(err)
	}
	put := func(user string, value []byte) {
		st.Put("0", codec.AppendKey(nil, nil, []byte(user), codec.KindMeta), value)
	}
	put("a", codec.AppendValue(nil, &codec.Value{Kind: codec.KindString, ExpireMS: 7}, text("v")))
	put("b", codec.AppendValue(nil, &codec.Value{Kind: codec.KindField}, text("v")))
	put("c", []byte{byte(codec.KindString)})
	sp := &space{Keyspace: st.Keyspaces()[0]}
	for user, want := range map[string]bool{"a": true, "b": false, "c": false, "d": false} {
		if got, err := sp.Expires([]byte(user), 7); got != want || err != nil {
			t.Errorf("%s expires then: %v %v", user, got, err)
		}
	}
	if got, err := sp.Expires([]byte("a"), 8); got || err != nil {
		t.Errorf("another expiry: %v %v", got, err)
	}
}

// TestFindOnce: a row whose damaged key stands behind the others of its namespace makes no second namespace of that name, whose
// records would be those of the first.
func TestFindOnce(t *testing.T) {
	st := memstore.New().Dir("d")
	if err := st.Keyspace(defaultCF, codec.LevelDBComparer()); err != nil {
		t.Fatal(err)
	}
	ns := codec.AppendData(nil, text("0"))
	key := codec.AppendKey(nil, ns, []byte("basket"), codec.KindMeta)
	st.Put(defaultCF, key, []byte("v"))
	damaged := bytes.Clone(key)
	damaged[len(ns)] += 4 // the key's length
	st.Put(defaultCF, damaged, []byte("v"))
	it, err := st.Keyspaces()[0].Rows(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	next, _ := codec.AfterNamespace(text("0"))
	if err := it.SeekGE(next); err != nil {
		t.Fatal(err)
	}
	if behind, _, err := it.Next(); err != nil || !bytes.Equal(behind, damaged) {
		t.Fatalf("behind the namespace is %q, %v", behind, err)
	}
	if found, err := findSpaces(st.Keyspaces()[0]); err != nil || !slices.Equal(dbs(found), []string{"0"}) {
		t.Errorf("%q, %v", dbs(found), err)
	}
}
