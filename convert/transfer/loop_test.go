package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"kvferry/convert/result"
	"kvferry/internal/pass"
	"kvferry/internal/testkit/fake"
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

func (r *endless) Heavy() bool              { return false }
func (r *endless) End(*record.Record) error { return nil }
func (r *endless) Close() error             { return nil }

// TestStops checks that every kind of task stops soon after its context: within the records of two batches.
func TestStops(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	rules := func() *Rules { return &Rules{SameName: true, Allows: func(string) bool { return true }} }
	newTask := func() *task {
		return &task{Task: &pass.Task{Group: record.AllTypes}, Rules: rules(), target: &fake.Target{Of: fake.NewFormat()},
			losses:   result.Losses{},
			expiring: expiringDigests{}}
	}
	copies := func(r record.Reader) error {
		x := newTask()
		return each(r, func() error { return x.pause(ctx) }, x.batch)
	}
	proves := func(r record.Reader) error {
		p := &prover{Rules: rules()}
		return each(r, ctx.Err, p.batch)
	}
	looks := func(r record.Reader) error {
		names := NewNames(1<<24, "")
		defer names.Close()
		return newTask().eachLoser(ctx, r, names)
	}
	for name, run := range map[string]func(record.Reader) error{"copy": copies, "prove": proves, "look for names": looks} {
		for _, r := range []*endless{{typ: record.Set, batches: 1}, {typ: record.Set, batches: -1},
			{typ: record.String, batches: 1}} {
			if name == "look for names" && r.batches < 0 {
				continue // it reads the first elements only
			}
			err := run(record.Gather(r, nil))
			most := 2 * record.CheckEvery * 128
			if !errors.Is(err, context.Canceled) || r.next > 2*record.CheckEvery || r.read > most {
				t.Errorf("%s: %v after %d records and %d elements", name, err, r.next, r.read)
			}
		}
	}
}

// TestForward checks that forward reaches a record up to maxPassed records ahead, but not a farther or earlier one.
func TestForward(t *testing.T) {
	for ahead, found := range map[int]bool{1: true, maxPassed: true, maxPassed + 1: false} {
		r := &endless{typ: record.Set, keys: func(n int) []byte { return fmt.Appendf(nil, "%03d", n) }}
		p := place{records: record.Walk(record.Gather(r, nil))}
		h, err := p.forward(fmt.Appendf(nil, "%03d", ahead))
		if err != nil || (h != nil) != found || p.header != nil {
			t.Errorf("%d ahead: %v, %v", ahead, h, err)
		}
	}
	r := &endless{typ: record.Set, keys: func(n int) []byte { return fmt.Appendf(nil, "%03d", 2*n) }}
	p := place{records: record.Walk(record.Gather(r, nil))}
	for _, key := range []int{1, 2, 3, 4, 7, 8} { // records passed over can still be found
		h, err := p.forward(fmt.Appendf(nil, "%03d", key))
		if err != nil || (h != nil) != (key%2 == 0) || h != nil && string(h.Key) != fmt.Sprintf("%03d", key) {
			t.Errorf("%d: %v, %v", key, h, err)
		}
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
	for span, want := range map[string]string{"- -": "a b c d", "b -": "b c d", "- c": "a b", "b d": "b c", "bb c": "", "b b": "",
		"e -": "", "d c": "", "bb cc": "c"} {
		lo, hi, _ := strings.Cut(span, " ")
		task := &pass.Task{DB: "1", Group: 1}
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
		task.Group = 0
		if renamedIn(all, task) != nil {
			t.Errorf("%s: of a task that writes nothing", span)
		}
	}
}
