package command

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"kvferry/internal/shared/argument"
	"kvferry/serve/resp"
)

// A dataset never changes. So EXEC runs the commands of a transaction one after the other, WATCH always succeeds, tracked
// keys are never invalidated, and channels have no messages.

// transaction holds the commands between MULTI and EXEC.
type transaction struct {
	commands [][][]byte
	broken   bool // a command was refused
}

// subscriptions are the names that a client has subscribed to.
type subscriptions [3]map[string]bool

// The kinds of subscriptions.
const (
	channels = iota
	patterns
	shardChannels
)

// tracking holds the options of CLIENT TRACKING.
type tracking struct {
	flags    []string // "on" and the options; empty: off
	redirect int64
	prefixes []string
}

var sessionCommands = Functions{
	"multi": multi, "exec": exec, "discard": discard, "watch": watch, "unwatch": ok, "subscribe": subscribe(channels),
	"psubscribe": subscribe(patterns), "ssubscribe": subscribe(shardChannels), "unsubscribe": unsubscribe(channels),
	"punsubscribe": unsubscribe(patterns), "sunsubscribe": unsubscribe(shardChannels), "publish": zero, "spublish": zero,
	"monitor":         ok,
	"pubsub|channels": noChannels, "pubsub|shardchannels": noChannels, "pubsub|numpat": zero, "pubsub|numsub": numSub,
	"pubsub|shardnumsub": numSub,
	"script|exists": func(c *Call) error {
		c.W.Header(resp.Array, int64(len(c.Args)-2))
		for range c.Args[2:] {
			c.W.Int(0)
		}
		return nil
	},
	"script|flush": scriptFlush, "script|load": refuse(noScripts), "script|kill": NotBusy,
}

func zero(c *Call) error { c.W.Int(0); return nil }

// inMulti are the commands that EXEC does not run.
var inMulti = []string{"multi", "exec", "discard", "watch", "quit", "reset"}

// notInMulti are the commands that a transaction cannot have: they take over the connection, or reply several times.
var notInMulti = []string{"psync", "sync", "monitor", "subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe"}

// subscribed are the commands of a client of version 2 that has subscriptions.
var subscribed = []string{"ping", "quit", "reset", "subscribe", "psubscribe", "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe"}

// argBytes is the overhead of an argument that is kept.
const argBytes = 64

// hold takes memory for bytes that a connection keeps beyond a command.
func (c *Call) hold(n int) error {
	if err := c.Server.TakeRequest(n); err != nil {
		return err
	}
	c.Client.kept += n
	return nil
}

// release gives back n of the bytes that a connection keeps.
func (s *Server) release(cl *Client, n int) {
	s.GiveRequest(n)
	cl.kept -= n
}

// Leave forgets a connection.
func (s *Server) Leave(cl *Client) {
	s.release(cl, cl.kept)
	s.Clients.Remove(cl)
}

func multi(c *Call) error {
	if c.Client.multi != nil {
		return argument.Refuse("ERR MULTI calls can not be nested")
	}
	c.Client.multi = new(transaction)
	c.W.OK()
	return nil
}

// queue keeps a command for EXEC.
func (c *Call) queue(cmd *Command) error {
	if slices.Contains(notInMulti, cmd.Name) {
		return argument.Refuse("ERR Command not allowed inside a transaction")
	}
	if err := c.hold(bytesOf(c.Args)); err != nil {
		return err
	}
	args := make([][]byte, len(c.Args))
	for i, a := range c.Args {
		args[i] = bytes.Clone(a)
	}
	c.Client.multi.commands = append(c.Client.multi.commands, args)
	c.W.Simple("QUEUED")
	return nil
}

func bytesOf(args [][]byte) (n int) {
	for _, a := range args {
		n += len(a) + argBytes
	}
	return n
}

