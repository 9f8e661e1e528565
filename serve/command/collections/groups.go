package collections

import (
	"errors"
	"fmt"
	"math"

	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/serve/command"
	"kvferry/serve/resp"
)

// consumer is a consumer of a group.
type consumer struct {
	name    string
	seen    int64
	pending int64
}

// group is a consumer group, without its pending entries.
type group struct {
	name      string
	last      streamID
	read      int64
	pending   int64
	consumers []*consumer
	least     streamID // of the pending entries
	most      streamID
}

func (g *group) consumer(name []byte) *consumer {
	for _, c := range g.consumers {
		if c.name == string(name) {
			return c
		}
	}
	return nil
}

// streamInfo describes a stream after a pass over it.
type streamInfo struct {
	length      int64
	first, last streamID // of its entries
	top         streamID // last generated
	deleted     streamID // largest deleted
	added       uint64
	groups      []*group
}

// maxConsumers limits the groups and consumers held in memory.
const maxConsumers = 1 << 16

var errConsumers = errors.New("kvferry shows up to 65536 groups and consumers of a stream")

// info reads a stream; nil if the key does not exist. each is called with each of its elements and may be nil.
func info(c *command.Call, key []byte, each func(e *record.Element) error) (*streamInfo, error) {
	var s *streamInfo
	var bad error
	n := 0
	there, err := c.Read(key, command.Reading{Type: record.Stream}, func(h *record.Header, e *record.Element) bool {
		if s == nil {
			s = newStreamInfo(h)
		}
		if e.Kind != record.Entry && e.Kind != record.Pending {
			n++
		}
		if bad = s.add(e); bad == nil && n > maxConsumers {
			bad = errConsumers
		}
		if bad == nil && each != nil {
			bad = each(e)
		}
		return bad == nil && c.Live()
	})
	if there && s == nil && err == nil { // without elements
		err = c.Header(key, func(h *record.Header) { s = newStreamInfo(h) })
	}
	if s != nil && s.added == 0 {
		s.added = uint64(s.length)
	}
	return s, errors.Join(err, bad)
}

func newStreamInfo(h *record.Header) *streamInfo {
	return &streamInfo{top: idOf(h.Last), deleted: idOf(h.MaxDeleted), added: h.Added}
}

// add counts an element.
func (s *streamInfo) add(e *record.Element) error {
	if e.Kind == record.Entry {
		s.last = idOf(e.Name)
		if s.length++; s.length == 1 {
			s.first = s.last
		}
		return nil
	}
	if e.Kind == record.Group {
		state, err := record.DecodeGroup(e.Value)
		s.groups = append(s.groups, &group{name: string(e.Name), last: idOf(state.Last), read: state.Read})
		return err
	}
	g := s.groups[max(len(s.groups)-1, 0):]
	if len(g) == 0 || g[0].name != string(e.Name) {
		return fmt.Errorf("an element of group %s without the group", record.Quote(e.Name))
	}
	if e.Kind == record.Consumer {
		state, err := record.DecodeConsumer(e.Value)
		g[0].consumers = append(g[0].consumers, &consumer{name: string(state.Name), seen: state.SeenMS})
		return err
	}
	return g[0].addPending(e)
}

func (g *group) addPending(e *record.Element) error {
	p, err := record.DecodePending(e.Value)
	if err != nil {
		return err
	}
	id := idOf(p.ID)
	if g.pending == 0 {
		g.least = id
	}
	g.most = id
	g.pending++
	if c := g.consumer(p.Consumer); c != nil && p.Consumer != nil {
		c.pending++
	}
	return nil
}

func (s *streamInfo) group(name []byte) *group {
	for _, g := range s.groups {
		if g.name == string(name) {
			return g
		}
	}
	return nil
}

// lag returns how many entries a group has still to read; false if unknown.
func (s *streamInfo) lag(g *group) (int64, bool) {
	if s.added == 0 {
		return 0, true
	}
	tombstones := s.length > 0 && !s.deleted.zero() && !s.deleted.less(s.first) && !s.deleted.less(g.last)
	if g.read >= 0 && !tombstones {
		return int64(s.added) - g.read, true
	}
	read, ok := s.distance(g.last)
	return int64(s.added) - read, ok
}

// distance returns the number of entries ever added up to an id; false if unknown.
func (s *streamInfo) distance(id streamID) (int64, bool) {
	added := int64(s.added)
	switch {
	case s.length == 0 && !s.top.less(id):
		return added, true
	case id == s.top:
		return added, true
	case s.top.less(id):
		return 0, false
	}
	if s.deleted.zero() || s.deleted.less(s.first) {
		switch {
		case id.less(s.first):
			return added - s.length, true
		case id == s.first:
			return added - s.length + 1, true
		}
	}
	return 0, false
}

// existing returns the facts of the stream of XINFO.
func existing(c *command.Call) (*streamInfo, error) {
	s, err := info(c, c.Args[2], nil)
	if err == nil && s == nil {
		err = argument.ErrNoKey
	}
	return s, err
}

// xinfoStream replies with the facts of a stream. The numbers of nodes match a freshly loaded stream.
func xinfoStream(c *command.Call) error {
	s, err := existing(c)
	if err != nil {
		return err
	}
	full, count, err := fullOption(c)
	if err != nil {
		return err
	}
	c.W.Header(resp.Map, 10-command.Number(full))
	facts(c, s)
	if !full {
		return ends(c, s)
	}
	c.W.BulkString("entries")
	if err := forthEntries(c, c.Args[2], interval{to: lastID}, count); err != nil {
		return err
	}
	c.W.BulkString("groups")
	return fullGroups(c, s, count)
}

