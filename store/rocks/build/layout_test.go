package build_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kvferry/store"
	"kvferry/store/rocks/build"
)

// reversed orders keys backwards: a comparer that is not mistaken for the bytewise comparer.
var reversed = store.Comparer{
	Name:    "test.ReversedComparator",
	Compare: func(a, b []byte) int { return bytes.Compare(b, a) },
}

type testRow struct{ key, value []byte }

// testRows makes n rows in the order of c. Keys differ in length, values may be empty.
func testRows(rnd *rand.Rand, n int, c store.Comparer) []testRow {
	rows := make([]testRow, 0, n)
	seen := map[string]bool{}
	for len(rows) < n {
		key := make([]byte, rnd.Intn(30))
		rnd.Read(key)
		if seen[string(key)] {
			continue
		}
		seen[string(key)] = true
		value := bytes.Repeat([]byte{byte(rnd.Intn(256)), 'x'}, rnd.Intn(100))
		rows = append(rows, testRow{key, value})
	}
	slices.SortFunc(rows, func(a, b testRow) int { return c.Compare(a.key, b.key) })
	return rows
}

// writeRun writes rows as one run.
func writeRun(t *testing.T, b store.Builder, keyspace string, shard int, lane uint64, rows []testRow) {
	t.Helper()
	r, err := b.Run(keyspace, shard, lane)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if err := r.Append(row.key, row.value); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestBuiltBytes parses the output of a Builder with code that only knows the formats of RocksDB 5.0.1.
func TestBuiltBytes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	b, err := build.Create(dir, store.BuildOptions{TableSize: 20_000, Buffer: 5000, Identity: "run", Merger: "a.merger",
		Now: time.Unix(1700000000, 0)})
	must(t, err)
	spaces := []struct {
		name string
		cmp  store.Comparer
		rows int
	}{{"default", store.Bytewise, 2000}, {"data_cf", store.Bytewise, 1}, {"score_cf", reversed, 3000}, {"empty_cf", reversed, 0}}
	rnd := rand.New(rand.NewSource(1))
	written := map[string][]testRow{}
	for _, s := range spaces {
		must(t, b.Keyspace(s.name, s.cmp))
		rows := testRows(rnd, s.rows, s.cmp)
		written[s.name] = rows
		writeRun(t, b, s.name, 1, 0, rows[len(rows)/2:])
		writeRun(t, b, s.name, 0, 0, rows[:len(rows)/2])
	}
	must(t, b.Finish())

	db := parseDB(t, dir, ".sst")
	if len(db.families) != len(spaces) || db.maxCF != uint64(len(spaces)-1) || db.lastSeq != 1 {
		t.Fatalf("%d column families, largest id %d, last sequence %d", len(db.families), db.maxCF, db.lastSeq)
	}
	next := uint64(2) // the MANIFEST is 1
	sessions := map[string]bool{}
	for id, s := range spaces {
		f := db.families[uint64(id)]
		if f.name != s.name || f.comparator != s.cmp.Name {
			t.Fatalf("column family %d is %q with %q, want %q with %q", id, f.name, f.comparator, s.name, s.cmp.Name)
		}
		if s.rows > 1000 && len(f.files) < 3 {
			t.Fatalf("%s: %d rows in %d tables: TableSize has no effect", s.name, s.rows, len(f.files))
		}
		for _, p := range f.files {
			if p.number != next {
				t.Fatalf("%s: table %d, want number %d: numbers follow the keys", s.name, p.number, next)
			}
			next++
		}
		checkFamily(t, dir, f, s.cmp, written[s.name], false)
		for _, p := range f.files {
			checkIdentity(t, parseTable(t, filepath.Join(dir, fmt.Sprintf("%06d.sst", p.number)), false), id, s.name, sessions)
		}
	}
	if db.nextFile != next {
		t.Fatalf("next file is %d, want %d", db.nextFile, next)
	}
}

