// Package clients reads databases that kvferry serves with github.com/redis/go-redis. It is a module of its own, so
// that the library, which takes longer to compile than any other, is not compiled with kvferry.
package clients

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// kvferry is the binary that is tested.
var kvferry = os.Getenv("KVFERRY")

// golden unpacks a bundled database.
func golden(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	archive, err := filepath.Abs("../../fixtures/golden/" + name + ".tar.gz")
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("tar", "-xzf", archive, "-C", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(dir, name)
}

// serve serves a dataset until the test ends, and returns the address.
func serve(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), kvferry, append([]string{"serve"}, args...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("kvferry serve %q: %v", args, err)
		}
		if _, port, ok := strings.Cut(line, " -p "); ok {
			return net.JoinHostPort("127.0.0.1", strings.TrimSpace(port))
		}
	}
}

// record is a record of a dump.
type record struct {
	Type  string
	Key   text
	Value json.RawMessage
}

// text is a text of a dump, plain or in base64.
type text string

// UnmarshalJSON decodes either form.
func (t *text) UnmarshalJSON(data []byte) error {
	var binary struct{ Base64 string }
	if data[0] != '{' {
		return json.Unmarshal(data, (*string)(t))
	}
	if err := json.Unmarshal(data, &binary); err != nil {
		return err
	}
	b, err := base64.StdEncoding.DecodeString(binary.Base64)
	*t = text(b)
	return err
}

// dump returns the records of a database, without streams.
func dump(t *testing.T, dataset string) (out []record) {
	t.Helper()
	data, err := exec.Command(kvferry, "dump", "--db", "0", "--type", "string,hash,list,set,zset", dataset).Output()
	if err != nil {
		t.Fatal(err)
	}
	for in := json.NewDecoder(bytes.NewReader(data)); in.More(); {
		var r record
		if err := in.Decode(&r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

// value returns the parts of the value in one order.
func (r *record) value() (parts []string, err error) {
	switch r.Type {
	case "string":
		var value text
		err = json.Unmarshal(r.Value, &value)
		return []string{string(value)}, err
	case "hash", "zset":
		var pairs [][2]text
		err = json.Unmarshal(r.Value, &pairs)
		for _, p := range pairs {
			parts = append(parts, string(p[0])+"="+string(p[1]))
		}
	default:
		var list []text
		err = json.Unmarshal(r.Value, &list)
		for _, p := range list {
			parts = append(parts, string(p))
		}
	}
	if r.Type != "list" {
		slices.Sort(parts)
	}
	return parts, err
}

// read returns the parts of a key's value as a client gets them.
func read(ctx context.Context, c redis.Cmdable, typ, key string) (parts []string, err error) {
	switch typ {
	case "string":
		value, err := c.Get(ctx, key).Result()
		return []string{value}, err
	case "hash":
		var all map[string]string
		all, err = c.HGetAll(ctx, key).Result()
		for k, v := range all {
			parts = append(parts, k+"="+v)
		}
	case "zset":
		var all []redis.Z
		all, err = c.ZRangeWithScores(ctx, key, 0, -1).Result()
		for _, z := range all {
			parts = append(parts, z.Member.(string)+"="+strconv.FormatFloat(z.Score, 'g', 17, 64))
		}
	case "set":
		parts, err = c.SMembers(ctx, key).Result()
	case "list":
		return c.LRange(ctx, key, 0, -1).Result()
	default:
		return nil, fmt.Errorf("type %s", typ)
	}
	slices.Sort(parts)
	return parts, err
}

// compare reads every record of a dump with a client.
func compare(t *testing.T, c redis.Cmdable, records []record) {
	t.Helper()
	for _, r := range records {
		want, err := r.value()
		if err != nil {
			t.Fatal(err)
		}
		if r.Type == "zset" { // in one notation
			for i, part := range want {
				at := strings.LastIndexByte(part, '=')
				score, err := strconv.ParseFloat(part[at+1:], 64)
				if err != nil {
					t.Fatal(err)
				}
				want[i] = part[:at+1] + strconv.FormatFloat(score, 'g', 17, 64)
			}
			slices.Sort(want)
		}
		got, err := read(t.Context(), c, r.Type, string(r.Key))
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s %q: %.200q, %v; want %.200q", r.Type, r.Key, got, err, want)
		}
	}
	if len(records) < 100 {
		t.Errorf("only %d records", len(records))
	}
}

// TestClient: a client reads all values of Pika 4 in both versions of the protocol, and finds all keys by SCAN.
func TestClient(t *testing.T) {
	dataset := golden(t, "pika400-basic")
	addr, records := serve(t, "--port", "0", dataset), dump(t, dataset)
	for _, protocol := range []int{2, 3} {
		c := redis.NewClient(&redis.Options{Addr: addr, Protocol: protocol})
		defer c.Close()
		compare(t, c, records)
		found := map[string]bool{}
		keys := c.Scan(t.Context(), 0, "*", 10).Iterator()
		for keys.Next(t.Context()) {
			found[keys.Val()] = true
		}
		n, err := c.DBSize(t.Context()).Result()
		if keys.Err() != nil || err != nil || int64(len(found)) != n {
			t.Errorf("SCAN finds %d of %d keys: %v, %v", len(found), n, keys.Err(), err)
		}
		if err := c.Set(t.Context(), "k", "v", 0).Err(); err == nil || !strings.HasPrefix(err.Error(), "READONLY") {
			t.Errorf("SET: %v", err)
		}
	}
}

// TestClusterClient: two processes with half of the slots each are a cluster to a client that knows one of them.
func TestClusterClient(t *testing.T) {
	dataset := golden(t, "pika400-basic")
	records := dump(t, dataset)
	ports := []int{freePort(t), freePort(t)}
	slots := []string{"0-8191", "8192-16383"}
	for i := range ports {
		serve(t, "--port", strconv.Itoa(ports[i]), "--slots", slots[i], "--cluster-node", fmt.Sprintf("127.0.0.1:%d", ports[i]),
			"--cluster-node", fmt.Sprintf("127.0.0.1:%d,%s", ports[1-i], slots[1-i]), dataset)
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{fmt.Sprintf("127.0.0.1:%d", ports[0])}})
	defer c.Close()
	compare(t, c, records)
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