// dequeue ends a transaction.
func (c *Call) dequeue() *transaction {
	m := c.Client.multi
	if c.Client.multi = nil; m != nil {
		for _, args := range m.commands {
			c.Server.release(c.Client, bytesOf(args))
		}
	}
	return m
}

func exec(c *Call) error {
	m := c.dequeue()
	switch {
	case m == nil:
		return argument.Refuse("ERR EXEC without MULTI")
	case m.broken:
		return argument.Refuse("EXECABORT Transaction discarded because of previous errors.")
	}
	c.W.Header(resp.Array, int64(len(m.commands)))
	for _, args := range m.commands {
		one := *c
		one.Args = args
		if err := one.run(); err != nil {
			if !c.Live() {
				return err
			}
			c.Server.Stats.Errors.Add(1)
			c.W.Error(replyText(err))
		}
	}
	return nil
}

func discard(c *Call) error {
	if c.dequeue() == nil {
		return argument.Refuse("ERR DISCARD without MULTI")
	}
	c.W.OK()
	return nil
}

func watch(c *Call) error {
	if c.Client.multi != nil {
		return argument.Refuse("ERR WATCH inside MULTI is not allowed")
	}
	c.W.OK()
	return nil
}

// count returns the number that a reply about a subscription ends with.
func (s *subscriptions) count(kind int) int64 {
	if kind == shardChannels {
		return int64(len(s[shardChannels]))
	}
	return int64(len(s[channels]) + len(s[patterns]))
}

func (s *subscriptions) any() bool { return s.count(channels)+s.count(shardChannels) > 0 }

var subscribeNames = [...]string{"subscribe", "psubscribe", "ssubscribe"}

// subscription writes a reply about a subscription; name may be nil.
func (c *Call) subscription(verb string, name []byte, kind int) {
	c.W.Header(resp.Push, 3)
	c.W.BulkString(verb)
	c.Bulk(name)
	c.W.Int(c.Client.subs.count(kind))
	c.Client.pubsub.Store(c.Client.subs.any())
}

func subscribe(kind int) func(*Call) error {
	return func(c *Call) error {
		subs := &c.Client.subs
		for _, name := range c.Args[1:] {
			if !subs[kind][string(name)] {
				if err := c.hold(len(name) + argBytes); err != nil {
					return err
				}
				if subs[kind] == nil {
					subs[kind] = map[string]bool{}
				}
				subs[kind][string(name)] = true
			}
			c.subscription(subscribeNames[kind], name, kind)
		}
		return nil
	}
}

func unsubscribe(kind int) func(*Call) error {
	return func(c *Call) error {
		names, verb := c.Args[1:], strings.Replace(subscribeNames[kind], "subscribe", "unsubscribe", 1)
		if len(names) == 0 {
			for name := range c.Client.subs[kind] {
				names = append(names, []byte(name))
			}
			if len(names) == 0 {
				c.subscription(verb, nil, kind)
			}
		}
		for _, name := range names {
			c.unsubscribe(kind, string(name))
			c.subscription(verb, name, kind)
		}
		return nil
	}
}

func (c *Call) unsubscribe(kind int, name string) {
	if c.Client.subs[kind][name] {
		delete(c.Client.subs[kind], name)
		c.Server.release(c.Client, len(name)+argBytes)
	}
}

// startOver ends what RESET ends.
func (c *Call) startOver() {
	c.dequeue()
	for kind, names := range c.Client.subs {
		for name := range names {
			c.unsubscribe(kind, name)
		}
	}
	c.Client.pubsub.Store(false)
	c.Client.tracking = tracking{}
}

func noChannels(c *Call) error {
	if len(c.Args) > 3 {
		return argument.Refuse(fmt.Sprintf("ERR unknown subcommand or wrong number of arguments for '%s'. Try PUBSUB HELP.", cut(c.Args[1], 128)))
	}
	return empty(c)
}

