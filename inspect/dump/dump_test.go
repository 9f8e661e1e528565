package dump

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/pass/filter"
	"kvferry/internal/pass/progress"
	"kvferry/internal/sys/bufpool"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

func scanOf(s *fake.Source) *inspect.Scan { return &inspect.Scan{Source: s, Now: fake.Now} }

// commands is an encoder that writes one complete command per record and fails at one of them.
type commands struct {
	size, fail, n int
}

var errUnwilling = errors.New("unwilling")

func (c *commands) AppendHead(dst []byte) []byte { return dst }

func (c *commands) AppendBegin(dst []byte, _ *record.Header) ([]byte, error) {
	if c.n++; c.n == c.fail {
		return dst, errUnwilling
	}
	return append(dst, bytes.Repeat([]byte{'x'}, c.size)...), nil
}

func (c *commands) AppendElement(dst []byte, _ *record.Element) ([]byte, error) { return dst, nil }
func (c *commands) AppendEnd(dst []byte) ([]byte, error)                        { return dst, nil }
func (c *commands) AppendTail(dst []byte) []byte                                { return dst }

// TestDumpEndsWhole checks that an error during a dump leaves only complete commands in the output and is reported
// once.
func TestDumpEndsWhole(t *testing.T) {
	a, _ := fake.Planted()
	const size = bufferSize/2 + 1000 // one record fits in the buffer, two do not
	var out bytes.Buffer
	d := New(&out, &Options{Scan: scanOf(a), Encoder: &commands{size: size, fail: 4}})
	err := d.Run(context.Background())
	if !errors.Is(err, errUnwilling) || err.Error() != errUnwilling.Error() {
		t.Errorf("got %v", err)
	}
	if out.Len() != 3*size {
		t.Errorf("%d bytes are %d commands and %d bytes of another", out.Len(), out.Len()/size, out.Len()%size)
	}
	d = New(unwilling{}, &Options{Scan: scanOf(a), Encoder: &commands{size: size}})
	if err := d.Run(context.Background()); err == nil || err.Error() != errUnwilling.Error() {
		t.Errorf("a writer that fails: %v", err)
	}
}

// unwilling is a writer that always fails.
type unwilling struct{}

func (unwilling) Write([]byte) (int, error) { return 0, errUnwilling }

// buried is a source with only deleted records.
type buried struct{ *fake.Source }

func (b buried) DeadDatabases() ([]string, error) { return b.Databases(), nil }

func (b buried) DeadRecords(ctx context.Context, db string, t record.TypeSet, s format.Span, e *format.Env,
	_ func([]byte, record.Type, string)) (record.Reader, error) {
	return b.Records(ctx, db, t, s, e)
}

// TestDumpDeadProgress reads deleted records: progress must advance by span, and the order must be that of a single
// pass.
func TestDumpDeadProgress(t *testing.T) {
	src := fake.New(fake.Rec(record.Set, "a", fake.Member("1")), fake.Rec(record.Set, "g", fake.Member("2")),
		fake.Rec(record.Set, "p", fake.Member("3")))
	src.Bytes = 3*deadSpanBytes + 1
	src.Spans = []format.Span{{Hi: []byte("g")}, {Lo: []byte("g"), Hi: []byte("p")}, {Lo: []byte("p")}}
	meter := progress.Start([]progress.Step{{Name: "read", Weight: 1}}, func(progress.State) {})
	defer meter.Close()
	scan := scanOf(src)
	scan.Source, scan.Meter, scan.Step = buried{src}, meter, "read"
	seen := &doneAt{meter: meter}
	d := New(io.Discard, &Options{Scan: scan, Encoder: seen, Dead: true})
	if err := d.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "g", "p"}; !slices.Equal(seen.keys, want) {
		t.Errorf("keys %q, want %q", seen.keys, want)
	}
	if want := []int64{0, src.Bytes / 3, src.Bytes * 2 / 3}; !slices.Equal(seen.done, want) {
		t.Errorf("bytes done before each record: %d, want %d", seen.done, want)
	}
	if s := meter.State(); s.Done != src.Bytes || s.Total != src.Bytes || s.TasksDone != 3 || s.Tasks != 3 {
		t.Errorf("at the end: %+v", s)
	}
}

