package streams

import (
	"kvferry/record"
	"kvferry/redis/state"
	"kvferry/redis/state/server"
)

var errNoGroup = server.Refuse("NOGROUP No such consumer group")

// groupOf returns a group of a stream, which may be nil.
func groupOf(v *state.Value, name []byte) (*state.Group, error) {
	if v != nil {
		if g := v.Group(name); g != nil {
			return g, nil
		}
	}
	return nil, errNoGroup
}

// Group is XGROUP with its subcommands.
func Group(s *server.Server, a [][]byte) error {
	sub := string(s.Upper(a[1]))
	if sub == "HELP" {
		return nil
	}
	run, ok := groupCommands[sub]
	if !ok {
		return server.Unsupported("XGROUP "+sub, "kvferry does not know this command")
	}
	if len(a) < run.least {
		return server.ErrArgs
	}
	v, err := s.Find(a[2], record.Stream)
	if err != nil {
		return err
	}
	made := v == nil
	if made {
		if sub != "CREATE" || len(a) < 6 || !server.Is(a[5], "MKSTREAM") {
			return server.Refuse("ERR The XGROUP subcommand requires the key to exist.")
		}
		v = s.DB.Make(record.Stream)
	}
	if err := run.do(v, a, s.Now); err != nil {
		return err
	}
	if made {
		s.DB.Store(a[2], v)
	}
	return nil
}

var groupCommands = map[string]struct {
	least int
	do    func(v *state.Value, a [][]byte, now int64) error
}{
	"CREATE":         {5, xgroupCreate},
	"SETID":          {5, xgroupSetid},
	"DESTROY":        {4, xgroupDestroy},
	"CREATECONSUMER": {5, xgroupCreateConsumer},
	"DELCONSUMER":    {5, xgroupDelConsumer},
}

func xgroupCreate(v *state.Value, a [][]byte, _ int64) error {
	rest := a[5:]
	if len(rest) > 0 && server.Is(rest[0], "MKSTREAM") {
		rest = rest[1:]
	}
	if len(rest) == 3 && server.Is(rest[2], "MKSTREAM") {
		rest = rest[:2]
	}
	g, err := groupAt(v, a[4], rest)
	if err != nil {
		return err
	}
	if v.HasGroup(a[3]) {
		return server.Refuse("BUSYGROUP Consumer Group name already exists")
	}
	v.SetGroup(a[3], g)
	return nil
}

// groupAt returns a group that stands at an id, or at $, the last.
func groupAt(v *state.Value, at []byte, rest [][]byte) (*state.Group, error) {
	read, err := entriesRead(rest)
	if err != nil {
		return nil, err
	}
	id := v.Last
	if string(at) != "$" {
		if id, err = parseID(at, 0); err != nil {
			return nil, err
		}
	}
	return v.NewGroup(id, read), nil
}

func xgroupSetid(v *state.Value, a [][]byte, _ int64) error {
	g, err := groupOf(v, a[3])
	if err != nil {
		return err
	}
	to, err := groupAt(v, a[4], a[5:])
	if err != nil {
		return err
	}
	g.Last, g.Read = to.Last, to.Read
	v.SetGroup(a[3], g)
	return nil
}

func xgroupDestroy(v *state.Value, a [][]byte, _ int64) error {
	v.RemoveGroup(a[3])
	return nil
}

func xgroupCreateConsumer(v *state.Value, a [][]byte, now int64) error {
	g, err := groupOf(v, a[3])
	if err != nil {
		return err
	}
	if _, ok := g.Consumer(a[4]); !ok {
		g.SetConsumer(a[4], state.Consumer{SeenMS: now, ActiveMS: -1})
	}
	return nil
}

func xgroupDelConsumer(v *state.Value, a [][]byte, _ int64) error {
	g, err := groupOf(v, a[3])
	if err != nil {
		return err
	}
	g.RemoveConsumer(a[4])
	return nil
}

// Ack is XACK.
func Ack(s *server.Server, a [][]byte) error {
	list, err := ids(a[3:])
	if err != nil {
		return err
	}
	v, err := s.Find(a[1], record.Stream)
	if err != nil || v == nil {
		return err
	}
	if g := v.Group(a[2]); g != nil {
		for _, id := range list {
			g.RemovePending(id)
		}
	}
	return nil
}

// claim is what XCLAIM is asked for.
type claim struct {
	ids           []state.StreamID
	idle          int64 // least time since the delivery
	at            int64 // of the delivery
	count         int64 // -1: one more than it was
	force, justID bool
	last          state.StreamID
}

func readClaim(s *server.Server, a [][]byte) (*claim, error) {
	c := &claim{at: s.Now, count: -1}
	var err error
	if c.idle, err = server.ParseInt(a[0]); err != nil {
		return nil, server.Refuse("ERR Invalid min-idle-time argument for XCLAIM")
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
		if server.Is(a[i], "FORCE") {
			c.force = true
			continue
		}
		if server.Is(a[i], "JUSTID") {
			c.justID = true
			continue
		}
		if i+1 >= len(a) {
			return nil, server.ErrSyntax
		}
		var n int64
		switch i++; {
		case server.Is(a[i-1], "LASTID"):
			c.last, err = parseID(a[i], 0)
		case server.Is(a[i-1], "IDLE"):
			n, err = server.ParseInt(a[i])
			c.at = s.Now - n
		case server.Is(a[i-1], "TIME"):
			c.at, err = server.ParseInt(a[i])
		case server.Is(a[i-1], "RETRYCOUNT"):
			c.count, err = server.ParseInt(a[i])
		default:
			return nil, server.ErrSyntax
		}
		if err != nil {
			return nil, err
		}
	}
	if c.at < 0 || c.at > s.Now {
		c.at = s.Now
	}
	return c, nil
}

// Claim is XCLAIM.
func Claim(s *server.Server, a [][]byte) error {
	v, err := s.Find(a[1], record.Stream)
	if err != nil {
		return err
	}
	g, err := groupOf(v, a[2])
	if err != nil {
		return err
	}
	c, err := readClaim(s, a[4:])
	if err != nil {
		return err
	}
	if c.last.After(g.Last) {
		g.Last = c.last
		v.SetGroup(a[2], g)
	}
	if x, ok := g.Consumer(a[3]); ok {
		g.SetConsumer(a[3], state.Consumer{SeenMS: s.Now, ActiveMS: x.ActiveMS})
	}
	for _, id := range c.ids {
		claimEntry(s, v, g, id, a[3], c)
	}
	return nil
}

// claim gives one entry to a consumer. One that is not in the stream any more is pending no more.
func claimEntry(s *server.Server, v *state.Value, g *state.Group, id state.StreamID, name []byte, c *claim) {
	p, ok := g.Pending(id)
	if !v.HasEntry(id) {
		if ok {
			g.RemovePending(id)
		}
		return
	}
	if !ok {
		if !c.force {
			return
		}
		p = state.Pending{Count: 1}
	} else if c.idle > 0 && s.Now-p.DeliveredMS < c.idle {
		return
	}
	p.Consumer, p.None, p.DeliveredMS = name, false, c.at
	switch {
	case c.count >= 0:
		p.Count = c.count
	case !c.justID:
		p.Count++
	}
	g.SetPending(id, p)
	g.SetConsumer(name, state.Consumer{SeenMS: s.Now, ActiveMS: s.Now})
}
