package floyd_test

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/floyd"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/store"
)

func TestFormat(t *testing.T) {
	f := floyd.New().(format.Served)
	formattest.Limits(t, f, "Types=string,hash,list,set,zset,stream EmptyKey NoInnerNUL NoStreamExpiry NoBlankStream FirstMS=1 MaxScore=+Inf "+
		"MaxElements=2147483647 Unbounded=list Numbered MaxDBs=8 Layouts Layout=db Instances=3 Slots=1024 rocksdb:rw Beside=[bgsave dbsync dump log]")
	if f.Name() != "floyd" || len(f.Servers()) != 1 || f.Servers()[0].Name != "pika4" {
		t.Errorf("%s, servers %v", f.Name(), f.Servers())
	}
	if s := f.For("pika4").(format.Served); s.Server() != "pika4" || s.Name() != "floyd" || f.Server() != "" {
		t.Errorf("%q is %q", s.Name(), s.Server())
	}
}

func TestDetect(t *testing.T) {
	instance := func(path string, families ...string) format.StoreEvidence {
		s := format.StoreEvidence{Path: path, Kind: "rocksdb", Keyspaces: []format.KeyspaceEvidence{{Name: "default"}}}
		for _, name := range families {
			name, order, _ := strings.Cut(name, "=")
			s.Keyspaces = append(s.Keyspaces, format.KeyspaceEvidence{Name: name, Comparer: order})
		}
		return s
	}
	level := instance("0", "hash_data_cf")
	level.Kind = "leveldb"
	for name, c := range map[string]struct {
		store format.StoreEvidence
		score int
		why   string
	}{
		"in the usual order":   {instance("0", "hash_data_cf=leveldb.BytewiseComparator"), 80, "column families of floyd's instances"},
		"in an unknown order":  {instance("0", "list_data_cf"), 80, "column families of floyd's instances"},
		"in an own order":      {instance("db0/0", "list_data_cf=floyd.ListsDataKeyComparator"), 100, "db0/0 is a RocksDB database"},
		"by the families":      {instance("0", "hash_data_cf"), 80, "column families of floyd's instances"},
		"nothing of its own":   {instance("db0/0"), 0, ""},
		"LevelDB":              {level, 0, ""},
		"another order":        {instance("0", "list_data_cf=leveldb.BytewiseComparator"), 0, "0: list_data_cf is ordered by leveldb.BytewiseComparator"},
		"an odd column family": {instance("0", "data_cf"), 0, `0 has a column family "data_cf"`},
		"elsewhere":            {instance("x/0", "hash_data_cf"), 0, ""},
		"no number":            {instance("db0/hashes", "hash_data_cf"), 0, ""},
	} {
		v := floyd.New().Detect(&format.Evidence{Stores: []format.StoreEvidence{c.store}})
		if v.Score != c.score || !strings.Contains(strings.Join(v.Why, "\n"), c.why) || (len(v.Why) > 0) != (c.why != "") {
			t.Errorf("%s: %+v", name, v)
		}
	}
	several := []format.StoreEvidence{instance("x/0", "hash_data_cf"), instance("db0/0", "hash_data_cf"), instance("db0/1")}
	if v := floyd.New().Detect(&format.Evidence{Stores: several}); v.Score != 80 || len(v.Why) != 1 {
		t.Errorf("of several: %+v", v)
	}
}

// opened opens a dataset and returns the findings of Open.
func (p *planted) opened() (format.Source, []record.Finding, error) {
	var f formattest.Findings
	src, err := floyd.New().Open(context.Background(), p.Dir,
		&format.OpenOptions{Store: p.FS.Open, Options: store.Options{Report: f.Report}})
	return src, f.All, err
}

