package blackwidow_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"kvferry/blackwidow"
	"kvferry/format"
	"kvferry/internal/jsonl"
	"kvferry/internal/memstore"
	"kvferry/record"
)

// now is shortly after the clock of the golden databases.
var now = time.Unix(1_700_000_100, 0)

// findings collects what passes report.
type findings struct {
	mu  sync.Mutex
	all []record.Finding
}

func (f *findings) report(x record.Finding) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, x)
}

// kinds returns the kinds found, sorted, each as often as it was found.
func (f *findings) kinds() []string {
	out := []string{}
	for _, x := range f.all {
		out = append(out, x.Kind)
	}
	slices.Sort(out)
	return out
}

// lines renders all records that are not expired as `kvferry dump --encode base64` does.
func lines(t testing.TB, r record.Reader) []byte {
	t.Helper()
	var out []byte
	enc := jsonl.Encoder{Base64: true}
	elems := make([]record.Element, 7)
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Expired {
			r.Settle(record.Expired)
			continue
		}
		start, count := len(out), 0
		out = enc.AppendBegin(out, h)
		for {
			n, err := r.Read(elems)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range elems[:n] {
				if out, err = enc.AppendElement(out, &elems[i]); err != nil {
					t.Fatal(err)
				}
			}
			count += n
		}
		if count == 0 {
			out = out[:start]
			continue
		}
		out = enc.AppendEnd(out)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

// line is one record of a dump, with scores as numbers.
type line struct {
	DB, Type, Key string
	ExpireMS      int64 `json:"expire_at_ms"`
	Value         any
}

func parseLines(t testing.TB, data []byte) []line {
	t.Helper()
	var out []line
	for _, l := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		if len(l) == 0 {
			continue
		}
		var x line
		if err := json.Unmarshal(l, &x); err != nil {
			t.Fatalf("line %.200s: %v", l, err)
		}
		if x.Type == "zset" {
			for _, pair := range x.Value.([]any) {
				p := pair.([]any)
				score, err := strconv.ParseFloat(p[1].(string), 64)
				if err != nil {
					t.Fatal(err)
				}
				p[1] = math.Float64bits(score)
			}
		}
		out = append(out, x)
	}
	return out
}

// compareLines compares two dumps record by record. Truth files go by type first, dumps by key.
func compareLines(t testing.TB, got, want []byte) {
	t.Helper()
	g, w := parseLines(t, got), parseLines(t, want)
	slices.SortFunc(w, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.DB, b.DB), bytes.Compare(decode(a.Key), decode(b.Key)), typeOf(a.Type)-typeOf(b.Type))
	})
	for i := range min(len(g), len(w)) {
		if !reflect.DeepEqual(g[i], w[i]) {
			t.Fatalf("record %d:\ngot  %.300v\nwant %.300v", i, g[i], w[i])
		}
	}
	if len(g) != len(w) {
		t.Fatalf("%d records, want %d", len(g), len(w))
	}
}

func decode(s string) []byte {
	b, _ := base64.StdEncoding.DecodeString(s)
	return b
}

func typeOf(name string) int {
	t, _ := record.ParseType(name)
	return int(t)
}

// memory is a blackwidow dataset in memory.
type memory struct {
	fs  *memstore.FS
	dir string
}

func newMemory(t testing.TB) *memory {
	return &memory{fs: memstore.New(), dir: t.TempDir()}
}

// store returns one of the five stores, for rows to be put in.
func (m *memory) store(name string) *memstore.Store { return m.fs.Dir(m.dir + "/" + name) }

// stores makes the five stores, which stay empty.
func (m *memory) stores() *memory {
	for _, name := range []string{"strings", "hashes", "lists", "sets", "zsets"} {
		m.store(name).Len("default")
	}
	return m
}

func (m *memory) open(t testing.TB) format.Source {
	t.Helper()
	src, err := blackwidow.New().Open(context.Background(), m.dir, &format.OpenOptions{Store: m.fs.Open})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return src
}

// create starts a target whose only database is db.
func (m *memory) create(t testing.TB, o format.CreateOptions) format.Target {
	t.Helper()
	o.Create = m.fs.Create
	if o.Reopen == nil {
		o.Reopen = &format.OpenOptions{Store: m.fs.Open}
	}
	dst, err := blackwidow.New().Create(context.Background(), m.dir, &o)
	if err != nil {
		t.Fatal(err)
	}
	return dst
}

// records opens a reader of all types.
func records(t testing.TB, src format.Source, db string, e *format.Env) record.Reader {
	t.Helper()
	return recordsOf(t, src, db, record.AllTypes, format.Span{}, e)
}

func recordsOf(t testing.TB, src format.Source, db string, types record.TypeSet, s format.Span, e *format.Env) record.Reader {
	t.Helper()
	if e.Now.IsZero() {
		e.Now = now
	}
	r, err := src.Records(context.Background(), db, types, s, e)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// checkLedger fails the test when rows are missing from the ledger or counted twice.
func checkLedger(t testing.TB, l *record.Ledger) {
	t.Helper()
	if err := l.Check(); err != nil {
		t.Error(err)
	}
}

// classes renders the ledger of a keyspace: "housekeeping=1 copied=2".
func classes(l *record.Ledger, keyspace string) string {
	s := ""
	t := l.Snapshot()[keyspace]
	for c, n := range t.Rows {
		if n > 0 {
			s += fmt.Sprintf(" %s=%d", record.Class(c), n)
		}
	}
	return s[min(1, len(s)):]
}
