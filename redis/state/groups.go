package state

import "encoding/binary"

// Group is a consumer group of a stream.
type Group struct {
	Last StreamID
	Read int64 // entries read, -1 if unknown

	of     *Value
	number uint64
}

// Consumer is a consumer of a group.
type Consumer struct{ SeenMS, ActiveMS int64 } // ActiveMS -1: never

// Pending is an entry that was delivered and not acknowledged.
type Pending struct {
	DeliveredMS, Count int64
	Consumer           []byte
	None               bool // it belongs to no consumer
}

func (v *Value) groupKey(name []byte) []byte { return dataKey(v.id, []byte{'g'}, name) }

func (g *Group) key(kind byte, rest []byte) []byte {
	return dataKey(g.of.id, binary.BigEndian.AppendUint64([]byte{kind}, g.number), rest)
}

func (g *Group) pendingKey(id StreamID) []byte { return g.key('p', id.append(nil)) }

// HasGroup reports whether a stream has a group.
func (v *Value) HasGroup(name []byte) bool { return v.s.has(v.groupKey(name)) }

// Groups returns the groups of a stream, by name.
func (v *Value) Groups() (out []*Group) {
	v.s.scan(v.groupKey(nil), func(_, value []byte) bool {
		out = append(out, v.decodeGroup(value))
		return true
	})
	return out
}

// Group returns a group of a stream, nil if it does not exist.
func (v *Value) Group(name []byte) *Group {
	b, ok := v.s.get(v.groupKey(name))
	if !ok {
		return nil
	}
	return v.decodeGroup(b)
}

func (v *Value) decodeGroup(b []byte) *Group {
	return &Group{Last: decodeID(b[8:]), Read: int64(binary.BigEndian.Uint64(b[24:])), of: v, number: binary.BigEndian.Uint64(b)}
}

// NewGroup returns a group without consumers. It becomes part of the stream with SetGroup.
func (v *Value) NewGroup(last StreamID, read int64) *Group {
	return &Group{Last: last, Read: read, of: v, number: v.s.newID()}
}

// SetGroup stores a group under a name.
func (v *Value) SetGroup(name []byte, g *Group) {
	b := g.Last.append(binary.BigEndian.AppendUint64(nil, g.number))
	v.s.set(v.groupKey(name), binary.BigEndian.AppendUint64(b, uint64(g.Read)))
}

// RemoveGroup removes a group.
func (v *Value) RemoveGroup(name []byte) { v.s.del(v.groupKey(name)) }

// Consumer returns a consumer of a group.
func (g *Group) Consumer(name []byte) (Consumer, bool) {
	b, ok := g.of.s.get(g.key('c', name))
	if !ok {
		return Consumer{}, false
	}
	return decodeConsumer(b), true
}

// SetConsumer sets a consumer, new or not.
func (g *Group) SetConsumer(name []byte, c Consumer) {
	b := binary.BigEndian.AppendUint64(nil, uint64(c.SeenMS))
	g.of.s.set(g.key('c', name), binary.BigEndian.AppendUint64(b, uint64(c.ActiveMS)))
}

func decodeConsumer(b []byte) Consumer {
	return Consumer{int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:]))}
}

// RemoveConsumer removes a consumer and its pending entries.
func (g *Group) RemoveConsumer(name []byte) {
	s := g.of.s
	s.del(g.key('c', name))
	s.scan(g.key('p', nil), func(key, value []byte) bool {
		if p := decodePending(value); !p.None && string(p.Consumer) == string(name) {
			s.del(g.key('p', key))
		}
		return true
	})
}

// Pending returns a pending entry.
func (g *Group) Pending(id StreamID) (Pending, bool) {
	b, ok := g.of.s.get(g.pendingKey(id))
	if !ok {
		return Pending{}, false
	}
	return decodePending(b), true
}

func decodePending(b []byte) Pending {
	return Pending{int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:])), b[17:], b[16] != 0}
}

// SetPending makes an entry pending.
func (g *Group) SetPending(id StreamID, p Pending) {
	b := binary.BigEndian.AppendUint64(nil, uint64(p.DeliveredMS))
	b = append(binary.BigEndian.AppendUint64(b, uint64(p.Count)), 0)
	if p.None {
		b[16] = 1
	}
	g.of.s.set(g.pendingKey(id), append(b, p.Consumer...))
}

// RemovePending removes a pending entry.
func (g *Group) RemovePending(id StreamID) { g.of.s.del(g.pendingKey(id)) }
