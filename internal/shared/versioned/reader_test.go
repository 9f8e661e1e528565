package versioned_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/shared/versioned"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/memstore"
	"kvferry/record"
	"kvferry/store"
)

var collections = []record.Type{record.Hash, record.Set, record.List, record.ZSet, record.Stream}

// damage is a change to a healthy dataset and its expected findings.
type damage struct {
	name   string
	do     func(w *world)
	kinds  string
	row    func(w *world) row // whose keyspace is looked at
	ledger string
}

func metaOf(t record.Type, change func(*versioned.Meta)) func(w *world) {
	return func(w *world) {
		m := healthy(t)
		change(&m)
		w.put(w.meta(t, t.String(), m))
	}
}

func dataOf(t record.Type) func(w *world) row {
	return func(w *world) row { return w.element(t, version, 0) }
}

func indexRow(w *world) row { return w.score("zset", version, 0, "a") }

var damages = []damage{
	{"nothing", func(*world) {}, "", dataOf(record.Hash), "copied=2"},
	{"the index", func(*world) {}, "", indexRow, "index=2"},
	{"count", metaOf(record.Hash, func(m *versioned.Meta) { m.Count = 9 }), "count-mismatch", dataOf(record.Hash), "copied=2"},
	{"emptied", metaOf(record.Hash, func(m *versioned.Meta) { m.Count = 0 }), "deleted-rows", dataOf(record.Hash), "deleted=2"},
	{"expired", metaOf(record.Set, func(m *versioned.Meta) { m.ExpireMS = 1000 }), "", dataOf(record.Set), "copied=2"},
	{"expired and damaged", metaOf(record.Set, func(m *versioned.Meta) { m.ExpireMS, m.Count = 1000, 5 }), "", dataOf(record.Set), "copied=2"},
	{"newer meta row", metaOf(record.List, func(m *versioned.Meta) { m.Version++; m.Count, m.Right = 0, m.Left+1 }), "", dataOf(record.List), "stale=2"},
	{"older rows", func(w *world) { w.put(w.element(record.Set, version-1, 1)) }, "", dataOf(record.Set), "stale=1 copied=2"},
	{"newer rows", func(w *world) { w.put(w.element(record.Set, version+1, 1)) }, "newer-version", dataOf(record.Set), "orphan=1 copied=2"},
	{"a member that is missing", func(w *world) { w.delete(w.element(record.ZSet, version, 0)) }, "count-mismatch zset-missing-member-row", indexRow, "orphan=1 index=1"},
	{"a score that is missing", func(w *world) { w.delete(w.score("zset", version, 0, "a")) }, "zset-missing-score-row", indexRow, "index=1"},
	{"another score", func(w *world) {
		w.delete(w.score("zset", version, 1, "b"))
		w.put(w.score("zset", version, 7, "b"))
	}, "zset-score-mismatch", indexRow, "index=2"},
	{"a score that is none", func(w *world) {
		w.put(w.data(record.ZSet, "zset", version, []byte("a"), leUint64(math.Float64bits(math.NaN()))))
	}, "zset-bad-score zset-score-mismatch", indexRow, "index=2"},
	{"index rows of others", func(w *world) {
		w.put(w.score("zset", version-1, 1, "b"))
		w.put(w.score("nobody", version, 1, "b"))
	}, "orphan-rows", indexRow, "orphan=1 stale=1 index=2"},
	{"an index that is missing", metaOf(record.List, func(m *versioned.Meta) { m.Count, m.Right = 3, m.Right+1 }), "list-missing-index", dataOf(record.List), "copied=2"},
	{"an index beyond the bounds", func(w *world) { w.put(w.data(record.List, "list", version, leUint64(left+9), nil)) }, "list-outside-bounds", dataOf(record.List), "orphan=1 copied=2"},
	{"bounds that are no list", metaOf(record.List, func(m *versioned.Meta) { m.Right = m.Left }), "count-mismatch list-outside-bounds list-outside-bounds", dataOf(record.List), "orphan=2"},
	{"the last id", metaOf(record.Stream, func(m *versioned.Meta) { m.Stream.Last = id(0) }), "stream-last-id", dataOf(record.Stream), "copied=2"},
	{"an entry cut short", func(w *world) {
		i := id(5)
		w.put(w.data(record.Stream, "stream", version, i[:], []byte("\x09\x00\x00\x00f")))
	}, "short-value", dataOf(record.Stream), "malformed=1 copied=2"},
	{"rows of nobody", func(w *world) {
		for _, key := range []string{"nobody", "nobody", "no one"} {
			w.put(w.data(record.Hash, key, version, []byte("f"), nil))
		}
	}, "orphan-rows orphan-rows", dataOf(record.Hash), "orphan=2 copied=2"},
}

