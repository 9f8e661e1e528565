package serve_test

import (
	"strings"
	"testing"

	"kvferry/internal/shared/keyslot"
	"kvferry/record"
	"kvferry/serve"
	"kvferry/serve/command"
	"kvferry/serve/command/fake"
)

func slots(t *testing.T, text string) serve.Slots {
	t.Helper()
	s, err := serve.ParseSlots(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestParseSlots: what is parsed is printed in its shortest form, and ranges that are none are refused.
func TestParseSlots(t *testing.T) {
	for text, want := range map[string]string{"0": "0", "0-16383": "0-16383", "5,3-4,9": "3-5,9", "63-64,16383": "63-64,16383", "1-2,2-3": "1-3"} {
		s := slots(t, text)
		if got := s.String(); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		n := 0
		for slot := range keyslot.Count {
			if s.Has(slot) {
				n++
			}
		}
		if n != s.Len() {
			t.Errorf("%s: %d slots, Len says %d", text, n, s.Len())
		}
	}
	for _, text := range []string{"", "16384", "2-1", "-1", "1-", "a", "1,,2", "0-99999", "1-2-3", "+1", " 1"} {
		if s, err := serve.ParseSlots(text); err == nil {
			t.Errorf("%q: %s", text, s)
		}
	}
}

// startCluster starts a node with slots 0-8191 of a cluster of three, in which no node has 16383. Slots: a 15495, b 3300, {b}2 3300,
// c 7365, {x}q 16287.
func startCluster(t *testing.T) (*fake.Caller, *serve.Cluster) {
	t.Helper()
	n, err := serve.NewCluster(serve.Node{Slots: slots(t, "0-8191")}, []serve.Node{
		{Address: "10.0.0.3:7003", Slots: slots(t, "12000-16382")}, {Address: "10.0.0.2:7002", Slots: slots(t, "8192-11999")}})
	if err != nil {
		t.Fatal(err)
	}
	_, f := fake.New(t, "string b 1", "string {b}2 2", "string c 3", "hash {b}h f=v")
	again := &command.Server{Keys: f, Now: fake.Now, Memory: 64 << 20, TempDir: t.TempDir(), Route: n.Route}
	again.Init(serve.Commands(n.Commands())...)
	t.Cleanup(func() {
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	})
	c := fake.NewCaller(t, again)
	c.Client.Here = "127.0.0.1:7001"
	return c, n
}

// TestRoutes: keys of this node are served; for others the reply says where they are.
func TestRoutes(t *testing.T) {
	c, n := startCluster(t)
	c.Check(
		"GET b", `$"1"`, "MGET b {b}2", `*2[$"1" $"2"]`, "EXISTS b {b}2 {b}none", `:"2"`,
		"GET a", `-"MOVED 15495 10.0.0.3:7003"`, "MGET a {a}2", `-"MOVED 15495 10.0.0.3:7003"`, "SET a 1", `-"MOVED 15495 10.0.0.3:7003"`,
		"MGET b c", `-"CROSSSLOT Keys in request don't hash to the same slot"`, "MGET a b", `-"CROSSSLOT Keys in request don't hash to the same slot"`,
		"GET bskk", `-"CLUSTERDOWN Hash slot not served"`,
		"PING", `+"PONG"`, "SET b 1", `-"READONLY You can't write against a read only replica."`)
	for _, tt := range []struct {
		h    record.Header
		want bool
	}{{record.Header{Key: []byte("b")}, true}, {record.Header{Key: []byte("a")}, false}, {record.Header{Key: []byte("a"), Keyless: record.Library}, true}} {
		if got := n.Serves(&tt.h); got != tt.want {
			t.Errorf("%s, keyless %d: %t", tt.h.Key, tt.h.Keyless, got)
		}
	}
}

// TestCommands: CLUSTER tells of all nodes alike.
func TestCommands(t *testing.T) {
	c, _ := startCluster(t)
	me := c.Do("CLUSTER MYID").Text
	if len(me) != 40 || strings.Trim(me, "0123456789abcdef") != "" {
		t.Fatalf("my id is %q", me)
	}
	nodes := c.Do("CLUSTER NODES").Text
	ids := map[string]string{}
	for line := range strings.Lines(nodes) {
		f := strings.Fields(line)
		ids[f[1]] = f[0]
		line = strings.TrimPrefix(strings.TrimSpace(line), f[0]+" ")
		switch want := map[string]string{
			"127.0.0.1:7001@17001": "127.0.0.1:7001@17001 myself,master - 0 0 1 connected 0-8191",
			"10.0.0.2:7002@17002":  "10.0.0.2:7002@17002 master - 0 0 2 connected 8192-11999",
			"10.0.0.3:7003@17003":  "10.0.0.3:7003@17003 master - 0 0 3 connected 12000-16382",
		}[f[1]]; {
		case line != want:
			t.Errorf("node %s, want %s", line, want)
		case len(f[0]) != 40:
			t.Errorf("the id %s", f[0])
		}
	}
	if len(ids) != 3 || ids["127.0.0.1:7001@17001"] != me {
		t.Fatalf("the nodes are\n%s", nodes)
	}
	two, three := ids["10.0.0.2:7002@17002"], ids["10.0.0.3:7003@17003"]
	shard := func(from, to, id, port, host string) string {
		return `*4[$"slots" *2[:"` + from + `" :"` + to + `"] $"nodes" *1[*14[$"id" $"` + id + `" $"port" :"` + port + `" $"ip" $"` + host + `" $"endpoint" $"` + host +
			`" $"role" $"master" $"replication-offset" :"0" $"health" $"online"]]]`
	}
	c.Check(
		"CLUSTER SLOTS", `*3[*3[:"0" :"8191" *4[$"127.0.0.1" :"7001" $"`+me+`" *"0"]] *3[:"8192" :"11999" *4[$"10.0.0.2" :"7002" $"`+two+`" *"0"]] *3[:"12000" :"16382" *4[$"10.0.0.3" :"7003" $"`+three+`" *"0"]]]`,
		"CLUSTER SHARDS", "*3["+shard("0", "8191", me, "7001", "127.0.0.1")+" "+shard("8192", "11999", two, "7002", "10.0.0.2")+" "+shard("12000", "16382", three, "7003", "10.0.0.3")+"]",
		"CLUSTER MYSHARDID", `$"`+me+`"`, "CLUSTER LINKS", `*"0"`, "CLUSTER REPLICAS "+me, `*"0"`, "CLUSTER SLAVES "+me, `*"0"`,
		"CLUSTER KEYSLOT a", `:"15495"`, "CLUSTER KEYSLOT {b}x", `:"3300"`, "CLUSTER KEYSLOT {}b", `:"6680"`,
		"CLUSTER COUNTKEYSINSLOT 3300", `:"3"`, "CLUSTER COUNTKEYSINSLOT 7365", `:"1"`, "CLUSTER COUNTKEYSINSLOT 0", `:"0"`,
		"CLUSTER COUNTKEYSINSLOT 16384", `-"ERR Invalid slot"`, "CLUSTER COUNTKEYSINSLOT x", `-"ERR value is not an integer or out of range"`,
		"CLUSTER GETKEYSINSLOT 3300 10", `*3[$"b" $"{b}2" $"{b}h"]`, "CLUSTER GETKEYSINSLOT 3300 2", `*2[$"b" $"{b}2"]`, "CLUSTER GETKEYSINSLOT 3300 0", `*"0"`,
		"CLUSTER GETKEYSINSLOT 15495 5", `*"0"`, "CLUSTER GETKEYSINSLOT 3300 -1", `-"ERR Invalid number of keys"`, "CLUSTER GETKEYSINSLOT -1 1", `-"ERR Invalid slot"`,
		"CLUSTER GETKEYSINSLOT 3300 x", `-"ERR value is not an integer or out of range"`,
		"CLUSTER FOO", `-"ERR unknown subcommand 'FOO'. Try CLUSTER HELP."`, "CLUSTER KEYSLOT", `-"ERR wrong number of arguments for 'cluster|keyslot' command"`)
	info := c.Do("CLUSTER INFO").Text
	for _, want := range []string{"cluster_state:ok\r\n", "cluster_slots_assigned:16383\r\n", "cluster_known_nodes:3\r\n", "cluster_size:3\r\n", "cluster_my_epoch:1\r\n"} {
		if !strings.Contains(info, want) {
			t.Errorf("no %q in %q", want, info)
		}
	}
}

// TestAtUnixSocket: where a client has no address, neither has the node; with TLS the port is one for TLS.
func TestAtUnixSocket(t *testing.T) {
	c, n := startCluster(t)
	c.Client.Here, n.TLS = "", true
	if got := c.Do("CLUSTER SLOTS").Items[0].String(); !strings.HasPrefix(got, `*3[:"0" :"8191" *4[$"" :"0" `) {
		t.Error(got)
	}
	if got := c.Do("CLUSTER SHARDS").String(); !strings.Contains(got, `$"tls-port" :"7002"`) || strings.Contains(got, `$"port"`) {
		t.Error(got)
	}
}

// TestTwice: no slot may belong to two nodes.
func TestTwice(t *testing.T) {
	_, err := serve.NewCluster(serve.Node{Slots: slots(t, "0-5")}, []serve.Node{{Address: "h:1", Slots: slots(t, "5-9")}})
	if err == nil || err.Error() != "slot 5 belongs to two nodes, with slots 0-5 and 5-9" {
		t.Error(err)
	}
}
