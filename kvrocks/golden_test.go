package kvrocks_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"kvferry/format"
	"kvferry/internal/formattest"
	"kvferry/internal/sorted"
	"kvferry/kvrocks"
	"kvferry/record"
	"kvferry/store/rocksfile"
)

// goldenDir holds databases that the real server wrote.
const goldenDir = "../../shared/golden"

// goldens are the databases, with how many of their records are of kinds that Redis has.
var goldens = map[string]int{"kvrocks-basic": 495, "kvrocks-oldenc": 365, "kvrocks-mixed": 429, "kvrocks-cluster": 346,
	"kvrocks-blob": 329, "kvrocks-snappy": 270, "kvrocks-zlib": 255, "kvrocks-lz4": 314, "kvrocks-zstd": 314,
	"kvrocks-walzstd": 278, "kvrocks-edge": 79, "kvrocks-modules": 34, "kvrocks-ingest": 57}

// goldenNow is after the goldens were written, and before what has not expired in them expires.
var goldenNow = time.Unix(2_000_000_000, 0)

// golden unpacks a database.
func golden(t testing.TB, name string) string {
	t.Helper()
	file := filepath.Join(goldenDir, name+".tar.gz")
	if _, err := os.Stat(file); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	if out, err := exec.Command("tar", "xzf", file, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(dir, name)
}

// truth reads what the server answered.
func truth(t testing.TB, name string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join(goldenDir, name+".truth.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// line is a line of a truth file or of a dump.
type line struct {
	DB       string `json:"db"`
	Type     string `json:"type"`
	Key      string `json:"key"`
	ExpireMS int64  `json:"expire_at_ms"`
	Size     int    `json:"size,omitempty"`
	Value    any    `json:"value"`
}

func lines(t testing.TB, b []byte) (out []line) {
	t.Helper()
	for _, l := range bytes.Split(bytes.TrimSpace(b), []byte("\n")) {
		var x line
		if err := json.Unmarshal(l, &x); err != nil {
			t.Fatal(err)
		}
		out = append(out, x)
	}
	return out
}

// asRedis turns the lines of a truth file into those of a dump, and returns the others by their keys. plain counts the
// lines that were so before.
func asRedis(t testing.TB, truth []byte) (out []byte, others map[string]line, plain int) {
	t.Helper()
	others = map[string]line{}
	for _, x := range lines(t, truth) {
		_, err := record.ParseType(x.Type)
		switch {
		case err == nil:
			plain++
		case x.Type == "sortedint":
			x.Type = "set"
			for i, id := range x.Value.([]any) {
				x.Value.([]any)[i] = base64.StdEncoding.EncodeToString([]byte(id.(string)))
			}
		case x.Type == "bitmap" && x.Size <= kvrocks.DefaultMaxBitmap:
			x.Type, x.Value = "string", base64.StdEncoding.EncodeToString(bitmapOf(t, &x))
			x.Size = 0
		default:
			others[x.Type+" "+x.DB+" "+x.Key] = x
			continue
		}
		b, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		out = append(append(out, b...), '\n')
	}
	return out, others, plain
}

// bitmapOf joins the blocks of a bitmap.
func bitmapOf(t testing.TB, x *line) []byte {
	out := make([]byte, x.Size)
	for _, block := range x.Value.([]any) {
		b, err := base64.StdEncoding.DecodeString(block.([]any)[1].(string))
		if err != nil {
			t.Fatal(err)
		}
		copy(out[int(block.([]any)[0].(float64)):], b)
	}
	return out
}

// checkHLLs compares the HyperLogLogs among the lines of a dump with what the server counts, and returns the others.
func checkHLLs(t testing.TB, got []byte, others map[string]line) (rest []byte) {
	t.Helper()
	want := 0
	for _, x := range others {
		if x.Type == "hyperloglog" {
			want++
		}
	}
	for _, l := range bytes.SplitAfter(got, []byte("\n")) {
		var x line
		if len(l) == 0 {
			break
		}
		if err := json.Unmarshal(l, &x); err != nil {
			t.Fatal(err)
		}
		hll, ok := others["hyperloglog "+x.DB+" "+x.Key]
		if !ok || x.Type != "string" {
			rest = append(rest, l...)
			continue
		}
		want--
		s, err := base64.StdEncoding.DecodeString(x.Value.(string))
		if err != nil {
			t.Fatal(err)
		}
		if n := hll.Value.(map[string]any)["pfcount"].(float64); pfcount(s) != int64(n) || x.ExpireMS != hll.ExpireMS {
			t.Errorf("HyperLogLog %s: counts %d, expires %d, want %v", x.Key, pfcount(s), x.ExpireMS, hll)
		}
	}
	if want != 0 {
		t.Errorf("%d HyperLogLogs are not there", want)
	}
	return rest
}

// pfcount counts as Redis does it, by the estimator of Ertl.
func pfcount(s []byte) int64 {
	const m, q = 1 << 14, 50
	regs := s[16:]
	var histogram [64]float64
	for i := range m {
		at, shift := i*6/8, uint(i*6%8)
		v := uint16(regs[at])
		if at+1 < len(regs) {
			v |= uint16(regs[at+1]) << 8
		}
		histogram[v>>shift&63]++
	}
	tau := func(x float64) float64 {
		if x == 0 || x == 1 {
			return 0
		}
		y, z := 1.0, 1-x
		for last := -1.0; z != last; {
			x, last = math.Sqrt(x), z
			y *= 0.5
			z -= (1 - x) * (1 - x) * y
		}
		return z / 3
	}
	sigma := func(x float64) float64 {
		if x == 1 {
			return math.Inf(1)
		}
		y, z := 1.0, x
		for last := -1.0; z != last; {
			x, last = x*x, z
			z += x * y
			y += y
		}
		return z
	}
	z := m * tau((m-histogram[q+1])/m)
	for j := q; j >= 1; j-- {
		z = (z + histogram[j]) * 0.5
	}
	z += m * sigma(histogram[0]/m)
	return int64(math.Round(0.721347520444481703680 * m * m / z))
}

// TestGoldens reads what the server wrote, and finds nothing wrong with it.
func TestGoldens(t *testing.T) {
	for name, count := range goldens {
		if testing.Short() && !slices.Contains([]string{"kvrocks-modules", "kvrocks-ingest", "kvrocks-cluster"}, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if name == "kvrocks-blob" || name == "kvrocks-walzstd" {
				t.Skip("the store does not read this yet")
			}
			src := formattest.Open(t, kvrocks.New(), golden(t, name), &format.OpenOptions{Store: rocksfile.Open})
			var l record.Ledger
			var f formattest.Findings
			var got []byte
			for _, db := range src.Databases() {
				r := formattest.Records(t, src, db, &format.Env{Now: goldenNow, Ledger: &l, Report: f.Report, Deep: true, TempDir: t.TempDir()})
				if !src.Sorted() {
					r = sorted.Records(r, sorted.Options{TempDir: t.TempDir()})
				}
				got = append(got, formattest.Lines(t, r)...)
			}
			want, others, n := asRedis(t, truth(t, name))
			if n != count {
				t.Errorf("%d records of Redis' types, want %d", n, count)
			}
			got = checkHLLs(t, got, others)
			formattest.CompareLines(t, got, want)
			formattest.CheckLedger(t, &l)
			f.All = slices.DeleteFunc(f.All, func(x record.Finding) bool { return x.Kind == "stream-groups" })
			f.CheckNone(t, record.Warning)
			for _, k := range []string{"metadata", "default", "zset_score", "stream"} {
				t.Logf("%s: %s", k, formattest.Classes(&l, k))
			}
		})
	}
}
