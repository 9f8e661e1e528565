package rdb

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"io"
	"slices"

	"kvferry/record"
	"kvferry/redis/rdb/pack"
)

// KeyDB writes member expiries after the value, as pairs of AUX fields:
//
//	FA "keydb-subexpire-key" member | FA "keydb-subexpire-when" ms
const (
	memberName = "keydb-subexpire-key"
	memberWhen = "keydb-subexpire-when"
)

// seed is random, so no file can be crafted to cause hash collisions.
var seed = maphash.MakeSeed()

// maxMembers limits the member expiries kept per key.
const maxMembers = 1 << 20

// members skips the member expiries of a key.
func (s *Scanner) members() {
	in := &s.in
	if in.pos < len(in.buf) && in.buf[in.pos] != opAux { // nearly always
		return
	}
	for in.err == nil && (in.isAux(memberName) || in.isAux(memberWhen)) {
		in.skip(1, "opcode")
		in.skipString("name")
		in.skipString("member")
	}
}

// isAux reports whether an AUX field of this name is next.
func (in *input) isAux(name string) bool {
	if in.pos < len(in.buf) && in.buf[in.pos] != opAux {
		return false
	}
	n := 2 + len(name)
	if in.left() < int64(n) || !in.has(uint64(n), "aux") {
		return false
	}
	b := in.buf[in.pos : in.pos+n]
	return b[0] == opAux && int(b[1]) == len(name) && string(b[2:]) == name
}

// member is the expiry of a member, by the hash of its name.
type member struct {
	hash uint64
	ms   int64
}

// memberExpiries holds the expiries of a value's members. It may include members that no longer exist.
type memberExpiries struct {
	list   []member
	sorted bool
	lost   int64 // dropped because of maxMembers
}

// read reads the AUX fields after a value.
func (m *memberExpiries) read(in *input) {
	for in.err == nil && in.left() > 0 {
		off := in.offset()
		name := bytes.Clone(in.aux(memberName))
		when := in.aux(memberWhen)
		ms, ok := pack.ParseInt(when)
		switch {
		case in.err != nil:
			return
		case !ok || ms < 0:
			in.failf(off, "member expiry", "%s is not a time", record.Quote(when))
		default:
			m.add(name, ms)
		}
	}
}

// add sets the expiry of a member.
func (m *memberExpiries) add(name []byte, ms int64) {
	if len(m.list) == maxMembers {
		m.lost++
		return
	}
	m.list, m.sorted = append(m.list, member{maphash.Bytes(seed, name), max(ms, 1)}), false
}

// ExpireMember sets the expiry of a member of the current value. It ignores a missing member.
func (d *Decoder) ExpireMember(name []byte, ms int64) { d.members.add(name, ms) }

// aux reads the value of an AUX field of this name.
func (in *input) aux(name string) []byte {
	if !in.isAux(name) {
		in.failf(in.offset(), "member expiry", "no %s", name)
		return nil
	}
	in.skip(1, "opcode")
	in.skipString("name")
	value, _ := in.str("member", nil)
	return value
}

// set applies the expiries to elements.
func (m *memberExpiries) set(elems []record.Element) {
	if !m.sorted {
		slices.SortStableFunc(m.list, func(a, b member) int { return cmp.Compare(a.hash, b.hash) })
		m.sorted = true
	}
	for i := range elems {
		at, ok := slices.BinarySearchFunc(m.list, maphash.Bytes(seed, elems[i].Name),
			func(x member, h uint64) int { return cmp.Compare(x.hash, h) })
		if ok {
			elems[i].ExpireMS = m.list[at].ms
		}
	}
}

// Unread returns the number of member expiries dropped because the value has too many.
func (d *Decoder) Unread() int64 { return d.members.lost }

// BeginItem starts to decode the value of an item.
func (d *Decoder) BeginItem(hd Header, it *Item, r io.ReaderAt, h *record.Header) (err error) {
	if it.Value != nil {
		err = d.Begin(it.Type, hd, it.Value, it.From, h)
	} else {
		err = d.BeginAt(it.Type, hd, r, it.From, it.To, h)
	}
	if err != nil || !it.HasMembers() {
		return err
	}
	var in input
	if it.Members != nil {
		in.reset(it.Members, it.To)
	} else {
		in.open(r, it.To, it.End)
	}
	d.members.read(&in)
	return in.err
}
