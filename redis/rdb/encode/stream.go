package encode

import (
	"bytes"
	"encoding/binary"

	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/pack"
)

// streamEncoder holds the data after the nodes of a stream, and the current node.
type streamEncoder struct {
	last       []byte
	maxDeleted []byte
	added      uint64
	entries    uint64
	first      []byte // id of the first entry

	master  []byte // id of the node: the id of its first entry
	in      int    // entries in the node
	pairs   [][2][]byte
	fields  [][]byte    // names of the master entry
	node    pack.Writer // entries of the node; closeStreamNode adds the head
	groups  []byte      // encoded groups
	nGroups uint64

	group     []byte // name, last id, entries read of the current group, encoded
	consumers []groupConsumer
	index     map[string]int // of consumers, by name
	pending   []byte         // encoded
	nPending  uint64
}

type groupConsumer struct {
	name  []byte
	state []byte // seen and active, encoded
	ids   []byte
}

func (e *Encoder) beginStream(h *record.Header) {
	s := &e.stream
	s.last = append(s.last[:0], h.Last...)
	s.maxDeleted = append(s.maxDeleted[:0], h.MaxDeleted...)
	s.added, s.entries, s.in, s.first = h.Added, 0, 0, s.first[:0]
	s.groups, s.nGroups, s.group = s.groups[:0], 0, s.group[:0]
	s.consumers, s.pending, s.nPending = s.consumers[:0], s.pending[:0], 0
}

// streamElement adds an entry, or an element of a consumer group.
func (e *Encoder) streamElement(el *record.Element) error {
	s := &e.stream
	switch el.Kind {
	case record.Group:
		e.closeGroup()
		return e.openGroup(el)
	case record.Consumer:
		c, err := record.DecodeConsumer(el.Value)
		if err == nil {
			e.consumer(&c)
		}
		return err
	case record.Pending:
		p, err := record.DecodePending(el.Value)
		if err == nil {
			e.pendingEntry(&p)
		}
		return err
	}
	if len(el.Name) != rdb.IDLen {
		return record.Short(0, "stream id", rdb.IDLen, len(el.Name))
	}
	s.pairs = s.pairs[:0]
	for rest := el.Value; len(rest) > 0; {
		field, value, more, err := record.DecodePair(rest)
		if err != nil {
			return err
		}
		s.pairs = append(s.pairs, [2][]byte{field, value})
		rest = more
	}
	if s.entries++; s.entries == 1 {
		s.first = append(s.first[:0], el.Name...)
	}
	if bytes.Compare(el.Name, s.last) > 0 {
		s.last = append(s.last[:0], el.Name...)
	}
	if s.in > 0 && (s.in >= maxNodeEntries || s.node.Size()+len(el.Value) > maxStreamNode) {
		e.closeStreamNode()
	}
	e.streamEntry(el.Name, len(el.Value))
	clear(s.pairs)                     // drop references to a large value
	if s.node.Size() > maxStreamNode { // the node is full
		e.closeStreamNode()
	}
	return nil
}

// streamEntry packs an entry with pairs of about size bytes. The first entry of a node sets the node's id, and the
// field names that later entries may share.
func (e *Encoder) streamEntry(id []byte, size int) {
	s := &e.stream
	if s.in == 0 {
		s.master = append(s.master[:0], id...)
		s.fields = s.fields[:0]
		for _, p := range s.pairs {
			s.fields = append(s.fields, bytes.Clone(p[0]))
		}
		s.node.Begin(pack.Listpack)
	}
	s.in++
	same := len(s.pairs) == len(s.fields)
	for i := 0; same && i < len(s.pairs); i++ {
		same = bytes.Equal(s.pairs[i][0], s.fields[i])
	}
	flags, items := int64(0), 2*int64(len(s.pairs))+4
	if same {
		flags, items = rdb.EntrySameFields, int64(len(s.pairs))+3
	}
	s.node.AddInt(flags)
	s.node.AddInt(int64(binary.BigEndian.Uint64(id) - binary.BigEndian.Uint64(s.master)))
	s.node.AddInt(int64(binary.BigEndian.Uint64(id[8:]) - binary.BigEndian.Uint64(s.master[8:])))
	if !same {
		s.node.AddInt(int64(len(s.pairs)))
	}
	s.node.Grow(size)
	for _, p := range s.pairs {
		if !same {
			s.node.Add(p[0])
		}
		s.node.Add(p[1])
	}
	s.node.AddInt(items)
}