func TestRefusedDirectories(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(p *planted)
		want string
	}{
		"an odd column family": {func(p *planted) { p.Store("0").Keyspace("data_cf", store.Bytewise) }, `has a column family "data_cf", which the engine refuses to open`},
		"another order": {func(p *planted) {
			p.Store("1").Keyspace("list_data_cf", store.Bytewise)
		}, "column family list_data_cf is ordered by leveldb.BytewiseComparator, want floyd.ListsDataKeyComparator"},
		"too many instances": {func(p *planted) { mkdir(t, p.Dir, "1024") }, "1024 is not an instance; a database has at most 1024"},
	} {
		p := &planted{formattest.NewMemory(t, floyd.New()), t}
		p.put(0, "default", nil, nil)
		c.do(p)
		if _, _, err := p.opened(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := &planted{formattest.NewMemory(t, floyd.New()), t}
	mkdir(t, p.Dir, "db0")
	if _, _, err := p.opened(); err == nil || !strings.Contains(err.Error(), "not a floyd database: want the RocksDB directories 0, 1, … in db0, db1, …") {
		t.Errorf("an empty directory: %v", err)
	}
	p.Dir = filepath.Join(p.Dir, "nowhere")
	if _, _, err := p.opened(); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("no directory: %v", err)
	}
}

func mkdir(t testing.TB, elem ...string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(elem...), 0o755); err != nil {
		t.Fatal(err)
	}
}

