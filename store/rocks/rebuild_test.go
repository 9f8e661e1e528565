package rocks

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/fixtures"
	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
)

// allRows are the rows of all keyspaces that have some, with their names.
func allRows(t *testing.T, db *database) (out []string) {
	t.Helper()
	for _, ks := range db.Keyspaces() {
		rows, _ := testsst.ReadRows(t, ks, nil, nil)
		for _, r := range rows {
			out = append(out, fmt.Sprintf("%s %q %q", ks.Name(), r.Key, r.Value))
		}
	}
	return out
}

// manifestPath is the path of the MANIFEST.
func manifestPath(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "CURRENT"))
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, strings.TrimSpace(string(b)))
}

// flipByte changes a byte of a file.
func flipByte(t *testing.T, path string, at int64) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b[at] ^= 0x40
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// firstComparer has all orders, with one first: LevelDB's tables do not name theirs.
func firstComparer(name string) []store.Comparer {
	out := slices.Clone(testsst.Comparers)
	slices.SortStableFunc(out, func(a, b store.Comparer) int {
		if (a.Name == name) == (b.Name == name) {
			return 0
		} else if a.Name == name {
			return -1
		}
		return 1
	})
	return out
}

// TestRebuilt: databases of the original engines have all rows without CURRENT and MANIFEST, or with a damaged one. Without a
// salvage that is an error which one would pass.
func TestRebuilt(t *testing.T) {
	for _, golden := range []string{"nemo-basic/hash", "bw-basic/lists", "kvrocks-mixed/db", "ardb-leveldb-basic/leveldb"} {
		name, sub, _ := strings.Cut(golden, "/")
		root := fixtures.Unpack(t, name)
		dir := filepath.Join(root, sub)
		sound := openTest(t, dir, store.Options{})
		want := allRows(t, sound)
		current, manifest := filepath.Join(dir, "CURRENT"), manifestPath(t, dir)
		whole, err := os.ReadFile(manifest)
		if err != nil {
			t.Fatal(err)
		}
		check := func(how, kind, file string) {
			t.Helper()
			var block *store.BlockError
			if err := rowsError(dir, store.Options{}); err == nil || !errors.As(err, &block) {
				t.Errorf("%s, %s, without a salvage: %v", golden, how, err)
			}
			db, found := openFindings(t, dir, store.Options{Salvage: true,
				Comparers: firstComparer(sound.spaces[0].Comparer().Name)})
			if got := allRows(t, db); !slices.Equal(got, want) {
				t.Errorf("%s, %s: %d rows, want %d", golden, how, len(got), len(want))
			}
			errs := slices.DeleteFunc(slices.Clone(*found), func(f record.Finding) bool { return f.Severity != record.Error })
			if len(errs) != 1 || errs[0].Kind != kind || errs[0].Place.File != file {
				t.Errorf("%s, %s: findings %+v", golden, how, *found)
			}
		}
		for _, at := range []int64{9, int64(len(whole)) / 2} {
			flipByte(t, manifest, at)
			check(fmt.Sprint("flipped at ", at), record.FindDamagedFile, filepath.Base(manifest))
			if err := os.WriteFile(manifest, whole, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(current, []byte("MANI"), 0o644); err != nil {
			t.Fatal(err)
		}
		check("CURRENT damaged", record.FindDamagedFile, "CURRENT")
		if err := os.Remove(current); err != nil {
			t.Fatal(err)
		}
		check("without CURRENT", record.FindMissingFile, "CURRENT")
		if err := os.Remove(manifest); err != nil {
			t.Fatal(err)
		}
		check("without both", record.FindMissingFile, "CURRENT")
	}
}

// TestRebuiltTables: sequence numbers order the rows, then file numbers; a table that cannot be assigned is an error.
func TestRebuiltTables(t *testing.T) {
	family := func(id uint64, name string) map[string][]byte {
		return map[string][]byte{"rocksdb.column.family.id": binary.AppendUvarint(nil, id),
			"rocksdb.column.family.name": []byte(name),
			"rocksdb.comparator":         []byte(testsst.BytewiseName)}
	}
	d := testsst.NewDB(t)
	d.File("OPTIONS-000009", []byte("[CFOptions \"default\"]\n  comparator=leveldb.BytewiseComparator\n[CFOptions \"one\"]\n  comparator=leveldb.BytewiseComparator\n"+
		"[CFOptions \"logged\"]\n  comparator=leveldb.BytewiseComparator\n"))
	one := testsst.Spec{Props: family(1, "one")}
	d.Write(one, []testsst.Entry{testsst.Put("equal", 0, "older"), testsst.Put("seq", 9, "newer"), testsst.Put("z", 3, "last")})
	d.Write(one, []testsst.Entry{testsst.Del("dead", 8), testsst.Put("equal", 0, "newer"), testsst.Put("seq", 4, "older")})
	d.Write(testsst.Spec{Props: family(1, "one"), Tombstones: []testsst.Entry{testsst.RangeDel("r", 20, "s")}},
		[]testsst.Entry{testsst.Put("dead", 7, ""), testsst.Put("r1", 19, ""), testsst.Put("s", 1, "")})
	d.Write(testsst.Spec{Props: family(1<<31-1, "")}, []testsst.Entry{testsst.Put("whose", 1, "")})
	d.Write(testsst.Spec{Props: family(0, "default")}, []testsst.Entry{testsst.Put("a", 1, "table")})
	d.Log(7, testsst.Batch(30, testsst.Op(base.KindPut, "a", "log"), testsst.OpCF(base.KindCFPut, 2, "l", ""),
		testsst.OpCF(base.KindCFPut, 5, "lost", ""), testsst.Op(base.KindPut, "b", "log")))
	damaged := d.Write(testsst.Spec{Props: family(0, "default"), BlockSize: 1},
		[]testsst.Entry{testsst.Put("b1", 2, ""), testsst.Put("b2", 2, "")})
	flipByte(t, filepath.Join(d.Dir, damaged), 0)
	cut := d.Write(testsst.Spec{Props: family(0, "default")}, []testsst.Entry{testsst.Put("cut", 2, "")})
	if err := os.Truncate(filepath.Join(d.Dir, cut), 40); err != nil {
		t.Fatal(err)
	}
	dir := d.Finish()
	if err := os.Remove(manifestPath(t, dir)); err != nil {
		t.Fatal(err)
	}
	db, found := openFindings(t, dir, store.Options{Salvage: true})
	want := []string{`default "a" "log"`, `default "b" "log"`, `default "b2" ""`, `one "equal" "newer"`, `one "s" ""`,
		`one "seq" "newer"`, `one "z" "last"`, `logged "l" ""`}
	if got := allRows(t, db); !slices.Equal(got, want) {
		t.Errorf("rows %q, want %q", got, want)
	}
	var told []string
	for _, f := range *found {
		told = append(told, fmt.Sprintf("%s %s %s: %s", f.Severity, f.Kind, f.Place.File, f.Detail))
	}
	for _, part := range []string{"damaged-block 000013.sst: it does not name its column family", "damaged-block " + cut, "tables: 5, logs: 1",
		"damaged-file 000007.log: writes of column family 5", "error damaged-block " + damaged + `: block: checksum mismatch`, `its rows are missing: keys up to "b1"`} {
		if !strings.Contains(strings.Join(told, "\n"), part) {
			t.Errorf("no finding has %q:\n%s", part, strings.Join(told, "\n"))
		}
	}
	if len(told) != 5 {
		t.Errorf("findings:\n%s", strings.Join(told, "\n"))
	}
}

// TestRebuiltKnowsThePast: the MANIFEST before the damage still counts: obsolete tables and dropped column families are
// not read, and ingested tables have their sequence number.
func TestRebuiltKnowsThePast(t *testing.T) {
	d := testsst.NewDB(t)
	d.Family(1, "one", testsst.BytewiseName)
	d.Table(0, 1, testsst.Spec{}, testsst.Put("old", 1, ""))
	d.Ingest(0, 0, 5, "x")
	d.Table(0, 1, testsst.Spec{}, testsst.Put("x", 4, "older"))
	d.Edit(binary.AppendUvarint(testsst.EditNumber(6, 1), 10)) // table 10 is deleted
	d.Edit(testsst.EditNumber(200, 1), binary.AppendUvarint(nil, 202))
	d.Edit(testsst.EditNumber(9, 0))
	d.Log(7, testsst.Batch(30, testsst.OpCF(base.KindCFPut, 1, "dropped", ""), testsst.Op(base.KindPut, "b", "log")))
	dir := d.Finish()
	path := manifestPath(t, dir)
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	flipByte(t, path, st.Size()-1)
	db, found := openFindings(t, dir, store.Options{Salvage: true})
	rows := allRows(t, db)
	if len(rows) != 2 || rows[0] != `default "b" "log"` || !strings.HasPrefix(rows[1], `default "x"`) ||
		strings.Contains(rows[1], "older") {
		t.Errorf("rows %q", rows)
	}
	if len(*found) != 2 || (*found)[0].Kind != "unreferenced-table" || (*found)[0].Place.File != "000010.sst" {
		t.Errorf("findings %+v", *found)
	}
}

// TestManyTables: among many tables, those without overlap share a run, and of equal entries the newest table still
// wins.
func TestManyTables(t *testing.T) {
	d := testsst.NewDB(t)
	for i := range 60 {
		d.Write(testsst.Spec{}, []testsst.Entry{testsst.Put(fmt.Sprintf("k%02d", i%20), 0, fmt.Sprint(i)),
			testsst.Put(fmt.Sprintf("k%02dx", i%20), 0, "")})
	}
	d.Write(testsst.Spec{}, []testsst.Entry{testsst.Put("k05", 0, "last"), testsst.Put("k07", 0, "last")})
	d.File("LOCK", nil)
	dir := d.Finish()
	if err := os.Remove(manifestPath(t, dir)); err != nil {
		t.Fatal(err)
	}
	db, _ := openFindings(t, dir, store.Options{Salvage: true})
	for _, r := range allRows(t, db) {
		var i int
		if n, _ := fmt.Sscanf(r, `default "k%02d" `, &i); n == 1 && !strings.Contains(r, "x") {
			want := fmt.Sprintf(`default "k%02d" "%d"`, i, 40+i)
			if i == 5 || i == 7 {
				want = fmt.Sprintf(`default "k%02d" "last"`, i)
			}
			if r != want {
				t.Errorf("row %s, want %s", r, want)
			}
		}
	}
	if ks := db.spaces[0]; len(ks.All) != 4 {
		t.Errorf("%d runs, want 4", len(ks.All))
	}
}
