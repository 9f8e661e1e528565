package kvrocks_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"kvferry/fixtures"
	"kvferry/format"
	selection "kvferry/internal/pass/filter"
	"kvferry/internal/pass/progress"
	"kvferry/internal/pass/sorted"
	"kvferry/internal/testkit/formattest"
	"kvferry/kvrocks"
	"kvferry/kvrocks/codec"
	"kvferry/record"
	"kvferry/store/rocks"
)

// goldens maps the databases to the number of their records of kinds that Redis has.
var goldens = map[string]int{"kvrocks-basic": 495, "kvrocks-oldenc": 365, "kvrocks-mixed": 429, "kvrocks-cluster": 346,
	"kvrocks-blob": 329, "kvrocks-snappy": 270, "kvrocks-zlib": 255, "kvrocks-lz4": 314, "kvrocks-zstd": 314,
	"kvrocks-walzstd": 278, "kvrocks-edge": 79, "kvrocks-modules": 34, "kvrocks-ingest": 57}

// goldenNow is after the goldens were written, and before their unexpired records expire.
var goldenNow = time.Unix(2_000_000_000, 0)

// golden unpacks a database written by the real server.
func golden(t *testing.T, name string) string {
	t.Helper()
	if slices.Contains(fixtures.Names(), name) {
		return fixtures.Unpack(t, name)
	}
	return fixtures.UnpackOutside(t, name)
}

