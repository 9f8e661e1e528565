package redis

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"kvferry/format"
	"kvferry/internal/pass/filter"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/store"
)

// goldenDirs hold files written by servers: the project's own, and more outside of it.
var goldenDirs = []string{"../fixtures/golden", "../../shared/golden"}

// goldens lists files written by servers, by name.
func goldens(t testing.TB) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, dir := range goldenDirs {
		paths, _ := filepath.Glob(filepath.Join(dir, "rdb-*.rdb.gz"))
		for _, p := range paths {
			out[strings.TrimSuffix(filepath.Base(p), ".rdb.gz")] = p
		}
	}
	if len(out) == 0 {
		t.Fatal("there are no files of servers")
	}
	return out
}

// truthTime is after the truth files were made: only keys with a short expiry have expired by then.
var truthTime = time.UnixMilli(1795313000000)

func openPath(t testing.TB, path string) format.Source {
	t.Helper()
	src, err := New().Open(context.Background(), path, &format.OpenOptions{Options: store.Options{TempDir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return src
}

// lines dumps a source, database by database, like `kvferry dump --encode base64`.
func lines(t testing.TB, src format.Source, now time.Time, sections bool, report func(record.Finding)) []byte {
	t.Helper()
	var out []byte
	for _, db := range src.Databases() {
		spans := []format.Span{{}}
		if sections {
			var err error
			if spans, err = format.SplitAny(src, db, record.AllTypes, 7); err != nil {
				t.Fatal(err)
			}
		}
		for _, span := range spans {
			var ledger record.Ledger
			r, err := src.Records(context.Background(), db, record.AllTypes, span,
				&format.Env{Now: now, Memory: 1 << 20, TempDir: t.TempDir(), Ledger: &ledger, Report: report})
			if err != nil {
				t.Fatal(err)
			}
			sel := filter.Selection{}
			out = append(out, formattest.Lines(
				t, sel.Apply(context.Background(), record.Booked(r, &ledger), filter.ApplyOptions{Now: now}))...)
			formattest.CheckLedger(t, &ledger)
		}
	}
	return out
}

func gunzip(t testing.TB, path string) []byte {
	t.Helper()
	f, err := os.Open(path)
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

// dumped is a line of a dump, or of a server's metadata.
type dumped struct {
	DB, Type, Key string
	ExpireMS      int64  `json:"expire_at_ms"`
	Native        string `json:"native,omitempty"`
	Value         json.RawMessage
	Groups        []dumpedGroup
	Expiries      [][]any `json:"field_expire_at_ms"`
	Stream        *dumpedStream
	Array         json.RawMessage
}

type dumpedGroup struct {
	Name    string
	Last    string `json:"last_id"`
	Read    *int64 `json:"entries_read"`
	Pending [][]any
	// Consumers are names in dumps, and objects in truth files.
	Consumers []any
	PEL       [][]any
}

type dumpedStream struct {
	Last   string `json:"last_id"`
	Groups []dumpedGroup
}

func parseLines(t testing.TB, b []byte) []dumped {
	t.Helper()
	var out []dumped
	s := bufio.NewScanner(bytes.NewReader(b))
	s.Buffer(nil, 1<<28)
	for s.Scan() {
		var d dumped
		if err := json.Unmarshal(s.Bytes(), &d); err != nil {
			t.Fatalf("%.200s: %v", s.Bytes(), err)
		}
		out = append(out, d)
	}
	return out
}

// split removes data from a dump that truth files lack.
func split(t testing.TB, b []byte) (plain []byte, extra map[string]dumped) {
	t.Helper()
	extra = map[string]dumped{}
	for _, d := range parseLines(t, b) {
		if d.Type == "other" {
			extra[d.DB+"/"+d.Key] = d
			continue
		}
		value := d.Value
		if d.Type == "hash" {
			var fields [][]any
			if err := json.Unmarshal(value, &fields); err != nil {
				t.Fatal(err)
			}
			for i, f := range fields {
				if len(f) == 3 {
					d.Expiries = append(d.Expiries, []any{f[0], f[2]})
					fields[i] = f[:2]
				}
			}
			value, _ = json.Marshal(fields)
		}
		value = inOrder(t, d.Type, value)
		extra[d.DB+"/"+d.Key] = d
		key, _ := json.Marshal(d.Key)
		plain = fmt.Appendf(plain, `{"db":%q,"type":%q,"key":%s,"expire_at_ms":%d,"value":%s}`+"\n", d.DB, d.Type, key,
			d.ExpireMS, value)
	}
	return plain, extra
}

// inOrder sorts elements without a defined order.
func inOrder(t testing.TB, typ string, value json.RawMessage) json.RawMessage {
	t.Helper()
	if typ != "hash" && typ != "set" && typ != "zset" {
		return value
	}
	var elems []json.RawMessage
	if err := json.Unmarshal(value, &elems); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(elems, func(a, b json.RawMessage) int { return bytes.Compare(a, b) })
	out, _ := json.Marshal(elems)
	return out
}

func sortedPairs(p [][]any) [][]any {
	slices.SortFunc(p, func(a, b []any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return p
}

// groupText renders groups in one form for both sides.
func groupText(groups []dumpedGroup, times bool) string {
	var b strings.Builder
	for _, g := range groups {
		read := "unknown"
		if g.Read != nil {
			read = fmt.Sprint(*g.Read)
		}
		pending := append(g.Pending, g.PEL...)
		var consumers []string
		for i, p := range pending {
			if p[1] == nil {
				pending[i] = []any{p[0], "", p[2], p[3]} // without a consumer
			}
			if p[2] == nil || !times {
				pending[i][2] = "some time" // 5.0 does not report it
			}
		}
		for _, c := range g.Consumers {
			if m, ok := c.(map[string]any); ok {
				c = m["name"]
			}
			consumers = append(consumers, fmt.Sprint(c))
		}
		fmt.Fprintf(&b, "%s at %s read %s consumers %q pending %v\n", g.Name, g.Last, read, consumers, pending)
	}
	return b.String()
}

// noRead removes entries read if the RDB version lacks them.
func noRead(groups []dumpedGroup) []dumpedGroup {
	out := slices.Clone(groups)
	for i := range out {
		out[i].Read = nil
	}
	return out
}

// checkUnread fails the test on findings, except for the stream with idempotent producers, which records cannot hold.
func checkUnread(t *testing.T, name string, findings *formattest.Findings) {
	t.Helper()
	if name == "rdb-r88dev-basic" {
		i := slices.IndexFunc(findings.All, func(f record.Finding) bool { return f.Kind == FindUnreadMeta && string(f.Key) == "stream:idmp" })
		if i < 0 {
			t.Fatal("the producers of stream:idmp are not reported")
		}
		findings.All = slices.Delete(findings.All, i, i+1)
	}
	findings.CheckNone(t, record.Note)
}

// Every file holds the data that its server reported: values, expiries of keys and fields, groups, functions.
func TestGoldens(t *testing.T) {
	for name, path := range goldens(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			truth := gunzip(t, strings.TrimSuffix(path, ".rdb.gz")+".truth.jsonl.gz")
			said := parseLines(t, gunzip(t, strings.TrimSuffix(path, ".rdb.gz")+".extra.jsonl.gz"))
			var findings formattest.Findings
			src := openPath(t, path)
			got, extra := split(t, lines(t, src, truthTime, false, findings.Report))
			checkUnread(t, name, &findings)
			want, _ := split(t, truth)
			formattest.CompareLines(t, byDatabase(got), want)
			formattest.CheckEqual(t, sumOfAll(t, src, true), sumOfAll(t, src, false), false)
			entriesRead := src.(*source).header().Version >= 10
			checkSaid(t, extra, said[1:], entriesRead)
			checkFunctions(t, extra, gunzip(t, strings.TrimSuffix(path, ".rdb.gz")+".extra.jsonl.gz"))
		})
	}
}

// sumOfAll takes the fingerprint of a source, in key order or in file order.
func sumOfAll(t testing.TB, src format.Source, sections bool) *record.Fingerprint {
	t.Helper()
	var out record.Fingerprint
	for _, db := range src.Databases() {
		spans, err := src.Split(db, record.AllTypes, 3)
		if sections {
			spans, err = format.SplitAny(src, db, record.AllTypes, 7)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range spans {
			r, err := src.Records(context.Background(), db, record.AllTypes, span,
				&format.Env{Now: truthTime, TempDir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			out.Merge(formattest.Sum(t, r))
		}
	}
	return &out
}

// byDatabase sorts the lines of each database by name, as truth files are compared.
func byDatabase(b []byte) []byte {
	dbs := map[string][]byte{}
	for _, line := range bytes.SplitAfter(b, []byte("\n")) {
		db, _, _ := bytes.Cut(line, []byte(`,"type"`))
		dbs[string(db)] = append(dbs[string(db)], line...)
	}
	var out []byte
	for _, db := range slices.Sorted(maps.Keys(dbs)) {
		out = append(out, dbs[db]...)
	}
	return out
}

// checkSaid compares metadata with the server's answers.
func checkSaid(t *testing.T, extra map[string]dumped, said []dumped, entriesRead bool) {
	t.Helper()
	for _, s := range said {
		got, ok := extra[s.DB+"/"+s.Key]
		if !ok {
			t.Errorf("%s key %s: not there", s.Type, s.Key)
			continue
		}
		if !reflect.DeepEqual(sortedPairs(got.Expiries), sortedPairs(s.Expiries)) && len(got.Expiries)+len(s.Expiries) > 0 {
			t.Errorf("%s key %s: expiries of fields %v, want %v", s.Type, s.Key, got.Expiries, s.Expiries)
		}
		if s.Stream == nil {
			continue
		}
		a, b := got.Groups, s.Stream.Groups
		if !entriesRead {
			a, b = noRead(a), noRead(b)
		}
		times := true
		for _, g := range b {
			times = times && (len(g.PEL) == 0 || g.PEL[0][2] != nil)
		}
		if x, y := groupText(a, times), groupText(b, times); x != y {
			t.Errorf("key %s: groups\n%s, want\n%s", s.Key, x, y)
		}
	}
}

// checkFunctions compares libraries with the server's list.
func checkFunctions(t *testing.T, extra map[string]dumped, said []byte) {
	t.Helper()
	var head struct{ Functions []string }
	line, _, _ := bytes.Cut(said, []byte("\n"))
	if err := json.Unmarshal(line, &head); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range extra {
		if native, _ := base64.StdEncoding.DecodeString(d.Native); string(native) == "function" {
			var coded string
			json.Unmarshal(d.Value, &coded)
			text, _ := base64.StdEncoding.DecodeString(coded)
			got = append(got, string(text))
		}
	}
	slices.Sort(got)
	slices.Sort(head.Functions)
	if !slices.Equal(got, head.Functions) {
		t.Errorf("functions %q, want %q", got, head.Functions)
	}
}
