package dataset

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/testkit/memstore"
	"kvferry/record"
	"kvferry/store"
)

func TestNames(t *testing.T) {
	for name, want := range map[string]bool{"db0": true, "db12": true, "db": false, "db01": false, "dbx": false, "db1x": false,
		"0": false, "": false} {
		if IsDB(name) != want {
			t.Errorf("IsDB(%q) is %v", name, !want)
		}
	}
	for name, want := range map[string]bool{"0": true, "10": true, "00": false, "": false, "-1": false, "1 ": false} {
		if IsNumber(name) != want {
			t.Errorf("IsNumber(%q) is %v", name, !want)
		}
	}
}

func TestInfoFiles(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"db0", "db1/info", "db2"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"info", "db0/info"} {
		if err := os.WriteFile(filepath.Join(root, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := InfoFiles(root, []string{"", "db0", "db1", "db2", "db3"}); !slices.Equal(got, []string{"info", "db0/info", "db1/info"}) {
		t.Errorf("info files %q", got)
	}
}

func TestWeigh(t *testing.T) {
	look := Look{Names: []string{"a", "b", "c", "d", "e"}, Home: func(dir string) bool { return dir == "" || IsDB(dir) },
		Judge: func(name string, s *format.StoreEvidence) (string, bool) {
			return name + " is " + s.Kind, s.Kind == "good"
		}}
	for _, c := range []struct {
		paths string
		score int
		why   string
	}{
		{"", 0, ""},
		{"a b c d e", 95, "a is good|b is good|c is good|d is good|e is good"},
		{"a b", 40, "a is good|b is good|some of a, b, c, d and e are not there"},
		{"a b c d", 80, "a is good|b is good|c is good|d is good|some of a, b, c, d and e are not there"},
		{"other a", 20, "a is good|some of a, b, c, d and e are not there"},
		{"a b!", 20, "a is good|b is bad|some of a, b, c, d and e are not there"},
		{"a!", 0, "a is bad"},
		{"db1/a db2/a db2/b db2/c x/a x/b x/c x/d x", 60, "a is good|a is good|b is good|c is good|some of a, b, c, d and e are not there"},
	} {
		var ev format.Evidence
		for _, path := range strings.Fields(c.paths) {
			name, bad := strings.CutSuffix(path, "!")
			s := format.StoreEvidence{Path: name, Kind: "good"}
			if bad {
				s.Kind = "bad"
			}
			ev.Stores = append(ev.Stores, s)
		}
		if v := look.Weigh(&ev); v.Score != c.score || strings.Join(v.Why, "|") != c.why {
			t.Errorf("%q: %d, %q", c.paths, v.Score, v.Why)
		}
	}
}

func TestOpenStore(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "full", "something"), 0o755); err != nil {
		t.Fatal(err)
	}
	fs := memstore.New()
	fs.Dir(filepath.Join(root, "db0/there"))
	var wal []string
	o := &format.OpenOptions{WALDir: "/wal", Store: func(ctx context.Context, dir string, o *store.Options) (store.Store, error) {
		wal = append(wal, o.WALDir)
		if filepath.Base(dir) == "shut" {
			return nil, os.ErrPermission
		}
		return fs.Open(ctx, dir, o)
	}}
	if st, err := OpenStore(context.Background(), root, "db0/there", o); st == nil || err != nil {
		t.Errorf("a store: %v, %v", st, err)
	}
	if st, err := OpenStore(context.Background(), root, "nowhere", o); st != nil || err != nil {
		t.Errorf("no directory: %v, %v", st, err)
	}
	if _, err := OpenStore(context.Background(), root, "full", o); !errors.Is(err, store.ErrNotStore) {
		t.Errorf("a directory that holds something else: %v", err)
	}
	if _, err := OpenStore(context.Background(), root, "shut", o); !errors.Is(err, os.ErrPermission) {
		t.Errorf("a directory that cannot be read: %v", err)
	}
	want := []string{"/wal/db0/there", "/wal/nowhere", "/wal/full", "/wal/shut"}
	if !slices.Equal(wal, want) || o.Options.WALDir != "" {
		t.Errorf("logs looked for in %q", wal)
	}
}

