package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kvferry/catalog"
	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/testkit/redistest"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/encode"
	"kvferry/serve"
	"kvferry/serve/command"
	"kvferry/serve/keyspace"
)

// value is a key of a dataset with its elements.
type value struct {
	key   string
	typ   record.Type
	elems []record.Element
}

func text(key, s string) value {
	return value{key, record.String, []record.Element{{Value: []byte(s)}}}
}

func hash(key string, n, size int) value {
	v := value{key: key, typ: record.Hash}
	for i := range n {
		v.elems = append(v.elems, record.Element{Name: fmt.Appendf(nil, "f%06d", i), Value: bytes.Repeat([]byte("v"), size)})
	}
	return v
}

// dataset writes an RDB file.
func dataset(t testing.TB, values ...value) string {
	t.Helper()
	v := rdb.DefaultVersion
	out := rdb.AppendDatabase(rdb.AppendHead(nil, v, 0), v, 0, uint64(len(values)), 0)
	enc := encode.Encoder{Version: v}
	for _, x := range values {
		enc.Begin(&record.Header{Type: x.typ, Key: []byte(x.key)})
		if err := enc.Elements(x.elems); err != nil {
			t.Fatal(err)
		}
		value, _, err := enc.End()
		if err != nil {
			t.Fatal(err)
		}
		out = value.Append(rdb.AppendKey(out, value.Type, []byte(x.key), 0))
	}
	path := filepath.Join(t.TempDir(), "dump.rdb")
	if err := os.WriteFile(path, append(rdb.AppendEOF(out), make([]byte, 8)...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// running is a server of a dataset.
type running struct {
	*serve.Server
	addr string
	stop func() error
}

// start serves an RDB file until the test ends.
func start(t testing.TB, path string, set func(*command.Server), wrap func(net.Listener) net.Listener) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	all := catalog.Default()
	rdb, err := all.Format("rdb")
	if err != nil {
		t.Fatal(err)
	}
	src, err := rdb.Open(ctx, path, &format.OpenOptions{Lookups: true})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := keyspace.New(ctx, &inspect.Scan{Source: src, Now: time.Unix(1700000000, 0), Memory: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &running{addr: l.Addr().String()}
	if wrap != nil {
		l = wrap(l)
	}
	s := &command.Server{Keys: keys, Now: time.Unix(1700000000, 0), MaxClients: 1000, Memory: 64 << 20}
	if set != nil {
		set(s)
	}
	r.Server = serve.New(s)
	ended := make(chan error, 1)
	go func() { ended <- r.Serve(ctx, l) }()
	r.stop = func() error {
		cancel()
		err := <-ended
		ended <- err
		return err
	}
	t.Cleanup(func() {
		if err := errors.Join(r.stop(), keys.Close(), src.Close()); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *running) dial(t testing.TB) *client {
	t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, conn)
}

type client struct {
	net.Conn
	in *bufio.Reader
}

func newClient(t testing.TB, conn net.Conn) *client {
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(2 * time.Minute))
	return &client{conn, bufio.NewReader(conn)}
}

// do sends words and returns the reply as text.
func (c *client) do(line string) string {
	if _, err := c.Write(redistest.Append(nil, strings.Fields(line)...)); err != nil {
		return err.Error()
	}
	return c.reply()
}

func (c *client) reply() string {
	n, err := redistest.ReadNode(c.in)
	if err != nil {
		return "closed"
	}
	return n.String()
}

func want(t testing.TB, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%.200s, want %s", got, want)
	}
}

func TestConnection(t *testing.T) {
	c := start(t, dataset(t, text("a", "1")), nil, nil).dial(t)
	for _, x := range []struct{ line, want string }{
		{"PING", `+"PONG"`}, {"PING x", `$"x"`}, {"ECHO x", `$"x"`}, {"GET a", `$"1"`}, {"SELECT 15", `+"OK"`}, {"GET a", `$"-1"`}, {"SELECT 0", `+"OK"`},
		{"SELECT 16", `-"ERR DB index is out of range"`}, {"CLIENT SETNAME me", `+"OK"`}, {"CLIENT GETNAME", `$"me"`}, {"CLIENT ID", `:"1"`},
		{"SET a b", `-"READONLY You can't write against a read only replica."`}, {"NONE a", `-"ERR unknown command 'NONE', with args beginning with: 'a' "`},
		{"AUTH x", `-"ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"`},
		{"CONFIG GET save", `*2[$"save" $""]`}, {"ACL WHOAMI", `$"default"`}, {"MODULE LIST", `*"0"`}, {"SLOWLOG LEN", `:"0"`}, {"TIME", `*2[$"1700000000" $"0"]`},
		{"LASTSAVE", `:"1700000000"`}, {"ROLE", `*3[$"master" :"0" *"0"]`}, {"COMMAND INFO get x", `*2[*10[$"get" :"2" *2[+"readonly" +"fast"] :"1" :"1" :"1" *"0" *"0" *"0" *"0"] *"-1"]`},
		{"COMMAND GETKEYS mget a b", `*2[$"a" $"b"]`}, {"OBJECT ENCODING a", `$"raw"`}, {"MEMORY USAGE a", `:"48"`}, {"MEMORY USAGE b", `$"-1"`},
		{"RANDOMKEY", `$"a"`}, {"DBSIZE", `:"1"`}, {"HELLO 3 SETNAME n", `%7[$"server" $"redis" $"version" $"7.0.15" $"proto" :"3" $"id" :"1" $"mode" $"standalone" $"role" $"master" $"modules" *"0"]`},
		{"GET b", `_""`}, {"RESET", `+"RESET"`}, {"CLIENT GETNAME", `$"-1"`}, {"XREAD BLOCK 1 STREAMS a $", `-"WRONGTYPE Operation against a key holding the wrong kind of value"`},
		{"QUIT", `+"OK"`}, {"PING", "closed"}} {
		t.Run(x.line, func(t *testing.T) { want(t, c.do(x.line), x.want) })
	}
	if info := start(t, dataset(t, text("a", "1")), nil, nil).dial(t).do("INFO"); !strings.Contains(info, `db0:keys=1,expires=0`) || !strings.Contains(info, "connected_clients:1") {
		t.Error(info)
	}
}

func TestPassword(t *testing.T) {
	c := start(t, dataset(t, text("a", "1")), func(s *command.Server) { s.Password = "secret" }, nil).dial(t)
	for _, x := range [][2]string{{"GET a", `-"NOAUTH Authentication required."`}, {"AUTH x", `-"WRONGPASS invalid username-password pair or user is disabled."`},
		{"AUTH other secret", `-"WRONGPASS invalid username-password pair or user is disabled."`}, {"AUTH secret", `+"OK"`}, {"GET a", `$"1"`}, {"RESET", `+"RESET"`},
		{"PING", `-"NOAUTH Authentication required."`}} {
		want(t, c.do(x[0]), x[1])
	}
	if got := c.do("HELLO 3 AUTH default secret"); !strings.HasPrefix(got, "%7[") {
		t.Error(got)
	}
}

func TestMaxClients(t *testing.T) {
	r := start(t, dataset(t), func(s *command.Server) { s.MaxClients = 2 }, nil)
	a, b := r.dial(t), r.dial(t)
	want(t, a.do("PING")+b.do("PING"), `+"PONG"+"PONG"`)
	want(t, r.dial(t).reply(), `-"ERR max number of clients reached"`)
}

func TestTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}}}
	r := start(t, dataset(t, text("a", "1")), nil, func(l net.Listener) net.Listener { return tls.NewListener(l, config) })
	conn, err := tls.Dial("tcp", r.addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	want(t, newClient(t, conn).do("GET a"), `$"1"`)
}

