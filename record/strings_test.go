package record

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// told is a writer that records its calls and fails at one of them.
type told struct {
	calls []string
	fail  int // number of the call; 0: never
}

func (w *told) call(format string, args ...any) error {
	w.calls = append(w.calls, fmt.Sprintf(format, args...))
	if len(w.calls) == w.fail {
		return errors.New("full")
	}
	return nil
}

func (w *told) Begin(h *Header) error {
	return w.call("begin %s %s in %s until %d %t len %d", h.Type, h.Key, h.DB, h.ExpireMS, h.Expired, h.Len)
}
func (w *told) Write(elems []Element) error {
	return w.call("write %d %q%q", len(elems), elems[0].Name, elems[0].Value)
}
func (w *told) End() error   { return w.call("end") }
func (w *told) Close() error { return nil }
func (w *told) Abort()       {}

// TestWriteStrings checks that strings are written one by one until an error.
func TestWriteStrings(t *testing.T) {
	batch := []StringRecord{{DB: "0", Key: []byte("a"), Value: []byte("v")}, {DB: "1", Key: []byte("b"), ExpireMS: 7, Expired: true}}
	want := []string{"begin string a in 0 until 0 false len 1", `write 1 """v"`, "end", "begin string b in 1 until 7 true len 1", `write 1 """"`, "end"}
	for fail := range len(want) + 1 {
		w := &told{fail: fail}
		err := WriteStrings(w, batch)
		n := len(want)
		if fail > 0 {
			n = fail
		}
		if (err != nil) != (fail > 0) || strings.Join(w.calls, "; ") != strings.Join(want[:n], "; ") {
			t.Errorf("failing at %d: %v, %q", fail, err, w.calls)
		}
	}
}

// TestBytes checks the size of a batch and the logical size of an element.
func TestBytes(t *testing.T) {
	batch := []Element{{Name: []byte("abc"), Value: []byte("de")}, {}, {Value: []byte("fghi")}}
	if n := BatchBytes(batch); n != 9 {
		t.Errorf("a batch of %d bytes", n)
	}
	for typ, want := range map[Type]int64{Hash: 5, ZSet: 13, Set: 5} {
		if n := batch[0].Bytes(typ); n != want {
			t.Errorf("an element of a %s has %d bytes, want %d", typ, n, want)
		}
	}
}

// TestSub checks that Sub reverses Add, including the carry.
func TestSub(t *testing.T) {
	a := Digest{Records: 3, Elements: 5, Millis: Sum128{Hi: 1, Lo: 1<<64 - 1}, Seconds: Sum128{Lo: 1}}
	b := Digest{Records: 2, Elements: 4, Millis: Sum128{Hi: 7, Lo: 2}, Seconds: Sum128{Hi: 1<<64 - 1, Lo: 1<<64 - 1}}
	sum := a
	if sum.Add(b); sum.Millis != (Sum128{9, 1}) || sum.Seconds != (Sum128{}) {
		t.Errorf("%+v", sum)
	}
	if sum.Sub(b); sum != a {
		t.Errorf("%+v, want %+v", sum, a)
	}
}

// TestSkipped checks that only error findings about parts skipped by an open store count as skipped.
func TestSkipped(t *testing.T) {
	for kind, want := range map[string]bool{FindDamagedBlock: true, FindDamagedBlob: true, FindDamagedPage: true, FindMissingFile: true, FindFileSize: true,
		FindForeignTable: true, "count-mismatch": false} {
		for _, severity := range []Severity{Note, Warning, Error} {
			if got := (&Finding{Kind: kind, Severity: severity}).Skipped(); got != (want && severity == Error) {
				t.Errorf("%s of severity %s: %t", kind, severity, got)
			}
		}
	}
}

// TestReason checks that the reason names the field if it is known.
func TestReason(t *testing.T) {
	e := &CorruptError{Off: NoOffset, Err: ErrShort}
	if e.Shift(5); e.Off != NoOffset || e.Reason() != "too short" {
		t.Errorf("%d, %s", e.Off, e.Reason())
	}
	e.Off, e.Field = 0, "klen"
	if e.Shift(5); e.Off != 5 || e.Reason() != "klen: too short" || e.Place("f") != (Place{File: "f", Off: 5, Level: -1}) {
		t.Errorf("%d, %s, %+v", e.Off, e.Reason(), e.Place("f"))
	}
}