func TestDamage(t *testing.T) {
	everywhere(t, func(t *testing.T, k kit) {
		for _, d := range damages {
			w := newWorld(t, k)
			d.do(w)
			got := w.read(false, record.AllTypes, format.Span{})
			at := d.row(w)
			if kinds := strings.Join(got.kinds, " "); got.err != nil || kinds != d.kinds {
				t.Errorf("%s: found %q, %v, want %q", d.name, kinds, got.err, d.kinds)
			}
			if classes := formattest.Classes(&got.ledger, at.keyspace()); classes != d.ledger {
				t.Errorf("%s: %s has %q, want %q", d.name, at.keyspace(), classes, d.ledger)
			}
			formattest.CheckLedger(t, &got.ledger)
		}
	})
}

// TestMissingMetaRows: without their meta rows the rows of all types are orphans, and one finding a keyspace.
func TestMissingMetaRows(t *testing.T) {
	everywhere(t, func(t *testing.T, k kit) {
		for _, typ := range collections {
			w := newWorld(t, k)
			w.delete(k.meta(typ, typ.String(), versioned.Meta{}))
			got, want := w.read(false, record.AllTypes, format.Span{}), []string{"orphan-rows"}
			if typ == record.ZSet {
				want = []string{"orphan-rows", "orphan-rows"}
			}
			at := w.element(typ, version, 0)
			if !slices.Equal(got.kinds, want) || formattest.Classes(&got.ledger, at.keyspace()) != "orphan=2" {
				t.Errorf("%s: found %q, %s", typ, got.kinds, formattest.Classes(&got.ledger, at.keyspace()))
			}
		}
	})
}

// TestFlips: after any byte of a row is flipped, or a key or value is cut anywhere, reading continues to the end and
// classifies each row.
func TestFlips(t *testing.T) {
	everywhere(t, func(t *testing.T, k kit) {
		w := newWorld(t, k)
		for i, r := range slices.Clone(w.rows) {
			change := func(key, value []byte) {
				changed := row{r.store, r.cf, key, value}
				w.delete(r)
				w.put(changed)
				got := w.read(false, record.AllTypes, format.Span{})
				if err := got.ledger.Check(); got.err != nil || err != nil {
					t.Errorf("row %d of %s as %q = %q: %v, %v", i, r.keyspace(), key, value, got.err, err)
				}
				w.describe(src(w), changed)
				w.delete(changed)
				w.put(r)
			}
			for at := range r.key {
				change(flipped(r.key, at), r.value)
				change(r.key[:at], r.value)
			}
			for at := range r.value {
				change(r.key, flipped(r.value, at))
				change(r.key, r.value[:at])
			}
		}
	})
}

func flipped(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= 0xff
	return b
}

func src(w *world) format.Source { return w.Open(w.t) }

// describe describes a row and checks that fields lie within it.
func (w *world) describe(src format.Source, r row) format.Row {
	d := src.Describe("0", r.keyspace(), r.key, r.value)
	for _, f := range d.Fields {
		size := len(r.key)
		if f.Where == "value" {
			size = len(r.value)
		}
		if f.Off < 0 || f.Len < 0 || f.Off+f.Len > size {
			w.t.Errorf("%s %q = %q: field %s at %d+%d of %d", r.keyspace(), r.key, r.value, f.Name, f.Off, f.Len, size)
		}
	}
	return d
}