// TestLargeReplies: values that are not held in memory come complete, with their length first.
func TestLargeReplies(t *testing.T) {
	r := start(t, dataset(t, hash("h", 50_000, 10), text("s", strings.Repeat("x", 5<<20))), nil, nil)
	c := r.dial(t)
	c.Write(redistest.Append(nil, "HGETALL", "h"))
	n, err := redistest.ReadNode(c.in)
	if err != nil || len(n.Items) != 100_000 {
		t.Fatal(len(n.Items), err)
	}
	for i := 0; i < len(n.Items); i += 2 {
		if n.Items[i].Text != fmt.Sprintf("f%06d", i/2) || n.Items[i+1].Text != "vvvvvvvvvv" {
			t.Fatal(i, n.Items[i])
		}
	}
	c.Write(redistest.Append(nil, "GET", "s"))
	if n, err := redistest.ReadNode(c.in); err != nil || len(n.Text) != 5<<20 {
		t.Error(len(n.Text), err)
	}
	want(t, c.do("HLEN h"), `:"50000"`)
}

// TestScan: any number of scans at once yields each key once, with every COUNT, also when their passes are lost.
func TestScan(t *testing.T) {
	var values []value
	for i := range 997 {
		values = append(values, text(fmt.Sprintf("key:%04d", i), "v"))
	}
	r := start(t, dataset(t, append(values, hash("h", 3, 1))...), nil, nil)
	var wg sync.WaitGroup
	for n := range 24 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			c, seen, cursor := r.dial(t), map[string]int{}, "0"
			for calls := 0; calls < 2000; calls++ {
				c.Write(redistest.Append(nil, "SCAN", cursor, "COUNT", fmt.Sprint(3+n*17)))
				reply, err := redistest.ReadNode(c.in)
				if err != nil || len(reply.Items) != 2 {
					t.Error(reply, err)
					return
				}
				for _, key := range reply.Items[1].Items {
					seen[key.Text]++
				}
				if cursor = reply.Items[0].Text; cursor == "0" {
					break
				}
			}
			for key, times := range seen {
				if times != 1 {
					t.Errorf("%s came %d times", key, times)
				}
			}
			if len(seen) != 998 {
				t.Errorf("%d keys", len(seen))
			}
		}()
	}
	wg.Wait()
	c := r.dial(t)
	want(t, c.do("SCAN 0 COUNT 10000 MATCH key:000[12]"), `*2[$"0" *2[$"key:0001" $"key:0002"]]`)
	want(t, c.do("SCAN 0 TYPE hash COUNT 1000"), `*2[$"0" *1[$"h"]]`)
	want(t, c.do("SCAN 12345"), `-"ERR invalid cursor: kvferry knows the latest 65536 cursors; start again with 0"`)
	want(t, c.do("HSCAN h 0 MATCH *1"), `*2[$"0" *2[$"f000001" $"v"]]`)
}

