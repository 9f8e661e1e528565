package state

import (
	"encoding/binary"

	"kvferry/record"
)

// group is a consumer group of a stream.
type group struct {
	number uint64
	last   streamID
	read   int64 // entries read, -1 when it is not known
}

// consumer is one of a group.
type consumer struct{ seen, active int64 } // Unix ms; active -1: never

// pending is an entry that was delivered and not acknowledged.
type pending struct {
	delivered, count int64
	consumer         []byte
	none             bool // it belongs to no consumer
}

func groupKey(m *meta, name []byte) []byte { return dataKey(m.id, []byte{'g'}, name) }

func (g *group) key(m *meta, kind byte, rest []byte) []byte {
	return dataKey(m.id, binary.BigEndian.AppendUint64([]byte{kind}, g.number), rest)
}

func (s *State) group(m *meta, name []byte) *group {
	b, ok := s.get(groupKey(m, name))
	if !ok {
		return nil
	}
	return decodeGroup(b)
}

func decodeGroup(b []byte) *group {
	return &group{binary.BigEndian.Uint64(b), decodeID(b[8:]), int64(binary.BigEndian.Uint64(b[24:]))}
}

func (s *State) putGroup(m *meta, name []byte, g *group) {
	b := g.last.append(binary.BigEndian.AppendUint64(nil, g.number))
	s.set(groupKey(m, name), binary.BigEndian.AppendUint64(b, uint64(g.read)))
}

// newGroup returns a group of a number of its own.
func (s *State) newGroup(last streamID, read int64) *group {
	s.nextID++
	return &group{s.nextID - 1, last, read}
}

func (s *State) putConsumer(m *meta, g *group, name []byte, c consumer) {
	b := binary.BigEndian.AppendUint64(nil, uint64(c.seen))
	s.set(g.key(m, 'c', name), binary.BigEndian.AppendUint64(b, uint64(c.active)))
}

func decodeConsumer(b []byte) consumer {
	return consumer{int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:]))}
}

func (s *State) pending(m *meta, g *group, id streamID) (pending, bool) {
	b, ok := s.get(g.key(m, 'p', id.append(nil)))
	if !ok {
		return pending{}, false
	}
	return decodePending(b), true
}

func decodePending(b []byte) pending {
	return pending{int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:])), b[17:], b[16] != 0}
}

func (s *State) putPending(m *meta, g *group, id streamID, p pending) {
	b := binary.BigEndian.AppendUint64(nil, uint64(p.delivered))
	b = append(binary.BigEndian.AppendUint64(b, uint64(p.count)), 0)
	if p.none {
		b[16] = 1
	}
	s.set(g.key(m, 'p', id.append(nil)), append(b, p.consumer...))
}

// cmdXgroup is XGROUP with its subcommands.
func cmdXgroup(s *State, a [][]byte) error {
	sub := string(s.upper(a[1]))
	if sub == "HELP" {
		return nil
	}
	run, ok := groupCommands[sub]
	if !ok {
		return unsupported("XGROUP "+sub, "kvferry does not know this command")
	}
	if len(a) < run.least {
		return errArgs
	}
	m, err := s.findType(a[2], record.Stream)
	if err != nil {
		return err
	}
	made := m == nil
	if made {
		if sub != "CREATE" || len(a) < 6 || !is(a[5], "MKSTREAM") {
			return &ReplyError{"ERR The XGROUP subcommand requires the key to exist."}
		}
		m = s.fresh(record.Stream)
	}
	if err := run.do(s, m, a); err != nil {
		return err
	}
	if made {
		s.put(a[2], m)
	}
	return nil
}

var groupCommands = map[string]struct {
	least int
	do    func(s *State, m *meta, a [][]byte) error
}{
	"CREATE":         {5, xgroupCreate},
	"SETID":          {5, xgroupSetid},
	"DESTROY":        {4, xgroupDestroy},
	"CREATECONSUMER": {5, xgroupCreateConsumer},
	"DELCONSUMER":    {5, xgroupDelConsumer},
}

func xgroupCreate(s *State, m *meta, a [][]byte) error {
	rest := a[5:]
	if len(rest) > 0 && is(rest[0], "MKSTREAM") {
		rest = rest[1:]
	}
	if len(rest) == 3 && is(rest[2], "MKSTREAM") {
		rest = rest[:2]
	}
	g, err := s.groupAt(m, a[4], rest)
	if err != nil {
		return err
	}
	if s.has(groupKey(m, a[3])) {
		return &ReplyError{"BUSYGROUP Consumer Group name already exists"}
	}
	s.putGroup(m, a[3], g)
	return nil
}

// groupAt returns a group that stands at an id, or at $, the last.
func (s *State) groupAt(m *meta, at []byte, rest [][]byte) (*group, error) {
	read, err := entriesRead(rest)
	if err != nil {
		return nil, err
	}
	id := m.last
	if string(at) != "$" {
		if id, err = parseID(at, 0); err != nil {
			return nil, err
		}
	}
	return s.newGroup(id, read), nil
}

