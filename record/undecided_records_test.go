package record

import (
	"fmt"
	"io"
	"testing"
)

// later is a cursor whose End wants to know the class of each record first. It notes what it is told.
type later struct {
	left        []held
	cur         *held
	heavy       bool
	asked       bool
	read, ended string
}

func (c *later) Next() (*Header, error) {
	if len(c.left) == 0 {
		return nil, io.EOF
	}
	c.cur, c.left = &c.left[0], c.left[1:]
	return &c.cur.Header, nil
}

func (c *later) Heavy() bool { return c.heavy }

func (c *later) Read(dst []Element) (int, error) {
	n := copy(dst, c.cur.elems)
	c.read += fmt.Sprintf("%s%d ", c.cur.Key, n)
	if c.cur.elems = c.cur.elems[n:]; len(c.cur.elems) == 0 {
		return n, io.EOF
	}
	return n, nil
}

func (c *later) End(r *Record) error {
	if c.asked = !c.asked; c.asked {
		return ErrLater
	}
	c.ended += fmt.Sprintf("%s %s %t, ", r.Key, r.Class, r.Skip)
	r.Rows = Rows{Of: places, Meta: 1, Elems: 2}
	return nil
}

func (c *later) Close() error { return nil }

// TestErrLater: End of a record whose class is not known is called a second time when it is, read or not, and its rows
// are counted once and in that class.
func TestErrLater(t *testing.T) {
	for _, heavy := range []bool{false, true} {
		c := &later{heavy: heavy}
		for _, key := range []string{"read", "out", "unread", "empty", "last"} {
			x := held{Header: Header{Type: Hash, Key: []byte(key)}}
			if key != "empty" {
				x.elems = make([]Element, 2)
			}
			c.left = append(c.left, x)
		}
		var ledger Ledger
		w, got := Walk(Booked(Gather(c, nil), &ledger)), ""
		for {
			h, err := w.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			switch key := string(h.Key); key {
			case "out":
				w.Settle(Filtered)
			case "unread":
			default:
				n := 0
				for err == nil {
					var some int
					some, err = w.Read(make([]Element, 1))
					n += some
				}
				if err != io.EOF {
					t.Fatal(err)
				}
				got += fmt.Sprintf("%s=%d ", key, n)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		want := "read copied false, out filtered true, unread copied true, empty copied false, last copied false, "
		if got != "read=2 empty=0 last=2 " || c.ended != want {
			t.Errorf("heavy %t: read %s; ended %s\nwant %s", heavy, got, c.ended, want)
		}
		l := ledger.Snapshot()
		if m, e := l["m"], l["e"]; m.Rows[Copied] != 4 || m.Rows[Filtered] != 1 || e.Rows[Copied] != 8 || e.Rows[Filtered] != 2 {
			t.Errorf("heavy %t: %+v", heavy, l)
		}
	}
}

// TestErrLaterTwice: a cursor that asks again is an error, not a reader without an end.
func TestErrLaterTwice(t *testing.T) {
	for _, class := range []Class{Copied, Filtered} {
		c := &laterAgain{later{left: []held{{Header: Header{Key: []byte("k")}, elems: make([]Element, 2)}}}}
		w := Walk(Gather(c, nil))
		if _, err := w.Next(); err != nil {
			t.Fatal(err)
		}
		w.Settle(class)
		if _, err := w.Next(); err != ErrLater {
			t.Errorf("%s: %v", class, err)
		}
	}
}

type laterAgain struct{ later }

func (c *laterAgain) End(*Record) error { return ErrLater }