// TestHostileClients: none of them costs the others anything.
func TestHostileClients(t *testing.T) {
	r := start(t, dataset(t, text("a", "1"), hash("big", 5000, 50)), nil, nil)
	send := func(s string) *client {
		c := r.dial(t)
		if _, err := io.WriteString(c, s); err != nil {
			t.Error(err)
		}
		return c
	}
	send("*2\r\n$3\r\nGET\r\n$1") // half a command, and nothing more
	want(t, send("*2\r\n$1000000000\r\n").reply(), `-"ERR Protocol error: invalid bulk length"`)
	want(t, send("*1000000000\r\n").reply(), `-"ERR Protocol error: invalid multibulk length"`)
	want(t, send("GET \"\r\n").reply(), `-"ERR Protocol error: unbalanced quotes in request"`)
	want(t, send("*1\r\nx").reply(), `-"ERR Protocol error: expected '$', got 'x'"`)
	send("*1000000\r\n" + strings.Repeat("$1\r\nx\r\n", 1000)) // announces many arguments
	for _, line := range []string{"POST / HTTP/1.1\r\n", "host: x\r\n", "*2\r\n$4\r\nPost\r\n$1\r\n/\r\n"} {
		want(t, send(line+"GET a\r\n").reply(), "closed")
	}
	idle := r.dial(t)
	for range 20 { // large replies that nobody reads
		c := r.dial(t)
		go c.Write(bytes.Repeat(redistest.Append(nil, "HGETALL", "big"), 1000))
	}
	c := r.dial(t)
	for range 100 {
		want(t, c.do("GET a"), `$"1"`)
	}
	want(t, idle.do("PING"), `+"PONG"`)
}

// endless is a keyspace whose hash "h" never ends.
type endless struct{ command.Keyspace }

type endlessValue struct{ command.Value }

func (k endless) Open(ctx context.Context, db command.Database, key []byte, how command.Reading) (command.Value, error) {
	v, err := k.Keyspace.Open(ctx, db, key, how)
	if v == nil || err != nil || string(key) != "h" {
		return v, err
	}
	return endlessValue{v}, nil
}

func (v endlessValue) Read(dst []record.Element) (int, error) {
	dst[0] = record.Element{Name: []byte("f"), Value: []byte("v")}
	return 1, nil
}

// holds waits until the clients hold some passes.
func (r *running) holds(t *testing.T, want int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		passes, _ := r.Held()
		if passes == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d passes are held, want %d", passes, want)
		}
	}
}

// TestGone: a command ends soon after its client has gone, and one of a client that has sent more does not.
func TestGone(t *testing.T) {
	r := start(t, dataset(t, text("a", "1"), hash("h", 1, 1)), func(s *command.Server) { s.Keys = endless{s.Keys} }, nil)
	for i := range 3 {
		c := r.dial(t)
		if _, err := c.Write(redistest.Append(nil, "HGETALL", "h")); err != nil {
			t.Fatal(err)
		}
		r.holds(t, 1)
		if i == 1 {
			c.Write(redistest.Append(nil, "GET", "a"))
		}
		c.Close()
		r.holds(t, 0)
	}
	c := r.dial(t)
	want(t, c.do("GET a"), `$"1"`)
}

