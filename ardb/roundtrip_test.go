package ardb

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kvferry/ardb/codec"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/sys/bufpool"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/memstore"
	"kvferry/internal/testkit/seed"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/build"
)

// creators are the stores that are written.
var creators = map[string]store.CreateFunc{kindRocksDB: build.Create, kindLevelDB: build.CreateLevelDB}

// unhex decodes hex with blanks.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func createOptions(t testing.TB, kind string, dbs ...string) *format.CreateOptions {
	return &format.CreateOptions{Create: creators[kind], Kind: kind, DBs: dbs, Memory: 1 << 20, TempDir: t.TempDir(), Now: clock,
		Reopen: &format.OpenOptions{Store: openers[kind]}}
}

func create(t testing.TB, dir string, o *format.CreateOptions) format.Target {
	t.Helper()
	target, err := New().Create(context.Background(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// pump writes all records of a reader like convert: elements first pass the target's losses.
func pump(t testing.TB, target format.Target, w *formattest.OneByOne, r *record.Walker,
	f *record.Fingerprint) (losses []record.Loss) {
	t.Helper()
	var hasher record.Hasher
	buf := make([]record.Element, 37)
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		lose := func(l record.Loss) {
			if l.Kind != record.LossHyperLogLog { // a note
				losses = append(losses, l)
			}
		}
		for _, l := range target.Losses(h) {
			lose(l)
		}
		if err := w.Begin(h); err != nil {
			t.Fatal(err)
		}
		hasher.Begin(h)
		for {
			n, err := r.Read(buf)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			elems := target.ElementLosses(h, buf[:n], lose)
			hasher.Elements(elems)
			if err := w.Write(elems); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.End(); err != nil {
			t.Fatal(err)
		}
		f.Add(record.Part{DB: h.DB, Type: h.Type}, hasher.End(h))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return losses
}

// randomOptions are the options for records that Ardb can hold.
func randomOptions(db string) fixtures.Options {
	return fixtures.Options{DB: db, Limits: New().Limits(), Now: clock, NarrowInts: true}
}

func fingerprint(t testing.TB, src format.Source, env *format.Env) *record.Fingerprint {
	t.Helper()
	var f record.Fingerprint
	var h record.Hasher
	for _, db := range src.Databases() {
		readRecords(t, src, db, record.AllTypes, format.Span{}, env, func(hd *record.Header, elems []record.Element) {
			h.Begin(hd)
			h.Elements(elems)
			f.Add(record.Part{DB: db, Type: hd.Type}, h.End(hd))
		})
	}
	return &f
}

// noFindings fails on any.
func noFindings(t testing.TB) func(record.Finding) {
	return func(f record.Finding) { t.Errorf("finding %s: %s %q %s", f.Severity, f.Kind, f.Key, f.Detail) }
}

// TestRoundTrip writes random records into both stores, in memory and on disk, and reads them back.
func TestRoundTrip(t *testing.T) {
	for kind := range creators {
		for _, mem := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s memory=%v", kind, mem), func(t *testing.T) { testRoundTrip(t, kind, mem, uint64(seed.Of(t))) })
		}
	}
}

func testRoundTrip(t *testing.T, kind string, mem bool, seed uint64) {
	dbs := []string{"0", "10", "a name", "1"}
	o := createOptions(t, kind, dbs...)
	if mem {
		fs := memstore.New()
		o.Create, o.Reopen.Store = fs.Create, fs.Open
	}
	dir := filepath.Join(t.TempDir(), "new")
	target := create(t, dir, o)
	var want record.Fingerprint
	for i, db := range dbs {
		w, err := formattest.One(target.Shard(i, db, record.AllTypes, 64<<10))
		if err != nil {
			t.Fatal(err)
		}
		losses := pump(t, target, w, record.Walk(fixtures.Records(seed+uint64(i), 150, randomOptions(db))), &want)
		if len(losses) > 0 {
			t.Errorf("losses %+v", losses)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	src, err := target.Finish(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if mem {
		formattest.CheckLookups(t, src, "10")
	}
	env := testEnv(noFindings(t))
	env.Deep = true
	if got := fingerprint(t, src, env); len(want.Diff(got, false)) > 0 {
		t.Errorf("fingerprints differ: %v", want.Diff(got, false))
	}
	if err := env.Ledger.Check(); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if !mem {
		checkStrings(t, src, &want)
	}
}

// TestWriteStrings: strings written in batches give the same tables as strings written one by one, in order
// only.
func TestWriteStrings(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var batch record.Batch
	for i := range 700 {
		value := []byte([]string{"", "12", "-9223372036854775808", "1e+20", "text"}[r.IntN(5)])
		if r.IntN(50) == 0 {
			value = bytes.Repeat([]byte("long "), r.IntN(60_000))
		}
		h := record.Header{DB: "0", Type: record.String, Key: fmt.Appendf(nil, "key%0*d", 3+i/200, i), Len: 1,
			ExpireMS: []int64{0, 0, clock.UnixMilli() + int64(i)}[r.IntN(3)]}
		batch.Records = append(batch.Records, record.Record{Header: h, First: i, N: 1, Class: record.Copied})
		batch.Elems = append(batch.Elems, record.Element{Value: value})
	}
	slices.SortFunc(batch.Records, func(a, b record.Record) int { return bytes.Compare(a.Key, b.Key) })
	some := func(from, to int) *record.Batch {
		return &record.Batch{Records: batch.Records[from:to], Elems: batch.Elems}
	}
	for kind := range creators {
		var files [2]map[string]string
		for way := range files {
			dir := filepath.Join(t.TempDir(), "new")
			target := create(t, dir, createOptions(t, kind, "0"))
			w, err := target.Shard(0, "0", record.AllTypes, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			if way == 0 {
				for i := 0; i < len(batch.Records) && err == nil; i++ {
					err = w.Write(some(i, i+1))
				}
			} else {
				err = errors.Join(w.Write(some(0, 300)), w.Write(some(300, len(batch.Records))))
			}
			if err := errors.Join(err, w.Close()); err != nil {
				t.Fatal(err)
			}
			src, err := target.Finish(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			got := 0
			readRecords(t, src, "0", record.AllTypes, format.Span{}, testEnv(noFindings(t)),
				func(h *record.Header, elems []record.Element) {
					s := &batch.Records[got]
					value := batch.Of(got)[0].Value
					if !bytes.Equal(h.Key, s.Key) || !bytes.Equal(elems[0].Value, value) || h.ExpireMS != s.ExpireMS {
						t.Fatalf("%s: %.40q, expiry %d; want %s %.40q, %d", h.Key, elems[0].Value, h.ExpireMS, s.Key, value,
							s.ExpireMS)
					}
					got++
				})
			if got != len(batch.Records) {
				t.Errorf("%s: %d strings, want %d", kind, got, len(batch.Records))
			}
			src.Close()
			files[way] = tables(t, dir)
		}
		if len(files[0]) == 0 || !maps.Equal(files[0], files[1]) {
			t.Errorf("%s: the tables differ", kind)
		}
		target := create(t, filepath.Join(t.TempDir(), "wrong"), createOptions(t, kind, "0"))
		w, err := target.Shard(0, "0", record.AllTypes, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(some(1, 2)); err != nil {
			t.Fatal(err)
		}
		if err := w.Write(some(1, 2)); err == nil || !strings.Contains(err.Error(), "a second record of this key (string)") {
			t.Errorf("%s: twice: %v", kind, err)
		}
		if err := w.Write(some(0, 1)); err == nil || !strings.Contains(err.Error(), "records must ascend") {
			t.Errorf("%s: out of order: %v", kind, err)
		}
		w.Abort()
		target.Abort()
	}
}

// tables returns the tables below a directory.
func tables(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); err != nil || ext != ".sst" && ext != ".ldb" {
			return err
		}
		data, err := os.ReadFile(path)
		out[filepath.Base(path)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// checkStrings reads strings in batches: all records match the written ones, and each row of a string is
// counted in the class given to it.
func checkStrings(t *testing.T, src format.Source, want *record.Fingerprint) {
	t.Helper()
	var f record.Fingerprint
	var h record.Hasher
	var given int64
	env := testEnv(noFindings(t))
	for _, db := range src.Databases() {
		r, err := src.Records(context.Background(), db, record.AllTypes, format.Span{}, env)
		if err != nil {
			t.Fatal(err)
		}
		r = record.Booked(r, env.Ledger)
		for {
			b, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range b.Records {
				hd := &b.Records[i]
				if b.Begins(i) {
					h.Begin(&hd.Header)
				}
				h.Elements(b.Of(i))
				if b.Ends(i) {
					f.Add(record.Part{DB: db, Type: hd.Type}, h.End(&hd.Header))
				}
				if len(b.Records) > 1 && hd.Type == record.String {
					hd.Class = record.Filtered
					given++
				}
			}
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if diff := want.Diff(&f, false); len(diff) > 0 {
		t.Errorf("strings read several at a time make another fingerprint: %v", diff)
	}
	var counted int64
	for _, n := range env.Ledger.Snapshot() {
		counted += n.Rows[record.Filtered]
	}
	if err := env.Ledger.Check(); err != nil || given < 20 || counted != given {
		t.Errorf("%d strings at once, %d rows counted as theirs: %v", given, counted, err)
	}
}

// TestGoldenRoundTrip copies the goldens into both stores and reads them back.
func TestGoldenRoundTrip(t *testing.T) {
	for from := range openers {
		src := openGolden(t, from)
		for to := range creators {
			dir := filepath.Join(t.TempDir(), "copy")
			target := create(t, dir, createOptions(t, to, src.Databases()...))
			var want record.Fingerprint
			for i, db := range src.Databases() {
				r, err := formattest.Walk(src.Records(context.Background(), db, record.AllTypes, format.Span{}, testEnv(nil)))
				if err != nil {
					t.Fatal(err)
				}
				w, err := formattest.One(target.Shard(i, db, record.AllTypes, 1<<20))
				if err != nil {
					t.Fatal(err)
				}
				losses := pump(t, target, w, r, &want)
				for _, l := range losses {
					if l.Kind != LossIntSpan {
						t.Errorf("%s to %s: %+v", from, to, l)
					}
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := target.Finish(context.Background()); err != nil {
				t.Fatal(err)
			}
			again := openDir(t, dir, to, nil)
			env := testEnv(noFindings(t))
			env.Now = time.Unix(0, 0) // the expired ones too
			if got := fingerprint(t, again, env); len(want.Diff(got, false)) > 0 {
				t.Errorf("%s to %s: fingerprints differ: %v", from, to, want.Diff(got, false))
			}
		}
	}
}

// write puts records into a memory store and returns its rows as text, in order.
func write(t *testing.T, kind string, recs ...rec) (*memstore.Store, format.Source) {
	t.Helper()
	fs := memstore.New()
	o := createOptions(t, kind, "0")
	o.Create, o.Reopen.Store = fs.Create, fs.Open
	dir := t.TempDir()
	target := create(t, dir, o)
	w, err := formattest.One(target.Shard(0, "0", record.AllTypes, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range recs {
		if err := r.write(w); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	src, err := target.Finish(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return fs.Dir(filepath.Join(dir, kind)), src
}

type rec struct {
	h     record.Header
	elems []record.Element
}

func (r rec) write(w *formattest.OneByOne) error {
	r.h.DB, r.h.Len = "0", -1
	if err := w.Begin(&r.h); err != nil {
		return err
	}
	if err := w.Write(r.elems); err != nil {
		return err
	}
	return w.End()
}

func member(name string) record.Element { return record.Element{Name: []byte(name)} }

func pair(name, value string) record.Element {
	return record.Element{Name: []byte(name), Value: []byte(value)}
}

func scored(name string, f float64) record.Element {
	return record.Element{Name: []byte(name), Score: f}
}

func streamID(ms, seq uint64) []byte {
	var b [16]byte
	for i := range 8 {
		b[i], b[8+i] = byte(ms>>(56-8*i)), byte(seq>>(56-8*i))
	}
	return b[:]
}

func entryOf(ms uint64, pairs ...string) record.Element {
	e := record.Element{Name: streamID(ms, 0)}
	for i := 0; i < len(pairs); i += 2 {
		e.Value = record.AppendPair(e.Value, []byte(pairs[i]), []byte(pairs[i+1]))
	}
	return e
}

func sampleRecords() []rec {
	return []rec{
		{record.Header{Type: record.Hash, Key: []byte("h")}, []record.Element{pair("b", "10"), pair("7", "x"), pair("-1", "01")}},
		{record.Header{Type: record.Hash, Key: []byte("h1")}, []record.Element{pair("c", "1e+20")}},
		{record.Header{Type: record.List, Key: []byte("l"), ExpireMS: 2000000000123}, []record.Element{pair("", "5"), pair("", "five")}},
		{record.Header{Type: record.Set, Key: []byte("s")}, []record.Element{member("z"), member("3"), member("a"), member("-9")}},
		{record.Header{Type: record.String, Key: []byte("str"), ExpireMS: 2000000000000}, []record.Element{pair("", "-0")}},
		{record.Header{Type: record.Stream, Key: []byte("x"), Last: streamID(9, 9)},
			[]record.Element{entryOf(1, "f", "1", "g", "b"), entryOf(2, "f", "2", "g", "c"), entryOf(3, "f", "3")}},
		{record.Header{Type: record.ZSet, Key: []byte("z")}, []record.Element{scored("m", 2), scored("5", -1), scored("n", math.Inf(1))}},
	}
}

// TestWrittenRows checks the writer: canonical integers and floats, sizes, bounds, both rows of a member,
// order.
func TestWrittenRows(t *testing.T) {
	st, _ := write(t, kindRocksDB, sampleRecords()...)
	want := []struct {
		key, val []byte
	}{
		{codec.AppendKey(nil, nil, []byte("h"), codec.KindMeta), unhex(t, "03 00 00 01 00")}, // unknown
		{codec.AppendKey(nil, nil, []byte("h"), codec.KindField, codec.IntData(-1)), field(text("01"))},
		{codec.AppendKey(nil, nil, []byte("h"), codec.KindField, codec.IntData(7)), field(text("x"))},
		{codec.AppendKey(nil, nil, []byte("h"), codec.KindField, text("b")), field(codec.IntData(10))},
		{codec.AppendKey(nil, nil, []byte("h1"), codec.KindMeta), unhex(t, "03 00 00 02 00")},
		{codec.AppendKey(nil, nil, []byte("h1"), codec.KindField, text("c")), field(codec.FloatData(1e20))},
		{codec.AppendKey(nil, nil, []byte("l"), codec.KindMeta), codec.AppendValue(nil, &codec.Value{Kind: codec.KindList, ExpireMS: 2000000000123, Size: 2, Sequential: true}, codec.IntData(0), codec.IntData(1))},
		{codec.AppendKey(nil, nil, []byte("l"), codec.KindElement, codec.IntData(0)), unhex(t, "06 01 010a")},
		{codec.AppendKey(nil, nil, []byte("l"), codec.KindElement, codec.IntData(1)), unhex(t, "06 01 0404 66697665")},
		{codec.AppendKey(nil, nil, []byte("s"), codec.KindMeta), codec.AppendValue(nil, &codec.Value{Kind: codec.KindSet, Size: 4}, codec.IntData(-9), text("z"))},
		{codec.AppendKey(nil, nil, []byte("s"), codec.KindMember, codec.IntData(-9)), unhex(t, "08 00")},
		{codec.AppendKey(nil, nil, []byte("s"), codec.KindMember, codec.IntData(3)), unhex(t, "08 00")},
		{codec.AppendKey(nil, nil, []byte("s"), codec.KindMember, text("a")), unhex(t, "08 00")},
		{codec.AppendKey(nil, nil, []byte("s"), codec.KindMember, text("z")), unhex(t, "08 00")},
		{codec.AppendKey(nil, nil, []byte("str"), codec.KindMeta), strTTL(text("-0"), 2000000000000)},
		{codec.AppendKey(nil, nil, []byte("x"), codec.KindMeta), codec.AppendValue(nil, &codec.Value{Kind: codec.KindStream, Size: 3, Last: codec.TextData(streamID(9, 9))}, text("f"), text("g"))},
		{codec.AppendKey(nil, nil, []byte("x"), codec.KindEntry, codec.TextData(streamID(1, 0))), unhex(t, "0d 03 0104 0102 0401 62")},
		{codec.AppendKey(nil, nil, []byte("x"), codec.KindEntry, codec.TextData(streamID(2, 0))), unhex(t, "0d 03 0104 0104 0401 63")},
		{codec.AppendKey(nil, nil, []byte("x"), codec.KindEntry, codec.TextData(streamID(3, 0))), unhex(t, "0d 03 0102 0106 0401 66")},
		{codec.AppendKey(nil, nil, []byte("z"), codec.KindMeta), codec.AppendValue(nil, &codec.Value{Kind: codec.KindZSet, Size: 3}, text("5"), text("n"))},
		{codec.AppendKey(nil, nil, []byte("z"), codec.KindSort, codec.FloatData(-1), text("5")), unhex(t, "0a 00")},
		{codec.AppendKey(nil, nil, []byte("z"), codec.KindSort, codec.FloatData(2), text("m")), unhex(t, "0a 00")},
		{codec.AppendKey(nil, nil, []byte("z"), codec.KindSort, codec.FloatData(math.Inf(1)), text("n")), unhex(t, "0a 00")},
		{codec.AppendKey(nil, nil, []byte("z"), codec.KindScore, text("5")), codec.AppendFloat([]byte{0x0b, 1}, -1)},
		{codec.AppendKey(nil, nil, []byte("z"), codec.KindScore, text("m")), codec.AppendFloat([]byte{0x0b, 1}, 2)},
		{codec.AppendKey(nil, nil, []byte("z"), codec.KindScore, text("n")), codec.AppendFloat([]byte{0x0b, 1}, math.Inf(1))},
	}
	if n := st.Len("0"); n != len(want) {
		t.Errorf("%d rows, want %d", n, len(want))
	}
	for _, w := range want {
		if got := st.Get("0", w.key); !bytes.Equal(got, w.val) {
			t.Errorf("row %x is %x, want %x", w.key, got, w.val)
		}
	}
	for _, ks := range st.Keyspaces() {
		if ks.Comparer().Name != codec.ComparerName {
			t.Errorf("column family %q is ordered by %s", ks.Name(), ks.Comparer().Name)
		}
	}
}

// TestWrittenLastID: META has the largest id, from the header or from an entry; entries of a source may come
// in any order.
func TestWrittenLastID(t *testing.T) {
	for name, c := range map[string]struct {
		header []byte
		ids    []uint64
		want   []byte
	}{
		"the last entry's": {nil, []uint64{1, 2}, streamID(2, 0)}, "the first entry's": {nil, []uint64{3, 2}, streamID(3, 0)},
		"the header's": {streamID(7, 0), []uint64{1, 2}, streamID(7, 0)}, "beyond the header's": {streamID(1, 0), []uint64{1, 2}, streamID(2, 0)},
	} {
		r := rec{record.Header{Type: record.Stream, Key: []byte("x"), Last: c.header}, nil}
		for _, id := range c.ids {
			r.elems = append(r.elems, entryOf(id, "f", "v"))
		}
		st, _ := write(t, kindRocksDB, r)
		got := st.Get("0", codec.AppendKey(nil, nil, []byte("x"), codec.KindMeta))
		want := codec.AppendValue(nil, &codec.Value{Kind: codec.KindStream, Size: 2, Last: codec.TextData(c.want)}, text("f"))
		if !bytes.Equal(got, want) {
			t.Errorf("%s: META is %x, want %x", name, got, want)
		}
	}
}

// TestWrittenLarge: a value too large to copy twice is written like a small one.
func TestWrittenLarge(t *testing.T) {
	for _, n := range []int{bufpool.Large, bufpool.Large + 1} {
		large := strings.Repeat("v", n)
		st, _ := write(t, kindRocksDB, rec{record.Header{Type: record.Hash, Key: []byte("h")},
			[]record.Element{pair("7", large)}},
			rec{record.Header{Type: record.List, Key: []byte("l")}, []record.Element{pair("", "a"), pair("", large)}})
		for _, w := range []struct{ key, val []byte }{
			{codec.AppendKey(nil, nil, []byte("h"), codec.KindField, codec.IntData(7)), codec.AppendText([]byte{byte(codec.KindField), 1}, []byte(large))},
			{codec.AppendKey(nil, nil, []byte("l"), codec.KindElement, codec.IntData(1)), codec.AppendText([]byte{byte(codec.KindElement), 1}, []byte(large))},
		} {
			if got := st.Get("0", w.key); !bytes.Equal(got, w.val) {
				t.Errorf("row %x has %d bytes, want %d", w.key, len(got), len(w.val))
			}
		}
	}
}

// TestWrittenTTL checks the TTL index of LevelDB, ordered by expiry; RocksDB has no index.
func TestWrittenTTL(t *testing.T) {
	st, src := write(t, kindLevelDB, sampleRecords()...)
	rows, err := func() (out [][]byte, err error) {
		for _, k := range src.Keyspaces() {
			if k.Name != codec.TTLNamespace {
				continue
			}
			it, err := k.Rows(nil, nil)
			if err != nil {
				return nil, err
			}
			for {
				key, val, err := it.Next()
				if err == io.EOF {
					return out, it.Close()
				}
				if err != nil || !bytes.Equal(val, []byte{0x1d, 0}) {
					t.Errorf("%x, %v", val, err)
				}
				out = append(out, bytes.Clone(key))
			}
		}
		return nil, io.ErrUnexpectedEOF
	}()
	ttl := func(ms int64, user string) []byte {
		return codec.AppendTTLKey(nil, ttlIndex, ms, codec.TextData([]byte("0")), []byte(user))
	}
	want := [][]byte{ttl(2000000000000, "str"), ttl(2000000000123, "l")}
	if err != nil || !slices.EqualFunc(rows, want, bytes.Equal) {
		t.Errorf("%x, %v", rows, err)
	}
	if n := st.Len(defaultCF); n != 28 {
		t.Errorf("%d rows", n)
	}
}

func TestEmptyRecords(t *testing.T) {
	st, src := write(t, kindRocksDB,
		rec{record.Header{Type: record.Hash, Key: []byte("a")}, nil},
		rec{record.Header{Type: record.String, Key: []byte("a")}, []record.Element{pair("", "")}},
		rec{record.Header{Type: record.Stream, Key: []byte("b"), Last: streamID(7, 0)}, nil})
	if st.Len("0") != 2 {
		t.Errorf("%d rows", st.Len("0"))
	}
	var got []string
	readRecords(t, src, "0", record.AllTypes, format.Span{}, testEnv(noFindings(t)), func(h *record.Header, e []record.Element) {
		got = append(got, fmt.Sprintf("%s %s %d %x", h.Type, h.Key, len(e), h.Last))
	})
	if want := []string{"string a 1 ", "stream b 0 00000000000000070000000000000000"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestWriterErrors(t *testing.T) {
	str := func(key string) rec {
		return rec{record.Header{Type: record.String, Key: []byte(key)}, []record.Element{pair("", "v")}}
	}
	for _, tt := range []struct {
		recs []rec
		want string
	}{
		{[]rec{str("a"), {record.Header{Type: record.Set, Key: []byte("a")}, []record.Element{member("x")}}}, "a second record of this key (set)"},
		{[]rec{str("b"), str("a")}, "records must ascend"},
		{[]rec{{record.Header{Type: 9, Key: []byte("a")}, nil}}, "no type 9"},
		{[]rec{{record.Header{Type: record.String, Key: []byte("a")}, []record.Element{pair("", "v"), pair("", "w")}}}, "a string of two values"},
		{[]rec{{record.Header{Type: record.Set, Key: []byte("a")}, []record.Element{member("v"), member("v")}}}, "an element twice"},
		{[]rec{{record.Header{Type: record.ZSet, Key: []byte("a")}, []record.Element{scored("v", 1), scored("v", 2)}}}, "an element twice"},
		{[]rec{{record.Header{Type: record.ZSet, Key: []byte("a")}, []record.Element{scored("v", math.NaN())}}}, "not a number"},
		{[]rec{{record.Header{Type: record.Stream, Key: []byte("a")}, []record.Element{member("v")}}}, "a stream id of 1 bytes"},
		{[]rec{{record.Header{Type: record.Stream, Key: []byte("a")}, []record.Element{entryOf(1, make([]string, 300)...)}}}, "150 fields"},
		{[]rec{{record.Header{Type: record.Stream, Key: []byte("a")}, []record.Element{{Name: streamID(1, 1), Value: []byte{9}}}}}, "field"},
	} {
		o := createOptions(t, kindLevelDB, "0")
		fs := memstore.New()
		o.Create = fs.Create
		target := create(t, t.TempDir(), o)
		w, err := formattest.One(target.Shard(0, "0", record.AllTypes, 0))
		for i := 0; i < len(tt.recs) && err == nil; i++ {
			err = tt.recs[i].write(w)
		}
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v", tt.want, err)
		}
		w.Abort()
		target.Abort()
	}
}

func TestCreateRefuses(t *testing.T) {
	for _, tt := range []struct{ kind, db, want string }{
		{kindLMDB, "0", "searches an LMDB file in byte order"},
		{"tokyo", "0", "not written to tokyo"},
		{kindRocksDB, "", "1 to 512 bytes"},
		{kindRocksDB, strings.Repeat("n", 513), "1 to 512 bytes"},
		{kindRocksDB, "default", "default column family"},
		{kindLevelDB, codec.TTLNamespace, "keeps this namespace for itself"},
		{kindRocksDB, "a\x00b", "cannot contain a NUL"},
	} {
		o := createOptions(t, tt.kind, tt.db)
		o.Create = memstore.New().Create
		if _, err := New().Create(context.Background(), t.TempDir(), o); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %.10q: %v", tt.kind, tt.db, err)
		}
	}
	o := createOptions(t, "", "0")
	fs := memstore.New()
	o.Create, o.Reopen = fs.Create, nil
	target := create(t, "/nowhere", o)
	if src, err := target.Finish(context.Background()); src != nil || err != nil ||
		fs.Dir("/nowhere/rocksdb").Keyspaces() == nil {
		t.Errorf("%v, %v", src, err)
	}
}

func TestElementLosses(t *testing.T) {
	target := create(t, t.TempDir(), func() *format.CreateOptions {
		o := createOptions(t, kindRocksDB, "0")
		o.Create = memstore.New().Create
		return o
	}())
	big, small := fmt.Sprint(int64(math.MaxInt64)), fmt.Sprint(int64(math.MinInt64))
	long := make([]string, 256)
	hll, _, _ := pfAdd(nil, [][]byte{[]byte("a")})
	redis := bytes.Clone(hll)
	redis[8], redis[15] = 0, 0x80
	var h record.Header
	for _, tt := range []struct {
		typ   record.Type
		key   string
		batch []record.Element
		keep  []string
		kind  string
	}{
		{record.Set, "a", []record.Element{member("0"), member(big), member("x")}, []string{"0", big, "x"}, ""},
		{record.Set, "a", []record.Element{member("y"), member("-1"), member("5")}, []string{"y", "5"}, LossIntSpan},
		{record.Set, "b", []record.Element{member("-1"), member(small), member(big)}, []string{"-1", small}, LossIntSpan},
		{record.Hash, "b", []record.Element{member(big)}, []string{big}, ""},
		{record.ZSet, "z", []record.Element{scored("a", 1), scored("b", math.NaN()), scored(big, 3)}, []string{"a", big}, record.LossScoreNaN},
		{record.Stream, "x", []record.Element{entryOf(1, "a", "b"), entryOf(2, long...)}, []string{string(streamID(1, 0))}, LossStreamFields},
		{record.String, "s", []record.Element{{Name: []byte("n"), Value: redis}}, []string{"n"}, record.LossHyperLogLog},
		{record.String, "s", []record.Element{{Name: []byte("n"), Value: hll}}, []string{"n"}, ""},
		{record.List, "l", []record.Element{pair("n", big), pair("m", small)}, []string{"n", "m"}, ""},
	} {
		h = record.Header{DB: "0", Type: tt.typ, Key: []byte(tt.key)}
		var losses []record.Loss
		var kept []string
		for _, e := range target.ElementLosses(&h, tt.batch, func(l record.Loss) { losses = append(losses, l) }) {
			kept = append(kept, string(e.Name))
			if tt.typ == record.String && !bytes.Equal(e.Value, hll) {
				t.Errorf("%x", e.Value)
			}
		}
		if !slices.Equal(kept, tt.keep) || (tt.kind == "") != (len(losses) == 0) || tt.kind != "" && losses[0].Kind != tt.kind {
			t.Errorf("%s %s: kept %q, losses %+v", tt.typ, tt.key, kept, losses)
		}
	}
	if redis[15] != 0x80 {
		t.Error("the source's bytes were changed")
	}
}

// TestAdopt finishes a target with the shards of an earlier process.
func TestAdopt(t *testing.T) {
	for kind := range creators {
		dir := filepath.Join(t.TempDir(), "new")
		o := createOptions(t, kind, "0")
		o.Build.Sync = true
		first := create(t, dir, o)
		recs := sampleRecords()
		w, err := formattest.One(first.Shard(0, "0", record.AllTypes, 0))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range recs[:4] {
			if err := r.write(w); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		tables, err := first.Tables(0)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]int{kindRocksDB: 1, kindLevelDB: 2}[kind]; len(tables) != want {
			t.Fatalf("%s: tables %+v", kind, tables)
		}
		second := create(t, dir, o) // the first process was killed
		bad := slices.Clone(tables)
		bad[len(bad)-1].Bytes++
		if err := second.Adopt(0, "0", bad); err == nil {
			t.Errorf("%s: a table of another size is taken", kind)
		}
		if err := second.Adopt(0, "0", tables); err != nil {
			t.Fatal(err)
		}
		if w, err = formattest.One(second.Shard(1, "0", record.AllTypes, 0)); err != nil {
			t.Fatal(err)
		}
		for _, r := range recs[4:] {
			if err := r.write(w); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		src, err := second.Finish(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		env := testEnv(noFindings(t))
		readRecords(t, src, "0", record.AllTypes, format.Span{}, env, func(*record.Header, []record.Element) { n++ })
		if n != len(recs) {
			t.Errorf("%s: %d records", kind, n)
		}
		if house := env.Ledger.Snapshot()[defaultCF].Rows[record.Housekeeping]; (house == 2) != (kind == kindLevelDB) {
			t.Errorf("%s: %d TTL rows", kind, house)
		}
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
}
