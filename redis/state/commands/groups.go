package commands

import (
	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/redis/state"
)

var errNoGroup = argument.Refuse("NOGROUP No such consumer group")

// groupOf returns a group of a stream, which may be nil.
func groupOf(v *state.Value, name []byte) (*state.Group, error) {
	if v != nil {
		if g := v.Group(name); g != nil {
			return g, nil
		}
	}
	return nil, errNoGroup
}

// groupCommand is a subcommand of XGROUP. v is nil if the stream does not exist, except for a command that may
// create it.
type groupCommand struct {
	options int  // maximum number of optional arguments
	create  bool // MKSTREAM is one of them
	grouped bool // the group has to exist
	do      func(v *state.Value, a [][]byte, o *groupOptions, now int64) error
}

// The subcommands of XGROUP.
var (
	groupCreate         = groupCommand{3, true, false, xgroupCreate}
	groupMove           = groupCommand{2, false, true, xgroupSetid}
	groupDestroy        = groupCommand{0, false, false, xgroupDestroy}
	groupCreateConsumer = groupCommand{0, false, true, xgroupCreateConsumer}
	groupDeleteConsumer = groupCommand{0, false, true, xgroupDelConsumer}
)

// groupOptions are the options of XGROUP CREATE and SETID.
type groupOptions struct {
	make bool
	read int64
}

func (o *groupOptions) parse(s *state.Server, c *groupCommand, a [][]byte) error {
	o.read = -1
	for i := 0; i < len(a); i++ {
		switch {
		case c.create && argument.Is(a[i], "MKSTREAM"):
			o.make = true
		case argument.Is(a[i], "ENTRIESREAD") && i+1 < len(a):
			i++
			n, err := argument.ParseInt(a[i])
			if err != nil || n < -1 {
				return argument.Refuse("ERR value for ENTRIESREAD must be positive or -1")
			}
			o.read = n
		default:
			return s.Option("XGROUP", a[i])
		}
	}
	if len(a) > c.options {
		return argument.ErrSyntax
	}
	return nil
}

// cmdXgroup returns the function of a subcommand of XGROUP.
func cmdXgroup(c groupCommand) func(*state.Server, [][]byte) error {
	return func(s *state.Server, a [][]byte) error {
		var o groupOptions
		if err := o.parse(s, &c, a[min(5, len(a)):]); err != nil {
			return err
		}
		v, err := s.Find(a[2], record.Stream)
		if err != nil {
			return err
		}
		made := v == nil
		if made {
			if !o.make {
				return argument.Refuse("ERR The XGROUP subcommand requires the key to exist.")
			}
			v = s.DB.Make(record.Stream)
		}
		if c.grouped && v.Group(a[3]) == nil {
			return errNoGroup
		}
		if err := c.do(v, a, &o, s.Now); err != nil {
			return err
		}
		if made {
			s.DB.Store(a[2], v)
		}
		return nil
	}
}

func xgroupCreate(v *state.Value, a [][]byte, o *groupOptions, _ int64) error {
	g, err := groupAt(v, a[4], o.read)
	if err != nil {
		return err
	}
	if v.HasGroup(a[3]) {
		return argument.Refuse("BUSYGROUP Consumer Group name already exists")
	}
	v.SetGroup(a[3], g)
	return nil
}

// groupAt returns a group positioned at an id, or at $, the last id.
func groupAt(v *state.Value, at []byte, read int64) (g *state.Group, err error) {
	id := v.Last
	if string(at) != "$" {
		if id, err = parseID(at, 0); err != nil {
			return nil, err
		}
	}
	return v.NewGroup(id, read), nil
}

func xgroupSetid(v *state.Value, a [][]byte, o *groupOptions, _ int64) error {
	to, err := groupAt(v, a[4], o.read)
	if err != nil {
		return err
	}
	g := v.Group(a[3])
	g.Last, g.Read = to.Last, to.Read
	v.SetGroup(a[3], g)
	return nil
}

func xgroupDestroy(v *state.Value, a [][]byte, _ *groupOptions, _ int64) error {
	v.RemoveGroup(a[3])
	return nil
}

func xgroupCreateConsumer(v *state.Value, a [][]byte, _ *groupOptions, now int64) error {
	g := v.Group(a[3])
	if _, ok := g.Consumer(a[4]); !ok {
		g.SetConsumer(a[4], state.Consumer{SeenMS: now, ActiveMS: -1})
	}
	return nil
}

func xgroupDelConsumer(v *state.Value, a [][]byte, _ *groupOptions, _ int64) error {
	v.Group(a[3]).RemoveConsumer(a[4])
	return nil
}

// cmdXack is XACK.
func cmdXack(s *state.Server, a [][]byte) error {
	v, err := s.Find(a[1], record.Stream)
	if err != nil || v == nil {
		return err
	}
	g := v.Group(a[2])
	if g == nil {
		return nil
	}
	list, err := ids(a[3:])
	for _, id := range list {
		g.RemovePending(id)
	}
	return err
}

// claim holds the options of XCLAIM.
type claim struct {
	ids           []state.StreamID
	idle          int64 // least time since the delivery
	at            int64 // of the delivery
	count         int64 // -1: the previous count plus one, unless justID is set
	force, justID bool
	last          state.StreamID
}

func readClaim(s *state.Server, a [][]byte) (*claim, error) {
	c := &claim{at: s.Now, count: -1}
	var err error
	if c.idle, err = argument.ParseInt(a[0]); err != nil {
		return nil, argument.Refuse("ERR Invalid min-idle-time argument for XCLAIM")
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
		if argument.Is(a[i], "FORCE") {
			c.force = true
			continue
		}
		if argument.Is(a[i], "JUSTID") {
			c.justID = true
			continue
		}
		if i+1 >= len(a) {
			return nil, argument.ErrSyntax
		}
		var n int64
		switch i++; {
		case argument.Is(a[i-1], "LASTID"):
			c.last, err = parseID(a[i], 0)
		case argument.Is(a[i-1], "IDLE"):
			n, err = argument.ParseInt(a[i])
			c.at = s.Now - n
		case argument.Is(a[i-1], "TIME"):
			c.at, err = argument.ParseInt(a[i])
		case argument.Is(a[i-1], "RETRYCOUNT"):
			c.count, err = argument.ParseInt(a[i])
		default:
			return nil, s.Option("XCLAIM", a[i-1])
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

// cmdXclaim is XCLAIM.
func cmdXclaim(s *state.Server, a [][]byte) error {
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

// claimEntry gives one entry to a consumer. An entry that is no longer in the stream is removed from the pending
// entries.
func claimEntry(s *state.Server, v *state.Value, g *state.Group, id state.StreamID, name []byte, c *claim) {
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
