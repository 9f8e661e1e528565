package ssdb_test

import (
	"bytes"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/ssdb"
	"kvferry/store"
	"kvferry/store/rocks"
)

// goldenNow is after the goldens were written, and before their unexpired records expire.
var goldenNow = time.Unix(1_800_000_000, 0)

// golden unpacks a database written by the real server, with its replies.
func golden(t *testing.T, name string) (dir string, truth []byte) {
	t.Helper()
	if slices.Contains(fixtures.Names(), name) {
		return fixtures.Unpack(t, name), fixtures.Truth(t, name)
	}
	return fixtures.UnpackOutside(t, name), fixtures.OutsideTruth(t, name)
}

func openDir(t testing.TB, dir string) format.Source {
	return formattest.Open(t, ssdb.New(), dir, &format.OpenOptions{Store: rocks.Open, Kind: "leveldb", Options: store.Options{}})
}

// TestGoldens reads the server's databases, in one span and in many. The only findings are scores that a float64 cannot
// represent.
func TestGoldens(t *testing.T) {
	for name, rows := range map[string]string{
		"ssdb-basic":  "housekeeping=43552 expired=27 index=14377 copied=41880",
		"ssdb-slave":  "",
		"ssdb-dumped": "",
	} {
		t.Run(name, func(t *testing.T) {
			dir, truth := golden(t, name)
			for _, below := range []string{"", "var", "data"} {
				if name == "ssdb-dumped" && below == "var" {
					continue
				}
				at := filepath.Join(dir, below)
				if below == "data" && name != "ssdb-dumped" {
					at = filepath.Join(dir, "var", below)
				}
				var l record.Ledger
				var f formattest.Findings
				src := openDir(t, at)
				got := formattest.Lines(t, formattest.Records(t, src, "0",
					&format.Env{Now: goldenNow, Ledger: &l, Report: f.Report}))
				formattest.CompareLines(t, live(t, got), live(t, truth))
				formattest.CheckLedger(t, &l)
				kinds := slices.Compact(slices.Sorted(slices.Values(f.Kinds())))
				if !slices.Equal(kinds, []string{record.LossScorePrecision}) {
					t.Errorf("findings %q", kinds)
				}
				if got := formattest.Classes(&l, "data"); rows != "" && got != rows {
					t.Errorf("rows %s, want %s", got, rows)
				}
				src.Close()
			}
		})
	}
}

// live returns the lines of a dump whose records had not expired when the golden was made: truth files leave them out. Members
// are sorted: the server answers them by score, rows are by length.
func live(t *testing.T, dump []byte) []byte {
	var out []byte
	pairs := regexp.MustCompile(`\["[^"]*","[^"]*"\]`)
	for _, l := range strings.SplitAfter(string(dump), "\n") {
		if l == "" {
			continue
		}
		h, _, err := formattest.SplitLine([]byte(l))
		if err != nil {
			t.Fatal(err)
		}
		if h.Type == "zset" {
			all := pairs.FindAllString(l, -1)
			slices.Sort(all)
			l = l[:strings.Index(l, "[[")] + "[" + strings.Join(all, ",") + "]}\n"
		}
		if h.ExpireMS == 0 || h.ExpireMS > goldenNow.UnixMilli() {
			out = append(out, l...)
		}
	}
	return out
}

// TestOdd reads old and damaged rows like the server, by name, and reports the faults.
func TestOdd(t *testing.T) {
	dir, truth := golden(t, "ssdb-odd")
	var l record.Ledger
	var f formattest.Findings
	src := openDir(t, dir)
	got := formattest.Lines(t, formattest.Records(t, src, "0", &format.Env{Now: goldenNow, Ledger: &l, Report: f.Report}))
	formattest.CompareLines(t, live(t, got), live(t, truth))
	formattest.CheckLedger(t, &l)
	counts := map[string]int{}
	for _, k := range f.Kinds() {
		counts[k]++
	}
	want := map[string]int{"count-mismatch": 11, "list-bounds": 1, "list-outside-bounds": 1, "short-value": 1,
		"stale-ttl-rows": 1}
	for k, n := range want {
		if counts[k] != n {
			t.Errorf("%d findings %s, want %d", counts[k], k, n)
		}
		delete(counts, k)
	}
	if len(counts) > 0 {
		t.Errorf("more findings: %v", counts)
	}
}

// TestWithoutSizes: the server serves collections without their sizes, whatever their names, and so does kvferry.
func TestWithoutSizes(t *testing.T) {
	dir, _ := golden(t, "ssdb-basic")
	src := openDir(t, dir)
	defer src.Close()
	d := newDataset(t)
	it, err := src.Keyspaces()[0].Rows([]byte{2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for {
		key, value, err := it.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !strings.ContainsRune("HQZ", rune(key[0])) {
			d.put(bytes.Clone(key), bytes.Clone(value))
		}
	}
	lines := func(src format.Source) []byte {
		return formattest.Lines(t, formattest.Records(t, src, "0", &format.Env{Now: goldenNow}))
	}
	got, want := lines(d.Open(t)), lines(src)
	formattest.CompareLines(t, got, want)
	if !bytes.Contains(got, []byte(`"type":"list","key":""`)) {
		t.Error("no queue has the empty name")
	}
}