// doneAt is an encoder that records the progress at each record.
type doneAt struct {
	commands
	meter *progress.Meter
	keys  []string
	done  []int64
}

func (d *doneAt) AppendBegin(dst []byte, h *record.Header) ([]byte, error) {
	d.keys, d.done = append(d.keys, string(h.Key)), append(d.done, d.meter.State().Done)
	return dst, nil
}

// plain is an encoder that writes keys, elements, sizes, and markers for the start and the end of the dump.
type plain struct{ spill bufpool.Spill }

func (w *plain) AppendHead(dst []byte) []byte { return append(dst, "begin"...) }
func (w *plain) AppendBegin(dst []byte, h *record.Header) ([]byte, error) {
	return fmt.Appendf(dst, " %s/%s", h.DB, h.Key), nil
}
func (w *plain) AppendElement(dst []byte, e *record.Element) ([]byte, error) {
	if len(e.Value) > flushSize && w.spill != nil { // in pieces
		dst = w.spill(append(dst, "=long"...))
		return append(dst, "er"...), nil
	}
	return fmt.Appendf(dst, "+%s%s", e.Name, e.Value), nil
}
func (w *plain) AppendEnd(dst []byte) ([]byte, error) { return append(dst, ';'), nil }
func (w *plain) AppendTail(dst []byte) []byte         { return append(dst, " end"...) }
func (w *plain) SpillTo(s bufpool.Spill)              { w.spill = s }
func (w *plain) AppendSize(dst []byte, elements, size int64) []byte {
	return fmt.Appendf(dst, "(%d elements, %d bytes)", elements, size)
}

func wordsOf(t *testing.T, src format.Source, change func(*Options)) (string, *Dumper, error) {
	t.Helper()
	var out bytes.Buffer
	o := &Options{Scan: &inspect.Scan{Source: src, Now: fake.Now, TempDir: t.TempDir()}, Encoder: &plain{}}
	if change != nil {
		change(o)
	}
	d := New(&out, o)
	err := d.Run(context.Background())
	return out.String(), d, err
}

// TestDump dumps all records in order, with elements by name; or only keys and sizes; or only the first records.
func TestDump(t *testing.T) {
	src := fake.Named("0", "1")
	src.Held["1"] = append(src.Held["1"], fake.Rec(record.Set, "t", fake.Member("b"), fake.Member("a")).In("1"),
		fake.Rec(record.Set, "u").In("1"), fake.Rec(record.Stream, "v").In("1"))
	const whole = "begin 0/k+v0; 0/s+m; 1/k+v1; 1/s+m; 1/t+a+b; 1/v; end"
	for want, change := range map[string]func(*Options){
		whole: func(*Options) {},
		"begin 0/k(1 elements, 3 bytes); 0/s(1 elements, 2 bytes); 1/k(1 elements, 3 bytes); 1/s(1 elements, 2 bytes); 1/t(2 elements, 3 bytes);" +
			" 1/v(0 elements, 1 bytes); end": func(o *Options) { o.KeysOnly = true },
		"begin 0/k+v0; 0/s+m; 1/k+v1; end": func(o *Options) { o.Limit = 3 },
		"begin 1/s+m; 1/t+a+b; end": func(o *Options) {
			o.Scan.Selection = &filter.Selection{Filter: filter.Filter{DBs: []string{"1"}, Types: record.Of(record.Set)}}
		},
	} {
		got, d, err := wordsOf(t, src, change)
		if got != want || err != nil || d.Records() != int64(strings.Count(want, ";")) || !d.Written() {
			t.Errorf("got  %s, %v, %d records\nwant %s", got, err, d.Records(), want)
		}
	}
	got, _, err := wordsOf(t, src, func(o *Options) { o.KeysOnly, o.Encoder = true, &commands{size: 1} })
	if got != strings.Repeat("x", 6) || err != nil {
		t.Errorf("keys of an encoder without sizes: %q, %v", got, err)
	}
	src.Only = record.Of(record.String)
	got, _, err = wordsOf(t, src, func(o *Options) {
		o.Scan.Selection = &filter.Selection{Filter: filter.Filter{Types: record.Of(record.Set)}}
	})
	if got != "begin end" || err != nil {
		t.Errorf("of a type that is not there: %q, %v", got, err)
	}
	_, d, err := wordsOf(t, src, func(o *Options) { o.Scan.Selection = &filter.Selection{Filter: filter.Filter{DBs: []string{"9"}}} })
	var none *filter.NoDatabaseError
	if !errors.As(err, &none) || d.Written() {
		t.Errorf("of a database that is not there: %v", err)
	}
}

