package live

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/redistest"
	"kvferry/record"
)

func TestAddresses(t *testing.T) {
	for location, want := range map[string]string{
		"redis://h":                      "tcp h:6379  -1 redis-h-6379",
		"redis://me@h:7/3":               "tcp h:7 me 3 redis-h-7-3",
		"rediss://[::1]:7":               "tcp [::1]:7  -1 redis----1--7",
		"redis+cluster://h/0":            "tcp h:6379  0 redis-h-6379-0",
		"unix:///run/redis.sock":         "unix /run/redis.sock  -1 redis-run-redis.sock",
		"unix://me@/run/redis.sock?db=2": "unix /run/redis.sock me 2 redis-run-redis.sock-2",
	} {
		a, err := parseAddress(location)
		if err != nil {
			t.Errorf("%s: %v", location, err)
			continue
		}
		work, err := New().Work(location)
		if got := fmt.Sprintf("%s %s %s %d %s", a.network, a.host, a.user, a.db, work); err != nil || got != want {
			t.Errorf("%s: %s, want %s (%v)", location, got, want, err)
		}
		if b, err := parseAddress(a.location()); err != nil || *b != *a || !IsAddress(location) {
			t.Errorf("%s is %s again: %+v, %v", location, a.location(), b, err)
		}
	}
	for location, want := range map[string]string{"redis://:pw@h": "contains a password", "redis://": "no server in the address", "redis://h/x": "is not the number", "redis://h/-1": "is not the number",
		"unix://": "no server in the address", "redis+cluster://h/1": "only database 0", "redis://h:x": "not the address"} {
		if _, err := parseAddress(location); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "pw") {
			t.Errorf("%s: %v, want %s", location, err, want)
		}
		if _, err := New().Work(location); err == nil {
			t.Errorf("%s has a name", location)
		}
	}
	if IsAddress("/data") || IsAddress("http://x") || New().Detect(nil).Score != 0 || New().Name() != Name || New().Limits().Place != format.OnServer {
		t.Error("what is no address")
	}
}

// TestLosses: the losses depend on the server's version, and payloads have the newest version that it reads.
func TestLosses(t *testing.T) {
	for _, x := range []struct {
		valkey       bool
		major, minor int
		payload      string
		set          bool // strings with an expiry go as SET
		losses       string
	}{
		{false, 2, 8, "6", false, "module stream group-progress field-expiry"}, {false, 4, 0, "8", false, "module stream group-progress field-expiry"}, {false, 6, 0, "9", false, "module group-progress group-progress field-expiry"},
		{false, 6, 2, "9", true, "module group-progress group-progress field-expiry"}, {false, 7, 0, "10", true, "field-expiry"}, {false, 7, 2, "11", true, "field-expiry"}, {false, 8, 0, "12", true, ""},
		{true, 8, 1, "11", true, "field-expiry"}, {true, 9, 0, "valkey80", true, ""},
	} {
		s := &server{major: x.major, minor: x.minor, valkey: x.valkey, name: "it"}
		s.version = s.payloads()
		tg := &target{server: s}
		formattest.Unchanged(t, tg)
		var kinds []string
		for _, h := range []record.Header{{Type: record.Other, Key: []byte("FUNCTION f"), Keyless: record.Library}, {Type: record.Stream, MaxDeleted: make([]byte, 16)}, {Type: record.Hash}} {
			for _, l := range tg.Losses(&h) {
				kinds = append(kinds, l.Kind)
			}
		}
		group := []record.Element{{Kind: record.Group, Name: []byte("g"), Value: record.AppendGroup(nil, &record.GroupState{Last: make([]byte, 16), Read: 7})}}
		tg.ElementLosses(&record.Header{Type: record.Stream}, group, func(l record.Loss) { kinds = append(kinds, l.Kind) })
		batch := []record.Element{{Name: []byte("f"), ExpireMS: 5}}
		tg.ElementLosses(&record.Header{Type: record.Hash}, batch, func(l record.Loss) {
			if kinds = append(kinds, l.Kind); !strings.HasPrefix(l.Detail, `field "f": `) {
				t.Errorf("%d.%d: %s", x.major, x.minor, l.Detail)
			}
		})
		orphans := int64(0) // only commands
		if x.major < 7 {
			orphans = -1
		}
		if got := tg.Orphans(); got != orphans {
			t.Errorf("%d.%d: streams of up to %d bytes keep pending entries without messages", x.major, x.minor, got)
		}
		w := &writer{t: tg, header: record.Header{ExpireMS: 1}}
		if got := strings.Join(kinds, " "); got != x.losses || s.version.String() != x.payload || w.plainSet() != x.set {
			t.Errorf("%d.%d: payloads of %s, losses %q, SET %v; want %+v", x.major, x.minor, s.version, got, w.plainSet(), x)
		}
	}
	tg := &target{server: &server{major: 8}}
	for _, h := range []record.Header{{Key: []byte("doc")}, {Key: []byte("FUNCTION doc")}, {Key: []byte("MODULE_AUX doc"), Keyless: record.ModuleAux}} {
		h.Type = record.Other
		if l := tg.Losses(&h); len(l) != 1 || !l[0].Drops {
			t.Errorf("%s, which is of a module: %+v", h.Key, l)
		}
	}
	left := tg.ElementLosses(&record.Header{Type: record.ZSet}, []record.Element{{Name: []byte("a"), Score: math.NaN()}, {Name: []byte("b"), Score: 1}}, func(record.Loss) {})
	if len(left) != 1 || string(left[0].Name) != "b" {
		t.Errorf("%+v", left)
	}
}

