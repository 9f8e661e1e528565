package convert

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/pass/filter"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
	"kvferry/store"
)

// fed is a target format of which each pass has a directory. It counts the finished ones.
type fed struct {
	*fake.Format
	dir              string
	passes, finished int
}

func (f *fed) Create(ctx context.Context, _ string, o *format.CreateOptions) (format.Target, error) {
	f.passes++
	t, err := f.Format.Create(ctx, filepath.Join(f.dir, fmt.Sprint(f.passes)), o)
	return &fedTarget{t, f}, err
}

type fedTarget struct {
	format.Target
	f *fed
}

func (t *fedTarget) Finish(context.Context) (format.Source, error) {
	t.f.finished++
	return nil, nil
}

// feed makes passes over a source until one fails, at most two, and checks that no file is left.
func feed(t *testing.T, b *bench) (to *fed, rep *Report, err error) {
	t.Helper()
	b.o.TempDir = t.TempDir()
	return feedShared(t, b, nil)
}

// feedShared makes passes over a source that is open already; nil: over one that the Feeder opens.
func feedShared(t *testing.T, b *bench, shared *Shared) (to *fed, rep *Report, err error) {
	t.Helper()
	f, err := NewFeeder(context.Background(), &b.o, shared)
	if err != nil {
		t.Fatal(err)
	}
	to = &fed{Format: b.to, dir: t.TempDir()}
	for n := 0; n < 2 && err == nil; n++ {
		rep, err = f.Pass(context.Background(), to, 2, false)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	b.leaves("src")
	if left, _ := os.ReadDir(b.o.TempDir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	return to, rep, err
}

// TestFeeder checks that each pass has all records, also of tables that are out of order and if there are none, and that
// none is finished with a loss that is not allowed.
func TestFeeder(t *testing.T) {
	records := many(3, 5)
	b := newBench(t, records)
	to, _, err := feed(t, b)
	if loss := (*LossError)(nil); !errors.As(err, &loss) || to.passes != 1 || to.finished != 0 || !strings.Contains(err.Error(), "3 × key-too-long") {
		t.Errorf("%v after %d passes, %d finished", err, to.passes, to.finished)
	}
	for name, c := range map[string]struct {
		change func(b *bench)
		passes int
		want   int64
	}{
		"allowed":      {func(b *bench) { b.o.AllowLoss = []string{"key-too-long"} }, 2, 1},
		"nothing":      {func(b *bench) { b.o.Selection = filtered(filter.Filter{Match: []string{"none"}}) }, 2, 0},
		"none of type": {func(b *bench) { b.o.Selection = filtered(filter.Filter{Types: record.Of(record.Stream)}) }, 2, 0},
		"out of order": {func(b *bench) {
			b.o.AllowLoss = []string{"key-too-long"}
			b.from.Wrap = func(s *fake.Source) { s.Disorder = record.AllTypes }
		}, 3, 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, records)
			c.change(b)
			to, rep, err := feed(t, b)
			if err != nil || to.passes != c.passes || to.finished != 2 || rep.Records() != c.want {
				t.Errorf("%v after %d passes, %d finished: %+v", err, to.passes, to.finished, rep)
			}
		})
	}
}

// borrowed is a source that must not be closed by who borrows it.
type borrowed struct {
	*fake.Source
	closed bool
}

func (s *borrowed) Close() error { s.closed = true; return nil }

