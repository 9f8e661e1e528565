package ardb

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"kvferry/ardb/codec"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/memstore"
	"kvferry/record"
)

// oldCompare is the order of 0.9.0 to 0.9.6, which uses only 32 bits of the difference of integers.
func oldCompare(t *testing.T, a, b []byte) int {
	x, err := codec.DecodeKey(a, false)
	y, err2 := codec.DecodeKey(b, false)
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	if c := cmp.Or(bytes.Compare(x.User, y.User), int(x.Kind)-int(y.Kind)); c != 0 {
		return c
	}
	for i := range x.Elems {
		c := x.Elems[i].Compare(&y.Elems[i])
		if x.Elems[i].Tag == codec.TagInt && y.Elems[i].Tag == codec.TagInt {
			c = int(int32(x.Elems[i].Int - y.Elems[i].Int))
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

// TestOldServer: a dataset written for a server before 0.9.7 is in that server's order, and differs from
// others only by the reported losses.
func TestOldServer(t *testing.T) {
	old := New().(format.Served).For(serverOld)
	s := old.(format.Served)
	if s.Server() != serverOld || len(s.Servers()) != 1 || s.Servers()[0].Name != serverOld || old.Name() != "ardb" {
		t.Errorf("%+v", s)
	}
	if l := old.Limits(); l.Types.Has(record.Stream) || l.Stores[1].Write || !l.Stores[1].Read ||
		!New().Limits().Types.Has(record.Stream) {
		t.Errorf("%+v", l)
	}
	for typ, want := range map[record.Type]string{record.Stream: "stream!", record.Hash: ""} {
		h := record.Header{Type: typ, ExpireMS: 1, Len: 1 << 40}
		if got := formattest.Losses(t, &target{Adapter: old.(ardbFormat).adapter()}, h); got != want {
			t.Errorf("%s: %q", typ, got)
		}
		if got := formattest.Losses(t, &target{Adapter: ardbFormat{}.adapter()}, h); got != "" {
			t.Errorf("%s, for a newer server: %q", typ, got)
		}
	}
	if got := formattest.Losses(t, &target{Adapter: ardbFormat{}.adapter()}, record.Header{Type: record.Stream, Len: 2, Added: 5,
		MaxDeleted: make([]byte, 16)}); got != "group-progress? group-progress?" {
		t.Errorf("a stream that had more entries: %q", got)
	}
	if got := formattest.Losses(t, &target{Adapter: ardbFormat{}.adapter()},
		record.Header{Type: record.Set, ExpireMS: -5000}); got != "expiry-ms? ms=1" {
		t.Errorf("what expired before 1970: %q", got)
	}
	fs := memstore.New()
	o := createOptions(t, kindRocksDB, "0")
	o.Create, o.Reopen.Store = fs.Create, fs.Open
	target, err := old.Create(context.Background(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	w, err := formattest.One(target.Shard(0, "0", record.AllTypes, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	var want record.Fingerprint
	options := randomOptions("0")
	options.NarrowInts, options.Limits = false, old.Limits()
	losses := pump(t, target, w, record.Walk(fixtures.Records(7, 200, options)), &want)
	if len(losses) < 10 || slices.ContainsFunc(losses, func(l record.Loss) bool { return l.Kind != LossIntSpan }) {
		t.Errorf("%d losses: %+v", len(losses), losses)
	}
	far := []string{"0", "2147483647", "2147483648", "-1", "-2147483648", fmt.Sprint(int64(math.MinInt64)), "x"}
	h := record.Header{DB: "0", Type: record.Set, Key: bytes.Repeat([]byte{0xff}, 400), Len: 7}
	var batch []record.Element
	for _, name := range far {
		batch = append(batch, member(name))
	}
	var left []string
	kept := target.ElementLosses(&h, batch, func(l record.Loss) { left = append(left, l.Detail) })
	if err := (rec{h, kept}).write(w); err != nil {
		t.Fatal(err)
	}
	wanted := []string{"2147483648", "-1", "-2147483648", "-9223372036854775808"}
	if len(kept) != 3 || len(left) != 4 {
		t.Errorf("left out %q, want %q", left, wanted)
	} else {
		for i, v := range wanted {
			if left[i] != v+" is 2^31 or more from another integer of the key" {
				t.Errorf("left out: %s", left[i])
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	src, err := target.Finish(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	checkOldOrder(t, src)
	if l := target.Losses(&record.Header{Type: record.Stream}); len(l) != 1 || l[0].Kind != record.LossStream || !l[0].Drops {
		t.Errorf("a stream: %+v", l)
	}
	if l := target.Losses(&record.Header{Type: record.Hash}); l != nil {
		t.Errorf("a hash: %+v", l)
	}
	level := createOptions(t, kindLevelDB, "0")
	level.Create = fs.Create
	if _, err := old.Create(context.Background(), t.TempDir(), level); err == nil || !strings.Contains(err.Error(), "ardb0.9.6 is not written to LevelDB") {
		t.Errorf("to LevelDB: %v", err)
	}
}

// checkOldOrder compares each row with the previous one and with some distant ones: an order that wraps around
// may hold between neighbours only.
func checkOldOrder(t *testing.T, src format.Source) {
	t.Helper()
	var keys [][]byte
	for _, ks := range src.Keyspaces() {
		if ks.DB != "0" {
			continue
		}
		it, err := ks.Rows(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for {
			key, _, err := it.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, slices.Clone(key))
		}
		it.Close()
	}
	if len(keys) < 1000 {
		t.Fatalf("%d rows", len(keys))
	}
	for i, key := range keys {
		for back := 1; back <= i; back *= 2 {
			if oldCompare(t, keys[i-back], key) >= 0 {
				t.Errorf("%x is not before %x", keys[i-back], key)
			}
		}
	}
}
