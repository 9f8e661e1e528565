// Package server connects to servers of Redis and Valkey, standalone and clusters: addresses, connections with time
// limits, commands that follow their slots, pipes, and what a server is and holds. Commands and replies go through
// github.com/gomodule/redigo; a guard bounds the memory of replies.
package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/gomodule/redigo/redis"

	"kvferry/format"
	"kvferry/redis/rdb"
)

// Server is an identified server or cluster.
type Server struct {
	*Options
	Client    *Client // of the server, or of the node in the address
	Major     int
	Minor     int
	Valkey    bool
	Runs      map[string]string // run id by address; nil: new connections do not check it
	Name      string            // "Redis 7.0.15"
	Version   rdb.Version
	Restore   bool // supports RESTORE
	clustered bool // is a cluster node

	mu      sync.Mutex
	Nodes   []string // master by slot
	Members []string // all known addresses of the cluster
	Crashed []string // masters that a replica replaced
	known   slotMap  // of the last call of Moved, or of Connect
}

// Connect connects to an address and identifies the server. memory is the limit of the command; 0: unknown.
func Connect(ctx context.Context, location string, so *format.ServerOptions, memory int64) (*Server, error) {
	o, err := NewOptions(location, so)
	if err != nil {
		return nil, err
	}
	o.memory = memory
	s := &Server{Options: o, Client: o.To(o.Host, strconv.Itoa(max(o.DB, 0)))}
	if err = o.shakeHands(ctx); err == nil {
		err = o.plainHint(s.firstAnswer(ctx))
	}
	if err == nil && o.Cluster {
		if err = s.Locate(ctx); err == nil {
			s.known = slotMap{s.Nodes, s.Members}
			s.Runs, err = s.RunsOf(ctx, s.Hosts())
		}
	}
	if err != nil {
		return nil, errors.Join(Explain(o.Shown, err), s.Client.Close())
	}
	return s, nil
}

// firstAnswer identifies the server with a short timeout.
func (s *Server) firstAnswer(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, firstAnswer)
	defer cancel()
	err := s.identify(within)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("no answer within %s: check that it is a Redis server, and not stopped or busy", firstAnswer)
	}
	return err
}

func (s *Server) identify(ctx context.Context) error {
	i, err := s.Client.Info(ctx, "server")
	if err != nil {
		return err
	}
	s.Runs = map[string]string{s.Host: i["run_id"]}
	s.clustered = i["redis_mode"] == "cluster"
	version := i["redis_version"]
	s.Name = "Redis " + version
	if v := i["valkey_version"]; v != "" {
		s.Valkey, version, s.Name = true, v, "Valkey "+v
	}
	parts := strings.SplitN(version, ".", 3)
	s.Major, _ = strconv.Atoi(parts[0])
	if len(parts) > 1 {
		s.Minor, _ = strconv.Atoi(parts[1])
	}
	s.Version = s.Payloads()
	return nil
}

// RunsOf returns the run ids of servers.
func (s *Server) RunsOf(ctx context.Context, hosts []string) (map[string]string, error) {
	runs := map[string]string{}
	err := s.Each(hosts, func(host string, c *Client) error {
		i, err := c.Info(ctx, "server")
		runs[host] = i["run_id"]
		return err
	})
	return runs, err
}

// Each calls f with a client of each server.
func (s *Server) Each(hosts []string, f func(host string, c *Client) error) error {
	for _, host := range hosts {
		c := s.To(host, "0")
		err := f(host, c)
		_ = c.Close() // all replies have arrived
		if err != nil {
			return Explain(host, err)
		}
	}
	return nil
}

// RunNames joins the run ids of all servers into one string.
func (s *Server) RunNames() string {
	if !s.Cluster {
		return s.Runs[s.Host]
	}
	var out []string
	for _, host := range slices.Sorted(maps.Keys(s.Runs)) {
		out = append(out, host+"="+s.Runs[host])
	}
	return strings.Join(out, " ")
}

// Since reports whether the server is of a version or newer. Valkey began with 7.2.
func (s *Server) Since(major, minor int) bool {
	return s.Major > major || s.Major == major && s.Minor >= minor
}

// Payloads returns the newest RDB version that the server accepts.
func (s *Server) Payloads() rdb.Version {
	switch {
	case s.Valkey && s.Since(9, 0):
		return rdb.Version{Number: 80, Valkey: true}
	case s.Valkey:
		return rdb.Version{Number: 11}
	case s.Since(7, 4):
		return rdb.Version{Number: 12}
	case s.Since(7, 2):
		return rdb.Version{Number: 11}
	case s.Since(7, 0):
		return rdb.Version{Number: 10}
	case s.Since(5, 0):
		return rdb.Version{Number: 9}
	case s.Since(4, 0):
		return rdb.Version{Number: 8}
	}
	return rdb.Version{Number: 6}
}

