package state

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"kvferry/record"
)

// pieces counts the rows that hold pieces.
func (s *State) pieces() (n int) {
	s.scan([]byte{'p'}, func(_, _ []byte) bool { n++; return true })
	return n
}

// TestLargeRows: values in pieces are what they were, wherever commands move them, and their pieces go with them.
func TestLargeRows(t *testing.T) {
	s := made(t, "SET n 1")
	rnd := rand.NewChaCha8([32]byte{1})
	value := func(n int) []byte { b := make([]byte, n); rnd.Read(b); return b }
	a, b, c := value(pieceBytes+1), value(3*pieceBytes), value(pieceBytes-8)
	do := func(words ...any) {
		t.Helper()
		var args [][]byte
		for _, w := range words {
			if text, ok := w.(string); ok {
				w = []byte(text)
			}
			args = append(args, w.([]byte))
		}
		if err := s.Do(args); err != nil {
			t.Fatalf("%s: %v", args[0], err)
		}
	}
	lie := func(want int) { // how many pieces there are
		t.Helper()
		if n := s.pieces(); n != want {
			t.Fatalf("%d pieces, want %d", n, want)
		}
	}
	do("HSET", "h", "a", a, "b", b, "c", c)
	lie(6) // with the expiry in front a takes 2, b 4, and c fits into its row
	do("HPEXPIRE", "h", "99999999999", "FIELDS", "1", "b")
	do("HSET", "h", "a", "small")
	lie(4)
	do("HSET", "h", "a", b)
	do("HDEL", "h", "c")
	do("RPUSH", "l", "1", a, "2", b, "3")
	do("LINSERT", "l", "BEFORE", "2", c)
	do("LREM", "l", "1", a)
	do("LSET", "l", "-1", a)
	do("XADD", "x", "1-1", "f", b)
	do("COPY", "x", "y")
	do("XDEL", "x", "1-1")
	do("RPUSH", "gone", b)
	do("LPOP", "gone")
	if err := s.Seal(); err != nil {
		t.Fatal(err)
	}
	got := allContents(t, s)
	want := map[string][]byte{"h a": b, "h b": b, "l 0": []byte("1"), "l 1": c, "l 2": []byte("2"), "l 3": b, "l 4": a,
		"y 0": record.AppendPair(nil, []byte("f"), b), "n 0": []byte("1")}
	for name, v := range want {
		if !bytes.Equal(got[name], v) {
			t.Errorf("%s: %d bytes, want %d", name, len(got[name]), len(v))
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d elements, want %d", len(got), len(want))
	}
}

// allContents reads all records: values by key and name of a field, or number of the element. A batch has one large value at
// most.
func allContents(t *testing.T, s *State) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	r, err := s.Records(0, record.AllTypes, nil, nil, testNow, new(record.Ledger))
	if err != nil {
		t.Fatal(err)
	}
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
			if size := record.BatchBytes(batch[:n]); n > 1 && size > batchBytes+pieceBytes+1024 {
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

// TestMark: a value that looks like the row of another one in pieces is none, and a value whose pieces are gone is an error.
func TestMark(t *testing.T) {
	s := made(t, "HSET h f v")
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
