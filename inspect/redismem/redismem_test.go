package redismem

import (
	"fmt"
	"testing"

	"kvferry/internal/testkit/redistest"
	"kvferry/record"
)

// tolerance is the maximum error of an estimate, in percent.
const tolerance = 15

// sample is a record with the commands that create it.
type sample struct {
	group    string
	h        record.Header
	elements []record.Element
	command  []string
}

// mix returns records of all types and encodings, with sizes around the limits of each encoding.
func mix() (out []sample) {
	add := func(group string, t record.Type, command string, n int, f func(i int) (record.Element, []string)) {
		s := sample{group: group, h: record.Header{Type: t, Key: fmt.Appendf(nil, "%s:%d:%d", group, n, len(out))}}
		s.command = []string{command, string(s.h.Key)}
		for i := range n {
			e, args := f(i)
			s.elements = append(s.elements, e)
			s.command = append(s.command, args...)
		}
		out = append(out, s)
	}
	pad := func(i, n int) string { return fmt.Sprintf("%0*d-", n, i) }
	for i, n := range []int{0, 3, 20, 44, 45, 100, 1000, 70000} {
		v := string(make([]byte, n))
		add("string", record.String, "SET", 1, func(int) (record.Element, []string) {
			return record.Element{Value: []byte(v)}, []string{v}
		})
		add("integer", record.String, "SET", 1, func(int) (record.Element, []string) {
			v := fmt.Sprint(i * 1_000_003)
			return record.Element{Value: []byte(v)}, []string{v}
		})
	}
	for _, n := range []int{1, 20, 120, 500, 3000} {
		for _, wide := range []int{5, 30, 90} {
			v := pad(7, wide)
			add("hash", record.Hash, "HSET", n, func(i int) (record.Element, []string) {
				f := pad(i, 8)
				return record.Element{Name: []byte(f), Value: []byte(v)}, []string{f, v}
			})
			add("list", record.List, "RPUSH", n, func(i int) (record.Element, []string) {
				return record.Element{Value: []byte(pad(i, wide))}, []string{pad(i, wide)}
			})
			add("set", record.Set, "SADD", n, func(i int) (record.Element, []string) {
				return record.Element{Name: []byte(pad(i, wide))}, []string{pad(i, wide)}
			})
			add("zset", record.ZSet, "ZADD", n, func(i int) (record.Element, []string) {
				f := float64(i) + float64(wide)/7
				return record.Element{Name: []byte(pad(i, wide)), Score: f}, []string{fmt.Sprintf("%.17g", f), pad(i, wide)}
			})
		}
		add("intset", record.Set, "SADD", n, func(i int) (record.Element, []string) {
			v := fmt.Sprint(i * 100)
			return record.Element{Name: []byte(v)}, []string{v}
		})
	}
	return out
}

// streams returns streams that are written with one command per entry.
func streams() (out []sample) {
	for _, n := range []int{1, 50, 1000} {
		s := sample{group: "stream", h: record.Header{Type: record.Stream, Key: fmt.Appendf(nil, "stream:%d", n)}}
		for i := range n {
			id := record.Element{Name: make([]byte, 16),
				Value: record.AppendPair(record.AppendPair(nil, []byte("temperature"), fmt.Appendf(nil, "%d.5", i)),
					[]byte("place"), []byte("somewhere"))}
			s.elements = append(s.elements, id)
		}
		out = append(out, s)
	}
	return out
}

// TestServer compares estimates with MEMORY USAGE of a real server: they must be within the tolerance in each group
// of a mix and in total.
func TestServer(t *testing.T) {
	client := redistest.Start(t, "--save", "", "--enable-debug-command", "yes").Client()
	said, estimated := map[string]int64{}, map[string]int64{}
	all := mix()
	for i := range all {
		client.Must(t, all[i].command...)
	}
	for _, s := range streams() {
		for i := range s.elements {
			client.Must(t, "XADD", string(s.h.Key), fmt.Sprint(1700000000000+i*37, "-0"), "temperature", fmt.Sprintf("%d.5", i),
				"place", "somewhere")
		}
		all = append(all, s)
	}
	client.Must(t, "DEBUG", "RELOAD") // reload from a file: loading allocates no spare room
	for i := range all {
		s := &all[i]
		var m Meter
		m.Begin(&s.h)
		for len(s.elements) > 0 { // in batches
			n := min(len(s.elements), 7)
			m.Elements(s.elements[:n])
			s.elements = s.elements[n:]
		}
		got, want := m.Bytes(), client.Must(t, "MEMORY", "USAGE", string(s.h.Key), "SAMPLES", "0").(int64)
		for _, group := range []string{s.group, "all"} {
			said[group], estimated[group] = said[group]+want, estimated[group]+got
		}
		t.Logf("%s: %d, the server says %d (%+.1f %%)", s.h.Key, got, want, percent(got, want))
	}
	for group, want := range said {
		if p := percent(estimated[group], want); p > tolerance || p < -tolerance {
			t.Errorf("%s: %d bytes, the server says %d: %+.1f %%", group, estimated[group], want, p)
		}
	}
}

func percent(got, want int64) float64 { return 100 * float64(got-want) / float64(want) }

// TestClass checks the size classes of jemalloc in Redis's configuration.
func TestClass(t *testing.T) {
	for n, want := range map[int64]int64{1: 8, 8: 8, 9: 16, 17: 24, 64: 64, 65: 80, 81: 96, 128: 128, 129: 160, 257: 320,
		513: 640, 4097: 5120, 16385: 20480} {
		if got := class(n); got != want {
			t.Errorf("class(%d) = %d, want %d", n, got, want)
		}
	}
}

// TestKeys checks that the slots of tables are powers of two.
func TestKeys(t *testing.T) {
	for _, c := range []struct {
		n, expiring, want int64
	}{{0, 0, 0}, {1, 0, 32}, {4, 0, 32}, {5, 0, 64}, {1000, 3, 8192 + 32 + 72}} {
		if got := Keys(c.n, c.expiring); got != c.want {
			t.Errorf("Keys(%d, %d) = %d, want %d", c.n, c.expiring, got, c.want)
		}
	}
}

// TestOpaque checks that module values count with their size, and that field expiries and consumer groups add to the
// estimate.
func TestOpaque(t *testing.T) {
	of := func(typ record.Type, elems ...record.Element) int64 {
		var m Meter
		m.Begin(&record.Header{Type: typ, Key: []byte("k")})
		m.Elements(elems)
		return m.Bytes()
	}
	if got := of(record.Other, record.Element{Value: make([]byte, 100)}); got != 24+8+16+112 {
		t.Errorf("a value of a module: %d", got)
	}
	f := record.Element{Name: []byte("f"), Value: []byte("v")}
	expiring := f
	expiring.ExpireMS = 1
	if of(record.Hash, expiring) <= of(record.Hash, f) {
		t.Error("an expiry of a field takes nothing")
	}
	for _, e := range []record.Element{{Kind: record.Group, Name: []byte("g"),
		Value: record.AppendGroup(nil, &record.GroupState{Last: make([]byte, 16), Read: -1})},
		{Kind: record.Consumer, Name: []byte("g"), Value: record.AppendConsumer(nil, &record.ConsumerState{Name: []byte("c")})},
		{Kind: record.Pending, Name: []byte("g"), Value: record.AppendPending(nil, &record.PendingEntry{ID: make([]byte, 16)})}} {
		if of(record.Stream, e) <= of(record.Stream) {
			t.Errorf("kind %d takes nothing", e.Kind)
		}
	}
}