// numSub replies 0 subscribers for each channel.
func numSub(c *Call) error {
	c.W.Header(resp.Array, int64(2*len(c.Args)-4))
	for _, name := range c.Args[2:] {
		c.W.Values(name, 0)
	}
	return nil
}

func scriptFlush(c *Call) error {
	if len(c.Args) > 3 || len(c.Args) == 3 && !argument.Is(c.Args[2], "SYNC") && !argument.Is(c.Args[2], "ASYNC") {
		return argument.Refuse("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
	}
	return ok(c)
}

// NotBusy answers SCRIPT KILL and FUNCTION KILL.
func NotBusy(*Call) error {
	return argument.Refuse("NOTBUSY No scripts in execution right now.")
}

// clientTracking accepts all options: no key is ever invalidated.
func clientTracking(c *Call) error {
	t := tracking{redirect: 0}
	for i := 3; i < len(c.Args); i++ {
		more := i+1 < len(c.Args)
		switch name := Lower(c.Args[i]); {
		case name == "bcast", name == "optin", name == "optout", name == "noloop":
			t.flags = append(t.flags, name)
		case name == "prefix" && more:
			i++
			t.prefixes = append(t.prefixes, string(c.Args[i]))
		case name == "redirect" && more:
			i++
			n, err := argument.ParseInt(c.Args[i])
			if err != nil {
				return err
			}
			if t.redirect = n; !c.Server.Clients.has(n) {
				return argument.Refuse("ERR The client ID you want redirect to does not exist")
			}
		default:
			return argument.ErrSyntax
		}
	}
	switch {
	case argument.Is(c.Args[2], "OFF"):
		c.Client.tracking = tracking{}
	case !argument.Is(c.Args[2], "ON"):
		return argument.ErrSyntax
	case len(t.prefixes) > 0 && !slices.Contains(t.flags, "bcast"):
		return argument.Refuse("ERR PREFIX option requires BCAST mode to be enabled")
	case slices.Contains(t.flags, "optin") && slices.Contains(t.flags, "optout"):
		return argument.Refuse("ERR You can't specify both OPTIN mode and OPTOUT mode")
	case slices.Contains(t.flags, "bcast") && (slices.Contains(t.flags, "optin") || slices.Contains(t.flags, "optout")):
		return argument.Refuse("ERR OPTIN and OPTOUT are not compatible with BCAST")
	default:
		if len(t.prefixes) > maxPrefixes {
			return argument.Refuse(fmt.Sprintf("ERR kvferry keeps up to %d prefixes", maxPrefixes))
		}
		t.flags = append([]string{"on"}, t.flags...)
		c.Client.tracking = t
	}
	c.W.OK()
	return nil
}

const maxPrefixes = 64

func clientCaching(c *Call) error {
	in, yes := "optin", argument.Is(c.Args[2], "YES")
	switch t := c.Client.tracking.flags; {
	case !yes && !argument.Is(c.Args[2], "NO"):
		return argument.ErrSyntax
	case !slices.Contains(t, "optin") && !slices.Contains(t, "optout"):
		return argument.Refuse("ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled")
	case !yes:
		in = "optout"
		fallthrough
	default:
		if !slices.Contains(t, in) {
			return argument.Refuse(fmt.Sprintf("ERR CLIENT CACHING %s is only valid when tracking is enabled in %s mode.", upper(c.Args[2]), strings.ToUpper(in)))
		}
	}
	c.W.OK()
	return nil
}

// redirectOf returns the client that invalidations go to; -1: tracking is off.
func (t *tracking) redirectOf() int64 {
	if len(t.flags) == 0 {
		return -1
	}
	return t.redirect
}

func trackingInfo(c *Call) error {
	t := c.Client.tracking
	if len(t.flags) == 0 {
		t.flags = []string{"off"}
	}
	c.W.Pairs("flags", func() { c.W.Strings(resp.Set, t.flags) }, "redirect", c.Client.tracking.redirectOf(), "prefixes", t.prefixes)
	return nil
}
