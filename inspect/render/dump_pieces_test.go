package render

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	"kvferry/inspect/dump"
	"kvferry/internal/sys/bufpool"
	"kvferry/internal/text/jsonl"
	"kvferry/internal/text/resp"
	"kvferry/record"
)

// TestPieces checks that large values are written in pieces, with the same text as in one piece.
func TestPieces(t *testing.T) {
	raw := make([]byte, 3*bufpool.Piece+5)
	rand.NewChaCha8([32]byte{1}).Read(raw)
	values := [][]byte{raw, raw[:bufpool.Piece+1], []byte("small"), nil,
		[]byte(strings.Repeat("a\"é\u202e\x1b,😀\r\n", bufpool.Piece/5)), []byte("=" + strings.Repeat("plain", bufpool.Piece)),
		[]byte("base64:" + strings.Repeat("€", bufpool.Piece))}
	for name, make := range map[string]func() dump.Encoder{
		"jsonl":  func() dump.Encoder { return new(Lines) },
		"base64": func() dump.Encoder { return &Lines{jsonl.Encoder{Base64: true}} },
		"json":   func() dump.Encoder { return new(Document) },
		"csv":    func() dump.Encoder { return &CSV{Safe: true} },
		"sql":    func() dump.Encoder { return new(SQL) },
		"csv64":  func() dump.Encoder { return &CSV{Base64: true} },
		"resp":   func() dump.Encoder { return &resp.Encoder{DBs: []string{"0"}} },
	} {
		whole, largest := dumpValues(t, make(), values, false)
		if largest < len(raw) {
			t.Fatalf("%s: the longest text is %d bytes", name, largest)
		}
		pieces, largest := dumpValues(t, make(), values, true)
		if !bytes.Equal(whole, pieces) {
			t.Errorf("%s: %d bytes in pieces are not the %d bytes of whole values", name, len(pieces), len(whole))
		}
		if most := 13 * bufpool.Piece; largest > most { // two spills of six-byte escapes
			t.Errorf("%s: a piece has %d bytes, over %d", name, largest, most)
		}
	}
}

// dumpValues encodes records with these values and returns the text and the largest size of the buffer.
func dumpValues(t *testing.T, e dump.Encoder, values [][]byte, pieces bool) (out []byte, largest int) {
	t.Helper()
	flush := func(text []byte) []byte {
		largest = max(largest, len(text))
		out = append(out, text...)
		return text[:0]
	}
	if pieces {
		e.(dump.Spiller).SpillTo(flush)
	}
	buf := flush(e.AppendHead(nil))
	check := func(b []byte, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		buf = flush(b)
	}
	for _, typ := range []record.Type{record.String, record.Hash, record.List, record.Set, record.ZSet, record.Stream} {
		key := []byte("key of type " + typ.String())
		if typ == record.Hash {
			key = append(key, values[0][:bufpool.Piece+1]...)
		}
		check(e.AppendBegin(buf, &record.Header{DB: "0", Type: typ, Key: key, ExpireMS: 5}))
		for i, v := range values {
			el := record.Element{Name: []byte("name"), Value: v}
			switch typ {
			case record.Set, record.ZSet:
				el.Name = v
			case record.Stream:
				el.Name = binary.BigEndian.AppendUint64(make([]byte, 7, 16), uint64(i+1)<<8)[:15]
				el.Name = append(el.Name, 1)
				el.Value = record.AppendPair(record.AppendPair(nil, []byte("f"), v), v, nil)
			}
			if typ == record.Hash {
				el.ExpireMS = int64(7 * (i % 2))
			}
			check(e.AppendElement(buf, &el))
			if typ == record.String {
				break
			}
		}
		check(e.AppendEnd(buf))
	}
	flush(e.AppendTail(buf))
	return out, largest
}
