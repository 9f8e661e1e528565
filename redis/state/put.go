package state

import (
	"bytes"
	"math"

	"kvferry/record"
)

// Put is a record being put into the state unchanged, element by element.
type Put struct {
	key []byte
	v   *Value
	g   *Group // of a stream, for the elements that follow
}

// Put starts a record in the selected database; when it ends, it replaces the key of its name.
func (s *State) Put(h *record.Header) *Put {
	v := s.Make(h.Type)
	v.ExpireMS = h.ExpireMS
	if len(h.Last) == 16 {
		v.Last = decodeID(h.Last)
	}
	if len(h.MaxDeleted) == 16 {
		v.Deleted = decodeID(h.MaxDeleted)
	}
	v.Added = h.Added
	return &Put{key: bytes.Clone(h.Key), v: v}
}

// Write adds elements; they are not kept.
func (p *Put) Write(elems []record.Element) error {
	for i := range elems {
		p.element(&elems[i])
	}
	return p.v.s.Err()
}

func (p *Put) element(e *record.Element) {
	v := p.v
	switch v.Type {
	case record.String:
		v.inlined = bytes.Clone(e.Value)
	case record.Hash:
		v.SetField(e.Name, Field{e.ExpireMS, e.Value})
	case record.List:
		v.Push(false, e.Value)
	case record.Set:
		v.AddMember(e.Name)
	case record.ZSet:
		if !math.IsNaN(e.Score) {
			v.SetScore(e.Name, e.Score)
		}
	case record.Stream:
		p.streamed(e)
	case record.Other:
		v.s.set(dataKey(v.id, e.Name), e.Value)
		v.count++
	}
}

// streamed takes an element of a stream.
func (p *Put) streamed(e *record.Element) {
	switch e.Kind {
	case record.Entry:
		p.entry(e)
	case record.Group:
		if g, err := record.DecodeGroup(e.Value); err == nil {
			p.g = p.v.NewGroup(decodeID(g.Last), g.Read)
			p.v.SetGroup(e.Name, p.g)
		}
	case record.Consumer:
		if c, err := record.DecodeConsumer(e.Value); err == nil && p.g != nil {
			p.g.SetConsumer(c.Name, Consumer{c.SeenMS, c.ActiveMS})
		}
	case record.Pending:
		if x, err := record.DecodePending(e.Value); err == nil && p.g != nil {
			p.g.SetPending(decodeID(x.ID), Pending{x.DeliveredMS, x.Count, x.Consumer, x.Consumer == nil})
		}
	}
}

func (p *Put) entry(e *record.Element) {
	if len(e.Name) != 16 {
		return
	}
	id := decodeID(e.Name)
	p.v.AddEntry(id, e.Value)
	if id.After(p.v.Last) {
		p.v.Last = id
	}
}

// End finishes the record. A record without elements creates no key, unless it is a string or a stream. If the
// number of entries added to a stream is unknown, it becomes the stream's length, as on a server.
func (p *Put) End() error {
	if p.v.Type == record.Stream {
		p.v.Added = max(p.v.Added, uint64(p.v.count))
	}
	p.v.s.Store(p.key, p.v)
	return p.v.s.Err()
}
