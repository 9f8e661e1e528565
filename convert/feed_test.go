package convert

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/convert/internal/fake"
	"kvferry/format"
	"kvferry/internal/pass/filter"
	"kvferry/record"
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
	f, err := NewFeeder(context.Background(), &b.o)
	if err != nil {
		t.Fatal(err)
	}
	to = &fed{Format: b.to, dir: t.TempDir()}
	for n := 0; n < 2 && err == nil; n++ {
		rep, err = f.Pass(context.Background(), to, 2)
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
