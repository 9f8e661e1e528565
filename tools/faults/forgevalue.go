package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"kvferry/fixtures"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/pack"
)

// texts replace other texts, or numbers.
var texts = []string{"", "a", "-1", "0", "1", "2", "abc", "nan", "inf", "-inf", "1e400", "0x10", " 1", "1 ", "+5", "1_0", "01",
	"-0", "1.5", "\x00", "18446744073709551616", "9223372036854775807", "-9223372036854775808", "4294967296", "32768"}

// lengths replace other lengths. Medium-sized lengths are missing: servers spend seconds on allocating tables for them.
var lengths = []uint64{0, 1, 2, 3, 4, 63, 64, 1 << 14, 1 << 62, 1<<63 - 1, 1 << 63, math.MaxUint64}

// pick picks a random part for which fits is true.
func (v *value) pick(r *fixtures.Rand, fits func(p *part) bool) (int, *part) {
	var at []int
	for i := range v.parts {
		if fits(&v.parts[i]) {
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return 0, nil
	}
	i := fixtures.Pick(r, at)
	return i, &v.parts[i]
}

func isKind(kinds ...partKind) func(p *part) bool {
	return func(p *part) bool { return slices.Contains(kinds, p.kind) }
}

// toPart applies do to a random part.
func toPart(fits func(p *part) bool, do func(r *fixtures.Rand, p *part) bool) func(*fixtures.Rand, *value) string {
	return func(r *fixtures.Rand, v *value) string {
		i, p := v.pick(r, fits)
		if p == nil || !do(r, p) {
			return ""
		}
		return fmt.Sprintf(" %d", i)
	}
}

// toBytes changes the bytes of the whole value, without adjusting lengths.
func toBytes(do func(r *fixtures.Rand, b []byte) []byte) func(*fixtures.Rand, *value) string {
	return func(r *fixtures.Rand, v *value) string {
		v.tail = func(b []byte) []byte {
			if len(b) == 0 {
				return b
			}
			return do(r, b)
		}
		return " of all"
	}
}

// toPacked unpacks a packed collection, changes its entries, and packs it again.
func toPacked(do func(r *fixtures.Rand, e []pack.Item) []pack.Item) func(*fixtures.Rand, *value) string {
	return toPart(func(p *part) bool {
		return p.kind == partPack && (p.pack == pack.Listpack || p.pack == pack.Ziplist)
	}, func(r *fixtures.Rand, p *part) bool {
		items := p.items()
		if len(items) == 0 {
			return false
		}
		if items = do(r, items); items == nil {
			return false
		}
		p.set(items)
		return true
	})
}

// items returns the entries of a packed collection.
func (p *part) items() (out []pack.Item) {
	var x pack.Reader
	err := x.Open(p.pack, p.b)
	for err == nil {
		var e pack.Item
		var ok bool
		if ok, err = x.Next(&e); !ok || err != nil {
			break
		}
		out = append(out, e)
	}
	return out
}

func (p *part) set(items []pack.Item) {
	if p.pack == pack.Intset {
		var n []int64
		for _, e := range items {
			n = append(n, e.N)
		}
		p.b = pack.AppendIntset(nil, n, func(dst []byte, _ uint64) []byte { return dst })
		return
	}
	var w pack.Writer
	w.Begin(p.pack)
	for _, e := range items {
		if e.IsInt {
			w.AddInt(e.N)
		} else {
			w.Add(e.Text)
		}
	}
	p.b = slices.Clone(w.End())
}

func otherItem(r *fixtures.Rand) pack.Item {
	if r.Chance(50) {
		return pack.Item{N: int64(r.Uint64()) >> r.Intn(64), IsInt: true}
	}
	return pack.Item{Text: []byte(fixtures.Pick(r, texts))}
}

var valueForgeries = []struct {
	name string
	do   func(r *fixtures.Rand, v *value) string
}{
	{unforged, func(*fixtures.Rand, *value) string { return " but its form" }},
	{"length", toPart(isKind(partLen), func(r *fixtures.Rand, p *part) bool {
		p.n += uint64(r.Intn(3)) - 1
		return true
	})},
	{"length-other", toPart(isKind(partLen), func(r *fixtures.Rand, p *part) bool {
		p.n = fixtures.Pick(r, lengths)
		return true
	})},
	{"form", toPart(isKind(partLen, partText, partPack), func(r *fixtures.Rand, p *part) bool {
		p.width = byte(1 + r.Intn(4))
		if p.kind == partLen {
			p.width = byte(1 + r.Intn(2))
		}
		return len(p.b) > 0 || p.width < short
	})},
	{"part-drop", func(r *fixtures.Rand, v *value) string {
		i := r.Intn(len(v.parts))
		v.parts = slices.Delete(v.parts, i, i+1)
		return fmt.Sprintf(" %d", i)
	}},
	{"parts-twice", func(r *fixtures.Rand, v *value) string {
		from := r.Intn(len(v.parts))
		to := min(len(v.parts), from+1+r.Intn(3))
		v.parts = slices.Insert(v.parts, to, v.parts[from:to]...)
		if i, p := v.pick(r, isKind(partLen)); p != nil && i < from && r.Chance(80) {
			p.n++
		}
		return fmt.Sprintf(" %d-%d", from, to)
	}},
	{"parts-swap", func(r *fixtures.Rand, v *value) string {
		a, pa := v.pick(r, func(*part) bool { return true })
		b, pb := v.pick(r, isKind(pa.kind))
		if a == b {
			return ""
		}
		*pa, *pb = *pb, *pa
		return fmt.Sprintf(" %d and %d", a, b)
	}},
	{"part-copied", func(r *fixtures.Rand, v *value) string {
		a, pa := v.pick(r, func(*part) bool { return true })
		b, pb := v.pick(r, isKind(pa.kind))
		if a == b {
			return ""
		}
		*pa = *pb
		return fmt.Sprintf(" %d is %d", a, b)
	}},
	{"text", toPart(isKind(partText, partPack), func(r *fixtures.Rand, p *part) bool {
		p.b = []byte(fixtures.Pick(r, texts))
		return true
	})},
	{"text-bits", toPart(isKind(partText, partPack, partRaw), func(r *fixtures.Rand, p *part) bool {
		p.b = flipped(r, p.b)
		return p.b != nil
	})},
	{"text-longer", toPart(isKind(partText, partPack, partRaw), func(r *fixtures.Rand, p *part) bool {
		p.b = longer(r, p.b)
		return true
	})},
	{"text-shorter", toPart(isKind(partText, partPack, partRaw), func(r *fixtures.Rand, p *part) bool {
		p.b = shorter(r, p.b)
		return p.b != nil
	})},
	{"raw", toPart(isKind(partRaw), func(r *fixtures.Rand, p *part) bool {
		if len(p.b) != 8 {
			r.Fill(p.b)
			return true
		}
		binary.LittleEndian.PutUint64(p.b, fixtures.Pick(r,
			[]uint64{0, 1, 1 << 63, math.MaxUint64, math.Float64bits(math.NaN()), math.Float64bits(math.Inf(1)), r.Uint64()}))
		return true
	})},
	{"packed-byte", toPart(isKind(partPack), func(r *fixtures.Rand, p *part) bool {
		if len(p.b) == 0 {
			return false
		}
		p.b[r.Intn(len(p.b))] = byte(r.Uint64())
		return true
	})},
	{"packed-head", toPart(isKind(partPack), func(r *fixtures.Rand, p *part) bool {
		if len(p.b) < 7 {
			return false
		}
		p.b[r.Intn(min(10, len(p.b)))] += byte(r.Intn(5)) - 2
		return true
	})},
	{"packed-hidden", toPart(isKind(partPack), func(r *fixtures.Rand, p *part) bool { // more bytes, counted in its header
		if len(p.b) < 7 || p.pack == pack.Zipmap || p.pack == pack.Intset {
			return false
		}
		more := make([]byte, 1+r.Intn(5))
		r.Fill(more)
		p.b = slices.Insert(p.b, len(p.b)-r.Intn(2), more...)
		binary.LittleEndian.PutUint32(p.b, uint32(len(p.b)))
		return true
	})},
	{"entry-drop", toPacked(func(r *fixtures.Rand, e []pack.Item) []pack.Item {
		i := r.Intn(len(e))
		return slices.Delete(e, i, min(len(e), i+1+r.Intn(2)))
	})},
	{"entry-twice", toPacked(func(r *fixtures.Rand, e []pack.Item) []pack.Item {
		i := r.Intn(len(e))
		return slices.Insert(e, r.Intn(len(e)+1), e[i:min(len(e), i+1+r.Intn(2))]...)
	})},
	{"entries-swap", toPacked(func(r *fixtures.Rand, e []pack.Item) []pack.Item {
		a, b := r.Intn(len(e)), r.Intn(len(e))
		e[a], e[b] = e[b], e[a]
		return e
	})},
	{"entry-copied", toPacked(func(r *fixtures.Rand, e []pack.Item) []pack.Item {
		e[r.Intn(len(e))] = e[r.Intn(len(e))]
		return e
	})},
	{"entry-other", toPacked(func(r *fixtures.Rand, e []pack.Item) []pack.Item {
		e[r.Intn(len(e))] = otherItem(r)
		return e
	})},
	{"entry-number", toPacked(func(r *fixtures.Rand, e []pack.Item) []pack.Item {
		i := r.Intn(len(e))
		if !e[i].IsInt {
			return nil
		}
		e[i].N += int64(r.Intn(5)) - 2
		return e
	})},
	{"entry-none", toPacked(func(*fixtures.Rand, []pack.Item) []pack.Item { return []pack.Item{} })},
	{"type", func(r *fixtures.Rand, v *value) string {
		v.t = rdb.Type(r.Intn(34))
		return fmt.Sprintf(" %d", v.t)
	}},
	{"byte", toBytes(func(r *fixtures.Rand, b []byte) []byte {
		b[r.Intn(len(b))] = byte(r.Uint64())
		return b
	})},
	{"byte-gone", toBytes(func(r *fixtures.Rand, b []byte) []byte {
		i := r.Intn(len(b))
		return slices.Delete(b, i, i+1)
	})},
	{"byte-more", toBytes(func(r *fixtures.Rand, b []byte) []byte { return slices.Insert(b, r.Intn(len(b)+1), byte(r.Uint64())) })},
	{"cut", toBytes(func(r *fixtures.Rand, b []byte) []byte { return b[:r.Intn(len(b))] })},
	{"more", toBytes(func(r *fixtures.Rand, b []byte) []byte { return longer(r, b) })},
}

// older converts a value to the encodings of earlier servers.
func (v *value) older() (out []*value) {
	add := func(t rdb.Type, parts ...part) { out = append(out, &value{t: t, parts: parts}) }
	count := func(n int) part { return part{kind: partLen, n: uint64(n)} }
	repack := func(p part, kind pack.Kind) part {
		items := p.items()
		p.pack = kind
		p.set(items)
		return p
	}
	switch v.t {
	case rdb.TypeHashListpack:
		add(rdb.TypeHashZiplist, repack(v.parts[0], pack.Ziplist))
		flat := v.flat()
		add(rdb.TypeHash, append([]part{count(len(flat) / 2)}, flat...)...)
		add(rdb.TypeHashZipmap, part{kind: partPack, pack: pack.Zipmap, b: zipmap(flat)})
	case rdb.TypeZSetListpack:
		add(rdb.TypeZSetZiplist, repack(v.parts[0], pack.Ziplist))
		flat := v.flat()
		for i := 1; i < len(flat); i += 2 {
			flat[i] = part{kind: partRaw, b: append([]byte{byte(len(flat[i].b))}, flat[i].b...)}
		}
		add(rdb.TypeZSet, append([]part{count(len(flat) / 2)}, flat...)...)
	case rdb.TypeSetListpack:
		flat := v.flat()
		add(rdb.TypeSet, append([]part{count(len(flat))}, flat...)...)
	case rdb.TypeQuicklist2:
		nodes, all := []part{}, []part{}
		for _, p := range v.parts {
			if p.kind == partPack {
				nodes = append(nodes, repack(p, pack.Ziplist))
				all = append(all, (&value{parts: []part{p}}).flat()...)
			}
		}
		if len(nodes) > 0 {
			add(rdb.TypeQuicklist, append([]part{count(len(nodes))}, nodes...)...)
			add(rdb.TypeListZiplist, nodes[0])
			add(rdb.TypeList, append([]part{count(len(all))}, all...)...)
		}
	}
	return out
}

// flat returns the entries of a packed value as strings.
func (v *value) flat() (out []part) {
	for _, e := range v.parts[0].items() {
		text, _ := e.AppendTo(nil)
		out = append(out, part{kind: partText, b: slices.Clone(text)})
	}
	return out
}

func zipmap(flat []part) []byte {
	out := []byte{byte(min(len(flat)/2, 254))}
	for i, p := range flat {
		if len(p.b) < 254 {
			out = append(out, byte(len(p.b)))
		} else {
			out = binary.LittleEndian.AppendUint32(append(out, 254), uint32(len(p.b)))
		}
		if i%2 == 1 {
			out = append(out, 0)
		}
		out = append(out, p.b...)
	}
	return append(out, 255)
}