// TestDumpSpills checks that long text is written before the rest of its record is read.
func TestDumpSpills(t *testing.T) {
	large := strings.Repeat("x", flushSize+1)
	src := fake.New(fake.Rec(record.List, "a", fake.Value("1"), fake.Value(large), fake.Value("2")))
	if got, _, err := wordsOf(t, src, nil); got != "begin 0/a+1=longer+2; end" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	half := strings.Repeat("y", flushSize/2)
	src = fake.New(fake.Rec(record.List, "a", fake.Value(half), fake.Value(half), fake.Value(half)))
	if got, _, err := wordsOf(t, src, nil); len(got) != 3*flushSize/2+len("begin 0/a+++; end") || err != nil {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// telling is a source of deleted records that reports unknown details.
type telling struct{ buried }

func (s telling) DeadRecords(ctx context.Context, db string, t record.TypeSet, span format.Span, e *format.Env,
	tell func([]byte, record.Type, string)) (record.Reader, error) {
	tell([]byte("a"), record.Set, "lost expiry")
	tell([]byte("a"), record.Hash, "not asked for")
	return s.Records(ctx, db, t, span, e)
}

func TestDumpDead(t *testing.T) {
	src := fake.New(fake.Rec(record.Set, "a", fake.Member("2"), fake.Member("1")), fake.Rec(record.Set, "b", fake.Member("1")))
	var told []string
	dead := func(o *Options) {
		o.Dead, o.Limit = true, 1
		o.Tell = func(db string, key []byte, _ record.Type, what string) {
			told = append(told, fmt.Sprint(db, string(key), what))
		}
		o.Scan.Selection = &filter.Selection{Filter: filter.Filter{Types: record.Of(record.Set)}}
	}
	if got, _, err := wordsOf(t, telling{buried{src}}, dead); got != "begin 0/a+1+2; end" || err != nil ||
		!slices.Equal(told, []string{"0alost expiry"}) {
		t.Errorf("%q, told %q, %v", got, told, err)
	}
	if _, _, err := wordsOf(t, src, dead); err == nil || err.Error() != "--dead: fake keeps no deleted records; leave out --dead" {
		t.Errorf("of a format that cannot: %v", err)
	}
	if dbs, err := DeadDatabases(src); err != nil || !slices.Equal(dbs, []string{"0"}) {
		t.Errorf("%q, %v", dbs, err)
	}
}

// TestDumpFails checks read errors before a record, within one, and within one whose size is requested.
func TestDumpFails(t *testing.T) {
	boom := errors.New("boom")
	src := fake.New(fake.Rec(record.List, "a", fake.Value("1"), fake.Value("2"), fake.Value("3"), fake.Value("4")))
	many := make([]record.Element, 3*batchLen)
	for i := range many {
		many[i] = fake.Value("v")
	}
	for _, keys := range []bool{false, true} {
		src.Fail, src.FailInside = func(*record.Header, *format.Env) error { return boom }, nil
		if _, _, err := wordsOf(t, src, func(o *Options) { o.KeysOnly = keys }); !errors.Is(err, boom) {
			t.Errorf("keys %v, a record: %v", keys, err)
		}
		src.Fail, src.FailInside = nil, func(*record.Header) error { return boom }
		if _, _, err := wordsOf(t, src, func(o *Options) { o.KeysOnly = keys }); !errors.Is(err, boom) {
			t.Errorf("keys %v, within a record: %v", keys, err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		long := fake.New(fake.Rec(record.List, "l", many...))
		long.FailInside = func(*record.Header) error { cancel(); return nil }
		o := &Options{Scan: scanOf(long), Encoder: &plain{}, KeysOnly: keys}
		if err := New(io.Discard, o).Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("keys %v, cancelled: %v", keys, err)
		}
	}
}

// parts collects the keys of each part, and fails at one of them.
type parts struct {
	mu      sync.Mutex
	keys    map[int][]string
	closed  int
	aborted int
	refuse  int // number of a part, from 1
	fail    int // the same
}

func (p *parts) Part(n int, _ record.TypeSet) (record.Writer, error) {
	if n+1 == p.refuse {
		return nil, errUnwilling
	}
	return &partWriter{p, n}, nil
}

type partWriter struct {
	*parts
	n int
}

func (w *partWriter) Write(b *record.Batch) error {
	if w.n+1 == w.fail {
		return errUnwilling
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range b.Records {
		if b.Ends(i) {
			w.keys[w.n] = append(w.keys[w.n], string(b.Records[i].Key))
		}
	}
	return nil
}

func (w *partWriter) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed++
	return nil
}

func (w *partWriter) Abort() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.aborted++
}

// TestExport writes a source in parts that are numbered in key order, and ends at the first error, with or without a
// bound on memory.
func TestExport(t *testing.T) {
	source := func() *fake.Source {
		src := fake.New(fake.Rec(record.Set, "a", fake.Member("1")), fake.Rec(record.Set, "g", fake.Member("2")),
			fake.Rec(record.Set, "p", fake.Member("3")))
		src.Bytes, src.Only = 3*leastBytes, record.Of(record.Set)
		src.Spans = []format.Span{{Hi: []byte("g")}, {Lo: []byte("g"), Hi: []byte("p")}, {Lo: []byte("p")}}
		return src
	}
	boom := errors.New("boom")
	var cancel context.CancelFunc
	for name, c := range map[string]struct {
		to     *parts
		change func(src *fake.Source, s *inspect.Scan)
		want   error
	}{
		"all":     {&parts{}, func(*fake.Source, *inspect.Scan) {}, nil},
		"memory":  {&parts{}, func(_ *fake.Source, s *inspect.Scan) { s.Workers, s.Memory = 9, 2*workerBytes }, nil},
		"refused": {&parts{refuse: 2}, func(*fake.Source, *inspect.Scan) {}, errUnwilling},
		"written": {&parts{fail: 2}, func(*fake.Source, *inspect.Scan) {}, errUnwilling},
		"read": {&parts{}, func(src *fake.Source, _ *inspect.Scan) {
			src.Fail = func(*record.Header, *format.Env) error { return boom }
		}, boom},
		"database": {&parts{}, func(_ *fake.Source, s *inspect.Scan) {
			s.Selection = &filter.Selection{Filter: filter.Filter{DBs: []string{"9"}}}
		}, new(filter.NoDatabaseError)},
		"cancelled": {&parts{}, func(src *fake.Source, _ *inspect.Scan) {
			src.Fail = func(*record.Header, *format.Env) error { cancel(); return nil }
		}, context.Canceled},
	} {
		src := source()
		s := scanOf(src)
		s.Workers, s.TempDir = 1, t.TempDir()
		c.change(src, s)
		c.to.keys = map[int][]string{}
		var ctx context.Context
		ctx, cancel = context.WithCancel(context.Background())
		n, err := Export(ctx, s, c.to)
		cancel()
		none := (*filter.NoDatabaseError)(nil)
		if !errors.Is(err, c.want) && !(errors.As(c.want, &none) && errors.As(err, &none)) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		got := fmt.Sprint(c.to.keys)
		if c.want == nil && (got != "map[0:[a] 1:[g] 2:[p]]" || n != 3 || c.to.closed != 3 || c.to.aborted > 0) {
			t.Errorf("%s: %d records, %s, %+v", name, n, got, c.to)
		}
		if inside := name == "written" || name == "read"; inside && c.to.aborted == 0 {
			t.Errorf("%s: no part was aborted", name)
		}
	}
}
