package state

import (
	"bytes"
	"math"

	"kvferry/record"
)

// Put is a record that is put into the state as it is, element by element.
type Put struct {
	s   *State
	key []byte
	m   *meta
	g   *group // of a stream, that elements come of
}

// Put starts a record in the selected database; a key of its name goes when it ends.
func (s *State) Put(h *record.Header) *Put {
	m := s.fresh(h.Type)
	m.expire = h.ExpireMS
	if h.Type == record.String {
		m.inline = true
	}
	if len(h.Last) == 16 {
		m.last = decodeID(h.Last)
	}
	if len(h.MaxDeleted) == 16 {
		m.deleted = decodeID(h.MaxDeleted)
	}
	m.added = h.Added
	return &Put{s: s, key: bytes.Clone(h.Key), m: m}
}

// Write adds elements; they are not kept.
func (p *Put) Write(elems []record.Element) error {
	for i := range elems {
		p.element(&elems[i])
	}
	return p.s.check()
}

func (p *Put) element(e *record.Element) {
	s, m := p.s, p.m
	switch m.typ {
	case record.String:
		m.value = bytes.Clone(e.Value)
	case record.Hash:
		s.setField(m, e.Name, field{expire: e.ExpireMS, value: e.Value})
	case record.List:
		s.push(m, false, e.Value)
	case record.Set:
		s.addMember(m, e.Name)
	case record.ZSet:
		if !math.IsNaN(e.Score) {
			s.putScore(m, e.Name, e.Score)
		}
	case record.Stream:
		p.streamed(e)
	case record.Other:
		s.set(dataKey(m.id, e.Name), e.Value)
		m.count++
	}
}

// streamed takes an element of a stream.
func (p *Put) streamed(e *record.Element) {
	s, m := p.s, p.m
	switch e.Kind {
	case record.Entry:
		p.entry(e)
	case record.Group:
		if g, err := record.DecodeGroup(e.Value); err == nil {
			p.g = s.newGroup(decodeID(g.Last), g.Read)
			s.putGroup(m, e.Name, p.g)
		}
	case record.Consumer:
		if c, err := record.DecodeConsumer(e.Value); err == nil && p.g != nil {
			s.putConsumer(m, p.g, c.Name, consumer{c.SeenMS, c.ActiveMS})
		}
	case record.Pending:
		if x, err := record.DecodePending(e.Value); err == nil && p.g != nil {
			s.putPending(m, p.g, decodeID(x.ID), pending{x.DeliveredMS, x.Count, x.Consumer, x.Consumer == nil})
		}
	}
}

func (p *Put) entry(e *record.Element) {
	if len(e.Name) != 16 {
		return
	}
	id := decodeID(e.Name)
	p.s.set(entryKey(p.m, id), e.Value)
	p.m.count++
	if id.after(p.m.last) {
		p.m.last = id
	}
}

// End finishes the record. One without elements leaves nothing behind, but for a stream.
func (p *Put) End() error {
	if p.m.typ == record.String {
		p.s.putString(p.key, p.m)
	} else {
		p.s.put(p.key, p.m)
	}
	return p.s.err
}

// cmdRestore is RESTORE key ttl payload with its options.
func cmdRestore(s *State, a [][]byte) error {
	if s.opts.Restore == nil {
		return unsupported("RESTORE", "payloads are not read here")
	}
	ttl, err := parseInt(a[2])
	if err != nil || ttl < 0 {
		return &ReplyError{"ERR Invalid TTL value, must be >= 0"}
	}
	replace, absolute := false, false
	for i := 4; i < len(a); i++ {
		switch {
		case is(a[i], "REPLACE"):
			replace = true
		case is(a[i], "ABSTTL"):
			absolute = true
		case (is(a[i], "IDLETIME") || is(a[i], "FREQ")) && i+1 < len(a):
			i++
		default:
			return errSyntax
		}
	}
	if !replace && s.find(a[1]) != nil {
		return &ReplyError{"BUSYKEY Target key name already exists."}
	}
	if ttl > 0 && !absolute {
		ttl += s.now
	}
	var put *Put
	err = s.opts.Restore(a[3], func(h *record.Header) *Put {
		own := *h
		own.Key, own.ExpireMS = a[1], ttl
		put = s.Put(&own)
		return put
	})
	if err != nil {
		return &ReplyError{"ERR Bad data format"}
	}
	return put.End()
}
