package state

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"kvferry/record"
)

// pieces counts the rows that hold pieces.
func (s *State) pieces() (n int) {
	s.scan([]byte{'p'}, func(_, _ []byte) bool { n++; return true })
	return n
}

// TestLargeRows: values in pieces stay the same wherever they are moved, and their pieces are removed with
// them.
func TestLargeRows(t *testing.T) {
	s := empty(t)
	s.SetString([]byte("n"), []byte("1"), 0)
	rnd := rand.NewChaCha8([32]byte{1})
	value := func(n int) []byte { b := make([]byte, n); rnd.Read(b); return b }
	a, b, c := value(pieceBytes+1), value(3*pieceBytes), value(pieceBytes-8)
	lie := func(want int) { // number of pieces
		t.Helper()
		if n := s.pieces(); n != want {
			t.Fatalf("%d pieces, want %d", n, want)
		}
	}
	h := s.Make(record.Hash)
	for name, f := range map[string][]byte{"a": a, "b": b, "c": c} {
		h.SetField([]byte(name), Field{Value: f})
	}
	lie(6) // with the expiry in front a takes 2, b 4, and c fits into its row
	if err := h.ChangeField([]byte("b"), func(f *Field) (bool, error) { f.ExpireMS = 1e13; return true, nil }); err != nil {
		t.Fatal(err)
	}
	h.SetField([]byte("a"), Field{Value: []byte("small")})
	lie(4)
	h.SetField([]byte("a"), Field{Value: b})
	h.Remove([]byte("c"))
	s.Store([]byte("h"), h)
	l := s.Make(record.List)
	for _, elem := range [][]byte{a, []byte("2"), b, []byte("3"), a} {
		l.Push(false, elem)
	}
	l.Push(true, []byte("1"))
	l.Insert(2, c)
	l.Insert(5, a)
	l.SetItem(1, []byte("small"))
	l.SetItem(6, a)
	l.Drop(false, 1)
	s.Store([]byte("l"), l)
	x := s.Make(record.Stream)
	x.AddEntry(StreamID{1, 1}, b)
	y := x.Copy()
	x.RemoveEntry(StreamID{1, 1})
	s.Store([]byte("x"), x)
	s.Store([]byte("y"), y)
	gone := s.Make(record.List)
	gone.Push(false, b)
	if got := gone.Pop(true); !bytes.Equal(got, b) {
		t.Errorf("%d bytes were popped, want %d", len(got), len(b))
	}
	s.Store([]byte("gone"), gone)
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	got := allContents(t, s)
	want := map[string][]byte{"h a": b, "h b": b, "l 0": []byte("1"), "l 1": []byte("small"), "l 2": c, "l 3": []byte("2"), "l 4": b, "l 5": a, "l 6": a,
		"y 0": b, "n 0": []byte("1")}
	for name, v := range want {
		if !bytes.Equal(got[name], v) {
			t.Errorf("%s: %d bytes, want %d", name, len(got[name]), len(v))
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d elements, want %d", len(got), len(want))
	}
}

// allContents reads all records: values by key and field name, or element number. A batch has at most one
// large value.
func allContents(t *testing.T, s *State) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	reader, err := s.Records(0, record.AllTypes, nil, nil, time.Now(), new(record.Ledger), nil)
	if err != nil {
		t.Fatal(err)
	}
	r := record.Walk(reader)
	batch := make([]record.Element, 64)
	for {
		h, err := r.Next()
		if err != nil {
			break
		}
		key := string(h.Key)
		for at := 0; ; {
			n, err := r.Read(batch)
			if err != nil {
				break
			}
			size, largest := record.BatchBytes(batch[:n]), int64(0)
			for _, e := range batch[:n] {
				largest = max(largest, int64(len(e.Value)))
			}
			if size-largest > batchBytes {
				t.Errorf("%s: %d elements at once have %d bytes", key, n, size)
			}
			for _, e := range batch[:n] {
				name := fmt.Sprint(key, " ", at)
				if h.Type == record.Hash {
					name = key + " " + string(e.Name)
				}
				out[name] = bytes.Clone(e.Value)
				at++
			}
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestMark: a value that looks like the row of a value in pieces is read as it is, and a value with missing
// pieces is an error.
func TestMark(t *testing.T) {
	s := empty(t)
	looks := binary.BigEndian.AppendUint64(make([]byte, markBytes), 1<<40)
	key := dataKey(7, []byte("f"))
	s.set(key, looks)
	if got, _ := s.get(key); !bytes.Equal(got, looks) {
		t.Errorf("%x, want %x", got, looks)
	}
	s.set(key, make([]byte, pieceBytes+1))
	s.dropPieces(key)
	if _, _ = s.get(key); s.err == nil {
		t.Error("a value without its pieces is read")
	}
}
