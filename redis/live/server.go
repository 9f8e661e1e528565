package live

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

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
	restore   bool     // supports RESTORE
	clustered bool     // is a cluster node
	nodes     []string // master by slot
	members   []string // all known addresses of the cluster
}

// connect connects to an address and identifies the server.
func (f *Format) connect(ctx context.Context, location string, memory int64) (*server, error) {
	o, err := newOptions(location, f.options)
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
			err = s.identifyNodes(ctx)
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

// info parses a reply of INFO.
func info(text string) map[string]string {
	out := map[string]string{}
	for _, line := range strings.Split(text, "\r\n") {
		if k, v, ok := strings.Cut(line, ":"); ok {
			out[k] = v
		}
	}
	return out
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

// identifyNodes stores the run ids of the masters.
func (s *server) identifyNodes(ctx context.Context) (err error) {
	s.runs, err = s.runsNow(ctx)
	return err
}

// runsNow returns the run id of each master.
func (s *server) runsNow(ctx context.Context) (map[string]string, error) {
	runs := map[string]string{}
	for _, host := range s.hosts() {
		client := s.to(host, "0")
		i, err := client.info(ctx, "server")
		if err = errors.Join(err, client.close()); err != nil {
			return nil, fmt.Errorf("%s: %w", host, err)
		}
		runs[host] = i["run_id"]
	}
	return runs, nil
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

// payloads returns the newest RDB version that the server accepts.
func (s *server) payloads() rdb.Version {
	at := func(major, minor int) bool { return s.major > major || s.major == major && s.minor >= minor }
	switch {
	case s.valkey && at(9, 0):
		return rdb.Version{Number: 80, Valkey: true}
	case s.valkey:
		return rdb.Version{Number: 11}
	case at(7, 4):
		return rdb.Version{Number: 12}
	case at(7, 2):
		return rdb.Version{Number: 11}
	case at(7, 0):
		return rdb.Version{Number: 10}
	case at(5, 0):
		return rdb.Version{Number: 9}
	case at(4, 0):
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
		return fmt.Errorf("%s: this is one node of a cluster, which takes only some of the keys: write %s%s", s.shown, s.clusterScheme(), s.host)
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

// owner returns the server that has a key.
func (s *server) owner(key []byte) string {
	if s.cluster {
		return s.nodes[slot(key)]
	}
	return s.host
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
		s.restore = s.major >= 5
		return nil
	case strings.Contains(err.Error(), "unknown command") || strings.Contains(err.Error(), "NOPERM"):
		return nil
	}
	return told(s.shown, err)
}

// databases returns the number of keys by database number.
func (s *server) databases(ctx context.Context) (map[string]int64, error) {
	if s.cluster {
		n, err := s.keys(ctx)
		return map[string]int64{"0": n}, told(s.shown, err)
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
func (s *server) evicted(ctx context.Context) int64 {
	var sum int64
	for _, host := range s.hosts() {
		client := s.to(host, "0")
		i, _ := client.info(ctx, "stats") // unknown is 0
		_ = client.close()
		n, _ := strconv.ParseInt(i["evicted_keys"], 10, 64)
		sum += n
	}
	return sum
}

// dialer returns a dial function for bulk connections. It fails if the server has restarted and runs has its run id.
func (s *server) dialer(host, db string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) {
		conn, err := s.dial(ctx, host)
		if err != nil {
			return nil, told(s.shown, err)
		}
		err = greet(ctx, conn, func(ask asking) error {
			if err := s.login(ask, db); err != nil {
				return err
			}
			return s.sameRun(ask, host)
		})
		if err != nil {
			conn.Close()
			return nil, told(s.shown, err)
		}
		return conn, nil
	}
}

// asking sends a command and returns the reply.
type asking func(args ...string) (string, error)

// greet calls f for the first commands on a connection.
func greet(ctx context.Context, conn *link, f func(asking) error) error {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := conn.SetDeadline(time.Now().Add(firstAnswer)); err != nil {
		return err
	}
	in := bufio.NewReader(conn)
	err := f(func(args ...string) (string, error) {
		var list [][]byte
		for _, a := range args {
			list = append(list, []byte(a))
		}
		if _, err := conn.Write(appendCommand(nil, list...)); err != nil {
			return "", err
		}
		text, err := readText(in)
		if err == nil && strings.HasPrefix(text, "-") {
			if err = redis.Error(text[1:]); !strings.HasPrefix(text, "-LOADING") {
				err = finalError{err}
			}
		}
		return text, err
	})
	if err != nil {
		return err
	}
	return conn.SetDeadline(time.Time{})
}

// login authenticates and selects the database.
func (o *options) login(ask asking, db string) error {
	if o.Password != "" {
		login := []string{"AUTH", o.Password}
		if o.user != "" {
			login = []string{"AUTH", o.user, o.Password}
		}
		if _, err := ask(login...); err != nil {
			return err
		}
	}
	if db == "0" {
		return nil
	}
	_, err := ask("SELECT", db)
	return err
}

// sameRun checks that the server has not restarted.
func (s *server) sameRun(ask asking, host string) error {
	run := s.runs[host]
	if run == "" { // or the node joined the cluster later
		_, err := ask("PING")
		return err
	}
	text, err := ask("INFO", "server")
	if err == nil && info(text)["run_id"] != run {
		err = finalError{errRestarted}
	}
	return err
}

var errRestarted = errors.New("the server restarted while kvferry wrote to it: what it had not saved is lost; run the command again")

// readText reads a bulk or simple string.
func readText(in *bufio.Reader) (string, error) {
	b, err := in.ReadSlice('\n')
	line := string(b)
	switch {
	case errors.Is(err, bufio.ErrBufferFull), err == nil && (len(line) < 3 || !strings.ContainsRune("+-:$", rune(line[0]))):
		return "", errAnswer
	case err != nil || line[0] != '$':
		return strings.TrimSuffix(line, "\r\n"), err
	}
	n, err := strconv.Atoi(line[1 : len(line)-2])
	if err != nil || n < 0 || n > 1<<20 {
		return "", errAnswer
	}
	text := make([]byte, n+2)
	_, err = io.ReadFull(in, text)
	return string(text[:n]), err
}
