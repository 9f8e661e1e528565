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
	"io/fs"
	"math/big"
	"math/rand"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kvferry/cmd/kvferry/cli"
	"kvferry/internal/testkit/redistest"
	"kvferry/internal/testkit/seed"
	"kvferry/record"
	"kvferry/serve"
	serving "kvferry/serve/command"
	"kvferry/serve/master"
)

// served is a dataset that is being served, on a Unix socket.
type served struct {
	socket string
	about  string     // its first line
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
		if s.about == "" {
			s.about = line
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
	return p.send(t, redistest.Append(nil, args...))
}

// send sends a request and returns the reply.
func (p *peer) send(t testing.TB, request []byte) redistest.Node {
	t.Helper()
	p.SetDeadline(time.Now().Add(time.Minute))
	if _, err := p.Write(request); err != nil {
		t.Fatalf("%q: %v", request, err)
	}
	n, err := redistest.ReadNode(p.in)
	if err != nil {
		t.Fatalf("%q: %v", request, err)
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
	if strings.HasPrefix(name, "GEO") && !slices.ContainsFunc(args, ordering) {
		n.Sort(1)
	}
	text := n.String()
	if name == "XINFO" || name == "XPENDING" {
		text = radixTree.ReplaceAllString(idleTime.ReplaceAllString(text, "idle"), "radix tree")
		text = strings.ReplaceAll(text, "18446744073709551615-18446744073709551615", "0-0") // the first entry of an empty stream that was loaded
	}
	return text
}

// ordering matches the options that bring the result of a search in order.
func ordering(arg string) bool {
	return slices.Contains([]string{"ASC", "DESC", "COUNT"}, strings.ToUpper(arg))
}

// radixTree matches the shape of a stream's index, which depends on deleted entries in a server that has not restarted.
var radixTree = regexp.MustCompile(`\$"radix-tree-(keys|nodes)" :"\d+"`)

// idleTime matches the times since deliveries, and consumers that were seen.
var idleTime = regexp.MustCompile(`\$"idle" :"\d+"|(\$"[^"]*") :"\d+" :"\d+"\]`)

// differences sends generated commands to both servers, some of them inline or in transactions, and returns those whose
// replies differ.
func differences(t testing.TB, r *rand.Rand, real, ours *peer, n int, oneDB bool) (out []string) {
	for range n {
		var list [][]string
		form, size := r.Intn(20), 1
		if form == inMulti {
			size = r.Intn(5)
		}
		for range size {
			args := redistest.ReadCommand(r)
			if r.Intn(10) == 0 {
				args = redistest.Broken(r, args)
			}
			if !skipped(args, oneDB) && !open(t, real, args) {
				list = append(list, args)
			}
		}
		want, got := replies(t, real, list, form), replies(t, ours, list, form)
		for i := range want {
			if want[i] != got[i] && !strings.Contains(got[i], "Insufficient memory, transient memory for LCS") {
				out = append(out, fmt.Sprintf("%q (form %d)\n  want %s\n  got  %s", list, form, want[i], got[i]))
			}
		}
	}
	return out
}

// Forms of requests that are not arrays of one command.
const (
	inline = iota
	inMulti
)

// replies sends commands in a form and returns what is comparable of each reply.
func replies(t testing.TB, p *peer, list [][]string, form int) (out []string) {
	const queuedReply = `+"QUEUED"`
	var queued [][]string
	if form == inMulti {
		out = append(out, p.do(t, "MULTI").String())
	}
	for _, args := range list {
		if form == inline && !slices.ContainsFunc(args, quoted) {
			out = append(out, comparable(args, p.send(t, []byte(strings.Join(args, " ")+"\r\n"))))
		} else {
			out = append(out, comparable(args, p.do(t, args...)))
		}
		if out[len(out)-1] == queuedReply {
			queued = append(queued, args)
		}
	}
	if form != inMulti {
		return out
	}
	n := p.do(t, "EXEC")
	if len(n.Items) != len(queued) {
		return append(out, n.String())
	}
	for i, args := range queued {
		out = append(out, comparable(args, n.Items[i]))
	}
	return out
}

// quoted reports whether a word needs quotes on a line.
func quoted(word string) bool {
	return word == "" || strings.ContainsFunc(word, func(c rune) bool { return c <= ' ' || c > '~' || c == '"' || c == '\'' })
}

// skipped reports whether the replies to a command differ on purpose. oneDB: only database 0 is the same.
func skipped(args []string, oneDB bool) bool {
	switch name := strings.ToUpper(args[0]); name {
	case "SET", "DEL", "ZADD": // a replica refuses them after it has looked at their arguments
		return true
	case "SRANDMEMBER", "HRANDFIELD", "ZRANDMEMBER":
		return len(args) < 3 || args[2] != "0"
	case "GEOSEARCH", "GEORADIUS", "GEORADIUSBYMEMBER", "GEORADIUS_RO", "GEORADIUSBYMEMBER_RO": // ANY members; STORE writes
		return slices.ContainsFunc(args, func(a string) bool {
			return a == "STORE" || a == "STOREDIST" || a == "ANY" && slices.Contains(args, "COUNT")
		})
	case "SORT", "SORT_RO":
		return slices.Contains(args, "STORE")
	case "GET", "MGET", "GETRANGE", "SUBSTR", "LCS", "GETBIT", "BITCOUNT", "BITPOS", "BITFIELD_RO": // a HyperLogLog holds a count that PFCOUNT renews
		return slices.ContainsFunc(args[1:], func(a string) bool { return strings.HasPrefix(a, "p") })
	case "HSCAN", "SSCAN", "ZSCAN", "SCAN": // the size of pages
		return len(args) < 4 || args[len(args)-1] != "1000"
	case "ZLEXCOUNT", "ZRANGEBYLEX", "ZREVRANGEBYLEX", "ZRANGE": // only where all members have one score
		lex := name != "ZRANGE" || slices.ContainsFunc(args, func(a string) bool { return strings.EqualFold(a, "BYLEX") })
		return lex && len(args) > 1 && !strings.HasPrefix(args[1], "a")
	case "OBJECT", "CONFIG", "CLIENT":
		return len(args) > 2
	case "SELECT": // formats number their databases otherwise
		return len(args) > 1 && args[1] != "0" && args[1] != "x" && oneDB
	case "HELLO", "COMMAND":
		return true
	}
	return false
}

// open reports whether Redis leaves the reply to a command open: it depends on its tables, its qsort or on
// how it searches for what is no place.
func open(t testing.TB, real *peer, args []string) bool {
	if len(args) < 3 {
		return false
	}
	by := slices.Index(args, "BY") + 1
	switch name := strings.ToUpper(args[0]); name {
	case "SORT", "SORT_RO":
		switch {
		case by == 0 || by == len(args):
			return false
		case !strings.Contains(args[by], "*"):
			return real.do(t, "TYPE", args[1]).Text == "set"
		}
		// Equal texts. Only the lists of digits have a different weight for each element.
		return slices.Contains(args, "ALPHA") && !(args[by] == "w*" && strings.HasPrefix(args[1], "n"))
	case "GEOSEARCH", "GEORADIUS", "GEORADIUSBYMEMBER", "GEORADIUS_RO", "GEORADIUSBYMEMBER_RO":
		few, many := real.do(t, "ZCOUNT", args[1], "-inf", "(0"), real.do(t, "ZCOUNT", args[1], strconv.Itoa(1<<52), "+inf")
		return few.Kind == ':' && few.Text+many.Text != "00"
	case "SSCAN", "HSCAN", "ZSCAN":
		return anyCursor.MatchString(args[2])
	}
	return false
}

// anyCursor matches cursors that no scan has returned.
var anyCursor = regexp.MustCompile(`^[+-]?0*[1-9]\d*$`)

// addExact makes keys whose replies are exact: sorted sets with one score, so that ranges of members are
// defined, places in different distances, and lists of the digits of other keys, each once. It also makes
// hashes and sets, so that there are keys of every type whatever the commands before have left.
func addExact(t testing.TB, r *rand.Rand, real *peer) {
	real.do(t, "SELECT", "0")
	for i := range 60 {
		real.do(t, "ZADD", fmt.Sprintf("a%d", r.Intn(4)), "1", string(rune('a'+r.Intn(9))))
		lon, lat := r.Float64()*360-180, r.Float64()*170-85
		if i%2 == 0 {
			lon, lat = 10+r.Float64()*10, 35+r.Float64()*5
		}
		real.do(t, "GEOADD", fmt.Sprintf("e%d", r.Intn(4)), fmt.Sprint(lon), fmt.Sprint(lat), []string{"", "a", "b", "c", "d", "e", "12", "-7", "1.5", "\x00"}[r.Intn(10)])
	}
	for i := range 4 {
		real.do(t, "HSET", fmt.Sprintf("b%d", i), "f", strconv.Itoa(i))
		real.do(t, "SADD", fmt.Sprintf("c%d", i), "a", strconv.Itoa(i))
		for n, digit := range r.Perm(6) {
			real.do(t, "SET", fmt.Sprintf("w%d", digit), strings.Repeat("w", n)+"x")
			real.do(t, "RPUSH", fmt.Sprintf("n%d", i), strconv.Itoa(digit))
		}
	}
}

// TestServeLikeRedis compares replies with those of the server that wrote the RDB file.
func TestServeLikeRedis(t *testing.T) {
	server := redistest.Start(t)
	n := 1500
	if v := os.Getenv("KVFERRY_SERVE_COMMANDS"); v != "" {
		n, _ = strconv.Atoi(v)
	}
	r := rand.New(rand.NewSource(seed.Of(t)))
	conn, err := net.Dial("tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	real := newPeer(t, conn)
	for range 1500 {
		real.do(t, redistest.Command(r, redistest.Patterns)...)
	}
	addExact(t, r, real)
	for _, db := range []string{"5", "1", "0"} { // the count that a HyperLogLog caches is not data; only keys that begin with p may be one
		real.do(t, "SELECT", db)
		for _, key := range real.do(t, "KEYS", "[^p]*").Items {
			if real.do(t, "GETRANGE", key.Text, "0", "3").Text == "HYLL" {
				real.do(t, "DEL", key.Text)
			}
		}
		for _, key := range real.do(t, "KEYS", "p*").Items { // of a corrupt one, the cached count is all that is left
			if strings.HasPrefix(real.do(t, "PFCOUNT", key.Text, "none").Text, "INVALIDOBJ") {
				real.do(t, "DEL", key.Text)
			}
		}
	}
	real.do(t, "SAVE")
	file := filepath.Join(server.Dir, "dump.rdb")
	ours := serveOn(t, "--now", real.do(t, "LASTSAVE").Text, file)
	alike(t, r, real, ours, n, false)
	for _, to := range []string{"nemo", "blackwidow", "pika4", "kvrocks", "ardb", "aof"} {
		t.Run(to, func(t *testing.T) { convertedAlike(t, r, to, file, max(120, n/20)) })
	}
}

// alike compares replies to n generated commands in each version of the protocol, and ends ours.
func alike(t *testing.T, r *rand.Rand, real *peer, ours *served, n int, oneDB bool) {
	t.Helper()
	for _, proto := range []string{"2", "3"} {
		p := ours.dial(t)
		real.do(t, "SELECT", "0")
		real.do(t, "HELLO", proto)
		p.do(t, "HELLO", proto)
		for i, d := range differences(t, r, real, p, n, oneDB) {
			if i == 20 {
				break
			}
			t.Errorf("version %s: %s", proto, d)
		}
	}
	if code := ours.stop(); code != cli.ExitOK {
		t.Errorf("exit code %d", code)
	}
}

// convertedAlike converts an RDB file to a format, and what that holds of it back for a server, and compares both.
func convertedAlike(t *testing.T, r *rand.Rand, format, file string, n int) {
	root := fastDir(t)
	path := filepath.Join(root, "made")
	losses := []string{record.LossBlankStream, record.LossStreamExpiry, record.LossStreamGroups}
	for _, l := range record.LossInfos() {
		losses = append(losses, string(l.Kind))
	}
	allowed := func(args ...string) {
		t.Helper()
		if c := kvferry(t, append(args, "--allow-loss", strings.Join(losses, ","), "-q")...); c.code != cli.ExitOK {
			t.Fatalf("%q: exit %d\n%s", args, c.code, c.stderr)
		}
	}
	allowed("convert", "--db", "0", file, format+":"+path)
	allowed("convert", "--rdb-version", "10", path, "rdb:"+filepath.Join(root, "dump.rdb"))
	server := redistest.StartIn(t, root)
	conn, err := net.Dial("tcp", server.Addr)
	if err != nil {
		t.Fatal(err)
	}
	real := newPeer(t, conn)
	ours := serveOn(t, "--now", real.do(t, "LASTSAVE").Text, path)
	keys := scannedKeys(t, ours)
	if want := real.do(t, "DBSIZE").Text; want != strconv.Itoa(len(keys)) || len(keys) < 20 {
		t.Errorf("%d keys, want %s", len(keys), want)
	}
	restored(t, real, ours.dial(t), keys)
	alike(t, r, real, ours, n, true)
}

// scannedKeys returns the keys of three scans in turn, each of which must return each key once.
func scannedKeys(t *testing.T, ours *served) (keys []string) {
	p := ours.dial(t)
	cursors, seen := [3]string{"0", "0", "0"}, [3][]string{}
	for left := len(cursors); left > 0; {
		for i := range cursors {
			if cursors[i] == "end" {
				continue
			}
			n := p.do(t, "SCAN", cursors[i], "COUNT", strconv.Itoa(3+4*i))
			for _, key := range n.Items[1].Items {
				seen[i] = append(seen[i], key.Text)
			}
			if cursors[i] = n.Items[0].Text; cursors[i] == "0" {
				cursors[i] = "end"
				left--
			}
		}
	}
	for i := range seen {
		slices.Sort(seen[i])
		if once := slices.Compact(slices.Clone(seen[i])); len(once) != len(seen[i]) || !slices.Equal(once, seen[0]) {
			t.Errorf("scan %d: %q, want each key of %q once", i, seen[i], seen[0])
		}
	}
	return seen[0]
}

// restored gives the payloads of DUMP to a server, in a database of their own, and compares the digests of the values.
func restored(t *testing.T, real, ours *peer, keys []string) {
	t.Helper()
	types := map[string]bool{}
	for _, key := range keys {
		payload, at := ours.do(t, "DUMP", key), ours.do(t, "PEXPIRETIME", key).Text
		types[ours.do(t, "TYPE", key).Text] = true
		want := real.do(t, "DEBUG", "DIGEST-VALUE", key).String()
		real.do(t, "SELECT", "9")
		if at == "-1" {
			at = "0"
		}
		if got := real.do(t, "RESTORE", key, at, payload.Text, "ABSTTL"); got.Text != "OK" {
			t.Errorf("RESTORE %q: %s", key, got)
		}
		if got := real.do(t, "DEBUG", "DIGEST-VALUE", key).String(); got != want {
			t.Errorf("%q was restored as %s, want %s", key, got, want)
		}
		real.do(t, "SELECT", "0")
	}
	if len(types) < 5 {
		t.Errorf("only types %v", types)
	}
	real.do(t, "SELECT", "9")
	real.do(t, "FLUSHDB")
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

// TestServeHidden: the start says how many records clients do not see, and which flag shows them.
func TestServeHidden(t *testing.T) {
	t.Parallel()
	hides := buildSmall(t, formatOf(t, "pika3"), floydSet()[:5]...)
	same := buildSmall(t, formatOf(t, "pika3"), smallRecord(record.String, "k", "v"), smallRecord(record.Hash, "k", "a=1"), smallRecord(record.Set, "k", "a"),
		smallRecord(record.Set, "s", "a"))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{same}, "clients do not see 2 of 4 records: if a name exists under several types, they see only the first type; --on-conflict rename shows the other types as name:type"},
		{[]string{same, "--type", "hash,set"}, "clients do not see 1 of 3 records: "},
		{[]string{same, "--type", "hash"}, ""},
		{[]string{same, "--on-conflict", "rename"}, ""},
		{[]string{hides}, ""},
	} {
		ctx, cancel := context.WithCancel(context.Background())
		var errs strings.Builder
		args := append([]string{"serve", "-q", "--unix-socket", filepath.Join(t.TempDir(), "s")}, c.args...)
		code := testApp().Run(ctx, args, writerFunc(func(p []byte) (int, error) {
			cancel() // it has started
			return len(p), nil
		}), &errs)
		cancel()
		if got := errs.String(); code != cli.ExitOK || c.want != "" != strings.Contains(got, "do not see") || !strings.Contains(got, c.want) {
			t.Errorf("%s: exit %d: %s", c.args, code, got)
		}
	}
}

// writerFunc is a function as a writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

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
		if got != want || s.stop() != cli.ExitOK {
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

// TestServeDamage: damage costs the keys that have rows in it, which answer with an error, and no others; lists of keys
// go on behind it.
func TestServeDamage(t *testing.T) {
	nemo := golden(t, "nemo-basic")
	for _, to := range []string{"kvrocks", "nemo"} {
		dir := filepath.Join(fastDir(t), to)
		ok(t, "convert", "--on-conflict", "rename", nemo, to+":"+dir)
		whole := serveOn(t, dir).dial(t)
		var keys []string
		want := map[string]string{}
		for _, key := range whole.do(t, "SCAN", "0", "COUNT", "10000").Items[1].Items {
			keys = append(keys, key.Text)
			want[key.Text] = whole.do(t, "DUMP", key.Text).String()
		}
		tables := 0
		err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(path) != ".sst" {
				return err
			}
			b, err := os.ReadFile(path)
			if err != nil || len(b) < 8<<10 {
				return err
			}
			tables++
			b[100] ^= 1 // in the first block of rows
			return os.WriteFile(path, b, 0o644)
		})
		if err != nil {
			t.Fatal(err)
		}
		p := serveOn(t, dir).dial(t)
		listed := map[string]bool{}
		for cursor, any := "0", true; any || cursor != "0"; any = false {
			page := p.do(t, "SCAN", cursor, "COUNT", "20")
			if len(page.Items) != 2 {
				t.Fatalf("%s: %s", to, page)
			}
			cursor = page.Items[0].Text
			for _, key := range page.Items[1].Items {
				if listed[key.Text] {
					t.Errorf("%s: %q is listed twice", to, key.Text)
				}
				listed[key.Text] = true
			}
		}
		same, damaged := 0, 0
		for _, key := range keys {
			switch got := p.do(t, "DUMP", key).String(); {
			case got == want[key] && listed[key]:
				same++
			case strings.Contains(got, "is damaged: "):
				damaged++
			default:
				t.Errorf("%s: %q: listed %v, %.200s, want %.200s", to, key, listed[key], got, want[key])
			}
		}
		if tables == 0 || same < 50 || damaged == 0 || len(listed) < same {
			t.Errorf("%s: %d tables are damaged, %d keys of %d; %d answer, %d are listed", to, tables, damaged, len(keys), same, len(listed))
		}
	}
}

// TestServeBrokenStore: a store that cannot be opened, or a table of it, costs the keys that may be in it. --salvage serves
// what is readable of them.
func TestServeBrokenStore(t *testing.T) {
	answers := func(p *peer, keys []string) (out []string) {
		for _, key := range keys {
			out = append(out, p.do(t, "TYPE", key).String()+p.do(t, "DUMP", key).String())
		}
		return out
	}
	for name, spoil := range map[string]func(dir string) error{
		"CURRENT":  func(dir string) error { return os.Remove(filepath.Join(dir, "zset", "CURRENT")) },
		"MANIFEST": func(dir string) error { return os.Truncate(filepath.Join(dir, "zset", "MANIFEST-000006"), 30) },
		"table": func(dir string) error {
			tables, err := filepath.Glob(filepath.Join(dir, "zset", "*.sst"))
			for _, table := range tables {
				err = errors.Join(err, os.Truncate(table, 1000))
			}
			return err
		},
	} {
		dir := placed(t, fastDir(t), "nemo-basic", "nemo")
		whole := serveOn(t, dir).dial(t)
		byType, all := map[string][]string{}, 0
		for _, key := range whole.do(t, "SCAN", "0", "COUNT", "10000").Items[1].Items {
			typ := whole.do(t, "TYPE", key.Text).Text
			byType[typ] = append(byType[typ], key.Text)
			all++
		}
		others := slices.Concat(byType["string"], byType["hash"], byType["list"], byType["set"])
		want := answers(whole, others)
		if err := spoil(dir); err != nil {
			t.Fatal(err)
		}
		p, salvaged := serveOn(t, dir).dial(t), serveOn(t, "--salvage", dir).dial(t)
		for i, got := range answers(p, others) {
			if got != want[i] {
				t.Errorf("%s: %q: %.200s, want %.200s", name, others[i], got, want[i])
			}
		}
		for _, got := range answers(p, byType["zset"]) {
			if !strings.Contains(got, "is damaged: ") {
				t.Errorf("%s: %.200s is served", name, got)
			}
		}
		if got := answers(salvaged, others); !slices.Equal(got, want) {
			t.Errorf("%s: --salvage serves other values", name)
		}
		for _, key := range byType["zset"] {
			if got := salvaged.do(t, "ZCARD", key); got.Kind != ':' || name != "table" && got.Text == "0" {
				t.Errorf("%s: --salvage: ZCARD %q: %s", name, key, got)
			}
		}
		if len(byType["zset"]) < 20 || len(others) < 200 || p.do(t, "DBSIZE").Kind != ':' {
			t.Errorf("%s: %d sorted sets of %d keys; DBSIZE: %s", name, len(byType["zset"]), all, p.do(t, "DBSIZE"))
		}
	}
}

// TestServeEndsLoading: a signal ends serve cleanly while the dataset is loading, too.
func TestServeEndsLoading(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs strings.Builder
	code := testApp().Run(ctx, []string{"serve", "-q", "--temp-dir", dir, "--unix-socket", filepath.Join(t.TempDir(), "s"), golden(t, "nemo-basic")}, &out, &errs)
	left, err := os.ReadDir(dir)
	if code != cli.ExitOK || out.Len() > 0 || errs.String() != "kvferry: stopped\n" || err != nil || len(left) > 0 {
		t.Errorf("exit %d\n%s%s%v, %v", code, &out, &errs, left, err)
	}
}

// TestServeEnds: the process ends cleanly on SIGTERM, with clients and a replica connected.
func TestServeEnds(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, socket := t.TempDir(), filepath.Join(t.TempDir(), "s")
	cmd := exec.Command(exe, "serve", "-q", "--log", "json", "--temp-dir", dir, "--unix-socket", socket, golden(t, "nemo-basic"))
	cmd.Env = append(os.Environ(), mainEnv+"=1")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "redis-cli -s") {
	}
	s := &served{socket: socket}
	client, replica := s.dial(t), s.dial(t)
	if got := client.do(t, "PING").String() + replica.do(t, "PSYNC", "?", "-1").String(); !strings.HasPrefix(got, "+\"PONG\"+\"FULLRESYNC ") {
		t.Error(got)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
	}
	if err := cmd.Wait(); err != nil || !strings.Contains(stderr.String(), `"message":"stopped"`) {
		t.Errorf("%v: %s", err, stderr.String())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}
