package encode

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
	"testing"

	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// sized is a record whose encoding depends on its size or contents.
type sized struct {
	name  string
	h     record.Header
	elems []record.Element
}

// sizes are records on both sides of every bound.
func sizes() (out []sized) {
	add := func(name string, typ record.Type, elems ...record.Element) {
		out = append(out, sized{name, record.Header{Type: typ, Len: -1}, elems})
	}
	many := func(n, width int) (elems []record.Element) {
		for i := range n {
			text := fmt.Appendf(nil, "%0*d.", width-1, i*7919%n)
			elems = append(elems, record.Element{Name: text, Value: text, Score: float64(i * 31 % n)})
		}
		return elems
	}
	wide := func(name, value int) record.Element {
		return record.Element{Name: bytes.Repeat([]byte("n"), name), Value: bytes.Repeat([]byte("v"), value)}
	}
	add("an empty string", record.String, record.Element{})
	add("a string", record.String, record.Element{Value: []byte("text")})
	for _, typ := range []record.Type{record.Hash, record.Set, record.ZSet} {
		for _, n := range []int{1, maxPackedItems, maxPackedItems + 1} {
			add(fmt.Sprint(n), typ, many(n, 8)...)
		}
		for _, n := range []int{maxPackedBytes, maxPackedBytes + 1} {
			add(fmt.Sprint("name of ", n), typ, wide(n, 1), wide(1, 1))
			add(fmt.Sprint("value of ", n), typ, wide(1, 1), wide(2, n))
		}
		for _, n := range []int{1<<14 - 1, 1 << 14, 1<<14 + 1} {
			add(fmt.Sprint(n), typ, many(n, 8)...)
		}
	}
	for _, n := range []int{maxBody/2 - 8, maxBody/2 - 7} {
		add(fmt.Sprint("of ", n, " bytes"), record.Hash, wide(1, 0), wide(1, n), wide(3, 3))
	}
	add("past a megabyte", record.Hash, many(1<<15, 40)...)
	add("past a megabyte", record.ZSet, many(1<<15, 40)...)
	for _, n := range []int{maxIntset, maxIntset + 1} {
		var elems []record.Element
		for i := range n {
			elems = append(elems, record.Element{Name: fmt.Appendf(nil, "%d", (i*7919%n-200)<<(i%40))})
		}
		add(fmt.Sprint(n, " integers"), record.Set, elems...)
	}
	for _, text := range []string{"-9223372036854775808", "9223372036854775807", "9223372036854775808", "007"} {
		add("as a number: "+text, record.Set, record.Element{Name: []byte(text)}, record.Element{Name: []byte("5")})
	}
	scores := []float64{math.Inf(1), 2.5, math.Copysign(0, -1), -1, 0, math.Inf(-1), 1e17, 3}
	for _, width := range []int{1, 70} {
		var elems []record.Element
		for i, f := range scores {
			elems = append(elems, record.Element{Name: bytes.Repeat([]byte{'z' - byte(i)}, width), Score: f})
		}
		add(fmt.Sprint("scores, names of ", width), record.ZSet, elems...)
	}
	expiring := many(3, 4)
	expiring[0].ExpireMS, expiring[2].ExpireMS = 1700000000123, 1700000000100
	add("fields that expire", record.Hash, expiring...)
	last := many(1<<14+2, 8)
	last[1<<14+1].ExpireMS = 1700000000123
	add("the last field expires", record.Hash, last...)
	for _, n := range []int{1, maxNode - 16, maxNode - 15, maxNode - 14, maxNode - 1, maxNode, maxNode + 1} {
		add(fmt.Sprint("items of ", n), record.List, wide(0, 3), wide(0, n), wide(0, 5), wide(0, n))
	}
	add("items", record.List, many(5000, 9)...)
	return append(out, streams()...)
}