// TestSpill: a record that outgrows one payload goes as commands, complete; keys are changed by a patch.
func TestSpill(t *testing.T) {
	s := redistest.Start(t)
	target := mustOpen(t, "redis://"+s.Addr, format.ServerOptions{}, "0")
	w, err := formattest.One(target.Shard(0, "0", record.AllTypes, 64<<20))
	if err != nil {
		t.Fatal(err)
	}
	h := record.Header{DB: "0", Type: record.List, Key: []byte("big"), Len: 17, ExpireMS: 4102444800000}
	if err := w.Begin(&h); err != nil {
		t.Fatal(err)
	}
	for i := range 17 {
		if err := w.Write([]record.Element{{Value: []byte(strings.Repeat(string(rune('a'+i)), 1<<20))}}); err != nil {
			t.Fatal(err)
		}
	}
	c := s.Client()
	c.Must(t, "MSET", "old", "1", "keep", "2", "last", "3")
	c.Must(t, "PEXPIREAT", "last", "4102444800000")
	to := w.Writer.(format.Changer)
	for _, err := range []error{w.End(), to.Delete(&record.Header{Key: []byte("old")}), to.Delete(&record.Header{Key: []byte("none")}), to.Expire([]byte("keep"), 4102444800001), to.Expire([]byte("last"), 0), w.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var long []string
	for _, v := range c.Strings(t, "LRANGE", "big", "0", "-1") {
		if strings.Trim(v, v[:1]) == "" && len(v) == 1<<20 {
			long = append(long, v[:1])
		}
	}
	if got := strings.Join(long, ""); got != "abcdefghijklmnopq" {
		t.Errorf("the list is %s", got)
	}
	for key, want := range map[string]string{"big": "4102444800000", "keep": "4102444800001", "last": "-1", "old": "-2"} {
		if got := redistest.Text(c.Must(t, "PEXPIRETIME", key)); got != want {
			t.Errorf("%s expires at %s, want %s", key, got, want)
		}
	}
}

// TestDeleteNamesakes: a key and a function library of the same name are deleted separately.
func TestDeleteNamesakes(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client()
	load := func(name string) {
		c.Must(t, "FUNCTION", "LOAD", "#!lua name="+name+"\nredis.register_function('f"+name+"', function() return 1 end)")
	}
	load("a")
	load("b")
	c.Must(t, "MSET", "FUNCTION a", "1", "FUNCTION b", "2", "MODULE_AUX c", "3", "MODULE_AUX d", "4")
	w, err := mustOpen(t, "redis://"+s.Addr, format.ServerOptions{}, "0").Shard(0, "0", record.AllTypes, 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []record.Header{
		{Type: record.Other, Key: []byte("FUNCTION a")},
		{Type: record.Other, Key: []byte("FUNCTION b"), Keyless: record.Library},
		{Type: record.Other, Key: []byte("MODULE_AUX c")},
		{Type: record.Other, Key: []byte("MODULE_AUX d"), Keyless: record.ModuleAux},
	} {
		if err := w.(format.Changer).Delete(&h); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	keys := c.Strings(t, "KEYS", "*")
	slices.Sort(keys)
	if got := strings.Join(keys, ", "); got != "FUNCTION b, MODULE_AUX d" {
		t.Errorf("the keys that are left: %s", got)
	}
	if list := c.Must(t, "FUNCTION", "LIST").([]any); len(list) != 1 || redistest.Text(list[0].([]any)[1]) != "a" {
		t.Errorf("the libraries that are left: %v", list)
	}
}

// TestRestricted: a user without RESTORE writes commands, to a temporary name first; invalid records are rejected.
func TestRestricted(t *testing.T) {
	s := redistest.Start(t)
	s.Client().Must(t, "ACL", "SETUSER", "writer", "on", ">pw", "~*", "+@all", "-restore")
	address := "redis://writer@" + s.Addr
	o := format.ServerOptions{Password: "pw"}
	list := data(50, 200)
	if err := load(context.Background(), mustOpen(t, address, o, "0"), list, "0", 1); err != nil {
		t.Fatal(err)
	}
	diff(t, want(t, list, "0"), s.Client().Records(t))
	for want, dbs := range map[string][]string{"numbers its databases": {"users"}, "the address names database 3": {"0", "1"}} {
		if _, err := open(t, address+"/3", o, dbs...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", dbs, err, want)
		}
	}
	if _, err := New().With(&o).Create(context.Background(), address, &format.CreateOptions{DBs: []string{"0"}, Earlier: "{"}); err == nil {
		t.Error("what an earlier process left is no JSON")
	}
	if _, err := New().With(&o).Create(context.Background(), "redis://", &format.CreateOptions{}); err == nil {
		t.Error("no address")
	}
	if _, err := New().With(&o).Open(context.Background(), "redis://", &format.OpenOptions{}); err == nil {
		t.Error("no address")
	}
}

// scripted is a server that answers the commands of each connection with these lines, then closes it; done has the
// commands.
func scripted(done *[]string, answers ...string) func(context.Context) (net.Conn, error) {
	var mu sync.Mutex
	return func(context.Context) (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if len(answers) == 0 {
			return nil, finalError{io.EOF}
		}
		lines := strings.Fields(answers[0])
		answers = answers[1:]
		here, there := net.Pipe()
		go func() {
			defer there.Close()
			in := bufio.NewReader(there)
			for _, answer := range lines {
				var words []string
				head, err := in.ReadString('\n')
				n := 0
				if _, serr := fmt.Sscanf(head, "*%d", &n); err != nil || serr != nil {
					return
				}
				for range n {
					_, _ = in.ReadString('\n') // the length
					word, _ := in.ReadString('\n')
					words = append(words, strings.TrimSpace(word))
				}
				mu.Lock()
				*done = append(*done, strings.Join(words, " "))
				mu.Unlock()
				if _, err := io.WriteString(there, strings.ReplaceAll(answer, "_", " ")+"\r\n"); err != nil {
					return
				}
			}
		}()
		return here, nil
	}
}

// TestPieces: after a broken connection, the fate of a record is checked, and no piece that must not repeat is resent.
func TestPieces(t *testing.T) {
	command := func(words ...string) (out []byte) {
		var list [][]byte
		for _, w := range words {
			list = append(list, []byte(w))
		}
		return appendCommand(nil, list...)
	}
	const begin, go1, count, end = "DEL tmp|HSET tmp a 1", "HSET tmp b 2", "HLEN tmp", "RENAME tmp key"
	const all = begin + "|" + go1 + "|" + count + "|" + end
	for name, x := range map[string]struct {
		answers []string
		want    string // commands
		err     string
		moved   string // redirected pieces
	}{
		"no break":               {[]string{":0 :1 :1 :2 +OK"}, all, "", ""},
		"cut in the first piece": {[]string{":0", ":0 :1 :1 :2 +OK"}, "DEL tmp|" + all, "", ""},
		"cut before the count":   {[]string{":0 :1 :1", ":2 +OK"}, all, "", ""},
		"cut within":             {[]string{":0 :1", ":1 :2 +OK"}, begin + "|" + go1 + "|" + count + "|" + end, "", ""},
		"cut before the name":    {[]string{":0 :1 :1 :2", ":1 +OK"}, begin + "|" + go1 + "|" + count + "|EXISTS tmp|" + end, "", ""},
		"cut behind the name":    {[]string{":0 :1 :1 :2", ":0 :2"}, begin + "|" + go1 + "|" + count + "|EXISTS tmp|HLEN key", "", ""},
		"both are gone":          {[]string{":0 :1 :1 :2", ":0 :0"}, begin + "|" + go1 + "|" + count + "|EXISTS tmp|HLEN key", "holds 0 of the 2 elements", ""},
		"an older key":           {[]string{":0 :1 :1 :2", ":0 -WRONGTYPE_it"}, begin + "|" + go1 + "|" + count + "|EXISTS tmp|HLEN key", "holds 0 of the 2 elements", ""},
		"loading, then there":    {[]string{":0 :1 :1 :2", "-LOADING_it", ":1 +OK"}, begin + "|" + go1 + "|" + count + "|EXISTS tmp|EXISTS tmp|" + end, "", ""},
		"nobody knows":           {[]string{":0 :1 :1 :2", "-MOVED_1_other:1"}, begin + "|" + go1 + "|" + count + "|EXISTS tmp", "may or may not be there", ""},
		"moved in the middle":    {[]string{":0 -MOVED_1_other:1 :1 :2 +OK"}, all, "", "DEL tmp|HSET tmp a 1"},
		"busy for a moment":      {[]string{":0 :1 -TRYAGAIN_now", ":1 :2 +OK"}, begin + "|" + go1 + "|" + go1 + "|" + count + "|" + end, "", ""},
		"refused":                {[]string{":0 -OOM_command_not_allowed"}, begin, "OOM command", ""},
		"flushed":                {[]string{":0 :1 :1 :1"}, begin + "|" + go1 + "|" + count, "holds 1 of the 2 elements", ""},
		"flushed after counting": {[]string{":0 :1 :1 :2 -ERR_no_such_key"}, all, "holds 0 of the 2 elements", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // some wait
			var done []string
			var moved []byte
			added, dial := make(chan struct{}), scripted(&done, x.answers...)
			p := newPipe(context.Background(), func(ctx context.Context) (net.Conn, error) {
				<-added
				return dial(ctx)
			})
			p.elsewhere = func(data []byte, _ piece, _ string) error {
				moved = append(moved, data...)
				return nil
			}
			for _, lines := range []string{begin, go1} {
				var data []byte
				for _, line := range strings.Split(lines, "|") {
					data = append(data, command(strings.Fields(line)...)...)
				}
				if err := p.add(data, piece{commands: countCommands(data), name: []byte("tmp")}); err != nil {
					t.Fatal(err)
				}
				if err := p.flush(); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.conclude(&ending{name: []byte("tmp"), key: []byte("key"), size: "HLEN", least: 2, most: 2}); err != nil {
				t.Fatal(err)
			}
			close(added)
			err := p.close()
			if got := strings.Join(done, "|"); got != x.want || (err == nil) != (x.err == "") || err != nil && !strings.Contains(err.Error(), x.err) {
				t.Errorf("%s\nwant %s\n%v", got, x.want, err)
			}
			var want []byte
			for _, line := range strings.Split(x.moved, "|") {
				if line != "" {
					want = append(want, command(strings.Fields(line)...)...)
				}
			}
			if string(moved) != string(want) {
				t.Errorf("moved %q", moved)
			}
		})
	}
}

// lateConn delays its writes until told, but has the answer before.
type lateConn struct {
	net.Conn
	there   net.Conn
	now     chan struct{}
	written chan string
}

func (c lateConn) Write(b []byte) (int, error) {
	if _, err := io.WriteString(c.there, "+OK\r\n"); err != nil {
		return 0, err
	}
	<-c.now
	c.written <- string(b)
	return len(b), nil
}

// TestEarlyAnswer: a batch that is answered before its Write returns is not reused until then.
func TestEarlyAnswer(t *testing.T) {
	here, there := net.Pipe()
	conn := lateConn{here, there, make(chan struct{}), make(chan string, 3)}
	p := newPipe(context.Background(), func(context.Context) (net.Conn, error) { return conn, nil })
	pieces := []string{"first", "again", "third"}
	for i, data := range pieces {
		if err := p.add([]byte(data), piece{commands: 1}); err != nil {
			t.Fatal(err)
		}
		if i == len(pieces)-1 {
			break // a reused batch, if any
		}
		if err := p.flush(); err != nil {
			t.Fatal(err)
		}
		for p.progress() == 0 {
			time.Sleep(time.Millisecond)
		}
	}
	close(conn.now)
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
	for _, want := range pieces {
		if got := <-conn.written; got != want {
			t.Errorf("%s was written, want %s", got, want)
		}
	}
}

// TestPieceNames: a piece of a stream may begin with XGROUP CREATE, whose second word is no key: the temporary name is
// deleted after an error, in its slot, and the error names it.
func TestPieceNames(t *testing.T) {
	group := appendCommand(nil, []byte("XGROUP"), []byte("CREATE"), []byte("tmp"), []byte("g"), []byte("0"))
	p := &pipe{current: new(batch)}
	for _, x := range []piece{{commands: 1, name: []byte("tmp")}, {commands: 1}} {
		if err := p.add(group, x); err != nil {
			t.Fatal(err)
		}
	}
	x := &p.current.pieces[0]
	if names := p.temporary(); !slices.Equal(names, []string{"tmp"}) || string(x.key(group)) != "tmp" || x.subject(group) != `key "tmp"` {
		t.Errorf("names %q, key %q, %s", names, x.key(group), x.subject(group))
	}
}

func TestAsking(t *testing.T) {
	two := appendCommand(appendCommand(nil, []byte("DEL"), []byte("k")), []byte("SET"), []byte("k"), []byte("*1\r\n"))
	data, n := withAsking(two)
	if key := argument(data, 1); n != 4 || countCommands(data) != 4 || string(key) != "k" {
		t.Errorf("%d commands, key %q: %q", n, key, data)
	}
	deep := strings.Repeat("*2\r\n:1\r\n", 1<<20) + "$1\r\na\r\n"
	for text, want := range map[string]string{"+OK\r\n": "+", deep: "*", "*-1\r\n": "*", "*0\r\n": "*", ":12\r\n": ":12", "-ERR x\r\n": "-ERR x", "$3\r\nabc\r\n": "$", "$-1\r\n": "$", "*2\r\n:1\r\n$1\r\na\r\n": "*"} {
		in := bufio.NewReader(strings.NewReader(text + ":7\r\n"))
		if got, err := readAnswer(in); got != want || err != nil {
			t.Errorf("%.40q: %q, %v", text, got, err)
		}
		if next, err := readAnswer(in); next != ":7" || err != nil {
			t.Errorf("after %.40q: %q, %v", text, next, err)
		}
	}
	if got, err := readText(bufio.NewReader(io.LimitReader(zeros{}, 1<<30))); !errors.Is(err, errAnswer) {
		t.Errorf("a line without end: %d bytes, %v", len(got), err)
	}
	for _, bad := range []string{"", "\r\n", "x1\r\n", "$x\r\n", "$5\r\nabc\r\n", "*2\r\n:1\r\n", "$9223372036854775806\r\nabc\r\n",
		"*9223372036854775805\r\n*9223372036854775805\r\n", "*2\r\n*1\r\n:1\r\n"} {
		if got, err := readAnswer(bufio.NewReader(strings.NewReader(bad))); err == nil {
			t.Errorf("%q: %q", bad, got)
		}
	}
}

// zeros is an endless reader.
type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// TestBusy: the error names what the server replies.
func TestBusy(t *testing.T) {
	if text := (&busyError{"LOADING it"}).Error(); text != "gave up after 1m0s; the server still replies LOADING it" {
		t.Error(text)
	}
}

// TestPlace: an address without a host is the answering node's own, nodes that left are forgotten, and a slot map with a
// gap changes nothing.
func TestPlace(t *testing.T) {
	s := &server{}
	slot := func(start, end int, addresses ...string) (out slotRange) {
		out.start, out.end = start, end
		out.nodes = addresses
		return out
	}
	for _, c := range []struct {
		list           []slotRange
		first, members string
		fails          bool
	}{
		{[]slotRange{slot(0, 16383, "a:1", "b:2")}, "a:1", "[a:1 b:2 seed:1]", false},
		{[]slotRange{slot(0, 99, ":7"), slot(100, 16383, "[::1]:8", ":9")}, "seed:7", "[[::1]:8 seed:1 seed:7 seed:9]", false},
		{[]slotRange{slot(0, 99, "x:1")}, "seed:7", "[[::1]:8 seed:1 seed:7 seed:9]", true},
	} {
		err := s.place("seed:1", c.list)
		if (err != nil) != c.fails || s.nodes[0] != c.first || fmt.Sprint(s.members) != c.members {
			t.Errorf("%v: slot 0 on %s, members %v, %v", c.list, s.nodes[0], s.members, err)
		}
	}
	for _, c := range [][3]string{{"h:1", ":2", "h:2"}, {"[::1]:1", ":2", "[::1]:2"}, {"h:1", "g:2", "g:2"}, {"h", ":2", ":2"}} {
		if got := addressFrom(c[0], c[1]); got != c[2] {
			t.Errorf("%s says %s: %s, want %s", c[0], c[1], got, c[2])
		}
	}
}
