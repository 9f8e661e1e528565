package convert

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/testkit/fake"
)

// asked notes what a target is created and opened with.
type asked struct {
	*fake.Format
	name string
	told string
}

func (f *asked) Name() string { return f.name }

func (f *asked) Create(ctx context.Context, dir string, o *format.CreateOptions) (format.Target, error) {
	f.told += fmt.Sprintf(" created %t", o.Own)
	if o.Reopen != nil {
		f.told += fmt.Sprintf(" proved %t", o.Reopen.Options.Own)
	}
	return f.Format.Create(ctx, dir, o)
}

func (f *asked) Open(ctx context.Context, dir string, o *format.OpenOptions) (format.Source, error) {
	f.told += fmt.Sprintf(" opened %t", o.Options.Own)
	return f.Format.Open(ctx, dir, o)
}

// TestOwn: a target takes names of earlier servers only from its own format. The proof demands what this build writes,
// and a later check does not: servers may have rewritten the target.
func TestOwn(t *testing.T) {
	for name, own := range map[string]bool{"fake": true, "other": false} {
		b := newBench(t, fake.Dataset(1))
		f := &asked{Format: b.to, name: name}
		b.o.Target.Format = f
		b.run()
		if want := fmt.Sprintf(" created %t proved true", own); f.told != want {
			t.Errorf("%s:%s, want%s", name, f.told, want)
		}
		f.told = ""
		if _, err := Check(context.Background(), &b.o, false); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(f.told, fmt.Sprintf(" created %t", own)) || !strings.HasSuffix(f.told, " opened false") ||
			strings.Contains(f.told, "opened true") {
			t.Errorf("a check of %s:%s", name, f.told)
		}
	}
}