// TestFeederShares checks that a Feeder reads an open source without opening the dataset again, as long as it is
// readable and in order, and takes what its stores report as a conversion does.
func TestFeederShares(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*fake.Source)
		report record.Finding
		opens  int
		err    string
	}{
		"readable":     {},
		"reported":     {report: record.Finding{Kind: record.FindDamagedBlock, Severity: record.Error}, err: "the source is damaged: 1 error"},
		"unreadable":   {change: func(s *fake.Source) { s.ReadErr = &store.BlockError{Err: errors.New("no block")} }, opens: 1},
		"out of order": {change: func(s *fake.Source) { s.Disorder = record.AllTypes }, opens: 1},
		"fails":        {change: func(s *fake.Source) { s.ReadErr = errors.New("no disk") }, err: "no disk"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, many(3, 5))
			b.o.AllowLoss, b.o.TempDir = []string{"key-too-long"}, t.TempDir()
			src, err := b.o.Source.Open(context.Background(), func(*store.Options) {})
			if err != nil {
				t.Fatal(err)
			}
			s, opens, open := &borrowed{Source: src.(*fake.Source)}, 0, b.o.Source.Open
			b.o.Source.Open = func(ctx context.Context, change func(*store.Options)) (format.Source, error) {
				opens++
				return open(ctx, change)
			}
			if c.change != nil {
				c.change(s.Source)
			}
			shared := &Shared{Source: s}
			if c.report.Kind != "" {
				shared.Report(c.report)
			}
			to, rep, err := feedShared(t, b, shared)
			if c.err == "" {
				if err != nil || to.finished != 2 || rep.Records() != 1 {
					t.Errorf("%v after %d passes, %d finished: %+v", err, to.passes, to.finished, rep)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v, want %s", err, c.err)
			}
			if opens != c.opens || s.closed {
				t.Errorf("%d opens, closed %v", opens, s.closed)
			}
		})
	}
}

// TestFeederReopensInVain: a source that cannot be opened again stays the source of later passes, and is closed once.
func TestFeederReopensInVain(t *testing.T) {
	for _, shares := range []bool{false, true} {
		b := newBench(t, many(3, 5))
		b.o.AllowLoss, b.o.TempDir = []string{"key-too-long"}, t.TempDir()
		b.from.Wrap = func(s *fake.Source) { s.Disorder = record.AllTypes }
		gone, opens, open := errors.New("too many open files"), 0, b.o.Source.Open
		var shared *Shared
		if shares {
			src, err := open(t.Context(), func(*store.Options) {})
			if err != nil {
				t.Fatal(err)
			}
			shared, opens = &Shared{Source: src}, 1
		}
		b.o.Source.Open = func(ctx context.Context, change func(*store.Options)) (format.Source, error) {
			if opens++; opens == 2 {
				return nil, gone
			}
			return open(ctx, change)
		}
		f, err := NewFeeder(t.Context(), &b.o, shared)
		if err != nil {
			t.Fatal(err)
		}
		to := &fed{Format: b.to, dir: t.TempDir()}
		if rep, err := f.Pass(t.Context(), to, 2, false); !errors.Is(err, gone) || rep != nil || to.finished != 0 {
			t.Errorf("shared %t: %v, %+v", shares, err, rep)
		}
		if rep, err := f.Pass(t.Context(), to, 2, false); err != nil || rep.Records() != 1 || to.finished != 1 || opens != 3 {
			t.Errorf("shared %t: the next pass: %v, %+v after %d opens", shares, err, rep, opens)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if left, _ := os.ReadDir(b.o.TempDir); len(left) > 0 {
			t.Errorf("shared %t: left behind: %v", shares, left)
		}
	}
}

// TestFeederClosesAfterAll: a Feeder whose source could not be opened again is closed without another pass.
func TestFeederClosesAfterAll(t *testing.T) {
	b := newBench(t, many(3, 5))
	b.o.TempDir = t.TempDir()
	b.from.Wrap = func(s *fake.Source) { s.Disorder = record.AllTypes }
	f, err := NewFeeder(t.Context(), &b.o, nil)
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("too many open files")
	f.o.Source.Open = func(context.Context, func(*store.Options)) (format.Source, error) { return nil, gone }
	for range 2 {
		if _, err := f.Pass(t.Context(), &fed{Format: b.to, dir: t.TempDir()}, 2, false); !errors.Is(err, gone) {
			t.Error(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