func TestReportMissing(t *testing.T) {
	var found []record.Finding
	o := &format.OpenOptions{}
	two := []Lack{{"db3/a", record.Set}, {"db3/b", record.Hash}}
	ReportMissing("/root", "3", two, o)
	o.Options.Report = func(f record.Finding) { found = append(found, f) }
	ReportMissing("/root", "3", nil, o)
	ReportMissing("/root", "3", two, o)
	if len(found) != 1 || found[0].Kind != FindMissingStore || found[0].DB != "3" || found[0].Place.Level != -1 ||
		!strings.HasPrefix(found[0].Detail, "db3/a, db3/b not found") {
		t.Errorf("found %+v", found)
	}
	o.Pass = func(db string, types record.TypeSet, dir string) bool {
		return db == "3" && types == record.Of(record.Set) && dir == filepath.FromSlash("/root/db3/a")
	}
	ReportMissing("/root", "3", two[:1], o)
	ReportMissing("/root", "3", two, o)
	if len(found) != 2 || !strings.HasPrefix(found[1].Detail, "db3/b not found") {
		t.Errorf("without what nobody asks for: %+v", found)
	}
}

// TestReportGaps: missing databases are reported, unless unwanted.
func TestReportGaps(t *testing.T) {
	for _, c := range []struct {
		dirs, there []string
		passed      string // by --db
		db, want    string
	}{
		{dirs: []string{"db0", "db1"}, there: []string{"0", "1"}},
		{dirs: []string{"db1"}, there: []string{"1"}, db: "0", want: "db0"},
		{dirs: []string{"db1"}, there: []string{"1"}, passed: "0"},
		{dirs: []string{"db0", "db2"}, there: []string{"0", "2"}, db: "1", want: "db1"},
		{dirs: []string{"db0", "db1", "db2"}, there: []string{"0", "2"}, db: "1", want: "db1"},
		{dirs: []string{"db0", "db1", "db2", "db3"}, there: []string{"0", "1"}, want: "db2 to db3"},
		{dirs: []string{"db0", "db1"}, there: []string{"0"}, passed: "1"},
		{dirs: []string{"db2", "db5"}, there: []string{"2", "5"}, want: "db0 to db1, db3 to db4"},
		{dirs: []string{"db0", "db99999999999999999999"}, there: []string{"0", "99999999999999999999"}, want: "db1 to db18446744073709551613"},
		{dirs: []string{"db99999999999999999998", "db99999999999999999999"}, there: []string{"99999999999999999998"}, want: "db0 to db18446744073709551613"},
	} {
		var s Source[Store]
		for _, name := range c.there {
			s.DBs = append(s.DBs, &Database[Store]{Name: name})
		}
		var found []record.Finding
		o := &format.OpenOptions{Options: store.Options{Report: func(f record.Finding) { found = append(found, f) }}}
		if c.passed != "" {
			o.Pass = func(db string, types record.TypeSet, dir string) bool {
				return db == c.passed && types == record.AllTypes && dir == filepath.Join("root", "db"+db)
			}
		}
		s.ReportGaps(o, "root", c.dirs)
		switch {
		case c.want == "" && len(found) == 0:
		case len(found) != 1 || found[0].Kind != FindMissingStore || found[0].Severity != record.Warning || found[0].DB != c.db ||
			!strings.HasPrefix(found[0].Detail, "no database in "+c.want+"; ") ||
			!strings.HasSuffix(found[0].Detail, "--db "+strings.Join(c.there, ",")):
			t.Errorf("%q of %q: %+v", c.there, c.dirs, found)
		}
	}
	many := &Source[Store]{}
	for i := range 9 {
		many.DBs = append(many.DBs, &Database[Store]{Name: strconv.Itoa(i + 1)})
	}
	if got := many.some(); got != "1,2,3,4,5,6,7,8,…" {
		t.Errorf("names %q", got)
	}
}

// fake is a store of four keys.
type fake struct {
	typ    record.Type
	err    error
	closed int
	asked  int // last requested number of samples
}

func (f *fake) Types() record.TypeSet { return record.Of(f.typ) }

func (f *fake) Size() int64 { return 100 }

func (f *fake) Keyspaces() []format.Keyspace { return []format.Keyspace{{Name: f.typ.String()}} }

func (f *fake) Sample(n int) ([]store.Weighted, error) {
	f.asked = n
	var out []store.Weighted
	for _, k := range []string{"d", "b", "a", "c"} {
		out = append(out, store.Weighted{Key: []byte(k), Bytes: 25})
	}
	return out, f.err
}

func (f *fake) Close() error {
	f.closed++
	return f.err
}

