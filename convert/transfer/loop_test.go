package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"kvferry/convert/internal/fake"
	"kvferry/convert/plan"
	"kvferry/convert/result"
	"kvferry/convert/workers"
	"kvferry/record"
)

// endless reads an endless sequence of records with batches of one element.
type endless struct {
	typ        record.Type
	batches    int // per record; -1: endless
	left       int
	next, read int // number of calls
	keys       func(n int) []byte
}

func (r *endless) Next() (*record.Header, error) {
	r.next++
	r.left = r.batches
	key := []byte("k")
	if r.keys != nil {
		key = r.keys(r.next)
	}
	return &record.Header{DB: "0", Type: r.typ, Key: key}, nil
}

func (r *endless) Read(dst []record.Element) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	r.left--
	r.read++
	dst[0] = record.Element{Name: []byte("n"), Value: []byte("v")}
	return 1, nil
}

func (r *endless) Settle(record.Class) {}
func (r *endless) Close() error        { return nil }

// alone returns the share of a task that runs alone.
func alone() (sh *workers.Share) {
	workers.RunSharing(context.Background(), []*plan.Task{{}}, workers.NewCores(1), 0, func(_ context.Context, _ *plan.Task, s *workers.Share) error {
		sh = s
		return nil
	})
	return sh
}

// TestStops checks that every kind of task stops after exactly checkEvery records or batches.
func TestStops(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	free := alone()
	rules := func() *Rules { return &Rules{SameName: true, Allows: func(string) bool { return true }} }
	newTask := func(r record.Reader) *task {
		return &task{Task: &plan.Task{Group: record.AllTypes}, Rules: rules(), target: &fake.Target{Of: fake.New()}, reader: r, losses: result.Losses{},
			expiring: expiringDigests{}, share: free}
	}
	const n = checkEvery
	for name, c := range map[string]struct {
		r          *endless
		run        func(r *endless) error
		next, read int
	}{
		"copy":          {&endless{typ: record.Set, batches: 1}, func(r *endless) error { return newTask(r).copy(ctx) }, n, n},
		"copy of one":   {&endless{typ: record.Set, batches: -1}, func(r *endless) error { return newTask(r).copy(ctx) }, 1, n},
		"string":        {&endless{typ: record.String, batches: -1}, func(r *endless) error { return newTask(r).copy(ctx) }, n, n},
		"prove":         {&endless{typ: record.Set, batches: 1}, func(r *endless) error { return (&prover{Rules: rules(), reader: r, share: free}).all(ctx) }, n, n},
		"prove one":     {&endless{typ: record.Set, batches: -1}, func(r *endless) error { return (&prover{Rules: rules(), reader: r, share: free}).all(ctx) }, 1, n},
		"prove strings": {&endless{typ: record.String, batches: -1}, func(r *endless) error { return (&prover{Rules: rules(), reader: r, share: free}).all(ctx) }, n, n},
		"look for names": {&endless{typ: record.Set, batches: 1}, func(r *endless) error {
			names := newNamesakes(1<<20, "")
			defer names.sorter.Close()
			return newTask(r).eachLoser(ctx, r, names, func(Rename) error { return nil })
		}, n, n - 1},
	} {
		err := c.run(c.r)
		if !errors.Is(err, context.Canceled) || c.r.next != c.next || c.r.read != c.read {
			t.Errorf("%s: %v after %d records and %d batches, want %d and %d", name, err, c.r.next, c.r.read, c.next, c.read)
		}
	}
}

// TestForward checks that forward reaches a record up to maxPassed records ahead, but not a farther or earlier one.
func TestForward(t *testing.T) {
	for ahead, found := range map[int]bool{1: true, maxPassed: true, maxPassed + 1: false} {
		r := &endless{typ: record.Set, keys: func(n int) []byte { return fmt.Appendf(nil, "%03d", n) }}
		p := place{reader: r}
		h, err := p.forward(fmt.Appendf(nil, "%03d", ahead))
		if err != nil || (h != nil) != found || r.next != min(ahead, maxPassed) || p.header != nil {
			t.Errorf("%d ahead: %v, %v after %d records", ahead, h, err, r.next)
		}
	}
	r := &endless{typ: record.Set, keys: func(n int) []byte { return fmt.Appendf(nil, "%03d", 2*n) }}
	p := place{reader: r}
	for _, key := range []int{1, 2, 3, 4, 7, 8} { // records passed over can still be found
		h, err := p.forward(fmt.Appendf(nil, "%03d", key))
		if err != nil || (h != nil) != (key%2 == 0) || h != nil && string(h.Key) != fmt.Sprintf("%03d", key) {
			t.Errorf("%d: %v, %v", key, h, err)
		}
	}
	if r.next != 4 {
		t.Errorf("%d records were read", r.next)
	}
	if h, err := new(place).forward([]byte("a")); h != nil || err != nil {
		t.Errorf("without a reader: %v, %v", h, err)
	}
}

// TestRenamedIn checks that renamedIn returns the renames of a task's database whose new names are in its span.
func TestRenamedIn(t *testing.T) {
	var all []Rename
	for _, name := range []string{"0 b", "1 a", "1 b", "1 c", "1 d", "2 a"} {
		db, to, _ := strings.Cut(name, " ")
		all = append(all, Rename{db: db, to: []byte(to)})
	}
	for span, want := range map[string]string{"- -": "a b c d", "b -": "b c d", "- c": "a b", "b d": "b c", "bb c": "", "b b": "", "e -": "", "d c": "", "bb cc": "c"} {
		lo, hi, _ := strings.Cut(span, " ")
		task := &plan.Task{DB: "1", Group: 1}
		if lo != "-" {
			task.Span.Lo = []byte(lo)
		}
		if hi != "-" {
			task.Span.Hi = []byte(hi)
		}
		var got []string
		for _, n := range renamedIn(all, task) {
			if n.db != "1" {
				t.Errorf("%s: one of database %s", span, n.db)
			}
			got = append(got, string(n.to))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %s, want %s", span, got, want)
		}
		if task.Group = 0; renamedIn(all, task) != nil {
			t.Errorf("%s: of a task that writes nothing", span)
		}
	}
}
