package command

import (
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/internal/testkit/redistest"
)

// half serves one half of the slots of a file on a port.
func half(t *testing.T, file, own, other string, port, otherPort int) string {
	t.Helper()
	addr, _ := serveAt(t, "serve", "--db", "0", "--rdb-version", "valkey80", "--port", strconv.Itoa(port), "--slots", own,
		"--cluster-node", fmt.Sprintf("127.0.0.1:%d,%s", otherPort, other), "--cluster-node", fmt.Sprintf("127.0.0.1:%d", port),
		file)
	return addr
}

// TestServeCluster: two servers with half of the slots each look like a cluster, and clients and replicas get every key from
// the one that has it.
func TestServeCluster(t *testing.T) {
	ports := []int{redistest.FreePort(t), redistest.FreePort(t)}
	addrs := []string{half(t, packedRDB, "0-8191", "8192-16000", ports[0], ports[1]),
		half(t, packedRDB, "8192-16000", "0-8191", ports[1], ports[0])}
	whole, _ := serveAt(t, "serve", "--db", "0", "--rdb-version", "valkey80", packedRDB)
	conn, err := net.Dial("tcp", whole)
	if err != nil {
		t.Fatal(err)
	}
	all := newPeer(t, conn)
	var want, moved, unserved []string
	for _, key := range all.do(t, "KEYS", "*").Items {
		want = append(want, key.Text)
	}
	nodes := map[string]*peer{}
	for _, addr := range addrs {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		nodes[addr] = newPeer(t, conn)
		for _, key := range nodes[addr].do(t, "KEYS", "*").Items {
			moved = append(moved, key.Text)
		}
	}
	for _, key := range want {
		value := nodes[addrs[0]].do(t, "DUMP", key)
		if words := strings.Fields(value.Text); value.Kind == '-' && words[0] == "MOVED" {
			value = nodes[words[2]].do(t, "DUMP", key)
		}
		switch {
		case value.Text == "CLUSTERDOWN Hash slot not served":
			unserved = append(unserved, key)
		case value.String() != all.do(t, "DUMP", key).String():
			t.Errorf("%q: %s", key, value)
		}
	}
	slices.Sort(moved)
	slices.Sort(want)
	both := slices.Sorted(slices.Values(append(slices.Clone(moved), unserved...)))
	if !slices.Equal(both, want) || len(unserved) == 0 {
		t.Errorf("%d of %d keys, %d without a node", len(moved), len(want), len(unserved))
	}
	var names []string
	for _, addr := range addrs {
		names = append(names, strings.Fields(ok(t, "keys", "--format", "names", saved(t, addr)))...)
	}
	libraries := 0 // which every node has
	names = slices.DeleteFunc(names, func(name string) bool { libraries++; return strings.HasPrefix(name, "FUNCTION") })
	if libraries == 0 || len(names) < len(moved) {
		t.Errorf("replicas get %d of %d keys", len(names), len(moved))
	}
	if cli, err := exec.LookPath("redis-cli"); err == nil {
		_, port, _ := net.SplitHostPort(addrs[0])
		for _, key := range []string{"{a}1", "{b}1", "{c}1"} { // in both halves
			out, err := exec.Command(cli, "-c", "-p", port, "EXISTS", key).CombinedOutput()
			if strings.TrimSpace(string(out)) != "0" {
				t.Errorf("%s: %s, %v", key, out, err)
			}
		}
	}
	clusterReplies(t, addrs, ports)
}

// clusterReplies compares replies of the first node with those of a node of Redis.
func clusterReplies(t *testing.T, addrs []string, ports []int) {
	conn, err := net.Dial("tcp", addrs[0])
	if err != nil {
		t.Fatal(err)
	}
	p := newPeer(t, conn)
	keys := p.do(t, "CLUSTER", "GETKEYSINSLOT", strings.Trim(p.do(t, "CLUSTER", "KEYSLOT", p.do(t, "RANDOMKEY").Text).Text, `"`),
		"10").Items
	if len(keys) == 0 {
		t.Error("no key in the slot of a key")
	}
	for line, want := range map[string]string{
		"CLUSTER KEYSLOT foo":             `:"12182"`,
		"CLUSTER COUNTKEYSINSLOT 12182":   `:"0"`,
		"CLUSTER COUNTKEYSINSLOT 16384":   `-"ERR Invalid slot"`,
		"CLUSTER GETKEYSINSLOT 12182 9":   `*"0"`,
		"CLUSTER GETKEYSINSLOT 1 -1":      `-"ERR Invalid number of keys"`,
		"GET foo":                         fmt.Sprintf(`-"MOVED 12182 127.0.0.1:%d"`, ports[1]),
		"SET foo 1":                       fmt.Sprintf(`-"MOVED 12182 127.0.0.1:%d"`, ports[1]),
		"SET {b}1 1":                      `-"READONLY You can't write against a read only replica."`,
		"MGET a b":                        `-"CROSSSLOT Keys in request don't hash to the same slot"`,
		"EXISTS {b}1 {b}2":                `:"0"`,
		"ZUNION 2 foo b":                  `-"CROSSSLOT Keys in request don't hash to the same slot"`,
		"XREAD STREAMS {b}1 b 0 0":        `*"-1"`,
		"XREAD STREAMS foo b 0 0":         `-"CROSSSLOT Keys in request don't hash to the same slot"`,
		"OBJECT ENCODING foo":             fmt.Sprintf(`-"MOVED 12182 127.0.0.1:%d"`, ports[1]),
		"SELECT 1":                        `-"ERR SELECT is not allowed in cluster mode"`,
		"SELECT 0":                        `+"OK"`,
		"CLUSTER REPLICAS x":              `*"0"`,
		"COMMAND GETKEYS ZUNION 2 foo b":  `*2[$"foo" $"b"]`,
		"COMMAND GETKEYS ZUNION 20 foo b": `-"ERR Invalid arguments specified for command"`,
	} {
		if got := p.do(t, strings.Fields(line)...).String(); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	for line, want := range map[string]string{
		"INFO":           "cluster_enabled:1",
		"HELLO":          `$"mode" $"cluster"`,
		"CLUSTER INFO":   "cluster_slots_assigned:16001",
		"CLUSTER NODES":  fmt.Sprintf("127.0.0.1:%d@%d myself,master - 0 0 1 connected 0-8191", ports[0], ports[0]+10000),
		"CLUSTER SLOTS":  fmt.Sprintf(`*3[:"8192" :"16000" *4[$"127.0.0.1" :"%d" $`, ports[1]),
		"CLUSTER SHARDS": `$"slots" *2[:"8192" :"16000"] $"nodes"`,
	} {
		if got := p.do(t, strings.Fields(line)...).String(); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}

// TestServeClusterUsage: wrong nodes and datasets with several databases are refused.
func TestServeClusterUsage(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--cluster-node 127.0.0.1:1,0-5", "--cluster-node goes with --slots"},
		{"--slots 0-99999", `slots "0-99999": want ranges of 0 to 16383`},
		{"--slots 0-5 --cluster-node 127.0.0.1:1,5-9", "slot 5 belongs to two nodes, with slots 0-5 and 5-9"},
		{"--slots 0-5 --cluster-node localhost,6-9", "missing port in address; want HOST:PORT,SLOTS"},
		{"--slots 0-5", "a cluster has only database 0, and this dataset has 0, 1, 5, 15: choose it with --db"},
	} {
		r := kvferry(t, append([]string{"serve", "--port", "0", packedRDB}, strings.Fields(c.args)...)...)
		if r.code == cli.ExitOK || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%s: exit %d, %s", c.args, r.code, r.stderr)
		}
	}
}
