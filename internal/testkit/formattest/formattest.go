// Package formattest holds helpers shared by tests of formats: datasets in memory, comparison of records with the
// truth files of the golden databases, random round trips and their checks.
package formattest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/memstore"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
	"kvferry/store/rocks/build"
)

// Now is shortly after the time of the golden databases.
var Now = time.Unix(1_700_000_100, 0)

// Findings collects reported findings.
type Findings struct {
	mu  sync.Mutex
	All []record.Finding
}

// Report adds a finding. It is safe for concurrent use.
func (f *Findings) Report(x record.Finding) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.All = append(f.All, x)
}

// Kinds returns the sorted kinds of all findings, with repeats.
func (f *Findings) Kinds() []string {
	out := []string{}
	for _, x := range f.All {
		out = append(out, x.Kind)
	}
	slices.Sort(out)
	return out
}

// CheckNone fails the test for each finding with a severity of from or higher.
func (f *Findings) CheckNone(t testing.TB, from record.Severity) {
	t.Helper()
	for _, x := range f.All {
		if x.Severity >= from {
			t.Errorf("finding %+v", x)
		}
	}
}

// Memory is a dataset in memory.
type Memory struct {
	Format format.Format
	FS     *memstore.FS
	Dir    string
}

// NewMemory returns a dataset without stores.
func NewMemory(t testing.TB, f format.Format) *Memory {
	return &Memory{Format: f, FS: memstore.New(), Dir: t.TempDir()}
}

// Store returns the store in a directory of the dataset, to put rows into. It creates a missing store.
func (m *Memory) Store(name string) *memstore.Store { return m.FS.Dir(m.Dir + "/" + name) }

// Declare creates empty stores.
func (m *Memory) Declare(stores ...string) {
	for _, name := range stores {
		m.Store(name).Len("default")
	}
}

// Open opens the dataset.
func (m *Memory) Open(t testing.TB) format.Source {
	t.Helper()
	return Open(t, m.Format, m.Dir, &format.OpenOptions{Store: m.FS.Open})
}

// Create starts a target in memory. Unless Reopen is set, it is also reopened from memory.
func (m *Memory) Create(t testing.TB, o format.CreateOptions) format.Target {
	t.Helper()
	o.Create = m.FS.Create
	if o.Reopen == nil {
		o.Reopen = &format.OpenOptions{Store: m.FS.Open}
	}
	return Create(t, m.Format, m.Dir, &o)
}

// Open opens a source and closes it when the test ends.
func Open(t testing.TB, f format.Format, dir string, o *format.OpenOptions) format.Source {
	t.Helper()
	src, err := f.Open(context.Background(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return src
}

// OpenGolden opens a golden RocksDB database.
func OpenGolden(t testing.TB, f format.Format, name string) format.Source {
	t.Helper()
	return Open(t, f, fixtures.Unpack(t, name), &format.OpenOptions{Store: rocks.Open})
}

// Create starts a target.
func Create(t testing.TB, f format.Format, dir string, o *format.CreateOptions) format.Target {
	t.Helper()
	dst, err := f.Create(context.Background(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return dst
}

// CreateRocksDB starts a target on disk.
func CreateRocksDB(t testing.TB, f format.Format, dir string, dbs ...string) format.Target {
	t.Helper()
	return Create(t, f, dir, &format.CreateOptions{Create: build.Create, DBs: dbs,
		Reopen: &format.OpenOptions{Store: rocks.Open}, TempDir: t.TempDir()})
}

// Records opens a reader of all types of a database, whose records are counted in e.Ledger.
func Records(t testing.TB, src format.Source, db string, e *format.Env) *record.Walker {
	t.Helper()
	return RecordsOf(t, src, db, record.AllTypes, format.Span{}, e)
}

// RecordsOf opens a reader of some types in a span. If e.Now is zero, it is set to Now.
func RecordsOf(t testing.TB, src format.Source, db string, types record.TypeSet, s format.Span, e *format.Env) *record.Walker {
	t.Helper()
	if e.Now.IsZero() {
		e.Now = Now
	}
	r, err := src.Records(context.Background(), db, types, s, e)
	if err != nil {
		t.Fatal(err)
	}
	return record.Walk(record.Booked(r, e.Ledger))
}

// CheckLedger fails the test if rows are missing from the ledger or counted twice.
func CheckLedger(t testing.TB, l *record.Ledger) {
	t.Helper()
	if err := l.Check(); err != nil {
		t.Error(err)
	}
}

// Classes renders the row counts of a keyspace by class: "housekeeping=1 copied=2".
func Classes(l *record.Ledger, keyspace string) string {
	s := ""
	t := l.Snapshot()[keyspace]
	for c, n := range t.Rows {
		if n > 0 {
			s += fmt.Sprintf(" %s=%d", record.Class(c), n)
		}
	}
	return s[min(1, len(s)):]
}

// Sink is a builder, and its own run, that discards all rows. It isolates the cost of a writer in benchmarks.
type Sink struct{}

// Create is a store.CreateFunc.
func (Sink) Create(string, store.BuildOptions) (store.Builder, error) { return Sink{}, nil }

// Keyspace accepts any keyspace.
func (Sink) Keyspace(string, store.Comparer) error { return nil }

// Run returns the sink.
func (Sink) Run(string, int, uint64) (store.Run, error) { return Sink{}, nil }

// Tables returns an empty list.
func (Sink) Tables(int) ([]store.Table, error) { return nil, nil }

// Adopt ignores the tables.
func (Sink) Adopt([]store.Table) error { return nil }

// Finish is a no-op.
func (Sink) Finish() error { return nil }

// Abort is a no-op.
func (Sink) Abort() {}

// AppendGroup discards the rows.
func (Sink) AppendGroup(*store.Group) error { return nil }

// Append discards the row.
func (Sink) Append(_, _ []byte) error { return nil }

// Close is a no-op.
func (Sink) Close() error { return nil }
