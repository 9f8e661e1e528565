package master

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kvferry/catalog"
	"kvferry/convert"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/redistest"
	"kvferry/record"
	"kvferry/redis"
	"kvferry/redis/rdb"
	"kvferry/serve"
	"kvferry/serve/command"
	"kvferry/store"
)

// now is later than the clock of the servers, so that records do not expire during the tests.
var now = time.Now().Add(time.Hour)

// served is a master with a server in front of it.
type served struct {
	*Master
	addr   string
	o      *convert.Options
	logged chan string // what the master logs
	synced chan int
}

// noKeys is a keyspace: the commands of replicas need none.
type noKeys struct{ command.Keyspace }

func (noKeys) Databases() []command.Database { return []command.Database{{Exists: true}} }

// start serves the dataset at a path until the test ends.
func start(t *testing.T, path string, change func(*served)) *served {
	t.Helper()
	s := &served{Master: &Master{Workers: 2}, logged: make(chan string, 100), synced: make(chan int, 10)}
	s.o = &convert.Options{Now: now, NowGiven: true, TempDir: t.TempDir(), Memory: 64 << 20}
	s.Log = func(text string) { s.logged <- text }
	s.Synced = func(n int) { s.synced <- n }
	s.Open = func(ctx context.Context) (*convert.Feeder, error) {
		s.o.Source = input(t, path)
		return convert.NewFeeder(ctx, s.o, nil)
	}
	New(s.Master)
	if change != nil {
		change(s)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	server := serve.New(&command.Server{Keys: noKeys{}, MaxClients: 100, Info: s.Info}, s.Commands())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, s.Close()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func found(t *testing.T, path string) *catalog.Found {
	t.Helper()
	c := catalog.Default()
	place, err := c.Source(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := c.Find(place, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func input(t *testing.T, path string) convert.Input {
	f := found(t, path)
	return f.Input(format.OpenOptions{Store: f.Driver.Open, Kind: f.Driver.Name})
}

// random writes an RDB file with records of all types in two databases, some of which are large.
func random(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "random.rdb")
	f, err := redis.WithVersion("10")
	if err != nil {
		t.Fatal(err)
	}
	dst, err := f.Create(context.Background(), path, &format.CreateOptions{DBs: []string{"0", "12"}, TempDir: t.TempDir(), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	limits := f.Limits()
	limits.Types &^= record.Of(record.Other)
	for n, db := range []string{"0", "12"} {
		w, err := dst.Shard(n, db, limits.Types, 0)
		if err == nil {
			err = fixtures.Pump(w, fixtures.Records(uint64(n), 30, fixtures.Options{DB: db, Limits: limits, MaxElements: 300, Now: now}))
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := dst.Finish(context.Background()); err != nil {
		t.Fatal(err)
	}
	return path
}

// fingerprint reads the dataset at a path.
func fingerprint(t *testing.T, path string) *record.Fingerprint {
	t.Helper()
	f := found(t, path)
	src, err := f.Open(context.Background(), &format.OpenOptions{Store: f.Driver.Open, Kind: f.Driver.Name, Options: store.Options{TempDir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var sum record.Fingerprint
	for _, db := range src.Databases() {
		r, err := src.Records(context.Background(), db, record.AllTypes, format.Span{}, &format.Env{Now: now, TempDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		one, err := fixtures.Sum(r)
		if err != nil {
			t.Fatal(err)
		}
		sum.Merge(one)
	}
	return &sum
}

// replicaConn speaks like a replica.
type replicaConn struct {
	t      *testing.T
	conn   net.Conn
	in     *bufio.Reader
	inline bool // it sends lines
}

func (s *served) dial(t *testing.T) *replicaConn {
	t.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &replicaConn{t: t, conn: conn, in: bufio.NewReader(conn)}
}

func (r *replicaConn) send(args ...string) {
	r.t.Helper()
	b := redistest.Append(nil, args...)
	if r.inline {
		b = []byte(strings.Join(args, " ") + "\r\n")
	}
	if _, err := r.conn.Write(b); err != nil {
		r.t.Fatal(err)
	}
}

func (r *replicaConn) line() string {
	r.t.Helper()
	text, err := r.in.ReadString('\n')
	if err != nil {
		r.t.Fatal(err)
	}
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
}

// expect sends a command and compares the first line of the reply, of which want is the beginning.
func (r *replicaConn) expect(want string, args ...string) string {
	r.t.Helper()
	r.send(args...)
	got := r.line()
	if !strings.HasPrefix(got, want) {
		r.t.Fatalf("%q: %q, want %q", args, got, want)
	}
	return got
}

// file reads the RDB file after PSYNC, and the mark if there is one.
func (r *replicaConn) file() []byte {
	r.t.Helper()
	head := r.line()
	for head == "" { // signs of life
		head = r.line()
	}
	if mark, ok := strings.CutPrefix(head, "$EOF:"); ok {
		var b []byte
		for !bytes.HasSuffix(b, []byte(mark)) {
			some := make([]byte, 1<<16)
			n, err := r.in.Read(some)
			if err != nil {
				r.t.Fatal(err)
			}
			b = append(b, some[:n]...)
		}
		return b[:len(b)-len(mark)]
	}
	n, err := strconv.Atoi(strings.TrimPrefix(head, "$"))
	if err != nil {
		r.t.Fatal(head)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r.in, b); err != nil {
		r.t.Fatal(err)
	}
	return b
}

func (r *replicaConn) read(n int) string {
	r.t.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(r.in, b); err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

func (s *served) logs(t *testing.T, want string) {
	t.Helper()
	for {
		select {
		case text := <-s.logged:
			if strings.Contains(text, want) {
				return
			}
		case <-time.After(time.Minute):
			t.Fatalf("%q was not logged", want)
		}
	}
}

var fullResync = regexp.MustCompile(`^\+FULLRESYNC [0-9a-f]{40} 0$`)

// TestHandshake checks what replicas of several servers send and rely on.
func TestHandshake(t *testing.T) {
	path := random(t)
	v10 := rdb.Version{Number: 10}
	s := start(t, path, func(s *served) { s.Version = &v10 })
	want := fingerprint(t, path)
	for _, c := range []struct {
		name  string
		hello [][]string
		sync  []string
	}{
		{"Redis", [][]string{{"listening-port", "7000"}, {"capa", "eof", "capa", "psync2"}}, []string{"PSYNC", "?", "-1"}},
		{"its own id", [][]string{{"capa", "EOF"}}, []string{"psync", strings.Repeat("a", 40), "77"}},
		{"of known length", nil, []string{"PSYNC", "?", "-1"}},
		{"without PSYNC", nil, []string{"SYNC"}},
		{"Redis 8", [][]string{{"capa", "eof", "capa", "psync2", "capa", "rdb-channel-repl"}}, []string{"PSYNC", "?", "-1"}},
		// It sends lines, wants PONG and OK exactly, would crash if a byte followed the mark, and acknowledges each second.
		{"Dragonfly", [][]string{{"listening-port", "6379"}, {"capa", "eof", "capa", "psync2"}, {"capa", "dragonfly"}}, []string{"PSYNC", "?", "-1"}},
		{"Dragonfly again", [][]string{{"listening-port", "6379"}, {"capa", "eof", "capa", "psync2"}, {"capa", "dragonfly"}}, []string{"PSYNC", strings.Repeat("c", 40), "51"}},
		{"KeyDB", [][]string{{"listening-port", "6379"}, {"capa", "eof", "capa", "psync2", "capa", "activeExpire"}}, []string{"PSYNC", "?", "-1"}},
		{"Valkey", [][]string{{"capa", "eof", "capa", "psync2", "capa", "dual-channel"}, {"version", "8.1.1"}}, []string{"PSYNC", "?", "-1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := s.dial(t)
			r.inline = strings.HasPrefix(c.name, "Dragonfly")
			r.expect("-ERR unknown command 'REPLPING'", "REPLPING")
			r.expect("+PONG", "PING")
			r.expect("-ERR Unrecognized REPLCONF option", "REPLCONF", "uuid", strings.Repeat("b", 36))
			r.expect("-ERR syntax error", "REPLCONF", "capa")
			eof := false
			for _, options := range c.hello {
				r.expect("+OK", append([]string{"REPLCONF"}, options...)...)
				eof = eof || strings.EqualFold(options[1], "eof")
			}
			r.send(c.sync...)
			if c.sync[0] != "SYNC" {
				if got := r.line(); !fullResync.MatchString(got) {
					t.Fatal(got)
				}
			}
			file := filepath.Join(t.TempDir(), "got.rdb")
			if err := os.WriteFile(file, r.file(), 0o644); err != nil {
				t.Fatal(err)
			}
			if diff := want.Diff(fingerprint(t, file), false); len(diff) > 0 {
				t.Fatal(diff)
			}
			if eof { // nothing may follow the mark before the replica says that it has found it
				if n := r.in.Buffered(); n > 0 {
					t.Fatalf("%d bytes follow the mark", n)
				}
				r.send("REPLCONF", "ACK", "0")
			}
			if got := r.read(len(pingCommand) + len(getAckCommand)); got != pingCommand+getAckCommand {
				t.Fatalf("%q", got)
			}
			r.send("REPLCONF", "ACK", "0")
			r.send("REPLCONF", "ACK", "13")
			if n := s.online(); n != 0 {
				t.Error("in sync before it has acknowledged the PING")
			}
			r.send("REPLCONF", "ACK", "14")
			s.logs(t, "is in sync (offset 14): on it, run REPLICAOF NO ONE")
			<-s.synced
			if n := s.online(); n != 1 {
				t.Errorf("%d replicas are online", n)
			}
			r.conn.Close()
			s.logs(t, "is gone")
		})
	}
}

// TestOnce: a client that wants a file alone gets it and no more; of function libraries alone, if it asks for those.
func TestOnce(t *testing.T) {
	s := start(t, random(t), nil)
	s.dial(t).expect("-ERR Unsupported rdb-filter-only", "REPLCONF", "rdb-filter-only", "keys")
	s.dial(t).expect("-ERR value of", "REPLCONF", "version", strings.Repeat("9", 257))
	r := s.dial(t)
	r.expect("+OK", "REPLCONF", "capa", "eof")
	r.expect("+OK", "REPLCONF", "rdb-only", "1", "rdb-filter-only", "functions")
	r.expect("+FULLRESYNC", "PSYNC", "?", "-1")
	if b := r.file(); len(b) > 100 || !bytes.HasPrefix(b, []byte("REDIS0010")) {
		t.Errorf("%.100q", b)
	}
	if _, err := r.in.ReadByte(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	s.logs(t, "took the file")
	const code = "#!lua name=lib\nredis.register_function('f', function() return 1 end)"
	path := filepath.Join(t.TempDir(), "functions.rdb")
	data := append(rdb.AppendString([]byte("REDIS0010\xfe\x00\x00\x01k\x01v\xf5"), []byte(code)), "\xff\x00\x00\x00\x00\x00\x00\x00\x00"...)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	r = start(t, path, nil).dial(t)
	r.expect("+OK", "REPLCONF", "rdb-only", "1", "rdb-filter-only", "functions")
	r.send("SYNC")
	if b := r.file(); !bytes.Contains(b, []byte(code)) || bytes.Contains(b, []byte("\x01k\x01v")) {
		t.Errorf("%q", b)
	}
}

// TestRate: the limit counts every byte of the files of all replicas together. At a byte per second, the pauses that it
// asks for are the bytes before them.
func TestRate(t *testing.T) {
	var mu sync.Mutex
	var longest time.Duration
	began := time.Now()
	s := start(t, random(t), func(s *served) {
		s.Limit.Rate = 1
		s.Limit.Rest = func(_ context.Context, d time.Duration) error {
			mu.Lock()
			defer mu.Unlock()
			longest = max(longest, d)
			return nil
		}
	})
	sent := 0
	for range 2 {
		r := s.dial(t)
		r.expect("+FULLRESYNC", "PSYNC", "?", "-1")
		sent += len(r.file())
	}
	mu.Lock()
	defer mu.Unlock()
	asked, took := int(longest/time.Second), int(time.Since(began)/time.Second)+1
	if asked > sent || asked+took+64<<10 < sent || sent < 1<<20 {
		t.Errorf("%d bytes were sent, and pauses asked for as for %d", sent, asked)
	}
}

// TestRefused: a replica gets nothing of a dataset that its file cannot hold. The second one learns it at once.
func TestRefused(t *testing.T) {
	v8 := rdb.Version{Number: 8}
	judged := 0
	s := start(t, random(t), func(s *served) {
		s.Version = &v8
		s.Judged = func(rep *convert.Report, err error) {
			if judged++; rep == nil || err == nil {
				t.Error(rep, err)
			}
		}
	})
	r := s.dial(t)
	r.expect("+FULLRESYNC", "PSYNC", "?", "-1")
	const why = "-ERR refused: rdb cannot hold everything: "
	if got := r.line(); !strings.HasPrefix(got, why) || !strings.Contains(got, "× stream; accept it with --allow-loss") {
		t.Error(got)
	}
	r = s.dial(t)
	for range 2 {
		r.expect(why, "PSYNC", "?", "-1")
	}
	for i, want := range []string{why, "+FULLRESYNC"} { // a server would ask again at once: it is told once, and then waits
		r = s.dial(t)
		r.expect("+OK", "REPLCONF", "listening-port", "7000")
		if r.expect(want, "PSYNC", "?", "-1"); i == 1 {
			s.logs(t, "replica 127.0.0.1:7000 waits for a dataset that it does not get")
		}
	}
	if judged != 1 {
		t.Errorf("judged %d times", judged)
	}
}

// TestSigns: newlines show that the link is alive while the dataset is counted. An error that may pass is no verdict.
func TestSigns(t *testing.T) {
	var open sync.Mutex
	open.Lock()
	failed := false
	s := start(t, random(t), func(s *served) {
		s.every = time.Millisecond
		was := s.Open
		s.Open = func(ctx context.Context) (*convert.Feeder, error) {
			open.Lock()
			defer open.Unlock()
			if !failed {
				failed = true
				return nil, errors.New("the disk is full")
			}
			return was(ctx)
		}
	})
	r := s.dial(t)
	r.expect("+FULLRESYNC", "PSYNC", "?", "-1")
	for range 3 {
		if got := r.line(); got != "" {
			t.Fatal(got)
		}
	}
	open.Unlock()
	got := r.line()
	for got == "" {
		got = r.line()
	}
	if got != "-ERR the disk is full" {
		t.Error(got)
	}
	r = s.dial(t)
	r.expect("+FULLRESYNC", "PSYNC", "?", "-1")
	if b := r.file(); !bytes.HasPrefix(b, []byte("REDIS0009")) {
		t.Errorf("%.20q", b)
	}
}

// TestTurns: a replica that waits for its pass gets newlines, too.
func TestTurns(t *testing.T) {
	s := start(t, random(t), func(s *served) { s.every = time.Millisecond })
	r := s.dial(t)
	r.expect("+FULLRESYNC", "PSYNC", "?", "-1")
	r.file()
	for range MaxPasses {
		<-s.turns
	}
	r = s.dial(t)
	r.expect("+FULLRESYNC", "PSYNC", "?", "-1")
	for range 3 {
		if got := r.line(); got != "" {
			t.Fatal(got)
		}
	}
	for range MaxPasses {
		s.turns <- struct{}{}
	}
	if b := r.file(); !bytes.HasPrefix(b, []byte("REDIS0009")) {
		t.Errorf("%.20q", b)
	}
}

// TestKinds: a replica gets the newest version that it shows to load.
func TestKinds(t *testing.T) {
	v7 := rdb.Version{Number: 7}
	for options, want := range map[string]string{
		"capa eof capa psync2":                     "9",
		"capa eof capa rdb-channel-repl":           "12",
		"capa eof capa dual-channel version 8.1.1": "11",
		"version 9.0.0":                            "valkey80",
		"rdb-filter-only functions":                "10",
	} {
		r := NewReplica("127.0.0.1:1")
		for pair := range slices.Chunk(strings.Fields(options), 2) {
			if err := r.set(pair[0], pair[1]); err != nil {
				t.Fatal(err)
			}
		}
		if got := r.kind(nil).version.String(); got != want {
			t.Errorf("%s: %s, want %s", options, got, want)
		}
		if got := r.kind(&v7).version; got != v7 {
			t.Errorf("%s: %s, but --rdb-version is given", options, got)
		}
	}
}

// cutter passes connections on to an address, and cuts the first one after n bytes for the replica.
func cutter(t *testing.T, addr string, n int64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", addr)
			if err != nil {
				conn.Close()
				continue
			}
			most := n
			n = 1 << 60
			go func() { io.Copy(to, conn); to.Close() }()
			go func() { io.CopyN(conn, to, most); conn.Close(); to.Close() }()
		}
	}()
	return l.Addr().String()
}

// replicate makes a server a replica, waits until it is in sync, and promotes it.
func (s *served) replicate(t *testing.T, server *redistest.Server, addr string) *redistest.Client {
	t.Helper()
	c := server.Client()
	host, port, _ := net.SplitHostPort(addr)
	c.Must(t, "REPLICAOF", host, port)
	select {
	case <-s.synced:
	case <-time.After(time.Minute):
		t.Fatal("the replica is not in sync")
	}
	if info := redistest.Text(c.Must(t, "INFO", "replication")); !strings.Contains(info, "master_link_status:up") {
		t.Fatal(info)
	}
	c.Must(t, "REPLICAOF", "NO", "ONE")
	c.Must(t, "SET", "written after the promotion", "1")
	c.Must(t, "DEL", "written after the promotion")
	return c
}

// TestServers: a server that replicates has the records of the dataset, also after the link was cut in the middle of the
// file, and is a master after that.
func TestServers(t *testing.T) {
	path := random(t)
	v10 := rdb.Version{Number: 10}
	s := start(t, path, func(s *served) { s.Version = &v10 })
	f := found(t, path)
	src, err := f.Open(context.Background(), &format.OpenOptions{Options: store.Options{TempDir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	want := map[string]string{}
	for _, db := range src.Databases() {
		r, err := src.Records(context.Background(), db, record.AllTypes, format.Span{}, &format.Env{Now: now, TempDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		redistest.Read(t, want, r)
	}
	for _, diskless := range []string{"disabled", "swapdb"} {
		server := redistest.Start(t, "--repl-diskless-load", diskless, "--maxmemory", "200mb")
		addr := cutter(t, s.addr, 1<<20)
		c := s.replicate(t, server, addr)
		if diff := redistest.Diff(want, c.Records(t), 5); len(diff) > 0 {
			t.Fatalf("%s: %q", diskless, diff)
		}
	}
	s.logs(t, "asks for everything")
}

// TestEngines: servers of other versions get everything that the version they show to load can hold.
func TestEngines(t *testing.T) {
	path := fixtures.Unpack(t, "bw-basic")
	for engine, shown := range map[string]string{"Redis 6.0": "9", "Redis 8.0": "12", "Redis 8.6": "12", "Valkey 8.1": "11", "Valkey 9.1": "valkey80"} {
		t.Run(engine, func(t *testing.T) {
			name, version, _ := strings.Cut(engine, " ")
			server := redistest.StartEngine(t, redistest.Engine(t, name, version), "--maxmemory", "200mb")
			s := start(t, path, func(s *served) { s.o.Rename = true })
			s.replicate(t, server, s.addr)
			s.logs(t, "RDB "+shown+" for replicas: 551 keys")
			want := filepath.Join(t.TempDir(), "want.rdb")
			r := s.dial(t)
			r.send("SYNC")
			if err := os.WriteFile(want, r.file(), 0o644); err != nil {
				t.Fatal(err)
			}
			if diff := fingerprint(t, want).Diff(fingerprint(t, fmt.Sprintf("redis://%s", server.Addr)), false); len(diff) > 0 {
				t.Error(diff)
			}
		})
	}
}