// fullOption parses FULL and COUNT, which limits entries and pending entries.
func fullOption(c *command.Call) (full bool, count int64, err error) {
	args := c.Args[3:]
	count = 10
	if len(args) == 0 {
		return false, count, nil
	}
	if !argument.Is(args[0], "FULL") || len(args) != 1 && (len(args) != 3 || !argument.Is(args[1], "COUNT")) {
		return false, 0, argument.Refuse(fmt.Sprintf("ERR unknown subcommand or wrong number of arguments for '%s'. Try XINFO HELP.", c.Args[1]))
	}
	if len(args) == 3 {
		if count, err = argument.ParseInt(args[2]); err != nil {
			return false, 0, err
		}
	}
	switch {
	case count < 0:
		count = 10
	case count == 0:
		count = math.MaxInt64
	}
	return true, count, nil
}

func facts(c *command.Call, s *streamInfo) {
	nodes := (s.length + 99) / 100
	c.W.Values("length", s.length, "radix-tree-keys", nodes, "radix-tree-nodes", nodes+1, "last-generated-id", s.top.String(),
		"max-deleted-entry-id", s.deleted.String(), "entries-added", int64(s.added), "recorded-first-entry-id", s.first.String())
}

// ends writes the number of groups, and the first and the last entry.
func ends(c *command.Call, s *streamInfo) error {
	c.W.Values("groups", len(s.groups))
	for _, end := range []struct {
		name string
		id   streamID
	}{{"first-entry", s.first}, {"last-entry", s.last}} {
		c.W.BulkString(end.name)
		if s.length == 0 {
			c.W.Null()
			continue
		}
		var bad error
		if _, err := entries(c, c.Args[2], interval{end.id, end.id}, func(id streamID, e *record.Element) bool {
			bad = entry(c, id, e.Value)
			return false
		}); err != nil || bad != nil {
			return errors.Join(err, bad)
		}
	}
	return nil
}

// lag writes the progress of a group.
func lag(c *command.Call, s *streamInfo, g *group) {
	c.W.BulkString("entries-read")
	if g.read < 0 {
		c.W.Null()
	} else {
		c.W.Int(g.read)
	}
	c.W.BulkString("lag")
	if lag, ok := s.lag(g); ok {
		c.W.Int(lag)
	} else {
		c.W.Null()
	}
}

// pendingOf calls f with up to count pending entries of a group, and of one consumer if it is given.
func pendingOf(c *command.Call, key []byte, g *group, of *consumer, count int64, f func(p *record.PendingEntry)) error {
	var bad error
	_, err := c.Walk(key, record.Stream, func(e *record.Element) bool {
		if e.Kind != record.Pending || string(e.Name) != g.name {
			return true
		}
		var p record.PendingEntry
		if p, bad = record.DecodePending(e.Value); bad != nil {
			return false
		}
		if of == nil || string(p.Consumer) == of.name {
			f(&p)
			count--
		}
		return count > 0 && c.Live()
	})
	return errors.Join(err, bad)
}

// fullGroups writes the groups with their consumers and pending entries.
func fullGroups(c *command.Call, s *streamInfo, count int64) error {
	c.W.Header(resp.Array, int64(len(s.groups)))
	for _, g := range s.groups {
		c.W.Header(resp.Map, 7)
		c.W.Values("name", g.name, "last-delivered-id", g.last.String())
		lag(c, s, g)
		c.W.Values("pel-count", g.pending, "pending")
		c.W.Header(resp.Array, min(g.pending, count))
		if err := pendingOf(c, c.Args[2], g, nil, count, func(p *record.PendingEntry) {
			c.W.List(idOf(p.ID).String(), p.Consumer, p.DeliveredMS, p.Count)
		}); err != nil {
			return err
		}
		if err := fullConsumers(c, g, count); err != nil {
			return err
		}
	}
	return nil
}

func fullConsumers(c *command.Call, g *group, count int64) error {
	c.W.BulkString("consumers")
	c.W.Header(resp.Array, int64(len(g.consumers)))
	for _, of := range g.consumers {
		c.W.Header(resp.Map, 4)
		c.W.Values("name", of.name, "seen-time", of.seen, "pel-count", of.pending, "pending")
		c.W.Header(resp.Array, min(of.pending, count))
		if err := pendingOf(c, c.Args[2], g, of, count, func(p *record.PendingEntry) {
			c.W.List(idOf(p.ID).String(), p.DeliveredMS, p.Count)
		}); err != nil {
			return err
		}
	}
	return nil
}

func xinfoGroups(c *command.Call) error {
	s, err := existing(c)
	if err != nil {
		return err
	}
	c.W.Header(resp.Array, int64(len(s.groups)))
	for _, g := range s.groups {
		c.W.Header(resp.Map, 6)
		c.W.Values("name", g.name, "consumers", len(g.consumers), "pending", g.pending, "last-delivered-id", g.last.String())
		lag(c, s, g)
	}
	return nil
}

func xinfoConsumers(c *command.Call) error {
	s, err := existing(c)
	if err != nil {
		return err
	}
	g := s.group(c.Args[3])
	if g == nil {
		return argument.Refuse(fmt.Sprintf("NOGROUP No such consumer group '%s' for key name '%s'", c.Args[3], c.Args[2]))
	}
	c.W.Header(resp.Array, int64(len(g.consumers)))
	for _, of := range g.consumers {
		c.W.Pairs("name", of.name, "pending", of.pending, "idle", max(c.Server.Time().UnixMilli()-of.seen, 0))
	}
	return nil
}