func xgroupSetid(s *State, m *meta, a [][]byte) error {
	g := s.group(m, a[3])
	if g == nil {
		return errNoGroup
	}
	to, err := s.groupAt(m, a[4], a[5:])
	if err != nil {
		return err
	}
	g.last, g.read = to.last, to.read
	s.putGroup(m, a[3], g)
	return nil
}

func xgroupDestroy(s *State, m *meta, a [][]byte) error {
	s.del(groupKey(m, a[3]))
	return nil
}

func xgroupCreateConsumer(s *State, m *meta, a [][]byte) error {
	g := s.group(m, a[3])
	if g == nil {
		return errNoGroup
	}
	if !s.has(g.key(m, 'c', a[4])) {
		s.putConsumer(m, g, a[4], consumer{s.now, -1})
	}
	return nil
}

func xgroupDelConsumer(s *State, m *meta, a [][]byte) error {
	g := s.group(m, a[3])
	if g == nil {
		return errNoGroup
	}
	s.del(g.key(m, 'c', a[4]))
	s.scan(g.key(m, 'p', nil), func(key, value []byte) bool {
		if p := decodePending(value); !p.none && string(p.consumer) == string(a[4]) {
			s.del(g.key(m, 'p', key))
		}
		return true
	})
	return nil
}

func cmdXack(s *State, a [][]byte) error {
	list, err := ids(a[3:])
	if err != nil {
		return err
	}
	m, err := s.findType(a[1], record.Stream)
	if err != nil || m == nil {
		return err
	}
	if g := s.group(m, a[2]); g != nil {
		for _, id := range list {
			s.del(g.key(m, 'p', id.append(nil)))
		}
	}
	return nil
}

// claim is what XCLAIM is asked for.
type claim struct {
	ids           []streamID
	idle          int64 // least time since the delivery
	at            int64 // of the delivery
	count         int64 // -1: one more than it was
	force, justID bool
	last          streamID
}

func (s *State) readClaim(a [][]byte) (*claim, error) {
	c := &claim{at: s.now, count: -1}
	var err error
	if c.idle, err = parseInt(a[0]); err != nil {
		return nil, &ReplyError{"ERR Invalid min-idle-time argument for XCLAIM"}
	}
	i := 1
	for ; i < len(a); i++ {
		id, err := parseID(a[i], 0)
		if err != nil {
			break
		}
		c.ids = append(c.ids, id)
	}
	for ; i < len(a); i++ {
		if is(a[i], "FORCE") {
			c.force = true
			continue
		}
		if is(a[i], "JUSTID") {
			c.justID = true
			continue
		}
		if i+1 >= len(a) {
			return nil, errSyntax
		}
		var n int64
		switch i++; {
		case is(a[i-1], "LASTID"):
			c.last, err = parseID(a[i], 0)
		case is(a[i-1], "IDLE"):
			n, err = parseInt(a[i])
			c.at = s.now - n
		case is(a[i-1], "TIME"):
			c.at, err = parseInt(a[i])
		case is(a[i-1], "RETRYCOUNT"):
			c.count, err = parseInt(a[i])
		default:
			return nil, errSyntax
		}
		if err != nil {
			return nil, err
		}
	}
	if c.at < 0 || c.at > s.now {
		c.at = s.now
	}
	return c, nil
}

func cmdXclaim(s *State, a [][]byte) error {
	m, err := s.findType(a[1], record.Stream)
	if err != nil {
		return err
	}
	var g *group
	if m != nil {
		g = s.group(m, a[2])
	}
	if g == nil {
		return errNoGroup
	}
	c, err := s.readClaim(a[4:])
	if err != nil {
		return err
	}
	if c.last.after(g.last) {
		g.last = c.last
		s.putGroup(m, a[2], g)
	}
	if b, ok := s.get(g.key(m, 'c', a[3])); ok {
		s.putConsumer(m, g, a[3], consumer{s.now, decodeConsumer(b).active})
	}
	for _, id := range c.ids {
		s.claim(m, g, id, a[3], c)
	}
	return nil
}

// claim gives one entry to a consumer. One that is not in the stream any more is pending no more.
func (s *State) claim(m *meta, g *group, id streamID, name []byte, c *claim) {
	p, ok := s.pending(m, g, id)
	if !s.has(entryKey(m, id)) {
		if ok {
			s.del(g.key(m, 'p', id.append(nil)))
		}
		return
	}
	if !ok {
		if !c.force {
			return
		}
		p = pending{count: 1}
	} else if c.idle > 0 && s.now-p.delivered < c.idle {
		return
	}
	p.consumer, p.none, p.delivered = name, false, c.at
	switch {
	case c.count >= 0:
		p.count = c.count
	case !c.justID:
		p.count++
	}
	s.putPending(m, g, id, p)
	s.putConsumer(m, g, name, consumer{s.now, s.now})
}
