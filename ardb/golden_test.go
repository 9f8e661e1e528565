package ardb

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"testing"
	"time"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/lmdb"
	"kvferry/store/rocks"
)

// openers open the stores of Ardb's goldens.
var openers = map[string]store.Opener{kindRocksDB: rocks.Open, kindLevelDB: rocks.Open, kindLMDB: lmdb.Open}

func openGolden(t testing.TB, kind string) format.Source {
	t.Helper()
	return openDir(t, fixtures.Unpack(t, "ardb-"+kind+"-basic"), kind, nil)
}

func openDir(t testing.TB, dir, kind string, report func(record.Finding)) format.Source {
	t.Helper()
	src, err := New().Open(context.Background(), dir, &format.OpenOptions{Store: openers[kind],
		Options: store.Options{TempDir: t.TempDir(), Report: report}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return src
}

// line is a record in the form of the truth files; value is a comparable rendering.
type line struct {
	db, typ, key string
	expire       int64
	value        string
}

// truth reads a truth file. Scores are compared as numbers.
func truth(t testing.TB, name string) map[string]line {
	t.Helper()
	out := map[string]line{}
	for _, text := range bytes.Split(bytes.TrimSpace(fixtures.Truth(t, name)), []byte("\n")) {
		var l struct {
			DB, Type, Key string
			Expire        int64 `json:"expire_at_ms"`
			Value         any
		}
		if err := json.Unmarshal(text, &l); err != nil {
			t.Fatal(err)
		}
		key, err := base64.StdEncoding.DecodeString(l.Key)
		if err != nil {
			t.Fatal(err)
		}
		if l.Type == "zset" {
			for _, pair := range l.Value.([]any) {
				p := pair.([]any)
				f, err := strconv.ParseFloat(p[1].(string), 64)
				if err != nil {
					t.Fatal(err)
				}
				p[1] = scoreText(f)
			}
		}
		value, err := json.Marshal(l.Value)
		if err != nil {
			t.Fatal(err)
		}
		out[l.DB+" "+l.Type+" "+string(key)] = line{l.DB, l.Type, string(key), l.Expire, string(value)}
	}
	return out
}

func scoreText(f float64) string { return fmt.Sprintf("%x", math.Float64bits(f)) }

func b64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// render formats the elements of a record like the truth files.
func render(h *record.Header, elems []record.Element) string {
	if h.Type == record.Hash || h.Type == record.Set || h.Type == record.ZSet {
		slices.SortFunc(elems, func(a, b record.Element) int { return bytes.Compare(a.Name, b.Name) })
	}
	out := []any{}
	for _, e := range elems {
		switch h.Type {
		case record.String:
			b, _ := json.Marshal(b64(e.Value))
			return string(b)
		case record.Hash:
			out = append(out, []any{b64(e.Name), b64(e.Value)})
		case record.List:
			out = append(out, b64(e.Value))
		case record.Set:
			out = append(out, b64(e.Name))
		case record.ZSet:
			out = append(out, []any{b64(e.Name), scoreText(e.Score)})
		case record.Stream:
			pairs := []any{}
			for rest := e.Value; len(rest) > 0; {
				f, v, r, err := record.DecodePair(rest)
				if err != nil {
					return err.Error()
				}
				pairs, rest = append(pairs, []any{b64(f), b64(v)}), r
			}
			id := fmt.Sprintf("%d-%d", binary.BigEndian.Uint64(e.Name), binary.BigEndian.Uint64(e.Name[8:]))
			out = append(out, []any{id, pairs})
		}
	}
	b, _ := json.Marshal(out)
	return string(b)
}

// readRecords reads all records of a pass and checks their order, ByName and the lifetimes of views.
func readRecords(t testing.TB, src format.Source, db string, types record.TypeSet, span format.Span, env *format.Env,
	f func(*record.Header, []record.Element)) {
	t.Helper()
	r := formattest.RecordsOf(t, src, db, types, span, env)
	defer func() {
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}()
	var prev *record.Header
	for n := 0; ; n++ {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		hd := *h
		hd.Key = bytes.Clone(h.Key)
		if prev != nil && record.Compare(prev, &hd) >= 0 {
			t.Fatalf("%q after %q", hd.Key, prev.Key)
		}
		prev = &hd
		if h.Expired {
			r.Settle(record.Expired)
			continue
		}
		elems := readElements(t, r, 1+n%7*50)
		if h.ByName && !slices.IsSortedFunc(elems, func(a, b record.Element) int {
			return cmp.Or(bytes.Compare(a.Name, b.Name), -1)
		}) && h.Type != record.List && h.Type != record.String {
			t.Errorf("%s %q is not by name", h.Type, h.Key)
		}
		if !bytes.Equal(h.Key, hd.Key) {
			t.Fatalf("the key changed while the elements were read: %q, was %q", h.Key, hd.Key)
		}
		f(&hd, elems)
	}
}

func readElements(t testing.TB, r *record.Walker, size int) (out []record.Element) {
	t.Helper()
	buf := make([]record.Element, size)
	for {
		n, err := r.Read(buf)
		if err == io.EOF {
			return out
		}
		if err != nil || n == 0 {
			t.Fatal(n, err)
		}
		for _, e := range buf[:n] {
			out = append(out, record.Element{Name: bytes.Clone(e.Name), Value: bytes.Clone(e.Value), Score: e.Score})
		}
	}
}

// clock is after the expired keys of the goldens, for which Ardb used the real time, and before the keys that
// expire far ahead.
var clock = time.Unix(1800000000, 0)

func testEnv(report func(record.Finding)) *format.Env {
	return &format.Env{Now: clock, Ledger: new(record.Ledger), Report: report}
}

func TestGolden(t *testing.T) {
	for kind := range openers {
		t.Run(kind, func(t *testing.T) { testGolden(t, kind) })
	}
}

func testGolden(t *testing.T, kind string) {
	src, want := openGolden(t, kind), truth(t, "ardb-"+kind+"-basic")
	if kind == kindLevelDB {
		// The deletion of this hash's field MaxInt64 missed its row in LevelDB's memtable, so the server still showed the
		// field. kvferry reads it as deleted and reports circular-order, see store.Wrapping.
		id := "0 hash h:intf"
		if want[id].value != `[["MzAw","YWdhaW4="],["OTIyMzM3MjAzNjg1NDc3NTgwNw==","djkyMjMzNzIwMzY4NTQ3NzU4MDc="]]` {
			t.Fatalf("the truth of %s: %s", id, want[id].value)
		}
		want[id] = line{value: `[["MzAw","YWdhaW4="]]`}
	}
	var found []record.Finding
	env := testEnv(func(f record.Finding) { found = append(found, f) })
	if !slices.Contains(src.Databases(), "0") || !src.Sorted() || src.Layout() != format.LayoutFlat {
		t.Errorf("databases %q", src.Databases())
	}
	got := 0
	for _, db := range src.Databases() {
		readRecords(t, src, db, record.AllTypes, format.Span{}, env, func(h *record.Header, elems []record.Element) {
			if len(elems) == 0 {
				return
			}
			got++
			id := db + " " + h.Type.String() + " " + string(h.Key)
			w, ok := want[id]
			if !ok {
				t.Errorf("%s: not in the truth file", id)
				return
			}
			if v := render(h, elems); v != w.value || h.ExpireMS != w.expire {
				t.Errorf("%s: expires %d, value %.300s\nwant %d, %.300s", id, h.ExpireMS, v, w.expire, w.value)
			}
			delete(want, id)
		})
	}
	for id := range want {
		t.Errorf("%s is missing", id)
	}
	if err := env.Ledger.Check(); err != nil {
		t.Error(err)
	}
	if kind == kindLevelDB {
		i := slices.IndexFunc(found, func(f record.Finding) bool { return f.Kind == record.FindCircularOrder })
		if i < 0 || string(found[i].Key) != "h:intf" || found[i].DB != "0" || found[i].Type != record.Hash {
			t.Fatalf("findings %+v", found)
		}
		found = slices.Delete(found, i, i+1)
	}
	if len(found) != 0 || got != 691 {
		t.Errorf("%d records of 691, findings %+v", got, found)
	}
}

// TestGoldenByType reads each type separately, in spans: the records are the same, and every row is counted
// once.
func TestGoldenByType(t *testing.T) {
	for kind := range openers {
		src := openGolden(t, kind)
		whole, parts := testEnv(nil), testEnv(nil)
		var want, got record.Fingerprint
		for _, db := range src.Databases() {
			sum(t, src, db, record.AllTypes, format.Span{}, whole, &want)
			for _, typ := range record.AllTypes.Types() {
				spans, err := src.Split(db, record.Of(typ), 5)
				if err != nil {
					t.Fatal(err)
				}
				if db == "0" && kind != kindLMDB && len(spans) < 2 {
					t.Errorf("%s: %d spans", kind, len(spans))
				}
				for _, span := range spans {
					sum(t, src, db, record.Of(typ), span, parts, &got)
				}
			}
		}
		if diff := want.Diff(&got, false); len(diff) > 0 {
			t.Errorf("%s: fingerprints differ in %v", kind, diff)
		}
		a, b := whole.Ledger.Snapshot(), parts.Ledger.Snapshot()
		for name, tally := range a {
			if tally.Rows != b[name].Rows || tally.Visible != b[name].Visible {
				t.Errorf("%s %s: %+v in parts, %+v whole", kind, name, b[name], tally)
			}
		}
		if err := parts.Ledger.Check(); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func sum(t *testing.T, src format.Source, db string, types record.TypeSet, span format.Span, env *format.Env,
	f *record.Fingerprint) {
	t.Helper()
	var h record.Hasher
	readRecords(t, src, db, types, span, env, func(hd *record.Header, elems []record.Element) {
		h.Begin(hd)
		h.Elements(elems)
		f.Add(record.Part{DB: db, Type: hd.Type}, h.End(hd))
	})
}

// TestGoldenHLL repeats the PFADD sent to the server: the bytes are the same, except the count, which the
// server had computed before.
func TestGoldenHLL(t *testing.T) {
	var members [][]byte
	for i := range 100 {
		members = append(members, []byte(fmt.Sprintf("q%d", i)))
	}
	want, changed, err := pfAdd(nil, members)
	if err != nil || !changed {
		t.Fatal(changed, err)
	}
	seen := false
	readRecords(t, openGolden(t, kindRocksDB), "0", record.Of(record.String), format.Span{}, testEnv(nil),
		func(h *record.Header, e []record.Element) {
			if string(h.Key) == "hll:t" {
				seen = true
				if !bytes.Equal(want, e[0].Value) {
					t.Errorf("have %x\nwant %x", want, e[0].Value)
				}
			}
		})
	if !seen {
		t.Error("no hll:t")
	}
}