// closeStreamNode writes a node: the master entry, then the entries.
func (e *Encoder) closeStreamNode() {
	s := &e.stream
	p := &e.packer
	p.Begin(pack.Listpack)
	p.AddInt(int64(s.in))
	p.AddInt(0) // deleted
	p.AddInt(int64(len(s.fields)))
	for _, f := range s.fields {
		p.Add(f)
	}
	p.AddInt(0)
	e.count++
	e.body = append(append(e.body, rdb.IDLen), s.master...)
	e.body = p.EndJoined(e.body, &s.node, rdb.AppendLen)
	s.in = 0
}

func (e *Encoder) openGroup(el *record.Element) error {
	g, err := record.DecodeGroup(el.Value)
	if err != nil {
		return err
	}
	s := &e.stream
	if g.Read > int64(max(s.added, s.entries)) { // newer servers refuse it
		g.Read = -1
	}
	s.group = rdb.AppendString(s.group[:0], el.Name)
	s.group = appendIDLens(s.group, g.Last)
	if e.Version.EntriesRead() {
		s.group = rdb.AppendLen(s.group, uint64(g.Read))
	}
	s.consumers, s.pending, s.nPending, s.index = s.consumers[:0], s.pending[:0], 0, make(map[string]int)
	return nil
}

// appendIDLens appends an id as two lengths; nil is 0-0.
func appendIDLens(dst, id []byte) []byte {
	if len(id) != rdb.IDLen {
		return append(dst, 0, 0)
	}
	return rdb.AppendLen(rdb.AppendLen(dst, binary.BigEndian.Uint64(id)), binary.BigEndian.Uint64(id[8:]))
}

func (e *Encoder) consumer(c *record.ConsumerState) {
	s := &e.stream
	state := binary.LittleEndian.AppendUint64(nil, uint64(c.SeenMS))
	if streamType(e.Version) >= rdb.TypeStream3 {
		state = binary.LittleEndian.AppendUint64(state, uint64(c.ActiveMS))
	}
	s.index[string(c.Name)] = len(s.consumers)
	s.consumers = append(s.consumers, groupConsumer{name: bytes.Clone(c.Name), state: state})
}

// pendingEntry adds an entry to its group and its consumer. It creates a missing consumer.
func (e *Encoder) pendingEntry(p *record.PendingEntry) {
	s := &e.stream
	s.nPending++
	s.pending = append(s.pending, p.ID...)
	s.pending = binary.LittleEndian.AppendUint64(s.pending, uint64(p.DeliveredMS))
	s.pending = rdb.AppendLen(s.pending, uint64(p.Count))
	if _, ok := s.index[string(p.Consumer)]; !ok {
		e.consumer(&record.ConsumerState{Name: p.Consumer, SeenMS: p.DeliveredMS, ActiveMS: -1})
	}
	c := &s.consumers[s.index[string(p.Consumer)]]
	c.ids = append(c.ids, p.ID...)
}

// closeGroup writes the current group.
func (e *Encoder) closeGroup() {
	s := &e.stream
	if len(s.group) == 0 {
		return
	}
	s.nGroups++
	s.groups = append(s.groups, s.group...)
	s.groups = append(rdb.AppendLen(s.groups, s.nPending), s.pending...)
	s.groups = rdb.AppendLen(s.groups, uint64(len(s.consumers)))
	for i := range s.consumers {
		c := &s.consumers[i]
		s.groups = append(rdb.AppendString(s.groups, c.name), c.state...)
		s.groups = append(rdb.AppendLen(s.groups, uint64(len(c.ids)/rdb.IDLen)), c.ids...)
	}
}

// endStream writes the data after the nodes.
func (e *Encoder) endStream() (Value, bool, error) {
	s := &e.stream
	if s.in > 0 {
		e.closeStreamNode()
	}
	e.closeGroup()
	e.form = streamType(e.Version)
	e.body = appendIDLens(rdb.AppendLen(e.body, s.entries), s.last)
	if e.form >= rdb.TypeStream2 {
		e.body = appendIDLens(e.body, s.first)
		e.body = appendIDLens(e.body, s.maxDeleted)
		e.body = rdb.AppendLen(e.body, max(s.added, s.entries))
	}
	e.body = append(rdb.AppendLen(e.body, s.nGroups), s.groups...)
	return e.counted(), true, nil
}