// TestUnread: a client that asks for a large value and does not read it holds one pass, and the memory of one
// element; others are answered meanwhile, and nothing is held after it.
func TestUnread(t *testing.T) {
	const n, size = 40, 512 << 10 // more than the buffers of a connection hold
	big := hash("h", n, size)
	list := value{key: "l", typ: record.List, elems: slices.Clone(big.elems)}
	for i := range list.elems {
		list.elems[i].Name = nil
	}
	r := start(t, dataset(t, text("a", "1"), big, list), nil, nil)
	other := r.dial(t)
	for _, line := range []string{"HGETALL h", "LRANGE l 0 -1"} {
		c := r.dial(t)
		if _, err := c.Write(redistest.Append(nil, strings.Fields(line)...)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c.Conn, make([]byte, 1)); err != nil { // its reply has begun, and cannot end
			t.Fatal(err)
		}
	}
	for range 100 {
		want(t, other.do("GET a"), `$"1"`)
	}
	if got := other.do("LINDEX l 3"); len(got) < size {
		t.Errorf("%.100q", got)
	}
	r.holds(t, 2)
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // each stalls at an element
		if _, held := r.Held(); held == 2*size+int64(len("f000000")) {
			break
		} else if time.Now().After(end) {
			t.Fatalf("%d bytes are held", held)
		}
	}
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if passes, held := r.Held(); passes != 0 || held != 0 {
		t.Errorf("%d passes and %d bytes are held", passes, held)
	}
}

// TestPipelining: hundreds of thousands of commands, whose replies are read later.
func TestPipelining(t *testing.T) {
	const n = 300_000
	c := start(t, dataset(t, text("a", "1")), nil, nil).dial(t)
	go func() {
		b := bytes.Repeat([]byte("PING\r\n"), 1000)
		for range n / 1000 {
			c.Write(b)
		}
	}()
	got, err := io.ReadAll(io.LimitReader(c.in, n*7))
	if err != nil || !bytes.Equal(got, bytes.Repeat([]byte("+PONG\r\n"), n)) {
		t.Error(len(got), err)
	}
}

// TestManyClients: 200 at once.
func TestManyClients(t *testing.T) {
	r := start(t, dataset(t, text("a", "1"), hash("h", 1500, 50)), nil, nil)
	var wg sync.WaitGroup
	for range 200 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			c := r.dial(t)
			for range 2 {
				want(t, c.do("GET a"), `$"1"`)
				want(t, c.do("HLEN h"), `:"1500"`)
				c.Write(redistest.Append(nil, "HVALS", "h"))
				if n, err := redistest.ReadNode(c.in); err != nil || len(n.Items) != 1500 {
					t.Error(len(n.Items), err)
				}
			}
		}()
	}
	wg.Wait()
}

// TestHijack: a command that takes over the connection gets what followed it.
func TestHijack(t *testing.T) {
	table := func(s *command.Server) {}
	r := start(t, dataset(t), table, nil)
	r.Init(command.Functions{"sync": func(c *command.Call) error {
		c.W.OK()
		c.Hijack(func(_ context.Context, conn net.Conn, rest []byte) error {
			_, err := fmt.Fprintf(conn, "+%s\r\n", rest)
			return err
		})
		return nil
	}})
	c := r.dial(t)
	io.WriteString(c, "SYNC\r\nrest")
	want(t, c.reply()+c.reply()+c.reply(), `+"OK"+"rest"closed`)
}

// TestStop: the server ends while clients wait and read.
func TestStop(t *testing.T) {
	r := start(t, dataset(t, hash("h", 20_000, 100)), nil, nil)
	c := r.dial(t)
	want(t, c.do("PING"), `+"PONG"`)
	d := r.dial(t)
	d.Write(bytes.Repeat(redistest.Append(nil, "HGETALL", "h"), 100))
	d.in.ReadByte()
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	want(t, c.do("PING"), "closed")
	if _, err := net.Dial("tcp", r.addr); err == nil {
		t.Error("it still listens")
	}
}

// TestDamaged: a value with damaged bytes has an error and no part of it is sent; others are served.
func TestDamaged(t *testing.T) {
	path := dataset(t, text("a", "1"), value{"z", record.Hash, hash("", 40, 1).elems}, text("zz", "2"))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(b, []byte("f000020"))
	b[at-1] = 0x3f // its length in the packed hash
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	c := start(t, path, nil, nil).dial(t)
	for _, line := range []string{"HGETALL z", "HLEN z", "HKEYS z", "DUMP z", "MEMORY USAGE z"} {
		if got := c.do(line); !strings.HasPrefix(got, `-"ERR the value of \"z\" is damaged: `) {
			t.Errorf("%s: %s", line, got)
		}
	}
	want(t, c.do("GET a")+c.do("GET zz"), `$"1"$"2"`)
}
