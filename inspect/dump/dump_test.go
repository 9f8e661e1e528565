package dump

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"kvferry/format"
	"kvferry/inspect"
	"kvferry/inspect/internal/fake"
	"kvferry/internal/progress"
	"kvferry/record"
)

func scanOf(s *fake.Source) *inspect.Scan { return &inspect.Scan{Source: s, Now: fake.Now} }

// commands is an encoder of one whole command a record, which fails at one of them.
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

// An error in the midst of a dump leaves whole commands with the reader, and its text is said once.
func TestDumpEndsWhole(t *testing.T) {
	a, _ := fake.Planted()
	const size = bufferSize/2 + 1000 // one fits into the buffer, two do not
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

// unwilling takes nothing.
type unwilling struct{}

func (unwilling) Write([]byte) (int, error) { return 0, errUnwilling }

// buried is a source all of whose records are deleted.
type buried struct{ *fake.Source }

func (b buried) DeadDatabases() ([]string, error) { return b.Databases(), nil }

func (b buried) DeadRecords(ctx context.Context, db string, t record.TypeSet, s format.Span, e *format.Env,
	_ func([]byte, record.Type, string)) (record.Reader, error) {
	return b.Records(ctx, db, t, s, e)
}

// TestDumpDeadProgress reads deleted records: progress moves by spans, and the order is that of one pass.
func TestDumpDeadProgress(t *testing.T) {
	src := fake.New(fake.Rec(record.Set, "a", fake.Member("1")), fake.Rec(record.Set, "g", fake.Member("2")), fake.Rec(record.Set, "p", fake.Member("3")))
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

// doneAt is an encoder that notes how far the meter is at each record.
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
