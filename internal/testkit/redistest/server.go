package redistest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a redis-server that runs until its test ends.
type Server struct {
	Addr string // host:port
	Dir  string
	args []string
	t    testing.TB
	tls  bool

	binary string // "": redis-server on the PATH

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{}
	log  bytes.Buffer
}

// serverBinary finds the server, or skips the test.
func serverBinary(t testing.TB) string {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("SKIPPED: needs redis-server (Debian: apt install redis-server)")
	}
	return path
}

// Start starts a server with additional arguments. It skips the test if redis-server is missing.
func Start(t testing.TB, args ...string) *Server { return StartIn(t, t.TempDir(), args...) }

// StartIn starts a server in a directory. It loads the files there.
func StartIn(t testing.TB, dir string, args ...string) *Server {
	t.Helper()
	return begin(&Server{Dir: dir, args: args, t: t})
}

// begin starts a server on a free port and stops it when the test ends.
func begin(s *Server) *Server {
	s.t.Helper()
	s.t.Cleanup(s.Kill)
	for try := 0; ; try++ {
		s.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(FreePort(s.t)))
		err := s.start()
		if err == nil {
			return s
		}
		if try == 4 || !strings.Contains(err.Error(), "Address already in use") {
			s.t.Fatal(err)
		}
	}
}