// checkFamily reads the tables of a column family in turn and compares the rows.
func checkFamily(t *testing.T, dir string, f *parsedFamily, c store.Comparer, want []testRow, levelDB bool) {
	t.Helper()
	ext := ".sst"
	if levelDB {
		ext = ".ldb"
	}
	var last []byte
	var marked uint64 // rows with a sequence number
	for i, p := range f.files {
		tab := parseTable(t, filepath.Join(dir, fmt.Sprintf("%06d%s", p.number, ext)), levelDB)
		checkProps(t, tab, c, levelDB)
		if p.level != 6 {
			t.Fatalf("table %d: level %d", p.number, p.level)
		}
		n := len(tab.keys)
		if !bytes.Equal(p.smallest, tab.keys[0]) || !bytes.Equal(p.largest, tab.keys[n-1]) {
			t.Fatalf("table %d: the MANIFEST's bounds are not the table's", p.number)
		}
		if i > 0 && c.Compare(last[:len(last)-8], p.smallest[:len(p.smallest)-8]) >= 0 {
			t.Fatalf("table %d overlaps the one before", p.number)
		}
		last = p.largest
		for j, k := range tab.keys {
			if len(want) == 0 {
				t.Fatalf("table %d: more rows than were written", p.number)
			}
			if !bytes.Equal(k[:len(k)-8], want[0].key) || !bytes.Equal(tab.values[j], want[0].value) {
				t.Fatalf("table %d, row %d: %q, want %q", p.number, j, k, want[0].key)
			}
			seq := binary.LittleEndian.Uint64(k[len(k)-8:]) >> 8
			if k[len(k)-8] != 1 || seq > 1 || seq == 1 && !levelDB && j < n-1 || seq == 0 && levelDB {
				t.Fatalf("table %d, row %d: kind %d at sequence %d", p.number, j, k[len(k)-8], seq)
			}
			if !levelDB && (j == 0 && seq != p.minSeq || j == n-1 && seq != p.maxSeq) {
				t.Fatalf("table %d, row %d of %d has sequence %d, the MANIFEST says %d to %d", p.number, j, n, seq, p.minSeq,
					p.maxSeq)
			}
			marked += seq
			want = want[1:]
		}
	}
	if len(want) > 0 {
		t.Fatalf("%d rows are missing", len(want))
	}
	if !levelDB && len(f.files) > 0 && marked != 1 {
		t.Fatalf("%d rows have sequence 1, want one of each column family", marked)
	}
}

// checkProps checks a table's properties as the original engines read them.
func checkProps(t *testing.T, tab *parsedTable, c store.Comparer, levelDB bool) {
	t.Helper()
	if levelDB {
		for _, m := range tab.meta {
			if bytes.HasPrefix([]byte(m), []byte("filter.")) {
				t.Fatalf("the table claims a LevelDB filter %q", m)
			}
		}
		return
	}
	want := map[string]string{
		"rocksdb.comparator":                            c.Name,
		"rocksdb.compression":                           "Snappy",
		"rocksdb.block.based.table.index.type":          "\x00\x00\x00\x00", // binary search
		"rocksdb.block.based.table.whole.key.filtering": "1",
		"rocksdb.block.based.table.prefix.filtering":    "0",
		"rocksdb.prefix.extractor.name":                 "nullptr",
		"rocksdb.filter.policy":                         "rocksdb.BuiltinBloomFilter",
		"rocksdb.num.entries":                           string(binary.AppendUvarint(nil, uint64(len(tab.keys)))),
		"rocksdb.deleted.keys":                          "\x00",
		"rocksdb.merge.operands":                        "\x00",
	}
	for k, v := range want {
		if tab.props[k] != v {
			t.Errorf("property %s = %q, want %q", k, tab.props[k], v)
		}
	}
	for _, k := range []string{"rocksdb.creating.host.identity", "rocksdb.index.partitions",
		"rocksdb.external_sst_file.version", "rocksdb.external_sst_file.global_seqno"} {
		if v, ok := tab.props[k]; ok {
			t.Errorf("property %s = %q: must not be there", k, v)
		}
	}
	if want := []string{"fullfilter.rocksdb.BuiltinBloomFilter", "rocksdb.properties"}; !slices.Equal(tab.meta, want) {
		t.Errorf("meta blocks %q, want %q", tab.meta, want)
	}
}

// checkIdentity checks the origin in the properties of a table; no two tables have one session.
func checkIdentity(t *testing.T, tab *parsedTable, id int, name string, sessions map[string]bool) {
	t.Helper()
	now := string(binary.AppendUvarint(nil, 1700000000))
	for k, v := range map[string]string{
		"rocksdb.column.family.id":     string(rune(id)),
		"rocksdb.column.family.name":   name,
		"rocksdb.merge.operator":       "a.merger",
		"rocksdb.creation.time":        now,
		"rocksdb.oldest.key.time":      now,
		"rocksdb.newest.key.time":      now,
		"rocksdb.file.creation.time":   now,
		"rocksdb.original.file.number": "\x01",
	} {
		if tab.props[k] != v {
			t.Errorf("property %s = %q, want %q", k, tab.props[k], v)
		}
	}
	session := tab.props["rocksdb.creating.session.identity"]
	if db := tab.props["rocksdb.creating.db.identity"]; len(db) != 36 || len(session) != 20 || sessions[session] {
		t.Errorf("identities %q, %q", db, session)
	}
	sessions[session] = true
}

// TestBuiltBytesLevelDB does the same for the LevelDB flavour.
func TestBuiltBytesLevelDB(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	b, err := build.CreateLevelDB(dir, store.BuildOptions{TableSize: 20_000})
	must(t, err)
	must(t, b.Keyspace("default", reversed))
	rows := testRows(rand.New(rand.NewSource(2)), 3000, reversed)
	writeRun(t, b, "default", 0, 0, rows)
	must(t, b.Finish())
	db := parseDB(t, dir, ".ldb")
	for tag := range db.tags {
		if tag > 9 {
			t.Errorf("LevelDB does not know tag %d", tag)
		}
	}
	f := db.families[0]
	if f.comparator != reversed.Name || len(f.files) < 3 {
		t.Fatalf("comparator %q, %d tables", f.comparator, len(f.files))
	}
	checkFamily(t, dir, f, reversed, rows, true)
}