// TestInstanceGap: a gap in the numbers is an error, and the existing instances are read.
func TestInstanceGap(t *testing.T) {
	p := &planted{formattest.NewMemory(t, floyd.New()), t}
	for _, i := range []string{"0", "2"} {
		mkdir(t, p.Dir, "db3", i)
		p.Store("db3/"+i).Put("default", metaKey("key"+i), floyd.AppendStringValue(nil, floyd.StringValue{Bytes: []byte("v")}))
	}
	mkdir(t, p.Dir, "db4") // an empty directory
	if err := os.WriteFile(filepath.Join(p.Dir, "db3", "info"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	src, found, err := p.opened()
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if len(found) == 0 || found[0].Severity != record.Error || !strings.HasPrefix(found[0].Detail, "db3/1 not found; keys are spread over all instances") {
		t.Errorf("found %+v", found)
	}
	dbs := src.Databases()
	if !slices.Equal(dbs, []string{"3"}) || src.Layout() != format.LayoutDB || !slices.Equal(src.Extra(), []string{"db3/info"}) {
		t.Errorf("databases %q, layout %v, extra %q", dbs, src.Layout(), src.Extra())
	}
	if lines := formattest.Lines(t, formattest.Records(t, src, "3", &format.Env{})); bytes.Count(lines, []byte("\n")) != 2 {
		t.Errorf("%s", lines)
	}
}

// TestSlotNumber: the number of slots is found from the instances of the keys, and an unusual number is
// reported.
func TestSlotNumber(t *testing.T) {
	read := func(types record.TypeSet) record.Reader {
		return fixtures.Records(3, 200, fixtures.Options{DB: "0", Limits: floyd.New().Limits(), Types: types})
	}
	for slots, want := range map[int]string{1024: "", 1: "by default-slot-num 1, or a number of the same effect on them, not 1024",
		2000: "by default-slot-num 2000, or a number of the same effect on them, not 1024", 7: "by default-slot-num 7, or a number of the same effect on them, not 1024"} {
		p := &planted{formattest.NewMemory(t, floyd.New()), t}
		formattest.Fill(t, p.Create(t, format.CreateOptions{Instances: 3, Slots: slots, TempDir: t.TempDir()}), 0, read)
		src, found, err := p.opened()
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, f := range found {
			if f.Kind != floyd.FindSlots || f.Severity != record.Note {
				t.Errorf("%d slots: %+v", slots, f)
			}
			got += f.Detail
		}
		if (got == "") != (want == "") || !strings.HasSuffix(got, want) {
			t.Errorf("%d slots: %q, want %q", slots, got, want)
		}
		src.Close()
	}
}

// TestSamples: spans are cut between user keys, and together contain all records.
func TestSamples(t *testing.T) {
	read := func(types record.TypeSet) record.Reader {
		return fixtures.Records(4, 300, fixtures.Options{DB: "0", Limits: floyd.New().Limits(), Types: types})
	}
	dst := formattest.CreateRocksDB(t, floyd.New(), filepath.Join(t.TempDir(), "new"))
	src := formattest.Fill(t, dst, 1<<20, read)
	spans, err := src.Split("0", record.AllTypes, 5)
	if err != nil || len(spans) < 3 {
		t.Fatalf("%d spans, %v", len(spans), err)
	}
	var all record.Fingerprint
	for i, span := range spans {
		if i > 0 && !bytes.Equal(spans[i-1].Hi, span.Lo) {
			t.Errorf("span %d starts at %q, the one before ends at %q", i, span.Lo, spans[i-1].Hi)
		}
		sum := formattest.Sum(t, formattest.RecordsOf(t, src, "0", record.AllTypes, span, &format.Env{Now: fixtures.Clock}))
		all.Merge(sum)
	}
	formattest.CheckEqual(t, &all, formattest.Sum(t, read(record.AllTypes)), false)
}

// TestDead: a deleted hash, and one without its meta row, come back.
func TestDead(t *testing.T) {
	p := plant(t)
	p.hash(0, "deleted", 5, "f", suffixed("v"))
	p.put(0, "default", metaKey("deleted"), floyd.AppendMeta(nil, floyd.Meta{Type: record.Hash, Version: 6}))
	p.put(0, "hash_data_cf", dataKey("gone", "f"), []byte(suffixed("w")))
	p.hash(0, "alive", 5, "f", suffixed("x"))
	var told []string
	r, err := p.Open(t).(format.Undead).DeadRecords(context.Background(), "0", record.Of(record.Hash), format.Span{},
		&format.Env{TempDir: t.TempDir(), Memory: 1 << 20},
		func(key []byte, _ record.Type, what string) { told = append(told, string(key)+": "+what) })
	if err != nil {
		t.Fatal(err)
	}
	got := string(formattest.Lines(t, r))
	if strings.Count(got, "\n") != 2 || !strings.Contains(got, `"key":"ZGVsZXRlZA=="`) || !strings.Contains(got, `"key":"Z29uZQ=="`) {
		t.Errorf("%s; told %q", got, told)
	}
}

// TestFlippedRows flips each byte of a row and truncates it anywhere: each row gets one class and reading
// continues.
func TestFlippedRows(t *testing.T) {
	var told strings.Builder
	for i, c := range describedRows {
		sum := crc32.NewIEEE()
		instance, cf, _ := strings.Cut(strings.TrimPrefix(c.keyspace, "db0/"), "/")
		if cf == "other_cf" {
			continue
		}
		read := func(key, value []byte) {
			p := plant(t)
			p.hash(0, "other", 5, "f", suffixed("v"))
			p.Store(instance).Put(cf, key, value)
			text := formattest.Tell(t, p.Open(t), "0", record.AllTypes, &format.Env{Deep: true}, 3)
			if !strings.Contains(text, "hash \"other\" in \"0\" expires 0 false len 1 last  by name true\n  0 \"f\" \"v\"") {
				t.Errorf("%s %x = %x: %s", c.keyspace, key, value, text)
			}
			sum.Write([]byte(text))
		}
		for _, at := range []int{0, 7, 8, 9, 10, 11, 18, 19, 20, len(c.key) - 1} {
			if at < len(c.key) {
				key := bytes.Clone(c.key)
				key[at] ^= 0xff
				read(key, c.value)
				read(c.key[:at], c.value)
			}
		}
		for at := range c.value {
			value := bytes.Clone(c.value)
			value[at] ^= 0xff
			read(c.key, value)
			read(c.key, c.value[:at])
		}
		fmt.Fprintf(&told, "row %d: %08x\n\n", i, sum.Sum32())
	}
	formattest.CheckOutcomes(t, "testdata/flipped.txt", told.String())
}

// TestElementLosses: NaN scores are dropped, and strings that look like HyperLogLogs of other engines are
// noted.
func TestElementLosses(t *testing.T) {
	dst := formattest.NewMemory(t, floyd.New()).Create(t, format.CreateOptions{})
	defer dst.Abort()
	hyll := []byte("HYLL\x01" + strings.Repeat("\x00", 11))
	for _, c := range []struct {
		h    record.Header
		e    record.Element
		kept int
		loss string
	}{
		{record.Header{Type: record.ZSet}, record.Element{Score: math.NaN()}, 0, "score-nan"},
		{record.Header{Type: record.ZSet}, record.Element{Score: math.Inf(1)}, 1, ""},
		{record.Header{Type: record.Hash}, record.Element{Value: hyll}, 1, ""},
		{record.Header{Type: record.String}, record.Element{Value: hyll}, 1, "hyperloglog"},
		{record.Header{Type: record.String, Native: "hyperloglog"}, record.Element{Value: hyll}, 1, "hyperloglog"}, // of Kvrocks
		{record.Header{Type: record.String}, record.Element{Value: make([]byte, 1<<17)}, 1, "hyperloglog"},
		{record.Header{Type: record.String, Native: "hyperloglog"}, record.Element{Value: make([]byte, 1<<17)}, 1, ""},
	} {
		loss := ""
		kept := dst.ElementLosses(&c.h, []record.Element{c.e}, func(l record.Loss) { loss += l.Kind })
		if len(kept) != c.kept || loss != c.loss {
			t.Errorf("%s %.8q: %d kept, loss %q, want %d and %q", c.h.Type, c.e.Value, len(kept), loss, c.kept, c.loss)
		}
	}
}

// TestTargetOptions: written datasets follow the options, and invalid options are refused.
func TestTargetOptions(t *testing.T) {
	p := &planted{formattest.NewMemory(t, floyd.New()), t}
	dst := p.Create(t, format.CreateOptions{Instances: 1, Version: 77, Now: fixtures.Clock})
	w, err := formattest.One(dst.Shard(0, "0", record.AllTypes, 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "b"} {
		if w.Begin(&record.Header{DB: "0", Type: record.Set, Key: []byte(key), ByName: true,
			ExpireMS: map[string]int64{"a": -5, "b": ms}[key]}) != nil ||
			w.Write([]record.Element{{Name: []byte("m")}}) != nil || w.End() != nil {
			t.Fatal("not written")
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	formattest.Finish(t, dst).Close()
	now := floyd.TimeOf(fixtures.Clock.UnixMilli())
	for key, expiry := range map[string]floyd.Time{"a": 1 | 1<<63, "b": ms | 1<<63} {
		m, err := floyd.DecodeMeta(p.Store("0").Get("default", metaKey(key)))
		if want := (floyd.Meta{Type: record.Set, Count: 1, Version: 77, Ctime: now, Expiry: expiry}); err != nil || m != want {
			t.Errorf("%s: %+v, %v, want %+v", key, m, err, want)
		}
	}
	for _, o := range []format.CreateOptions{{Instances: -1}, {Slots: -1}, {Instances: 1025}} {
		o.Create = p.FS.Create
		if _, err := floyd.New().Create(context.Background(), p.Dir, &o); err == nil || !strings.Contains(err.Error(), "want 1 to 1024 instances and 1 slot or more") {
			t.Errorf("%d instances, %d slots: %v", o.Instances, o.Slots, err)
		}
	}
}

// TestLedgerOfTypes: the ledger of some types contains only the rows read for them.
func TestLedgerOfTypes(t *testing.T) {
	p := plant(t)
	p.hash(0, "k", 1, "f", suffixed("v"))
	l := new(record.Ledger)
	r, err := p.Open(t).Records(context.Background(), "0", record.Of(record.Hash), format.Span{},
		&format.Env{Ledger: l, TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	formattest.Lines(t, r)
	for label := range l.Snapshot() {
		if !strings.HasSuffix(label, "default") && !strings.HasSuffix(label, "hash_data_cf") {
			t.Errorf("%s is in the ledger of hashes", label)
		}
	}
}

// TestDeadCut: a row truncated within its version does not belong to a dead record.
func TestDeadCut(t *testing.T) {
	p := plant(t)
	whole := dataKey("gone", "f")
	p.put(0, "hash_data_cf", whole, []byte(suffixed("w")))
	user := len(floyd.AppendUserKey(nil, []byte("gone")))
	for n := user; n < len(whole); n++ {
		p.put(0, "hash_data_cf", whole[:n], []byte(suffixed("x")))
	}
	r, err := p.Open(t).(format.Undead).DeadRecords(context.Background(), "0", record.Of(record.Hash), format.Span{},
		&format.Env{TempDir: t.TempDir(), Memory: 1 << 20}, func([]byte, record.Type, string) {})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(formattest.Lines(t, r)); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"key":"Z29uZQ=="`) {
		t.Errorf("%s", got)
	}
}
