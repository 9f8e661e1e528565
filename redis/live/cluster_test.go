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
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kvferry/format"
	"kvferry/internal/shared/keyslot"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/redistest"
	"kvferry/record"
	files "kvferry/redis"
	"kvferry/redis/live/server"
	"kvferry/redis/rdb"
	"kvferry/store"
)

// TestCrashedMaster: if a master crashes during a write, or before a read, its replica takes over.
func TestCrashedMaster(t *testing.T) {
	t.Parallel() // waits for the cluster
	nodes := redistest.StartCluster(t)
	replica := redistest.AddReplica(t, nodes[1])
	address := "redis+cluster://" + nodes[1].Addr // also the node in the address
	list := data(400, 21000)
	tg := mustOpen(t, address, format.ServerOptions{}, "0").(*target)
	w, err := formattest.One(tg.Shard(1, "0", record.AllTypes, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	write := func(list []made) {
		t.Helper()
		for _, m := range list {
			err := w.Begin(&m.h)
			for from := 0; from < len(m.elems) && err == nil; from += 100 {
				err = w.Write(m.elems[from:min(from+100, len(m.elems))])
			}
			if err = errors.Join(err, w.End()); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(list[:200])
	if err := w.Writer.(*writer).pipes.Drain(); err != nil {
		t.Fatal(err)
	}
	if n := nodes[1].Client().Must(t, "WAIT", "1", "10000"); n != int64(1) {
		t.Fatalf("%v replicas", n)
	}
	for lag := true; lag; time.Sleep(10 * time.Millisecond) { // WAIT refers to writes of its own connection
		lag = offset(t, nodes[1]) != offset(t, replica)
	}
	nodes[1].Kill()
	write(list[200:])
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, n := range []*redistest.Server{nodes[0], replica, nodes[2]} {
		maps.Copy(all, n.Client().Records(t))
	}
	diff(t, want(t, list, "0"), all)
	if len(tg.server.Crashed) != 1 || !strings.HasPrefix(tg.server.Crashed[0], nodes[1].Addr+", replaced by "+replica.Addr) {
		t.Errorf("%q", tg.server.Crashed)
	}
	check(t, tg, map[string]int64{"0": 400})
	tg.server.Crashed = nil
	var lost *format.LostError
	for _, crashed := range []bool{false, true} {
		if crashed {
			tg.server.Crashed = []string{"one"}
		}
		_, err := tg.Check(context.Background(), map[string]int64{"0": 401}, nil)
		if errors.As(err, &lost) != crashed || err == nil {
			t.Errorf("a key is missing: %v", err)
		}
	}
	tg.to.Before = map[string]int64{"0": 1}
	if _, err := tg.Check(context.Background(), map[string]int64{"0": 400}, nil); !errors.As(err, &lost) {
		t.Errorf("a server that had keys: %v", err)
	}
	src, found, err := source(t, "redis+cluster://"+nodes[0].Addr, format.ServerOptions{})
	if err != nil || len(found) > 0 {
		t.Fatalf("%v, findings %v", err, found)
	}
	diff(t, all, contents(t, src))
}

func offset(t *testing.T, s *redistest.Server) string {
	t.Helper()
	for _, line := range strings.Split(redistest.Text(s.Client().Must(t, "INFO", "replication")), "\r\n") {
		if text, ok := strings.CutPrefix(line, "master_repl_offset:"); ok {
			return text
		}
	}
	t.Fatal("no offset")
	return ""
}

// TestCrashedSource: if a master crashes during a copy, the copy continues from the new master: as a replica, key by
// key, and with only the values left.
func TestCrashedSource(t *testing.T) {
	t.Parallel() // waits for the cluster
	nodes := redistest.StartCluster(t)
	address := "redis+cluster://" + nodes[0].Addr
	list := data(100, 2000)
	if err := load(context.Background(), mustOpen(t, address, format.ServerOptions{}, "0"), list, "0", 1); err != nil {
		t.Fatal(err)
	}
	replica := redistest.AddReplica(t, nodes[2])
	if n := nodes[2].Client().Must(t, "WAIT", "1", "10000"); n != int64(1) {
		t.Fatalf("%v replicas", n)
	}
	for lag := true; lag; time.Sleep(10 * time.Millisecond) {
		lag = offset(t, nodes[2]) != offset(t, replica)
	}
	ways := map[string]func(*copier) error{
		"as a replica": func(c *copier) error { return c.all(t.Context()) },
		"key by key":   func(c *copier) error { return c.scan(t.Context()) },
		"values": func(c *copier) error {
			f := &fetcher{copier: c, ctx: t.Context(), db: "0", nodes: map[string]*node{}}
			defer f.close()
			_, err := c.to.Write(rdb.AppendDatabase(nil, rdb.Version{Number: 6}, 0, 0, 0))
			for _, m := range list {
				err = errors.Join(err, f.add(m.h.Key))
			}
			return errors.Join(err, f.finish())
		},
	}
	copiers := map[string]*copier{}
	for way := range ways {
		s, err := server.Connect(context.Background(), address, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Client.Close()
		runs := s.Runs
		s.Runs = nil
		to, err := newSpool(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer to.f.Close()
		copiers[way] = &copier{server: s, runs: runs, to: to, options: &format.OpenOptions{}, copied: &copied{hosts: 3}}
	}
	nodes[2].Kill()
	var wg sync.WaitGroup
	for way, c := range copiers {
		wg.Go(func() {
			if err := errors.Join(ways[way](c), c.to.finish()); err != nil {
				t.Errorf("%s: %v", way, err)
			}
		})
	}
	wg.Wait()
	for way, c := range copiers {
		src, err := files.OpenFile(t.Context(), New(), way, c.to.f,
			&format.OpenOptions{Options: store.Options{TempDir: t.TempDir()}})
		if err != nil {
			t.Fatalf("%s: %v", way, err)
		}
		diff(t, want(t, list, "0"), contents(t, src))
	}
}

// TestMovedBetween: a slot that comes back between two answers is fetched elsewhere, but not twice: if the connection
// breaks within the value, the key is still in the queue.
func TestMovedBetween(t *testing.T) {
	for answer, want := range map[string]int{"$5\r\nvalue\r\n": 1, "$5\r\nval": 0, "$-1\r\n": 1, "-ASK 1 h:3\r\n": 1, "": 0} {
		f := &fetcher{copier: copierTo(t, nil, nil)}
		n := &node{host: "h:1", in: bufio.NewReader(strings.NewReader("-MOVED 1 h:2\r\n" + answer))}
		if err := f.value(n, []byte("k")); (err == nil) != (want == 1) || len(f.moved) != want {
			t.Errorf("%q: moved %v, %v", answer, f.moved, err)
		}
	}
}

// TestFollow: the new master is looked up again if the first attempt failed.
func TestFollow(t *testing.T) {
	var addr string
	var asked atomic.Int32
	known := make(chan struct{})
	addr = redistest.Serve(t, func(words []string) string {
		switch strings.ToUpper(words[0]) {
		case "CLUSTER":
			<-known
			host, port, _ := net.SplitHostPort(addr)
			return fmt.Sprintf("*1\r\n*3\r\n:0\r\n:%d\r\n*2\r\n%s:%s\r\n", keyslot.Count-1, redistest.Bulk(host), port)
		case "INFO":
			if asked.Add(1) == 1 {
				return "-ERR not now\r\n"
			}
			return redistest.Bulk("run_id:second\r\n")
		}
		return "-ERR unknown command\r\n"
	})
	close(known)
	const crashed = "127.0.0.1:1"
	o, err := server.NewOptions("redis+cluster://"+addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &copier{server: &server.Server{Options: o, Nodes: slices.Repeat([]string{crashed}, keyslot.Count)},
		runs: map[string]string{crashed: "first"}}
	refused := &net.OpError{Op: "dial", Err: errors.New("refused")}
	for _, x := range []struct {
		err  error
		want string
	}{{io.EOF, crashed}, {refused, crashed}, {refused, addr}} {
		if got := c.follow(t.Context(), crashed, x.err); got != x.want {
			t.Errorf("%v: %s, want %s", x.err, got, x.want)
		}
	}
	if want := map[string]string{addr: "second"}; !maps.Equal(c.runs, want) {
		t.Errorf("%q, want %q", c.runs, want)
	}
}

// TestClusterDatabases: a cluster of Valkey 9 may have several databases, which are read in both ways, and written.
func TestClusterDatabases(t *testing.T) {
	nodes := redistest.StartClusterOf(t, redistest.Engine(t, "Valkey", "9.1"), "--cluster-databases", "4")
	address := "redis+cluster://" + nodes[1].Addr
	list := data(100, 2000)
	all := map[string]string{}
	for _, db := range []string{"0", "3"} {
		maps.Copy(all, want(t, list, db))
		if err := load(context.Background(), mustOpen(t, address, format.ServerOptions{}, db), list, db, 2); err != nil {
			t.Fatal(err)
		}
	}
	third := maps.Clone(all)
	maps.DeleteFunc(third, func(key, _ string) bool { return !strings.HasPrefix(key, "3/") })
	for _, scan := range []bool{false, true} {
		for place, want := range map[string]map[string]string{address: all, address + "/3": third} {
			src, found, err := source(t, place, format.ServerOptions{Scan: scan})
			if err != nil || len(found) > 0 {
				t.Fatalf("scan %v: %v, findings %v", scan, err, found)
			}
			diff(t, want, contents(t, src))
		}
	}
	tg := mustOpen(t, address, format.ServerOptions{Existing: format.Replace}, "0", "2", "3")
	if err := load(context.Background(), tg, list, "2", 1); err != nil {
		t.Fatal(err)
	}
	check(t, tg, map[string]int64{"2": 100})
	for _, x := range []struct{ address, db string }{{address, "4"}, {address + "/4", "0"}} {
		_, err := open(t, x.address, format.ServerOptions{Existing: format.Replace}, x.db)
		if err == nil || !strings.Contains(err.Error(), "cluster-databases") {
			t.Errorf("%+v: %v", x, err)
		}
	}
}

// TestMovedMeanwhile: if a slot moves between servers during a copy, a copy of snapshots fails, and one by key lists the
// keys again.
func TestMovedMeanwhile(t *testing.T) {
	nodes := redistest.StartCluster(t)
	slices.SortFunc(nodes, func(x, y *redistest.Server) int { return strings.Compare(x.Addr, y.Addr) })
	address := "redis+cluster://" + nodes[0].Addr
	list := data(60, 2000)
	if err := load(t.Context(), mustOpen(t, address, format.ServerOptions{}, "0"), list, "0", 1); err != nil {
		t.Fatal(err)
	}
	to, err := newSpool(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer to.f.Close()
	c := copierTo(t, to, nil)
	if c.server, err = server.Connect(t.Context(), address, nil, 0); err != nil {
		t.Fatal(err)
	}
	defer c.server.Client.Close()
	c.runs, c.copied = c.server.Runs, &copied{hosts: 3}
	var key []byte
	for _, m := range list {
		if c.server.Owner(m.h.Key) == nodes[1].Addr {
			key = m.h.Key
		}
	}
	asked := 0
	got := map[string]bool{}
	err = c.everywhere(t.Context(), func(host string) error {
		if asked++; asked == 2 {
			giveSlot(t, nodes, key, 1, 0)
		}
		client := c.server.To(host, "0")
		defer client.Close()
		return client.Scan(t.Context(), "*", 1000, func(keys [][]byte) error {
			for _, key := range keys {
				got[string(key)] = true
			}
			return nil
		})
	})
	if err != nil || asked != 6 || len(got) != len(list) || !got[string(key)] {
		t.Errorf("%d lists of keys, %d of %d keys: %v", asked, len(got), len(list), err)
	}
	giveSlot(t, nodes, key, 0, 2)
	if err := c.all(t.Context()); err == nil || !strings.Contains(err.Error(), "1 slot moved between servers of the cluster") {
		t.Error(err)
	}
}

// giveSlot moves the slot of a key from one server to another.
func giveSlot(t *testing.T, nodes []*redistest.Server, key []byte, from, to int) {
	t.Helper()
	at, id := strconv.Itoa(keyslot.Of(key)), redistest.Text(nodes[to].Client().Must(t, "CLUSTER", "MYID"))
	nodes[to].Client().Must(t, "CLUSTER", "SETSLOT", at, "IMPORTING", redistest.Text(nodes[from].Client().Must(t, "CLUSTER", "MYID")))
	nodes[from].Client().Must(t, "CLUSTER", "SETSLOT", at, "MIGRATING", id)
	host, port, _ := net.SplitHostPort(nodes[to].Addr)
	for _, key := range nodes[from].Client().Strings(t, "CLUSTER", "GETKEYSINSLOT", at, "100") {
		nodes[from].Client().Must(t, "MIGRATE", host, port, key, "0", "5000")
	}
	for _, i := range []int{to, from, 3 - to - from} {
		nodes[i].Client().Must(t, "CLUSTER", "SETSLOT", at, "NODE", id)
	}
}