func TestSource(t *testing.T) {
	kv, set, other := &fake{typ: record.String}, &fake{typ: record.Set}, &fake{typ: record.Set}
	s := &Source[*fake]{DBs: []*Database[*fake]{{Name: "0", Stores: []*fake{kv, set}}, {Name: "2", Stores: []*fake{other}}}}
	if got := s.Databases(); !slices.Equal(got, []string{"0", "2"}) || s.Layout() != format.LayoutDB || !s.Sorted() {
		t.Errorf("databases %q in layout %v", got, s.Layout())
	}
	if (&Source[*fake]{Flat: true}).Layout() != format.LayoutFlat {
		t.Error("flat is not flat")
	}
	if s.Types("0") != record.Of(record.String, record.Set) || s.Types("2") != record.Of(record.Set) || s.Types("1") != 0 {
		t.Errorf("types %v, %v, %v", s.Types("0"), s.Types("2"), s.Types("1"))
	}
	if got := s.Size("0", record.AllTypes); got != 200 || s.Size("0", record.Of(record.Set)) != 100 ||
		s.Size("1", record.AllTypes) != 0 {
		t.Errorf("size %d", got)
	}
	var names []string
	for _, ks := range s.Keyspaces() {
		names = append(names, ks.DB+":"+ks.Name)
	}
	if !slices.Equal(names, []string{"0:string", "0:set", "2:set"}) {
		t.Errorf("keyspaces %q", names)
	}
	set.err = os.ErrClosed
	if err := s.Close(); !errors.Is(err, os.ErrClosed) || kv.closed+set.closed+other.closed != 3 || len(s.Databases()) != 0 {
		t.Errorf("closed %d, %d and %d times: %v", kv.closed, set.closed, other.closed, err)
	}
}

func TestSplit(t *testing.T) {
	kv := &fake{typ: record.String}
	s := &Source[*fake]{DBs: []*Database[*fake]{{Name: "0", Stores: []*fake{kv, {typ: record.Set}}}}}
	for n, want := range map[int]string{0: "-", 1: "-", 2: "-c-", 4: "-b-c-d-", 9: "-a-b-c-d-"} {
		spans, err := s.Split("0", record.AllTypes, n)
		got := "-"
		for i, sp := range spans {
			if i > 0 && string(sp.Lo) != string(spans[i-1].Hi) {
				t.Errorf("%d spans: %v", n, spans)
			}
			if sp.Hi != nil {
				got += string(sp.Hi) + "-"
			}
		}
		if err != nil || got != want {
			t.Errorf("%d spans: %s, %v, want %s", n, got, err, want)
		}
		if n > 1 && kv.asked != n*SamplesPerSpan {
			t.Errorf("%d samples for %d spans", kv.asked, n)
		}
	}
	kv.err = os.ErrClosed
	if _, err := s.Split("0", record.AllTypes, 2); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a store that is closed: %v", err)
	}
	if spans := Cut(nil, 5); len(spans) != 1 {
		t.Errorf("no keys: %v", spans)
	}
}

// closing is a reader that counts how often it is closed.
type closing struct {
	record.Reader
	closed *int
}

func (c closing) Close() error {
	*c.closed++
	return nil
}

func TestMerge(t *testing.T) {
	closed := 0
	open := func(f *fake) (record.Reader, error) { return closing{closed: &closed}, f.err }
	r, err := Merge([]*fake{{}, {}}, open)
	if err != nil || r.Close() != nil || closed != 2 {
		t.Errorf("%d closed, %v", closed, err)
	}
	if _, err := Merge([]*fake{{}, {}, {err: os.ErrClosed}}, open); !errors.Is(err, os.ErrClosed) || closed != 4 {
		t.Errorf("%d closed after an error, %v", closed, err)
	}
}

// kindStore is a store of some types.
type kindStore struct {
	Store
	types record.TypeSet
}

func (s kindStore) Types() record.TypeSet { return s.types }
func (s kindStore) Size() int64           { return 100 }

// TestStoresOf: stores of other types are neither read nor counted.
func TestStoresOf(t *testing.T) {
	strings, rest := kindStore{types: record.Of(record.String)}, kindStore{types: record.Of(record.Hash, record.List)}
	s := &Source[kindStore]{DBs: []*Database[kindStore]{{Name: "0", Stores: []kindStore{strings, rest}}}}
	for _, c := range []struct {
		types record.TypeSet
		want  []kindStore
		size  int64
	}{
		{record.AllTypes, []kindStore{strings, rest}, 200}, {record.Of(record.String), []kindStore{strings}, 100},
		{record.Of(record.Hash), []kindStore{rest}, 50}, {record.Of(record.ZSet), nil, 0},
	} {
		if got := s.StoresOf("0", c.types); !slices.Equal(got, c.want) || s.Size("0", c.types) != c.size {
			t.Errorf("%v: %v, %d bytes", c.types, got, s.Size("0", c.types))
		}
	}
	if s.StoresOf("1", record.AllTypes) != nil {
		t.Error("stores of a database that is not there")
	}
}
