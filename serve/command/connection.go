package command

import (
	"bytes"
	"crypto/subtle"
	"fmt"
	"strconv"

	"kvferry/internal/pass/filter"
	"kvferry/internal/shared/argument"
	"kvferry/serve/resp"
)

var connectionCommands = Functions{
	"ping": ping, "echo": func(c *Call) error { c.W.Bulk(c.Args[1]); return nil }, "hello": hello, "auth": auth,
	"select": selectDB, "quit": quit, "reset": reset, "info": info, "time": clock,
	"lastsave": func(c *Call) error { c.W.Int(c.Server.Now.Unix()); return nil }, "role": role, "readonly": inCluster,
	"readwrite": inCluster, "asking": inCluster, "wait": Wait(func() int64 { return 0 }),
	"command": commands, "command|count": func(c *Call) error { c.W.Int(int64(len(c.Server.Table.names))); return nil },
	"command|docs": commandDocs, "command|info": commandInfo, "command|list": commandList, "command|getkeys": commandGetKeys,
	"client|id": func(c *Call) error { c.W.Int(c.Client.ID); return nil }, "client|getname": clientGetName,
	"client|setname": clientSetName, "client|setinfo": ok, "client|list": clientList,
	"client|info": func(c *Call) error { c.W.Verbatim(c.Client.line() + "\n"); return nil }, "client|kill": clientKill,
	"client|reply": clientReply, "client|no-evict": onOff, "client|no-touch": onOff, "client|tracking": clientTracking,
	"client|trackinginfo": trackingInfo, "client|caching": clientCaching,
	"client|getredir": func(c *Call) error { c.W.Int(c.Client.tracking.redirectOf()); return nil },
	"client|unblock":  clientUnblock, "client|pause": clientPause, "client|unpause": ok, "config|get": configGet,
	"config|resetstat": ok,
	"config|set": func(*Call) error {
		return argument.Refuse("ERR kvferry serve has no settings to change: see kvferry serve --help")
	},
	"module|list": empty, "cluster|info": noCluster, "cluster|slots": noCluster, "cluster|shards": noCluster,
	"cluster|nodes": noCluster, "cluster|myid": noCluster,
	"acl|whoami": func(c *Call) error { c.W.BulkString("default"); return nil }, "acl|list": aclList, "acl|cat": aclCat,
	"acl|getuser": aclGetUser, "acl|log": aclLog, "acl|dryrun": aclDryrun,
	"acl|users":   func(c *Call) error { c.W.Header(resp.Array, 1); c.W.BulkString("default"); return nil },
	"slowlog|get": slowlogGet, "slowlog|reset": ok, "slowlog|len": func(c *Call) error { c.W.Int(0); return nil },
	"latency|latest": empty, "latency|history": empty, "latency|histogram": latencyHistogram,
	"latency|reset": func(c *Call) error { c.W.Int(0); return nil },
}

func ok(c *Call) error { c.W.OK(); return nil }

func empty(c *Call) error { c.W.Header(resp.Array, 0); return nil }

func ping(c *Call) error {
	switch {
	case len(c.Args) > 2:
		return wrongArgs("ping")
	case c.Client.subs.any() && c.W.Proto < 3:
		c.W.List("pong", bytes.Join(c.Args[1:], nil))
	case len(c.Args) == 1:
		c.W.Simple("PONG")
	default:
		c.W.Bulk(c.Args[1])
	}
	return nil
}

// quit ends the connection after its reply.
func quit(c *Call) error {
	c.W.OK()
	return c.end()
}

// end sends the replies and closes the connection.
func (c *Call) end() error {
	err := c.W.Flush()
	c.Client.Kill()
	return err
}

func reset(c *Call) error {
	c.startOver()
	c.W.Proto, c.Client.Authenticated = 2, false
	c.Client.proto.Store(2)
	c.Client.name.Store(nil)
	c.Client.use(c.Server.Database(0))
	c.W.Simple("RESET")
	return nil
}

func (cl *Client) use(db Database) {
	cl.DB = db
	cl.db.Store(int64(db.Number))
}

func (cl *Client) nameText() string {
	if p := cl.name.Load(); p != nil {
		return *p
	}
	return ""
}

// rename sets the name of a connection.
func (cl *Client) rename(name []byte, what string) error {
	for _, b := range name {
		if b < '!' || b > '~' {
			return argument.Refuse("ERR " + what + " cannot contain spaces, newlines or special characters.")
		}
	}
	s := string(name)
	cl.name.Store(&s)
	return nil
}

// Database returns the database of a number.
func (s *Server) Database(n int) Database {
	for _, db := range s.known() {
		if db.Number == n {
			return db
		}
	}
	return Database{Number: n}
}

// databases is the number of databases that SELECT accepts: 16 at least, as by default in Redis.
func (s *Server) databases() int {
	n := 16
	for _, db := range s.known() {
		n = max(n, db.Number+1)
	}
	return n
}

func selectDB(c *Call) error {
	n, err := argument.ParseInt(c.Args[1])
	if c.Server.Route != nil && err == nil && n != 0 {
		return argument.Refuse("ERR SELECT is not allowed in cluster mode")
	}
	if err != nil {
		for _, db := range c.Server.known() { // a name, such as a namespace
			if db.Name == string(c.Args[1]) {
				c.Client.use(db)
				c.W.OK()
				return nil
			}
		}
		return argument.ErrInteger
	}
	if n < 0 || n >= int64(c.Server.databases()) {
		return argument.Refuse("ERR DB index is out of range")
	}
	c.Client.use(c.Server.Database(int(n)))
	c.W.OK()
	return nil
}