// Writable rejects read-only replicas and single cluster nodes before the first write.
func (s *Server) Writable(ctx context.Context) error {
	i, err := s.Client.Info(ctx, "replication")
	if err != nil {
		return Explain(s.Shown, err)
	}
	if i["role"] == "slave" && i["slave_read_only"] != "0" && !s.Cluster {
		return fmt.Errorf("%s: is a read-only replica of %s:%s: use its master", s.Shown, i["master_host"], i["master_port"])
	}
	if s.OneOfSeveral(ctx) {
		return fmt.Errorf("%s: this is one node of a cluster, which takes only some of the keys: write %s%s", s.Shown,
			Scheme(s.TLS, true), s.Host)
	}
	return s.Probe(ctx)
}

// Router returns a router for a database.
func (s *Server) Router(db string) *Router {
	r := &Router{Options: s.Options, db: db, owner: s.Owner, clients: map[string]*Client{}}
	if s.Cluster {
		r.locate = s.Locate
	}
	return r
}

// Probe checks whether RESTORE is available. Its payload is invalid, so it restores no key. A read-only replica knows
// the command, and can be compared with.
func (s *Server) Probe(ctx context.Context) error {
	r := s.Router("0")
	defer r.Close()
	_, err := r.Do(ctx, []byte("kvferry"), "RESTORE", "0", "none")
	switch {
	case err == nil || strings.Contains(err.Error(), "payload") || strings.Contains(err.Error(), "Bad data format") ||
		strings.Contains(err.Error(), "BUSYKEY") || strings.HasPrefix(err.Error(), "READONLY"):
		s.Restore = s.Since(5, 0)
		return nil
	case strings.Contains(err.Error(), "unknown command") || strings.Contains(err.Error(), "NOPERM"):
		return nil
	}
	return Explain(s.Shown, err)
}

// Databases returns the number of keys by database number, in a cluster those of all masters. Clusters of Valkey 9 and
// later may have several databases.
func (s *Server) Databases(ctx context.Context) (map[string]int64, error) {
	out := map[string]int64{}
	if !s.Cluster {
		return out, Explain(s.Shown, s.Client.AddDatabases(ctx, out))
	}
	err := s.Each(s.Hosts(), func(_ string, c *Client) error { return c.AddDatabases(ctx, out) })
	return out, Explain(s.Shown, err)
}

// Select returns an error if the server, or a master of the cluster, has no such database.
func (s *Server) Select(ctx context.Context, db string) error {
	if db == "0" {
		return nil
	}
	for _, host := range s.Hosts() {
		l, err := s.open(ctx, host, db, nil)
		if err != nil {
			return Explain(s.Shown, fmt.Errorf("database %s: %w", db, err))
		}
		_ = l.Close() // nothing was written
	}
	return nil
}

// Libraries returns the number of function libraries, or 0 if unknown.
func (s *Server) Libraries(ctx context.Context) int {
	list, err := s.Client.Libraries(ctx, "*")
	if err != nil {
		return 0 // Redis before 7.0 has no functions, or the user lacks permission
	}
	return len(list)
}

// Evicted returns the number of keys that the server has evicted.
func (s *Server) Evicted(ctx context.Context) (sum int64) {
	_ = s.Each(s.Hosts(), func(_ string, c *Client) error {
		i, _ := c.Info(ctx, "stats") // unknown is 0
		n, _ := strconv.ParseInt(i["evicted_keys"], 10, 64)
		sum += n
		return nil
	})
	return sum
}

// Dial opens a connection of a writer. It fails if the server has restarted and runs has its run id.
func (s *Server) Dial(ctx context.Context, host, db string) (*Link, error) {
	l, err := s.open(ctx, host, db, func(conn redis.Conn) error { return s.sameRun(conn, host) })
	return l, Explain(s.Shown, err)
}

// Stream opens a connection whose reader bounds the answers itself.
func (s *Server) Stream(ctx context.Context, host, db string) (*Link, *bufio.Reader, error) {
	l, err := s.Dial(ctx, host, db)
	if err != nil {
		return nil, nil, err
	}
	l.guard = nil
	return l, bufio.NewReaderSize(l, 256<<10), nil
}

// sameRun checks that the server has not restarted.
func (s *Server) sameRun(conn redis.Conn, host string) error {
	run := s.Runs[host]
	if run == "" { // or the node joined the cluster later
		_, err := conn.Do("PING")
		return err
	}
	text, err := redis.String(conn.Do("INFO", "server"))
	if err == nil && info(text)["run_id"] != run {
		err = FinalError{errRestarted}
	}
	return err
}

var errRestarted = errors.New("the server restarted while kvferry wrote to it: writes that it had not saved are lost; run the command again")
