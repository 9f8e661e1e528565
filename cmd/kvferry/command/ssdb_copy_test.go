package command

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/syndtr/goleveldb/leveldb"

	"kvferry/cmd/kvferry/cli"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/ssdb"
	"kvferry/store"
	"kvferry/store/rocks"
)

// ssdbRows returns the rows of an SSDB dataset whose first byte is one of kinds.
func ssdbRows(t *testing.T, dir, kinds string) map[string]string {
	t.Helper()
	src, err := ssdb.New().Open(context.Background(), dir,
		&format.OpenOptions{Store: rocks.Open, Kind: "leveldb", Options: store.Options{}})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	it, err := src.Keyspaces()[0].Rows(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	out := map[string]string{}
	for {
		key, value, err := it.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if strings.IndexByte(kinds, key[0]) >= 0 {
			out[string(key)] = string(value)
		}
	}
}

// TestSSDBToSSDB: a copy of the own format loses nothing: 64-bit scores, the empty key, long keys and fields.
func TestSSDBToSSDB(t *testing.T) {
	t.Parallel()
	hand := filepath.Join(t.TempDir(), "hand")
	db, err := leveldb.OpenFile(filepath.Join(hand, "data"), nil)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 300)
	rows := [][2][]byte{{[]byte("k"), []byte("v")}, {[]byte("k" + long), []byte("v")}, {[]byte("Hh"), ssdb.AppendSize(nil, 2)},
		{ssdb.AppendFieldKey(nil, []byte("h"), nil), []byte("v")}, {ssdb.AppendFieldKey(nil, []byte("h"), []byte(long)), []byte("v")}}
	// Scores that are equal as float64s, in another order than their members.
	scores := map[string]int64{"a": 1<<53 + 1, "b": 1 << 53, "c": 1<<63 - 1, "d": 1<<63 - 2, "e": -1 << 63, "f": -1<<63 + 1,
		"g": 7}
	rows = append(rows, [2][]byte{[]byte("Zz"), ssdb.AppendSize(nil, int64(len(scores)))})
	for m, n := range scores {
		rows = append(rows, [2][]byte{ssdb.AppendScoreKey(nil, []byte("z"), []byte(m)), ssdb.AppendScore(nil, n)},
			[2][]byte{ssdb.AppendRankKey(nil, []byte("z"), n, []byte(m)), nil})
	}
	for _, row := range rows {
		if err := db.Put(row[0], row[1], nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"hand": hand, "ssdb-basic": fixtures.Unpack(t, "ssdb-basic")} {
		to := filepath.Join(t.TempDir(), name)
		r := kvferry(t, "convert", "--expired", "keep", "ssdb:"+dir, "ssdb:"+to)
		if r.code != cli.ExitOK || !strings.Contains(r.stdout, "proved: ") {
			t.Fatalf("%s: exit %d\n%s%s", name, r.code, r.stdout, r.stderr)
		}
		want, got := ssdbRows(t, dir, "HZhksz"), ssdbRows(t, to, "HZhksz")
		for key, value := range want {
			if copied, ok := got[key]; !ok || copied != value {
				t.Fatalf("%s: row %q: %q, want %q", name, key, copied, value)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s: %d rows, want %d", name, len(got), len(want))
		}
		ok(t, "verify", "ssdb:"+to)
		if got := ok(t, "diff", "ssdb:"+dir, "ssdb:"+to); !strings.Contains(got, "equal as converted") {
			t.Errorf("%s: diff %s", name, got)
		}
	}
	// A score that differs in the last bit alone is a difference between two datasets of SSDB.
	other := filepath.Join(t.TempDir(), "other")
	if db, err = leveldb.OpenFile(filepath.Join(other, "data"), nil); err != nil {
		t.Fatal(err)
	}
	scores["c"]--
	for m, n := range scores {
		for _, row := range [][2][]byte{{ssdb.AppendScoreKey(nil, []byte("z"), []byte(m)), ssdb.AppendScore(nil, n)},
			{ssdb.AppendRankKey(nil, []byte("z"), n, []byte(m)), nil}} {
			if err := db.Put(row[0], row[1], nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	want := `member "c" score 9223372036854775807 in A, score 9223372036854775806 in B`
	if r := kvferry(t, "diff", "--type", "zset", "ssdb:"+hand, "ssdb:"+other); r.code != cli.ExitFindings ||
		!strings.Contains(r.stdout, want) || strings.Count(r.stdout, "member") != 1 {
		t.Errorf("diff: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}