// TestSpans: spans of keys have the records of the whole, and every row is classified once.
func TestSpans(t *testing.T) {
	everywhere(t, func(t *testing.T, k kit) {
		w := newWorld(t, k)
		whole := w.read(false, record.AllTypes, format.Span{})
		if len(whole.records) != 6 || len(whole.kinds) > 0 || whole.err != nil {
			t.Fatalf("%q, %q, %v", whole.records, whole.kinds, whole.err)
		}
		for _, cut := range []string{"", "a", "hash", "hash\x00", "list", "set", "streak", "zset", "zz"} {
			lo := w.read(false, record.AllTypes, format.Span{Hi: []byte(cut)})
			hi := w.read(true, record.AllTypes, format.Span{Lo: []byte(cut)})
			if got := append(lo.records, hi.records...); !slices.Equal(got, whole.records) {
				t.Errorf("cut at %q: %q and %q", cut, lo.records, hi.records)
			}
		}
		for _, typ := range append(collections, record.String) {
			got := w.read(false, record.Of(typ), format.Span{})
			if len(got.records) != 1 || !strings.HasPrefix(got.records[0], typ.String()) {
				t.Errorf("%s: %q", typ, got.records)
			}
		}
	})
}

// TestLookups: a lookup of an element goes on from there, in memory or not, and finds what a read of all finds.
func TestLookups(t *testing.T) {
	everywhere(t, func(t *testing.T, k kit) {
		w := newWorld(t, k)
		const n = 200 // several batches
		for i := range uint64(n) {
			name := fmt.Appendf(nil, "m%03d", i)
			for _, typ := range []record.Type{record.Hash, record.Set} {
				w.put(w.data(typ, "long", version, name, map[record.Type][]byte{record.Hash: name}[typ]))
			}
			w.put(w.data(record.List, "long", version, leUint64(left+1+i), name))
			w.put(w.data(record.ZSet, "scored", version, name, leUint64(math.Float64bits(float64(i)))))
			w.put(w.score("scored", version, float64(i), string(name)))
		}
		for typ, key := range map[record.Type]string{record.Hash: "long", record.Set: "long", record.List: "long", record.ZSet: "scored"} {
			m := healthy(typ)
			m.Count, m.Right = n, m.Left+n+1
			w.put(w.meta(typ, key, m))
		}
		formattest.CheckLookups(t, src(w), "0")
	})
}

// TestSource checks the properties of a source.
func TestSource(t *testing.T) {
	everywhere(t, func(t *testing.T, k kit) {
		w := newWorld(t, k)
		s := src(w)
		var rows int
		for _, typ := range append(collections, record.String) {
			for _, at := range s.Where("0", []byte(typ.String())) {
				for _, ks := range s.Keyspaces() {
					if ks.Name == at.Keyspace {
						rows += count(t, ks, at)
					}
				}
			}
		}
		if rows != len(w.rows) {
			t.Errorf("%d rows of all names, want %d", rows, len(w.rows))
		}
		if spans, err := s.Split("0", record.AllTypes, 3); err != nil || len(spans) < 2 || s.Size("0", record.AllTypes) == 0 {
			t.Errorf("%v, %v, %d bytes", spans, err, s.Size("0", record.AllTypes))
		}
		if s.Types("0") != k.format.Limits().Types || s.Format().Name() != k.format.Name() || len(s.Extra()) != 0 {
			t.Errorf("types %v, format %s, extra %q", s.Types("0"), s.Format().Name(), s.Extra())
		}
		if _, err := s.Records(context.Background(), "7", record.AllTypes, format.Span{}, &format.Env{}); err == nil ||
			!strings.Contains(err.Error(), `no database "7"`) {
			t.Errorf("another database: %v", err)
		}
	})
}

func count(t *testing.T, ks format.Keyspace, at format.Range) (n int) {
	it, err := ks.Rows(at.Lo, at.Hi)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for {
		if _, _, err := it.Next(); err == io.EOF {
			return n
		} else if err != nil {
			t.Fatal(err)
		}
		n++
	}
}