// StartTLS starts a server that accepts only TLS.
func StartTLS(t testing.TB, cert, key, ca string) *Server {
	t.Helper()
	return begin(&Server{Dir: t.TempDir(), t: t, tls: true,
		args: []string{"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ca, "--tls-auth-clients", "no"}})
}

// FreePort returns a port that no process listened on a moment ago. It lies below the ports that the kernel gives to
// outgoing connections: such a connection could take the port first, and a client that dials it before the server
// listens could connect to itself.
func FreePort(t testing.TB) int {
	t.Helper()
	for range 1000 {
		port := 10000 + rand.IntN(20000)
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))); err == nil {
			l.Close()
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

func (s *Server) start() error {
	_, port, _ := net.SplitHostPort(s.Addr)
	plain, secure := port, "0"
	if s.tls {
		plain, secure = "0", port
	}
	args := append([]string{"--bind", "127.0.0.1", "--port", plain, "--dir", s.Dir, "--save", "", "--databases", "64",
		"--repl-diskless-sync-delay", "0"}, s.args...) // replicas need not wait for others
	if s.tls {
		args = append(args, "--tls-port", secure)
	}
	if s.binary == "" {
		s.binary = serverBinary(s.t)
	}
	cmd := exec.Command(s.binary, args...)
	s.log.Reset()
	cmd.Stdout, cmd.Stderr = &s.log, &s.log
	cmd.SysProcAttr = diesWithTest()
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the log shows how it ended
		close(done)
	}()
	s.mu.Lock()
	s.cmd, s.done = cmd, done
	s.mu.Unlock()
	return s.ready(cmd.Process.Pid, done)
}

// ready waits until the server replies.
func (s *Server) ready(pid int, done chan struct{}) error {
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		select {
		case <-done:
			return fmt.Errorf("redis-server ended: %s", s.log.String())
		default:
		}
		conn, err := net.DialTimeout("tcp", s.Addr, time.Second)
		if err == nil {
			conn.Close()
			if s.tls || s.loaded(pid) {
				return nil
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("redis-server does not answer: %s", s.log.String())
}

// loaded reports whether this server, and not another process on its port, has loaded its files.
func (s *Server) loaded(pid int) bool {
	c, err := Dial(s.Addr)
	if err != nil {
		return false
	}
	defer c.Close()
	info, err := c.Do("INFO")
	if err != nil {
		return strings.HasPrefix(err.Error(), "NOAUTH")
	}
	text, _ := info.([]byte)
	return bytes.Contains(text, fmt.Appendf(nil, "process_id:%d\r\n", pid)) && bytes.Contains(text, []byte("\nloading:0\r\n"))
}

// Kill kills the server, like a crash.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill() // it may have exited
	<-s.done
	s.cmd = nil
}

// Restart starts the server again at the same address. It loads the files in its directory.
func (s *Server) Restart() error {
	s.Kill()
	return s.start()
}

// Client returns a connection that is closed when the test ends.
func (s *Server) Client() *Client {
	s.t.Helper()
	c, err := Dial(s.Addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return c
}

// AddReplica adds a replica of a master to a cluster and waits until it has the master's data and every node knows
// it: the other masters do not vote for a replica they do not know, and they learn of it from its master.
func AddReplica(t testing.TB, master *Server) *Server {
	t.Helper()
	s := startNode(t, "")
	id := Text(master.Client().Must(t, "CLUSTER", "MYID"))
	host, port, _ := net.SplitHostPort(master.Addr)
	c := s.Client()
	c.Must(t, "CLUSTER", "MEET", host, port, master.args[3])
	for i := 0; ; i++ {
		_, err := c.Do("CLUSTER", "REPLICATE", id)
		info, _ := c.Do("INFO", "replication")
		if err == nil && bytes.Contains([]byte(Text(info)), []byte("master_link_status:up")) {
			break
		}
		if i > 1000 {
			t.Fatalf("no replica: %v, %s", err, info)
		}
		time.Sleep(20 * time.Millisecond)
	}
	for i := 0; ; i++ {
		views, agreed := views(t, master.Addr)
		if agreed && slices.ContainsFunc(views[s.Addr], func(line string) bool { return strings.Contains(line, " slave "+id) }) {
			return s
		}
		if i > 3000 {
			t.Fatalf("the nodes do not agree: %q", views)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// views returns each node's view of the cluster, by the node's address, and whether all views agree: id, role,
// master, epoch and slots of each node.
func views(t testing.TB, from string) (all map[string][]string, agreed bool) {
	t.Helper()
	all = map[string][]string{}
	agreed = true
	for next := []string{from}; len(next) > 0; next = next[1:] {
		if all[next[0]] != nil {
			continue
		}
		c, err := Dial(next[0])
		if err != nil {
			t.Fatal(err)
		}
		text := Text(c.Must(t, "CLUSTER", "NODES"))
		c.Close()
		var view []string
		for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
			f := strings.Fields(line) // id, address, flags, master, ping, pong, epoch, link, slots
			address, _, _ := strings.Cut(f[1], "@")
			view = append(
				view, strings.Join(append([]string{f[0], strings.TrimPrefix(f[2], "myself,"), f[3], f[6], f[7]}, f[8:]...), " "))
			if !strings.Contains(f[2], "handshake") {
				next = append(next, address)
			}
		}
		slices.Sort(view)
		all[next[0]] = view
		agreed = agreed && slices.Equal(view, all[from])
	}
	return all, agreed
}

// startNode starts a server at a path, "" for redis-server on the PATH.
func startNode(t testing.TB, path string, args ...string) *Server {
	node := []string{"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(FreePort(t)), "--cluster-node-timeout", "2000"}
	return StartEngine(t, path, append(node, args...)...)
}

// StartCluster starts three masters that share all slots. Each has its own epoch, so that the nodes do not change
// epochs later.
func StartCluster(t testing.TB) []*Server {
	t.Helper()
	return StartClusterOf(t, "")
}

// StartClusterOf is StartCluster with servers at a path that Engine returned, and additional arguments.
func StartClusterOf(t testing.TB, path string, args ...string) []*Server {
	t.Helper()
	var out []*Server
	for range 3 {
		out = append(out, startNode(t, path, args...))
	}
	for i, s := range out {
		c := s.Client()
		c.Must(t, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1)) // before it meets the others
		c.Must(t, "CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*16384/3), strconv.Itoa((i+1)*16384/3-1))
		for _, other := range out[:i] {
			host, port, _ := net.SplitHostPort(other.Addr)
			c.Must(t, "CLUSTER", "MEET", host, port, other.args[3])
		}
	}
	for _, s := range out {
		c := s.Client()
		for i := 0; ; i++ {
			info, _ := c.Do("CLUSTER", "INFO")
			text, _ := info.([]byte)
			if bytes.Contains(text, []byte("cluster_state:ok")) && bytes.Contains(text, []byte("cluster_known_nodes:3")) {
				break
			}
			if i > 1000 {
				t.Fatalf("the cluster does not form: %s", text)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return out
}

// WriteAOF writes a directory from which a server with --appendonly yes loads log.
func WriteAOF(t testing.TB, dir string, log []byte) {
	t.Helper()
	sub := filepath.Join(dir, "appendonlydir")
	if err := os.MkdirAll(sub, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"appendonly.aof.1.incr.aof": log,
		"appendonly.aof.manifest":   []byte("file appendonly.aof.1.incr.aof seq 1 type i\n"),
	} {
		if err := os.WriteFile(filepath.Join(sub, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
