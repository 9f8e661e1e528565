package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	flatbuffers "github.com/google/flatbuffers/go"

	"kvferry/parquet/columns"
)

// arrowTable is a table of a message, read by the numbers of its fields.
type arrowTable struct{ flatbuffers.Table }

func (t arrowTable) at(field int) flatbuffers.UOffsetT {
	if o := t.Offset(flatbuffers.VOffsetT(4 + 2*field)); o > 0 {
		return t.Pos + flatbuffers.UOffsetT(o)
	}
	return 0
}

func (t arrowTable) table(field int) arrowTable {
	return arrowTable{flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(t.at(field))}}
}

// pairs returns a vector of structs of two integers.
func (t arrowTable) pairs(field int) (out [][2]int) {
	from := t.Vector(t.at(field) - t.Pos)
	for i := range flatbuffers.UOffsetT(t.VectorLen(t.at(field) - t.Pos)) {
		out = append(out, [2]int{int(t.GetInt64(from + 16*i)), int(t.GetInt64(from + 16*i + 8))})
	}
	return out
}

// read returns the rows of a stream as text.
func read(t *testing.T, b []byte, kinds []columns.Kind) (rows []string, batches int) {
	t.Helper()
	for {
		if binary.LittleEndian.Uint32(b) != math.MaxUint32 {
			t.Fatalf("no message begins with % x", b[:4])
		}
		n := int(binary.LittleEndian.Uint32(b[4:]))
		b = b[8:]
		if n == 0 {
			if len(b) > 0 {
				t.Fatalf("%d bytes after the end", len(b))
			}
			return rows, batches
		}
		if n%8 > 0 {
			t.Fatalf("metadata of %d bytes", n)
		}
		m := arrowTable{flatbuffers.Table{Bytes: b[:n], Pos: flatbuffers.GetUOffsetT(b)}}
		kind, size := m.GetByte(m.at(1)), 0
		if at := m.at(3); at > 0 {
			size = int(m.GetInt64(at))
		}
		body := b[n : n+size]
		b = b[n+size:]
		if kind == headerBatch {
			batches++
			rows = append(rows, readBatch(t, m.table(2), body, kinds)...)
		}
	}
}

func readBatch(t *testing.T, m arrowTable, body []byte, kinds []columns.Kind) []string {
	rows := make([]string, m.GetInt64(m.at(0)))
	nodes, buffers := m.pairs(1), m.pairs(2)
	next := func() []byte {
		at := buffers[0]
		buffers = buffers[1:]
		if at[0]%8 > 0 {
			t.Fatal("a buffer is not aligned")
		}
		return body[at[0] : at[0]+at[1]]
	}
	for c, kind := range kinds {
		if nodes[c][0] != len(rows) {
			t.Fatalf("column %d has %d rows of %d", c, nodes[c][0], len(rows))
		}
		valid := next()
		var offsets []byte
		if kind == columns.Binary || kind == columns.UTF8 {
			offsets = next()
		}
		data, nulls := next(), 0
		for i := range rows {
			switch {
			case len(valid) > 0 && valid[i/8]>>(i%8)&1 == 0:
				nulls++
				rows[i] += " -"
			case offsets != nil:
				rows[i] += fmt.Sprintf(
					" %s", data[binary.LittleEndian.Uint32(offsets[4*i:]):binary.LittleEndian.Uint32(offsets[4*i+4:])])
			case kind == columns.Number:
				rows[i] += fmt.Sprint(" ", math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:])))
			default:
				rows[i] += fmt.Sprint(" ", int64(binary.LittleEndian.Uint64(data[8*i:])))
			}
		}
		if nulls != nodes[c][1] {
			t.Errorf("column %d: %d nulls, want %d", c, nodes[c][1], nulls)
		}
	}
	return rows
}

// TestStream reads back a stream of several batches, which readers of Arrow read, too.
func TestStream(t *testing.T) {
	cols := []columns.Column{{Name: "key"}, {Name: "text", Kind: columns.UTF8, Optional: true},
		{Name: "n", Kind: columns.Integer, Optional: true},
		{Name: "at", Kind: columns.Timestamp}, {Name: "score", Kind: columns.Number, Optional: true}}
	w := newArrowWriter(cols, 1000)
	b := w.AppendSchema(nil)
	for _, name := range []string{"key", "text", "score", "UTC"} {
		if !bytes.Contains(b, []byte(name)) {
			t.Errorf("the schema has no %s", name)
		}
	}
	var want []string
	const rows = 100
	for i := range rows {
		w.Bytes(0, fmt.Appendf(nil, "k%d", i), 1)
		w.Int(3, -int64(i), 1)
		line := fmt.Sprintf(" k%d", i)
		if i%3 > 0 {
			w.Null(1, 1)
			w.Null(2, 1)
			w.Null(4, 1)
			want = append(want, fmt.Sprintf("%s - - %d -", line, -i))
		} else {
			w.Bytes(1, []byte("t"), 1)
			w.Int(2, int64(i), 1)
			w.Float(4, 0.5)
			want = append(want, fmt.Sprintf("%s t %d %d 0.5", line, i, -i))
		}
		if w.Full(1) {
			b = w.AppendBatch(b)
		}
	}
	b = w.AppendEnd(w.AppendBatch(b))
	var kinds []columns.Kind
	for _, c := range cols {
		kinds = append(kinds, c.Kind)
	}
	got, batches := read(t, b, kinds)
	if fmt.Sprint(got) != fmt.Sprint(want) || batches < 3 {
		t.Errorf("%d batches, %q, want %q", batches, got, want)
	}
}