func auth(c *Call) error {
	if len(c.Args) > 3 {
		return argument.ErrSyntax
	}
	if c.Server.Password == "" && len(c.Args) == 2 {
		return argument.Refuse("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
	}
	user := []byte("default")
	if len(c.Args) == 3 {
		user = c.Args[1]
	}
	if err := c.login(user, c.Args[len(c.Args)-1]); err != nil {
		return err
	}
	c.W.OK()
	return nil
}

// login checks a password. Without one the user default may have any.
func (c *Call) login(user, password []byte) error {
	right := subtle.ConstantTimeCompare(password, []byte(c.Server.Password)) == 1 || c.Server.Password == ""
	if string(user) != "default" || !right {
		return argument.Refuse("WRONGPASS invalid username-password pair or user is disabled.")
	}
	c.Client.Authenticated = true
	return nil
}

func hello(c *Call) error {
	proto := c.W.Proto
	if len(c.Args) > 1 {
		n, err := strconv.ParseInt(string(c.Args[1]), 10, 64)
		if err != nil {
			return argument.Refuse("ERR Protocol version is not an integer or out of range")
		}
		if n < 2 || n > 3 {
			return argument.Refuse("NOPROTO unsupported protocol version")
		}
		proto = int(n)
	}
	name := []byte(nil)
	for i := 2; i < len(c.Args); i++ {
		switch more := len(c.Args) - i - 1; {
		case argument.Is(c.Args[i], "AUTH") && more >= 2:
			if err := c.login(c.Args[i+1], c.Args[i+2]); err != nil {
				return err
			}
			i += 2
		case argument.Is(c.Args[i], "SETNAME") && more >= 1:
			name = c.Args[i+1]
			if err := new(Client).rename(name, "Client names"); err != nil {
				return err
			}
			i++
		default:
			return argument.Refuse(fmt.Sprintf("ERR Syntax error in HELLO option '%s'", cut(c.Args[i], 128)))
		}
	}
	if c.Server.Password != "" && !c.Client.Authenticated {
		return argument.Refuse("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
	}
	if name != nil {
		_ = c.Client.rename(name, "Client names") // checked above
	}
	c.W.Proto = proto
	c.Client.proto.Store(int64(proto))
	c.W.Pairs("server", "redis", "version", redisVersion, "proto", c.W.Proto, "id", c.Client.ID, "mode", c.Server.mode(), "role", "master",
		"modules", []string(nil))
	return nil
}

// redisVersion is the version whose commands are answered. Clients decide by it what they may send.
const redisVersion = "7.0.15"

func clock(c *Call) error {
	now := c.Server.Time()
	c.W.List(strconv.FormatInt(now.Unix(), 10), strconv.Itoa(now.Nanosecond()/1000))
	return nil
}

func role(c *Call) error {
	c.W.List("master", 0, []string(nil))
	return nil
}

func slowlogGet(c *Call) error {
	if len(c.Args) > 2 {
		if n, err := argument.ParseInt(c.Args[2]); err != nil || n < -1 {
			return argument.Refuse("ERR count should be greater than or equal to -1")
		}
	}
	return empty(c)
}

// inCluster accepts what only a node of a cluster accepts.
func inCluster(c *Call) error {
	if c.Server.Route == nil {
		return noCluster(c)
	}
	return ok(c)
}

func noCluster(*Call) error { return argument.Refuse("ERR This instance has cluster support disabled") }

func clientGetName(c *Call) error {
	if name := c.Client.nameText(); name != "" {
		c.W.BulkString(name)
	} else {
		c.W.Null()
	}
	return nil
}

func clientSetName(c *Call) error {
	if err := c.Client.rename(c.Args[2], "Client names"); err != nil {
		return err
	}
	c.W.OK()
	return nil
}

// onOff accepts ON and OFF.
func onOff(c *Call) error {
	if !argument.Is(c.Args[2], "ON") && !argument.Is(c.Args[2], "OFF") {
		return argument.ErrSyntax
	}
	return ok(c)
}

// clientReply accepts only the default.
func clientReply(c *Call) error {
	if !argument.Is(c.Args[2], "ON") {
		return argument.ErrSyntax
	}
	c.W.OK()
	return nil
}

func configGet(c *Call) error {
	values := [][2]string{{"appendonly", "no"}, {"databases", strconv.Itoa(c.Server.databases())}, {"maxclients", strconv.Itoa(c.Server.MaxClients)},
		{"maxmemory", strconv.FormatInt(c.Server.Memory, 10)}, {"port", strconv.Itoa(c.Server.Port)}, {"save", ""}, {"slave-read-only", "yes"},
		{"replica-read-only", "yes"}, {"timeout", "0"}, {"maxmemory-policy", "noeviction"}}
	return c.W.Aggregate(resp.Map, func() (n int64, err error) {
		for _, v := range values {
			for _, pattern := range c.Args[2:] {
				if filter.Glob(Lower(pattern), []byte(v[0])) {
					n++
					c.W.Values(v[0], v[1])
					break
				}
			}
		}
		return n, nil
	})
}
