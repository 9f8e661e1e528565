package live

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

// server is an identified server or cluster.
type server struct {
	*options
	client    *client // of the server, or of the node in the address
	major     int
	minor     int
	valkey    bool
	runs      map[string]string // run id by address; nil: new connections do not check it
	name      string            // "Redis 7.0.15"
	version   rdb.Version
	restore   bool // supports RESTORE
	clustered bool // is a cluster node

	mu      sync.Mutex
	nodes   []string // master by slot
	members []string // all known addresses of the cluster
	crashed []string // masters that a replica replaced
}

// connect connects to an address and identifies the server. memory is the limit of the command; 0: unknown.
func connect(ctx context.Context, location string, so *format.ServerOptions, memory int64) (*server, error) {
	o, err := newOptions(location, so)
	if err != nil {
		return nil, err
	}
	o.memory = memory
	s := &server{options: o, client: o.to(o.host, strconv.Itoa(max(o.db, 0)))}
	if err = o.shakeHands(ctx); err == nil {
		err = o.plainHint(s.firstAnswer(ctx))
	}
	if err == nil && o.cluster {
		if err = s.locate(ctx); err == nil {
			s.runs, err = s.runsOf(ctx, s.hosts())
		}
	}
	if err != nil {
		return nil, errors.Join(told(o.shown, err), s.client.close())
	}
	return s, nil
}

// firstAnswer identifies the server with a short timeout.
func (s *server) firstAnswer(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, firstAnswer)
	defer cancel()
	err := s.identify(within)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("it does not answer within %s: is it a server of Redis, and not stopped or busy?", firstAnswer)
	}
	return err
}

func (s *server) identify(ctx context.Context) error {
	i, err := s.client.info(ctx, "server")
	if err != nil {
		return err
	}
	s.runs = map[string]string{s.host: i["run_id"]}
	s.clustered = i["redis_mode"] == "cluster"
	version := i["redis_version"]
	s.name = "Redis " + version
	if v := i["valkey_version"]; v != "" {
		s.valkey, version, s.name = true, v, "Valkey "+v
	}
	parts := strings.SplitN(version, ".", 3)
	s.major, _ = strconv.Atoi(parts[0])
	if len(parts) > 1 {
		s.minor, _ = strconv.Atoi(parts[1])
	}
	s.version = s.payloads()
	return nil
}

// runsOf returns the run ids of servers.
func (s *server) runsOf(ctx context.Context, hosts []string) (map[string]string, error) {
	runs := map[string]string{}
	err := s.each(hosts, func(host string, c *client) error {
		i, err := c.info(ctx, "server")
		runs[host] = i["run_id"]
		return err
	})
	return runs, err
}

// each calls f with a client of each server.
func (s *server) each(hosts []string, f func(host string, c *client) error) error {
	for _, host := range hosts {
		c := s.to(host, "0")
		if err := errors.Join(f(host, c), c.close()); err != nil {
			return told(host, err)
		}
	}
	return nil
}

// runNames joins the run ids of all servers into one string.
func (s *server) runNames() string {
	if !s.cluster {
		return s.runs[s.host]
	}
	var out []string
	for _, host := range slices.Sorted(maps.Keys(s.runs)) {
		out = append(out, host+"="+s.runs[host])
	}
	return strings.Join(out, " ")
}

// since reports whether the server is of a version or newer. Valkey began with 7.2.
func (s *server) since(major, minor int) bool {
	return s.major > major || s.major == major && s.minor >= minor
}

// payloads returns the newest RDB version that the server accepts.
func (s *server) payloads() rdb.Version {
	switch {
	case s.valkey && s.since(9, 0):
		return rdb.Version{Number: 80, Valkey: true}
	case s.valkey:
		return rdb.Version{Number: 11}
	case s.since(7, 4):
		return rdb.Version{Number: 12}
	case s.since(7, 2):
		return rdb.Version{Number: 11}
	case s.since(7, 0):
		return rdb.Version{Number: 10}
	case s.since(5, 0):
		return rdb.Version{Number: 9}
	case s.since(4, 0):
		return rdb.Version{Number: 8}
	}
	return rdb.Version{Number: 6}
}