// streams are streams on both sides of the node bounds, and with groups.
func streams() (out []sized) {
	add := func(name string, h record.Header, elems ...record.Element) {
		h.Type, h.Len = record.Stream, -1
		out = append(out, sized{name, h, elems})
	}
	id := func(n byte) []byte { return append(make([]byte, 15), n) }
	add("empty", record.Header{Last: id(9), MaxDeleted: id(7), Added: 12})
	add("empty, without ids", record.Header{})
	for _, n := range []int{maxNodeEntries, maxNodeEntries + 1} {
		var elems []record.Element
		for i := range n {
			elems = append(elems, entry(byte(i+1), "f", []byte("v")))
		}
		add(fmt.Sprint(n), record.Header{Last: id(200), Added: 300}, elems...)
	}
	for size := 2030; size < 2034; size++ {
		add(fmt.Sprint("entries of ", size), record.Header{Last: id(1)}, entry(1, "f", make([]byte, size)),
			entry(2, "f", make([]byte, size)), entry(2, "g", nil))
	}
	two := record.Element{Name: id(7), Value: record.AppendPair(record.AppendPair(nil, []byte("f"), []byte("1")), []byte("g"),
		[]byte("2"))}
	group := func(name string, last []byte, read int64) record.Element {
		return record.Element{Kind: record.Group, Name: []byte(name),
			Value: record.AppendGroup(nil, &record.GroupState{Last: last, Read: read})}
	}
	consumer := func(name string, seen, active int64) record.Element {
		return record.Element{Kind: record.Consumer,
			Value: record.AppendConsumer(nil, &record.ConsumerState{Name: []byte(name), SeenMS: seen, ActiveMS: active})}
	}
	pending := func(name string, n byte) record.Element {
		return record.Element{Kind: record.Pending, Value: record.AppendPending(nil,
			&record.PendingEntry{ID: id(n), Consumer: []byte(name), DeliveredMS: 1600, Count: 300})}
	}
	add("groups", record.Header{Last: id(7)}, entry(5, "f", nil), two, group("g1", id(5), 1), consumer("c1", 1700, 1701),
		consumer("c2", 1800, -1),
		pending("c1", 5), pending("new", 7), pending("c1", 7), group("g2", make([]byte, 16), -1), group("g3", id(7), 2),
		consumer("c1", 1900, 1901))
	return out
}

// TestOutcomes: the type, length and hash of every encoding, in parts as spilled, equal testdata/outcomes.txt, so that
// output changes only by intent. The round trips here, and servers elsewhere, test that the output is correct.
func TestOutcomes(t *testing.T) {
	var got strings.Builder
	records := sizes()
	for _, v := range versions(t) {
		spilt := crc32.NewIEEE()
		spills := func(typ rdb.Type, part []byte) error {
			fmt.Fprintf(spilt, "%d %d ", typ, len(part))
			spilt.Write(part)
			return nil
		}
		e := Encoder{Version: v, Memory: 1 << 20, TempDir: t.TempDir(), Spill: spills}
		fmt.Fprintf(&got, "\nversion %s\n\n", v.String())
		for _, r := range records {
			if len(r.elems) > maxPackedItems+1 && v.Number != 12 && r.h.Type != record.List { // once is enough for large records
				continue
			}
			spilt.Reset()
			e.Begin(&r.h)
			for rest := r.elems; len(rest) > 0; {
				n := min(len(rest), 100)
				if err := e.Elements(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			value, ok, err := e.End()
			if err != nil {
				t.Fatal(err)
			}
			spilt.Write(value.Prefix)
			spilt.Write(value.Body)
			fmt.Fprintf(&got, "%s, %s: %t %s, counted %t %d, spilt %t, %d and %d bytes, %08x\n", r.h.Type, r.name, ok,
				value.Type.Name(rdb.Header{Valkey: v.Valkey}), value.Counted,
				value.Count, value.Spilt, len(value.Prefix), len(value.Body), spilt.Sum32())
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	formattest.CheckOutcomes(t, "testdata/outcomes.txt", got.String())
}
