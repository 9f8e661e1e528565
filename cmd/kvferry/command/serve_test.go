package command

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"math/rand"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kvferry/internal/testkit/redistest"
	"kvferry/serve"
	serving "kvferry/serve/command"
	"kvferry/serve/master"
)

// served is a dataset that is being served, on a Unix socket.
type served struct {
	socket string
	stop   func() int // ends it and returns the exit code
}

// serveOn serves a dataset until the test ends.
func serveOn(t testing.TB, args ...string) *served {
	t.Helper()
	s := &served{socket: filepath.Join(t.TempDir(), "s")}
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	code := make(chan int, 1)
	go func() {
		errs := new(strings.Builder)
		c := testApp().Run(ctx, append(append([]string{"serve", "-q"}, args...), "--unix-socket", s.socket), in, errs)
		in.CloseWithError(fmt.Errorf("it ended: %s", errs))
		code <- c
	}()
	s.stop = func() int {
		cancel()
		c := <-code
		code <- c
		return c
	}
	t.Cleanup(func() { s.stop() })
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, "redis-cli") {
			go io.Copy(io.Discard, lines)
			return s
		}
	}
}

func (s *served) dial(t testing.TB) *peer {
	t.Helper()
	conn, err := net.Dial("unix", s.socket)
	if err != nil {
		t.Fatal(err)
	}
	return newPeer(t, conn)
}

// peer is a connection whose replies are read as they come.
type peer struct {
	net.Conn
	in *bufio.Reader
}

func newPeer(t testing.TB, conn net.Conn) *peer {
	t.Cleanup(func() { conn.Close() })
	return &peer{conn, bufio.NewReaderSize(conn, 1<<16)}
}

func (p *peer) do(t testing.TB, args ...string) redistest.Node {
	t.Helper()
	p.SetDeadline(time.Now().Add(time.Minute))
	if _, err := p.Write(redistest.Append(nil, args...)); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	n, err := redistest.ReadNode(p.in)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return n
}

// anyOrder are commands whose elements a server sends in the order of its tables, with the number of items of each.
var anyOrder = map[string]int{"HGETALL": 2, "HKEYS": 1, "HVALS": 1, "SMEMBERS": 1, "SINTER": 1, "SUNION": 1, "SDIFF": 1, "KEYS": 1}

// scanned are commands whose elements are the second item of the reply.
var scanned = map[string]int{"SCAN": 1, "SSCAN": 1, "HSCAN": 2, "ZSCAN": 2}

// comparable brings the elements of a reply in one order.
func comparable(args []string, n redistest.Node) string {
	name := strings.ToUpper(args[0])
	if each := anyOrder[name]; each > 0 {
		n.Sort(each)
	}
	if each := scanned[name]; each > 0 && len(n.Items) == 2 {
		n.Items[1].Sort(each)
	}
	text := n.String()
	if name == "XINFO" || name == "XPENDING" {
		text = radixTree.ReplaceAllString(idleTime.ReplaceAllString(text, "idle"), "radix tree")
	}
	return text
}

// radixTree matches the shape of a stream's index, which depends on deleted entries in a server that has not restarted.
var radixTree = regexp.MustCompile(`\$"radix-tree-(keys|nodes)" :"\d+"`)

// idleTime matches the times since deliveries, and consumers that were seen.
var idleTime = regexp.MustCompile(`\$"idle" :"\d+"|(\$"[^"]*") :"\d+" :"\d+"\]`)

// differences sends generated commands to both servers, and returns those whose replies differ.
func differences(t testing.TB, r *rand.Rand, real, ours *peer, n int) (out []string) {
	for range n {
		args := redistest.ReadCommand(r)
		if r.Intn(10) == 0 {
			args = redistest.Broken(r, args)
		}
		if skipped(args) {
			continue
		}
		want, got := comparable(args, real.do(t, args...)), comparable(args, ours.do(t, args...))
		if want != got && !strings.Contains(got, "Insufficient memory, transient memory for LCS") {
			out = append(out, fmt.Sprintf("%q\n  want %s\n  got  %s", args, want, got))
		}
	}
	return out
}

// intended are the commands and words whose replies differ on purpose.
func skipped(args []string) bool {
	switch name := strings.ToUpper(args[0]); name {
	case "SET", "DEL", "ZADD": // a replica refuses them after it has looked at their arguments
		return true
	case "SRANDMEMBER", "HRANDFIELD", "ZRANDMEMBER":
		return len(args) < 3 || args[2] != "0"
	case "GET", "MGET", "GETRANGE", "SUBSTR", "LCS", "GETBIT", "BITCOUNT", "BITPOS", "BITFIELD_RO": // a HyperLogLog holds a count that PFCOUNT renews
		return slices.ContainsFunc(args[1:], func(a string) bool { return strings.HasPrefix(a, "p") })
	case "HSCAN", "SSCAN", "ZSCAN", "SCAN": // the size of pages
		return len(args) < 4 || args[len(args)-1] != "1000"
	case "ZLEXCOUNT", "ZRANGEBYLEX", "ZREVRANGEBYLEX", "ZRANGE": // only where all members have one score
		lex := name != "ZRANGE" || slices.ContainsFunc(args, func(a string) bool { return strings.EqualFold(a, "BYLEX") })
		return lex && len(args) > 1 && !strings.HasPrefix(args[1], "a")
	case "OBJECT", "CONFIG", "CLIENT":
		return len(args) > 2
	case "HELLO", "COMMAND":
		return true
	}
	return false
}