// writable rejects read-only replicas and single cluster nodes before the first write.
func (s *server) writable(ctx context.Context) error {
	i, err := s.client.info(ctx, "replication")
	if err != nil {
		return told(s.shown, err)
	}
	if i["role"] == "slave" && i["slave_read_only"] != "0" && !s.cluster {
		return fmt.Errorf("%s: is a read-only replica of %s:%s: use its master", s.shown, i["master_host"], i["master_port"])
	}
	if s.oneOfSeveral(ctx) {
		return fmt.Errorf("%s: this is one node of a cluster, which takes only some of the keys: write %s%s", s.shown, scheme(s.tls, true), s.host)
	}
	return s.probe(ctx)
}

// router returns a router for a database.
func (s *server) router(db string) *router {
	r := &router{options: s.options, db: db, owner: s.owner, clients: map[string]*client{}}
	if s.cluster {
		r.locate = s.locate
	}
	return r
}

// probe checks whether RESTORE is available. Its payload is invalid, so it restores no key. A read-only replica knows
// the command, and can be compared with.
func (s *server) probe(ctx context.Context) error {
	r := s.router("0")
	defer r.close()
	_, err := r.do(ctx, []byte("kvferry"), "RESTORE", "0", "none")
	switch {
	case err == nil || strings.Contains(err.Error(), "payload") || strings.Contains(err.Error(), "Bad data format") ||
		strings.Contains(err.Error(), "BUSYKEY") || strings.HasPrefix(err.Error(), "READONLY"):
		s.restore = s.since(5, 0)
		return nil
	case strings.Contains(err.Error(), "unknown command") || strings.Contains(err.Error(), "NOPERM"):
		return nil
	}
	return told(s.shown, err)
}

// databases returns the number of keys by database number.
func (s *server) databases(ctx context.Context) (map[string]int64, error) {
	if s.cluster {
		var sum int64
		err := s.each(s.hosts(), func(_ string, c *client) error {
			n, err := c.size(ctx)
			sum += n
			return err
		})
		return map[string]int64{"0": sum}, told(s.shown, err)
	}
	i, err := s.client.info(ctx, "keyspace")
	out := map[string]int64{}
	for k, v := range i {
		n, ok := strings.CutPrefix(k, "db")
		keys, _, _ := strings.Cut(strings.TrimPrefix(v, "keys="), ",")
		if _, e := strconv.Atoi(n); ok && e == nil {
			out[n], _ = strconv.ParseInt(keys, 10, 64)
		}
	}
	return out, told(s.shown, err)
}

// libraries returns the number of function libraries, or 0 if unknown.
func (s *server) libraries(ctx context.Context) int {
	list, err := s.client.libraries(ctx, "*")
	if err != nil {
		return 0 // Redis before 7.0 has no functions, or the user lacks permission
	}
	return len(list)
}

// evicted returns the number of keys that the server has evicted.
func (s *server) evicted(ctx context.Context) (sum int64) {
	_ = s.each(s.hosts(), func(_ string, c *client) error {
		i, _ := c.info(ctx, "stats") // unknown is 0
		n, _ := strconv.ParseInt(i["evicted_keys"], 10, 64)
		sum += n
		return nil
	})
	return sum
}

// bulk opens a connection of a writer. It fails if the server has restarted and runs has its run id.
func (s *server) bulk(ctx context.Context, host, db string) (*link, error) {
	l, err := s.open(ctx, host, db, func(conn redis.Conn) error { return s.sameRun(conn, host) })
	return l, told(s.shown, err)
}

// stream opens a connection whose reader bounds the answers itself.
func (s *server) stream(ctx context.Context, host, db string) (*link, *bufio.Reader, error) {
	l, err := s.bulk(ctx, host, db)
	if err != nil {
		return nil, nil, err
	}
	l.guard = nil
	return l, bufio.NewReaderSize(l, 256<<10), nil
}

// sameRun checks that the server has not restarted.
func (s *server) sameRun(conn redis.Conn, host string) error {
	run := s.runs[host]
	if run == "" { // or the node joined the cluster later
		_, err := conn.Do("PING")
		return err
	}
	text, err := redis.String(conn.Do("INFO", "server"))
	if err == nil && info(text)["run_id"] != run {
		err = finalError{errRestarted}
	}
	return err
}

var errRestarted = errors.New("the server restarted while kvferry wrote to it: what it had not saved is lost; run the command again")
