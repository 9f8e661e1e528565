package versioned_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syndtr/goleveldb/leveldb"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/keydbflash"
	"kvferry/kvrocks"
	"kvferry/record"
	"kvferry/ssdb"
	"kvferry/store/rocks"
)

// TestRecordsWithoutMetaRows reads formats that do not have a meta row for each record, or have other rows among them: rows of
// all classes add up, and sound databases have no error.
func TestRecordsWithoutMetaRows(t *testing.T) {
	for _, c := range []struct {
		format  format.Format
		golden  string
		kind    string
		records int
		errors  bool
	}{
		{ssdb.New(), "ssdb-basic", "leveldb", 716, false},
		{ssdb.New(), "ssdb-odd", "leveldb", 0, true},
		{keydbflash.New(), "keydbflash-basic", "rocksdb", 1012, false},
		{kvrocks.New(), "kvrocks-modules", "rocksdb", 1, false},
	} {
		t.Run(c.golden, func(t *testing.T) {
			src := formattest.Open(t, c.format, fixtures.Unpack(t, c.golden),
				&format.OpenOptions{Store: rocks.Open, Kind: c.kind})
			defer src.Close()
			var l record.Ledger
			var f formattest.Findings
			n := 0
			for _, db := range src.Databases() {
				for _, span := range []format.Span{{Hi: []byte("k")}, {Lo: []byte("k")}} {
					env := &format.Env{Now: time.Unix(1_800_000_000, 0), Ledger: &l, Report: f.Report, TempDir: t.TempDir()}
					r, err := src.Records(t.Context(), db, src.Types(db), span, env)
					if err != nil {
						t.Fatal(err)
					}
					lines, err := texts(record.Walk(r))
					if err != nil {
						t.Fatal(err)
					}
					n += len(lines)
				}
			}
			if n < c.records || n == 0 {
				t.Errorf("%d records, want %d", n, c.records)
			}
			formattest.CheckLedger(t, &l)
			if !c.errors {
				f.CheckNone(t, record.Error)
			} else if len(f.All) == 0 {
				t.Error("nothing is found")
			}
		})
	}
}

// TestOtherRoundTrips writes and reads random records in the formats that use more of the mechanism than Pika's.
func TestOtherRoundTrips(t *testing.T) {
	formattest.RoundTrips(t, ssdb.New(), fixtures.Options{DB: "0", Limits: ssdb.New().Limits()}, record.Copied, record.Index,
		record.Housekeeping)
}

// TestDeadKeys reads the deleted keys of a format whose records are single rows.
func TestDeadKeys(t *testing.T) {
	src := formattest.Open(t, keydbflash.New(), fixtures.Unpack(t, "keydbflash-basic"), &format.OpenOptions{Store: rocks.Open})
	defer src.Close()
	dead := src.(format.Undead)
	dbs, err := dead.DeadDatabases()
	if err != nil || len(dbs) != 17 {
		t.Fatalf("%d databases, %v", len(dbs), err)
	}
	for _, db := range dbs {
		r, err := dead.DeadRecords(t.Context(), db, record.AllTypes, format.Span{},
			&format.Env{Now: formattest.Now, TempDir: t.TempDir()}, func([]byte, record.Type, string) {})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := texts(record.Walk(r)); err != nil {
			t.Error(err)
		}
		r.Close()
	}
}

// TestDeadRows reads the deleted rows of a format that has no meta rows, but not those of a name that exists again.
func TestDeadRows(t *testing.T) {
	dir := t.TempDir()
	db, err := leveldb.OpenFile(filepath.Join(dir, "data"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var wrong []error
	for _, name := range []string{"gone", "again"} {
		for _, field := range []string{"a", "b"} {
			row := ssdb.AppendFieldKey(nil, []byte(name), []byte(field))
			wrong = append(wrong, db.Put(row, []byte("v"), nil), db.Delete(row, nil))
		}
	}
	wrong = append(wrong, db.Put(ssdb.AppendFieldKey(nil, []byte("again"), []byte("c")), nil, nil), db.Close())
	if err := errors.Join(wrong...); err != nil {
		t.Fatal(err)
	}
	src := formattest.Open(t, ssdb.New(), dir, &format.OpenOptions{Store: rocks.Open, Kind: "leveldb"})
	defer src.Close()
	told := ""
	r, err := src.(format.Undead).DeadRecords(t.Context(), "0", record.AllTypes, format.Span{},
		&format.Env{Now: formattest.Now, TempDir: t.TempDir()},
		func(key []byte, typ record.Type, _ string) { told += typ.String() + " " + string(key) + "," })
	if err != nil {
		t.Fatal(err)
	}
	got, err := texts(record.Walk(r))
	if err = errors.Join(err, r.Close()); err != nil || strings.Join(got, ",") != "hash gone: a=v/0 b=v/0" || told != "hash gone," {
		t.Errorf("%q, told of %q: %v", got, told, err)
	}
}

// readMemory reads all records of a dataset in memory, and what is found.
func readMemory(t *testing.T, m *formattest.Memory) (records, kinds []string) {
	t.Helper()
	var l record.Ledger
	var f formattest.Findings
	src := m.Open(t)
	r := formattest.Records(t, src, src.Databases()[0],
		&format.Env{Now: formattest.Now, Ledger: &l, Report: f.Report, Memory: 1 << 20, Deep: true, TempDir: t.TempDir()})
	records, err := texts(r)
	if err = errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	formattest.CheckLedger(t, &l)
	return records, slices.Compact(f.Kinds())
}

// TestLoneMembers: members that only the index has are read, each once and with its greatest score.
func TestLoneMembers(t *testing.T) {
	m := formattest.NewMemory(t, ssdb.New())
	m.Declare("data")
	st := m.Store("data")
	name := []byte("zz")
	st.Put("default", ssdb.AppendSizeKey(nil, 'Z', name), ssdb.AppendSize(nil, 3))
	st.Put("default", ssdb.AppendScoreKey(nil, name, []byte("both")), ssdb.AppendScore(nil, 1))
	for member, scores := range map[string][]int64{"both": {1}, "lone": {3, 4}, "other": {7}} {
		for _, score := range scores {
			st.Put("default", ssdb.AppendRankKey(nil, name, score, []byte(member)), nil)
		}
	}
	records, kinds := readMemory(t, m)
	if want := "zset zz: both=/1 lone=/4 other=/7"; len(records) != 1 || records[0] != want || !slices.Equal(kinds, []string{"zset-missing-member-row"}) {
		t.Errorf("records %q, findings %q", records, kinds)
	}
	st.Put("default", []byte("h\x02zz-a"), nil) // no separator
	st.Put("default", []byte("s\x02zz\x04bothh"), []byte("1"))
	if _, kinds := readMemory(t, m); !slices.Equal(kinds, []string{"bad-row-key", "count-mismatch", record.FindNewer, "zset-missing-member-row"}) {
		t.Errorf("findings %q", kinds)
	}
}