// TestServeLikeRedis compares replies with those of the server that wrote the RDB file.
func TestServeLikeRedis(t *testing.T) {
	server := redistest.Start(t)
	seed, n := time.Now().UnixNano(), 1500
	if v := os.Getenv("KVFERRY_SERVE_COMMANDS"); v != "" {
		n, _ = strconv.Atoi(v)
	}
	if v := os.Getenv("KVFERRY_SERVE_SEED"); v != "" {
		seed, _ = strconv.ParseInt(v, 10, 64)
	}
	r := rand.New(rand.NewSource(seed))
	t.Logf("KVFERRY_SERVE_SEED=%d KVFERRY_SERVE_COMMANDS=%d", seed, n)
	conn, err := net.Dial("tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	real := newPeer(t, conn)
	for range 1500 {
		real.do(t, redistest.Command(r, redistest.Patterns)...)
	}
	for range 60 { // with one score, so that ranges of members are defined
		real.do(t, "SELECT", "0")
		real.do(t, "ZADD", fmt.Sprintf("a%d", r.Intn(4)), "1", string(rune('a'+r.Intn(9))))
	}
	for _, db := range []string{"5", "1", "0"} { // the count that a HyperLogLog caches is not data; only keys that begin with p may be one
		real.do(t, "SELECT", db)
		for _, key := range real.do(t, "KEYS", "[^p]*").Items {
			if real.do(t, "GETRANGE", key.Text, "0", "3").Text == "HYLL" {
				real.do(t, "DEL", key.Text)
			}
		}
	}
	real.do(t, "SAVE")
	file := filepath.Join(server.Dir, "dump.rdb")
	ours := serveOn(t, "--now", strconv.FormatInt(time.Now().Unix(), 10), file)
	for _, proto := range []string{"2", "3"} {
		p := ours.dial(t)
		real.do(t, "SELECT", "0")
		real.do(t, "HELLO", proto)
		p.do(t, "HELLO", proto)
		for i, d := range differences(t, r, real, p, n) {
			if i == 20 {
				break
			}
			t.Errorf("version %s: %s", proto, d)
		}
	}
	if code := ours.stop(); code != ExitOK {
		t.Errorf("exit code %d", code)
	}
}

// TestServeLog: a message with any bytes is a line of JSON.
func TestServeLog(t *testing.T) {
	var out strings.Builder
	f := serveFlags{log: "json"}
	f.logger(&out)("key \x01\a\"\xff: gone")
	var line struct{ Time, Message string }
	if err := json.Unmarshal([]byte(out.String()), &line); err != nil || line.Message != "key \x01\a\"\ufffd: gone" || line.Time == "" {
		t.Errorf("%v: %s", err, out.String())
	}
}

// TestServePage runs the commands of the page, with a password and a certificate in place of its files.
func TestServePage(t *testing.T) {
	root := fastDir(t)
	unchanged(t, placed(t, root, "nemo-basic", "data/pika/dump"))
	key, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(cryptorand.Reader, template, template, &key.PublicKey, key)
	secret, err2 := x509.MarshalPKCS8PrivateKey(key)
	err = errors.Join(err, err2, os.WriteFile(filepath.Join(root, "data/pass"), []byte("secret\n"), 0o600))
	for name, block := range map[string]*pem.Block{"cert": {Type: "CERTIFICATE", Bytes: cert}, "key": {Type: "PRIVATE KEY", Bytes: secret}} {
		err = errors.Join(err, os.WriteFile(filepath.Join(root, "data", name+".pem"), pem.EncodeToMemory(block), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for args := range commandsOf(t, "serve.md", root) {
		if args[0] != "serve" || strings.Contains(strings.Join(args, " "), "--exit-when-synced") {
			continue // TestServeReplicas runs the rest
		}
		ran++
		for i := range args {
			if args[i] == "/data/pika" {
				args[i] += "/dump"
			}
			args[i] = strings.Trim(strings.Replace(args[i], "/data/", root+"/data/", 1), "'")
		}
		s := serveOn(t, args[1:]...)
		got, want := s.dial(t).do(t, "EXISTS", "s1:h1").String(), `:"1"`
		switch {
		case strings.Contains(strings.Join(args, " "), "requirepass"):
			want = `-"NOAUTH Authentication required."`
		case strings.Contains(strings.Join(args, " "), "--slots 8192-"): // that key is in slot 3996
			want = `-"MOVED 3996 127.0.0.1:7001"`
		case strings.Contains(strings.Join(args, " "), "user:"):
			want = `:"0"`
		}
		if got != want || s.stop() != ExitOK {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
	}
	if ran < 3 {
		t.Errorf("%d commands", ran)
	}
}

// TestServeIdle: each tick is a line, with what happened since the last one.
func TestServeIdle(t *testing.T) {
	s := serve.New(&serving.Server{})
	said := make(chan string)
	s.Log = func(text string) { said <- text }
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	tick, ended := make(chan time.Time), make(chan struct{})
	go func() {
		defer close(ended)
		idle(ctx, tick, s, master.New(&master.Master{}))
	}()
	s.Stats.In.Add(1536)
	for i, want := range []string{"3 commands, 3 since the last line; 1.5 KiB received", "5 commands, 2 since the last line"} {
		s.Stats.Commands.Add(int64(3 - i))
		tick <- time.Time{}
		if got := <-said; !strings.Contains(got, "0 clients, 0 replicas; "+want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	stop()
	<-ended
}