// truth reads the server's replies.
func truth(t *testing.T, name string) []byte {
	t.Helper()
	if slices.Contains(fixtures.Names(), name) {
		return fixtures.Truth(t, name)
	}
	return fixtures.OutsideTruth(t, name)
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

// asRedis converts the lines of a truth file to lines of a dump, and returns the others by key. plain counts the lines
// that needed no conversion.
func asRedis(t testing.TB, truth []byte) (out []byte, others map[string]line, plain int) {
	t.Helper()
	others = map[string]line{}
	for _, l := range bytes.SplitAfter(truth, []byte("\n")) {
		if len(l) == 0 {
			break
		}
		h, _, err := formattest.SplitLine(l)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := record.ParseType(h.Type); err == nil && h.Type != "other" {
			out = append(out, l...)
			plain++
			continue
		}
		var x line
		if err := json.Unmarshal(l, &x); err != nil {
			t.Fatal(err)
		}
		switch {
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

// checkExtras compares records that Redis does not have with the server's replies, and returns the other dump lines.
func checkExtras(t testing.TB, got []byte, others map[string]line) (rest []byte) {
	t.Helper()
	seen := map[string]int{}
	for _, x := range others {
		seen[x.Type]--
	}
	for _, l := range bytes.SplitAfter(got, []byte("\n")) {
		if len(l) == 0 {
			break
		}
		h, _, err := formattest.SplitLine(l)
		if err != nil {
			t.Fatal(err)
		}
		at := h.DB + " " + h.Key
		if _, isHLL := others["hyperloglog "+at]; !isHLL && h.Type != "other" && h.Type != "stream" {
			rest = append(rest, l...)
			continue
		}
		var x dumped
		if err := json.Unmarshal(l, &x); err != nil {
			t.Fatal(err)
		}
		switch hll, isHLL := others["hyperloglog "+at]; {
		case x.Type == "string" && isHLL:
			seen["hyperloglog"]++
			s, err := base64.StdEncoding.DecodeString(x.Value.(string))
			if err != nil {
				t.Fatal(err)
			}
			if n := hll.Value.(map[string]any)["pfcount"].(float64); pfcount(s) != int64(n) || x.ExpireMS != hll.ExpireMS {
				t.Errorf("HyperLogLog %s: counts %d, expires %d, want %v", x.Key, pfcount(s), x.ExpireMS, hll)
			}
			continue
		case x.Type == "other":
			checkModule(t, &x, others, seen)
			continue
		case x.Type == "stream":
			checkGroups(t, &x, others["streamgroups "+at])
			seen["streamgroups"]++
		}
		rest = append(rest, l...)
	}
	for typ, n := range seen {
		if n != 0 && (typ != "streamgroups" || n < 0) {
			t.Errorf("%d records of %s too many", n, typ)
		}
	}
	return rest
}

// dumped is a line of a dump.
type dumped struct {
	line
	Native string
	Part1  *string
	Groups []struct {
		Name        string
		LastID      string `json:"last_id"`
		EntriesRead *int64 `json:"entries_read"`
		Consumers   []string
		Pending     [][]any
	}
}

// modules maps types of modules to their names in truth files.
var modules = map[string]string{"kvrocks:ReJSON-RL": "json", "kvrocks:ReJSON-RL+cbor": "json", "kvrocks:MBbloom--": "bloom",
	"kvrocks:TDIS-TYPE": "tdigest", "kvrocks:timeseries": "timeseries", "kvrocks:bitmap": "bitmap"}

// checkModule compares a value that only the server understands with the server's replies about it.
func checkModule(t testing.TB, x *dumped, others map[string]line, seen map[string]int) {
	t.Helper()
	native, err := base64.StdEncoding.DecodeString(x.Native)
	if err != nil {
		t.Fatal(err)
	}
	typ := modules[string(native)]
	want, ok := others[typ+" "+x.DB+" "+x.Key]
	if !ok || want.ExpireMS != x.ExpireMS {
		t.Errorf("%s %s: not there, or expires otherwise (%v)", native, x.Key, want.ExpireMS)
	}
	seen[typ]++
	if string(native) == "kvrocks:ReJSON-RL" {
		if v := want.Value.(map[string]any); v["json"] != x.Value || v["format"] != "json" {
			t.Errorf("%s is %v, want %v", x.Key, x.Value, v)
		}
	}
}

// checkGroups compares the consumer groups of a stream.
func checkGroups(t testing.TB, x *dumped, want line) {
	t.Helper()
	var list []any
	if v, ok := want.Value.(map[string]any); ok {
		list = v["groups"].([]any)
	}
	if len(list) != len(x.Groups) {
		t.Errorf("stream %s has %d groups, want %d", x.Key, len(x.Groups), len(list))
		return
	}
	for i, g := range x.Groups {
		w := list[i].(map[string]any)
		read := any(nil)
		if g.EntriesRead != nil {
			read = float64(*g.EntriesRead)
		}
		var consumers, pending []any
		for _, c := range w["consumers"].([]any) {
			consumers = append(consumers, c.([]any)[0])
		}
		for _, p := range g.Pending {
			pending = append(pending, []any{p[0], p[1], p[3]})
		}
		if g.Name != w["name"] || g.LastID != w["last_delivered_id"] || read != w["entries_read"] ||
			fmt.Sprint(g.Consumers) != fmt.Sprint(consumers) || fmt.Sprint(pending) != fmt.Sprint(w["pending"].([]any)) {
			t.Errorf("stream %s: group %+v, want %v", x.Key, g, w)
		}
	}
}

// pfcount counts like Redis, with Ertl's estimator.
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

// TestExpiringFields reads a hash of each form of the published layout: the expiry of a field precedes its value.
func TestExpiringFields(t *testing.T) {
	hexed := func(s string) []byte {
		b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	src := only(t, func(r rows) {
		//	                                flags expiry           version          size             mode persist        lower            upper
		r.Put("metadata", metaKey("k"), hexed("82 0000000000000000 0000000000000007 0000000000000003 01 0000000000000001 000000e3c7a73400 000003bb2cc3d800"))
		r.Put("metadata", metaKey("l"), hexed("82 0000000000000000 0000000000000007 0000000000000001"))
		r.sub("default", "a", string(hexed("0000000000000000"))+"va")
		r.sub("default", "b", string(hexed("000003bb2cc3d800"))+"vb")
		r.sub("default", "c", string(hexed("000000e3c7a73400"))+"vc")
		r.Put("default", codec.AppendSubKey(nil, codec.SubKey{Namespace: nsName, Slot: codec.NoSlot, Key: []byte("l"), Version: 7,
			Sub: []byte("a")}), hexed("000003bb2cc3d800"))
	})
	var f formattest.Findings
	got := string(formattest.Lines(t, formattest.Records(t, src, kvrocks.DefaultNamespace,
		&format.Env{Now: goldenNow, Report: f.Report, Deep: true, TempDir: t.TempDir()})))
	for _, want := range []string{`"key":"aw==","expire_at_ms":0,"value":[["YQ==","dmE="],["Yg==","dmI=",4102444800000],["Yw==","dmM=",978307200000]]`,
		`"key":"bA==","expire_at_ms":0,"value":[["YQ==","AAADuyzD2AA="]]`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	f.CheckNone(t, record.Note)
	for keep, want := range map[bool]int64{false: 1, true: 0} {
		var l record.Ledger
		r := formattest.Records(t, src, kvrocks.DefaultNamespace, &format.Env{Now: goldenNow, Ledger: &l, TempDir: t.TempDir()})
		s := selection.Selection{KeepExpired: keep}
		formattest.Lines(t, s.Apply(t.Context(), new(progress.Meter).Reader(record.Merge(r.Reader), 1, nil),
			selection.ApplyOptions{Now: goldenNow}))
		if n := l.Snapshot()["default"].Rows; n[record.Expired] != want || n[record.Copied] != 4-want {
			t.Errorf("kept %v: %d rows have expired, %d are copied", keep, n[record.Expired], n[record.Copied])
		}
	}
}

// TestGoldens reads the server's databases and reports no findings.
func TestGoldens(t *testing.T) {
	for name, count := range goldens {
		if testing.Short() && !slices.Contains([]string{"kvrocks-modules", "kvrocks-ingest", "kvrocks-cluster"}, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			src := formattest.Open(t, kvrocks.New(), golden(t, name), &format.OpenOptions{Store: rocks.Open})
			var l record.Ledger
			var f formattest.Findings
			var got []byte
			for _, db := range src.Databases() {
				r := formattest.Records(t, src, db, &format.Env{Now: goldenNow, Ledger: &l, Report: f.Report, Deep: true,
					TempDir: t.TempDir()})
				if !src.Sorted() {
					r = record.Walk(sorted.Records(r.Reader, sorted.Options{TempDir: t.TempDir()}))
				}
				got = append(got, formattest.Lines(t, r)...)
			}
			want, others, n := asRedis(t, truth(t, name))
			if n != count {
				t.Errorf("%d records of Redis' types, want %d", n, count)
			}
			got = checkExtras(t, got, others)
			formattest.CompareLines(t, got, want)
			formattest.CheckLedger(t, &l)
			f.CheckNone(t, record.Warning)
			for _, k := range []string{"metadata", "default", "zset_score", "stream"} {
				t.Logf("%s: %s", k, formattest.Classes(&l, k))
			}
		})
	}
}