// TestDead: deleted records whose rows still exist come back unchanged.
func TestDead(t *testing.T) {
	everywhere(t, func(t *testing.T, k kit) {
		w := newWorld(t, k)
		alive := w.read(false, record.Of(collections...), format.Span{})
		for i, typ := range collections {
			if i%2 == 0 { // half of the meta rows are gone
				w.delete(k.meta(typ, typ.String(), versioned.Meta{}))
				continue
			}
			m := versioned.Meta{Version: version + 1}
			if typ == record.List {
				m.Left, m.Right = left, left+1
			}
			w.put(k.meta(typ, typ.String(), m))
		}
		s := src(w)
		var told []string
		r, err := formattest.Walk(s.(format.Undead).DeadRecords(context.Background(), "0", record.AllTypes, format.Span{},
			&format.Env{TempDir: t.TempDir(), Memory: 1 << 20}, func(key []byte, typ record.Type, what string) {
				told = append(told, fmt.Sprintf("%s %s: %s", typ, key, what))
			}))
		if err != nil {
			t.Fatal(err)
		}
		got, err := texts(r)
		if err != nil || !slices.Equal(got, alive.records) {
			t.Errorf("%q, %v, want %q; told %q", got, err, alive.records, told)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if dbs, err := s.(format.Undead).DeadDatabases(); err != nil || !slices.Equal(dbs, []string{"0"}) {
			t.Errorf("%q, %v", dbs, err)
		}
	})
}

// failing is a store whose iterators fail at one step.
type failing struct {
	*memstore.FS
	left int // steps that go well
}

var errRead = errors.New("read error")

func (f *failing) step() error {
	if f.left--; f.left < 0 {
		return errRead
	}
	return nil
}

func (f *failing) Open(ctx context.Context, dir string, o *store.Options) (store.Store, error) {
	st, err := f.FS.Open(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	return failingStore{st, f}, nil
}

type failingStore struct {
	store.Store
	f *failing
}

func (s failingStore) Keyspaces() (out []store.Keyspace) {
	for _, ks := range s.Store.Keyspaces() {
		out = append(out, failingKeyspace{ks, s.f})
	}
	return out
}

type failingKeyspace struct {
	store.Keyspace
	f *failing
}

func (k failingKeyspace) Rows(lo, hi []byte) (store.Iterator, error) {
	if err := k.f.step(); err != nil {
		return nil, err
	}
	it, err := k.Keyspace.Rows(lo, hi)
	return failingIterator{it, k.f}, err
}

func (k failingKeyspace) Entries(lo, hi []byte) (store.EntryIterator, error) {
	if err := k.f.step(); err != nil {
		return nil, err
	}
	return k.Keyspace.Entries(lo, hi)
}

func (k failingKeyspace) Sample(n int) ([]store.Weighted, error) {
	if err := k.f.step(); err != nil {
		return nil, err
	}
	return k.Keyspace.Sample(n)
}

type failingIterator struct {
	store.Iterator
	f *failing
}

func (it failingIterator) Next() (key, value []byte, err error) {
	if err := it.f.step(); err != nil {
		return nil, nil, err
	}
	return it.Iterator.Next()
}

// TestReadErrors: an error at any step of an iterator is returned.
func TestReadErrors(t *testing.T) {
	everywhere(t, func(t *testing.T, k kit) {
		w := newWorld(t, k)
		w.put(w.score("zset", version, 7, "z")) // so that the index is compared row by row
		w.put(w.element(record.Hash, version-1, 0))
		for name, read := range map[string]func(s format.Source) error{
			"records": func(s format.Source) error {
				r, err := formattest.Walk(s.Records(context.Background(), "0", record.AllTypes, format.Span{},
					&format.Env{Deep: true, TempDir: w.Dir, Memory: 1 << 20, Report: func(record.Finding) {}}))
				return drained(r, err)
			},
			"dead": func(s format.Source) error {
				r, err := formattest.Walk(s.(format.Undead).DeadRecords(context.Background(), "0", record.AllTypes, format.Span{},
					&format.Env{TempDir: w.Dir, Memory: 1 << 20}, nil))
				return drained(r, err)
			},
			"spans": func(s format.Source) error {
				_, err := s.Split("0", record.AllTypes, 3)
				return err
			},
		} {
			steps := 0
			for ; steps < 1000; steps++ {
				disk := &failing{w.FS, 1 << 30}
				s := formattest.Open(t, k.format, w.Dir, &format.OpenOptions{Store: disk.Open})
				disk.left = steps
				err := read(s)
				if disk.left >= 0 {
					break // nothing failed
				}
				if !errors.Is(err, errRead) {
					t.Errorf("%s: step %d fails: %v", name, steps, err)
				}
			}
			if steps < 4 || steps == 1000 {
				t.Errorf("%s: %d steps", name, steps)
			}
		}
	})
}

// drained reads a reader to its end.
func drained(r *record.Walker, err error) error {
	if err != nil {
		return err
	}
	_, err = texts(r)
	return errors.Join(err, r.Close())
}

// TestCancelled: a reader stops when its context is cancelled.
func TestCancelled(t *testing.T) {
	everywhere(t, func(t *testing.T, k kit) {
		ctx, cancel := context.WithCancel(context.Background())
		r, err := formattest.Walk(src(newWorld(t, k)).Records(ctx, "0", record.AllTypes, format.Span{}, &format.Env{}))
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		for err == nil {
			_, err = r.Next()
		}
		if err != context.Canceled {
			t.Errorf("stopped with %v", err)
		}
		r.Close()
	})
}

// TestRoundTrip: random records, sorted by name or not, come back.
func TestRoundTrip(t *testing.T) {
	everywhere(t, func(t *testing.T, k kit) {
		read := func(types record.TypeSet) record.Reader {
			return fixtures.Records(5, 150, fixtures.Options{DB: "0", Limits: k.format.Limits(), Types: types})
		}
		for _, memory := range []int64{1 << 20, 1} {
			w := formattest.NewMemory(t, k.format)
			s := formattest.Fill(t, w.Create(t, format.CreateOptions{TempDir: t.TempDir()}), memory, read)
			formattest.CheckClean(t, s, memory, read, record.Copied, record.Index)
		}
	})
}

// TestRefusedRecords: a writer refuses records that it cannot write.
func TestRefusedRecords(t *testing.T) {
	everywhere(t, func(t *testing.T, k kit) {
		w := formattest.NewMemory(t, k.format)
		dst := w.Create(t, format.CreateOptions{TempDir: t.TempDir()})
		defer dst.Abort()
		for _, c := range []struct {
			typ   record.Type
			elems []record.Element
			want  string
		}{
			{record.Other, nil, "has no"},
			{record.String, []record.Element{{}, {}}, "more than one value"},
			{record.ZSet, []record.Element{{Score: math.NaN()}}, "score is not a number"},
			{record.Stream, []record.Element{{Name: []byte("short")}}, "an id of 5 bytes"},
			{record.Stream, []record.Element{{Name: make([]byte, 16), Value: []byte{9}}}, "stream"},
		} {
			group := record.AllTypes
			for _, g := range dst.Groups() {
				if g.Has(c.typ) {
					group = g
				}
			}
			s, err := formattest.One(dst.Shard(0, "0", group, 1<<20))
			if err != nil {
				t.Fatal(err)
			}
			if err = s.Begin(&record.Header{Type: c.typ, Key: []byte("k"), ByName: true}); err == nil {
				if err = s.Write(c.elems); err == nil {
					err = s.End()
				}
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", c.typ, err, c.want)
			}
			s.Abort()
		}
	})
}

// TestMissingMetaRowOfEmptyKey: rows of the empty key without a meta row are found under that key, not under none.
func TestMissingMetaRowOfEmptyKey(t *testing.T) {
	everywhere(t, func(t *testing.T, k kit) {
		for _, typ := range []record.Type{record.Hash, record.Set} {
			w := newWorld(t, k)
			w.put(w.data(typ, "", version, nil, nil))
			w.put(w.data(typ, "", version, []byte("f"), nil))
			var f formattest.Findings
			env := &format.Env{Report: f.Report, Deep: true, TempDir: w.Dir, Memory: 1 << 20}
			if _, err := texts(formattest.RecordsOf(t, w.Open(t), "0", record.AllTypes, format.Span{}, env)); err != nil {
				t.Fatal(err)
			}
			if len(f.All) != 1 || f.All[0].Kind != "orphan-rows" || f.All[0].Key == nil || len(f.All[0].Key) > 0 ||
				!strings.HasSuffix(f.All[0].Detail, ": 2") {
				t.Errorf("%s: %+v", typ, f.All)
			}
		}
	})
}
