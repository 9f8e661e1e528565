package live

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"kvferry/format"
	"kvferry/internal/shared/keyslot"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/redistest"
	"kvferry/record"
	files "kvferry/redis"
	"kvferry/redis/live/server"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/crc64"
	"kvferry/store"
)

// source opens a server as a source and collects the findings.
func source(t testing.TB, address string, o format.ServerOptions) (format.Source, []string, error) {
	t.Helper()
	var found []string
	var done, total, keys, of int64
	src, err := New().With(&o).Open(context.Background(), address,
		&format.OpenOptions{Options: store.Options{TempDir: t.TempDir(),
			Report: func(f record.Finding) { found = append(found, f.Kind) },
			Copied: func(d, n, k, m int64) {
				if done, total, keys, of = d, n, k, m; total != 0 && done > total {
					t.Errorf("%d bytes of %d are copied", done, total)
				}
			}}})
	if err == nil && (done < headLen || total != done ||
		o.Scan && keys == 0 && len(src.Databases()) > 0 && src.Size(src.Databases()[0], record.AllTypes) > 0) {
		t.Errorf("at the end %d bytes of %d are copied, %d keys", done, total, keys)
	}
	if err == nil && of == 0 && len(src.Databases()) > 0 && src.Size(src.Databases()[0], record.AllTypes) > 0 {
		t.Error("nobody knows how many keys there are")
	}
	if err == nil {
		t.Cleanup(func() { src.Close() })
	}
	return src, found, err
}

// contents reads all records of a source; function libraries appear by their names.
func contents(t testing.TB, src format.Source) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, db := range src.Databases() {
		r, err := formattest.Walk(src.Records(context.Background(), db, record.AllTypes, format.Span{},
			&format.Env{Now: time.Now(), TempDir: t.TempDir()}))
		if err != nil {
			t.Fatal(err)
		}
		redistest.Read(t, out, r.Reader)
	}
	return out
}

const library = "#!lua name=lib1\nredis.register_function('f', function() return 1 end)"

// fill loads records and a function library into two databases of a server, and returns their contents.
func fill(t testing.TB, s *redistest.Server, n, large int) map[string]string {
	t.Helper()
	list := data(n, large)
	target, err := New().With(&format.ServerOptions{}).Create(context.Background(), "redis://"+s.Addr,
		&format.CreateOptions{DBs: []string{"0", "3"}, TempDir: t.TempDir()})
	if err == nil {
		err = errors.Join(load(context.Background(), target, list[:n/2], "0", 1),
			load(context.Background(), target, list[n/2:], "3", 1))
	}
	if err != nil {
		t.Fatal(err)
	}
	c := s.Client()
	c.Must(t, "FUNCTION", "LOAD", "REPLACE", library)
	return c.Records(t)
}

// undelayed makes a server send its snapshot to replicas without delay.
var undelayed = []string{"--repl-diskless-sync-delay", "0"}

// TestSource reads a server in each way: as a replica without a file, with one, and key by key.
func TestSource(t *testing.T) {
	s := redistest.Start(t, undelayed...)
	want := fill(t, s, 240, 21000)
	libraries := map[string]string{"0/FUNCTION lib1": redistest.Form("other", 0, []string{library})}
	ways := map[string]func() (string, format.ServerOptions){
		"diskless": func() (string, format.ServerOptions) { return "redis://" + s.Addr, format.ServerOptions{} },
		"disk": func() (string, format.ServerOptions) {
			s.Client().Must(t, "CONFIG", "SET", "repl-diskless-sync", "no")
			return "redis://" + s.Addr, format.ServerOptions{}
		},
		"scan": func() (string, format.ServerOptions) { return "redis://" + s.Addr, format.ServerOptions{Scan: true} },
	}
	for _, way := range []string{"diskless", "disk", "scan"} {
		address, o := ways[way]()
		src, found, err := source(t, address, o)
		if err != nil || len(found) > 0 {
			t.Fatalf("%s: %v, findings %v", way, err, found)
		}
		got := contents(t, src)
		for key := range libraries {
			if got[key] != libraries[key] {
				t.Errorf("%s: %q is %q", way, key, got[key])
			}
			delete(got, key)
		}
		diff(t, want, got)
		if src.Format().Name() != Name || len(want) < 200 {
			t.Errorf("%s: %s, %d records", way, src.Format().Name(), len(want))
		}
		// A database in the address, existing and missing.
		for db, prefix := range map[string]string{"3": "3/", "9": "none"} {
			one, _, err := source(t, address+"/"+db, o)
			if err != nil {
				t.Fatal(err)
			}
			part := maps.Clone(want)
			maps.DeleteFunc(part, func(k, _ string) bool { return !strings.HasPrefix(k, prefix) })
			diff(t, part, contents(t, one))
			if dbs := one.Databases(); !slices.Equal(dbs, []string{db}) {
				t.Errorf("%s: databases %v", way, dbs)
			}
			whole, _ := format.As[format.Sectioned](one)
			spans, err := whole.Sections(db, record.AllTypes, 3)
			if err != nil || len(spans) == 0 || prefix == "3/" && len(one.Keyspaces()) != 1 ||
				prefix == "none" && len(one.Keyspaces()) != 0 {
				t.Errorf("%s: sections %v, %v", way, spans, err)
			}
		}
	}
}

// TestSourceForbidden: if a server accepts no replicas, its keys are read one by one, with a finding.
func TestSourceForbidden(t *testing.T) {
	s := redistest.Start(t)
	want := fill(t, s, 60, 300)
	c := s.Client()
	c.Must(t, "ACL", "SETUSER", "reader", "on", ">pw", "~*", "+@read", "+dump", "+info", "+select", "+ping", "+auth")
	src, found, err := source(t, "redis://reader@"+s.Addr, format.ServerOptions{Password: "pw"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(found, []string{FindScanned, FindFunctions}) {
		t.Errorf("findings %v", found)
	}
	diff(t, want, contents(t, src))
	c.Must(t, "ACL", "SETUSER", "reader", "-dump")
	if _, _, err := source(t, "redis://reader@"+s.Addr, format.ServerOptions{Password: "pw", Scan: true}); err == nil ||
		!strings.Contains(err.Error(), "NOPERM") {
		t.Error(err)
	}
	if _, _, err := source(t, "redis://reader@"+s.Addr, format.ServerOptions{Password: "wrong"}); err == nil ||
		!strings.Contains(err.Error(), "password is wrong") {
		t.Error(err)
	}
}

// cutting proxies connections to a server and cuts each of the first n after a number of bytes.
func cutting(t *testing.T, to string, answered, first int64) (addr string) {
	var cuts atomic.Int64
	return passOn(t, to, copyAll, func(dst io.Writer, src io.Reader) {
		if _, err := io.CopyN(dst, src, answered); err == nil && cuts.Add(1) > first {
			copyAll(dst, src)
		}
	})
}

// TestSourceCut: a broken connection is retried, but not forever.
func TestSourceCut(t *testing.T) {
	t.Parallel() // pauses between attempts
	s := redistest.Start(t, undelayed...)
	want := fill(t, s, 120, 3000)
	for _, scan := range []bool{false, true} {
		src, _, err := source(t, "redis://"+cutting(t, s.Addr, 30_000, 3), format.ServerOptions{Scan: scan})
		if err != nil {
			t.Fatal(err)
		}
		got := contents(t, src)
		delete(got, "0/FUNCTION lib1")
		diff(t, want, got)
	}
	if _, _, err := source(t, "redis://"+cutting(t, s.Addr, 30_000, 1000), format.ServerOptions{}); err == nil {
		t.Error("a server that never answers whole")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := New().Open(ctx, "redis://"+s.Addr, &format.OpenOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestSourceRestarted: a copy fails if the server restarts: it may have lost keys, and SCAN with a cursor of the
// earlier run would skip keys.
func TestSourceRestarted(t *testing.T) {
	for _, scan := range []bool{false, true} {
		s := redistest.Start(t, append(undelayed, "--appendonly", "yes")...)
		fill(t, s, 120, 3000)
		var once sync.Once
		o := &format.OpenOptions{Options: store.Options{TempDir: t.TempDir(), Copied: func(_, _, _, _ int64) {
			once.Do(func() {
				if err := s.Restart(); err != nil {
					t.Error(err)
				}
			})
		}}}
		_, err := New().With(&format.ServerOptions{Scan: scan}).Open(context.Background(),
			"redis://"+cutting(t, s.Addr, 30_000, 1), o)
		want := "redis://"
		if err == nil || !strings.Contains(err.Error(), "restarted while kvferry read it") ||
			strings.Count(err.Error(), want) != 1 {
			t.Errorf("scan %v: %v", scan, err)
		}
	}
}

// TestSourceCluster reads all masters, including keys that have moved to another master.
func TestSourceCluster(t *testing.T) {
	nodes := redistest.StartCluster(t)
	for _, n := range nodes {
		n.Client().Must(t, "CONFIG", "SET", "repl-diskless-sync-delay", "0")
	}
	list := data(200, 2000)
	address := "redis+cluster://" + nodes[2].Addr
	if err := load(context.Background(), mustOpen(t, address, format.ServerOptions{}, "0"), list, "0", 1); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, n := range nodes {
		maps.Copy(all, n.Client().Records(t))
	}
	others := strings.Replace(library, "return 1", "return 2", 1)
	for _, code := range []string{library, others} { // first each master has the library, then one has different code
		for _, n := range nodes {
			n.Client().Must(t, "FUNCTION", "LOAD", "REPLACE", library)
		}
		nodes[1].Client().Must(t, "FUNCTION", "LOAD", "REPLACE", code)
		for _, scan := range []bool{false, true} {
			src, found, err := source(t, address, format.ServerOptions{Scan: scan})
			if err != nil ||
				strings.Join(slices.Compact(found), " ") != map[bool]string{true: FindLibraryDiffers}[code == others] {
				t.Fatalf("scan %v: %v, findings %v", scan, err, found)
			}
			if n := count(t, src, record.Other); n != 1 {
				t.Errorf("scan %v: %d libraries", scan, n)
			}
			got := contents(t, src)
			delete(got, "0/FUNCTION lib1")
			diff(t, all, got)
		}
	}
	src, found, err := source(t, "redis://"+nodes[0].Addr, format.ServerOptions{})
	if err != nil || !slices.Equal(found, []string{FindOneNode}) || len(contents(t, src)) >= len(all) {
		t.Errorf("one node: %v, findings %v", err, found)
	}
	ctx := context.Background()
	s, err := server.Connect(ctx, address, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Client.Close()
	s.Nodes = slices.Repeat([]string{nodes[0].Addr}, keyslot.Count) // a stale slot map
	startMoves(t, nodes, list)
	to, err := newSpool(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer to.f.Close()
	if _, err := to.Write(rdb.AppendDatabase(nil, rdb.Version{Number: 6}, 0, 0, 0)); err != nil {
		t.Fatal(err)
	}
	c := &copier{server: s, to: to, options: &format.OpenOptions{}, copied: new(copied)}
	f := &fetcher{copier: c, ctx: ctx, db: "0", nodes: map[string]*node{}}
	defer f.close()
	for _, m := range list {
		if err := f.add(m.h.Key); err != nil {
			t.Fatal(err)
		}
	}
	moved := 0
	for key := range all {
		if keyslot.Of([]byte(strings.TrimPrefix(key, "0/"))) >= keyslot.Count/3 {
			moved++
		}
	}
	if err := f.ask(f.nodes[nodes[0].Addr]); err != nil || len(f.moved) != moved+onTheirWay || moved < 50 {
		t.Errorf("%d keys have moved, want %d: %v", len(f.moved), moved+onTheirWay, err)
	}
	if err := errors.Join(f.followMoved(), to.finish()); err != nil {
		t.Fatal(err)
	}
	src, err = files.OpenFile(ctx, New(), "moved", to.f, &format.OpenOptions{Options: store.Options{TempDir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	diff(t, all, contents(t, src))
}

// onTheirWay is the number of slots that startMoves migrates.
const onTheirWay = 3

// startMoves migrates keys of several slots from the first server, and leaves the slots migrating: -ASK.
func startMoves(t *testing.T, nodes []*redistest.Server, list []made) {
	t.Helper()
	from, n := nodes[0].Client(), 0
	idOf := func(c *redistest.Client) string { return redistest.Text(c.Must(t, "CLUSTER", "MYID")) }
	seen := map[int]bool{}
	for _, m := range list {
		at := keyslot.Of(m.h.Key)
		if at >= keyslot.Count/3-1 || seen[at] || n == onTheirWay || m.h.ExpireMS != 0 {
			// MIGRATE sends the remaining time of an expiry
			continue
		}
		seen[at] = true
		to := nodes[1+n%2]
		to.Client().Must(t, "CLUSTER", "SETSLOT", strconv.Itoa(at), "IMPORTING", idOf(from))
		from.Must(t, "CLUSTER", "SETSLOT", strconv.Itoa(at), "MIGRATING", idOf(to.Client()))
		host, port, _ := net.SplitHostPort(to.Addr)
		if got := from.Must(t, "MIGRATE", host, port, string(m.h.Key), "0", "5000"); redistest.Text(got) == "NOKEY" {
			t.Fatalf("%s is not there", m.h.Key)
		}
		n++
	}
	if n != onTheirWay {
		t.Fatalf("%d slots", n)
	}
}

// count counts records of a type.
func count(t *testing.T, src format.Source, typ record.Type) (n int) {
	t.Helper()
	for _, db := range src.Databases() {
		r, err := formattest.Walk(src.Records(context.Background(), db, record.Of(typ), format.Span{},
			&format.Env{Now: time.Now(), TempDir: t.TempDir()}))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for {
			_, err := r.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	return n
}

// TestCopied: the total is estimated from the announced size of a server, or from the keys received so far.
func TestCopied(t *testing.T) {
	var got [3]int64
	c := &copied{hosts: 3, of: 90, tell: func(done, total, keys, of int64) {
		got = [3]int64{done, total, keys}
		if of != 90 {
			t.Errorf("%d keys in all", of)
		}
	}}
	for i, step := range []struct {
		change func()
		want   [3]int64
	}{
		{func() {}, [3]int64{0, 0, 0}},
		{func() { c.bytes = 1000 }, [3]int64{1000, 0, 0}},
		{func() { c.keys, c.all = 40, 40000 }, [3]int64{1000, 0, 40}},
		{func() { c.keys, c.all = 10, 40 }, [3]int64{1000, 12000, 10}},
		{func() { c.bytes, c.keys = 3000, 30 }, [3]int64{3000, 12000, 30}},
		{func() { c.size = 5000 }, [3]int64{3000, 15000, 30}},
		{func() { c.bytes = 5000 }, [3]int64{5000, 15000, 30}},
		{c.next, [3]int64{5000, 0, 40}},
		{func() { c.size = 3000 }, [3]int64{5000, 12000, 40}},
		{func() { c.bytes = 8000 }, [3]int64{8000, 12000, 40}},
		{c.next, [3]int64{8000, 0, 40}},
		{func() { c.bytes, c.keys, c.all = 9000, 5, 5 }, [3]int64{9000, 9000, 45}},
		{c.next, [3]int64{9000, 9000, 45}},
	} {
		c.told = time.Time{}
		if i == 7 || i == 10 || i == 12 {
			step.change()
		} else {
			c.note(step.change)
		}
		if got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
	c = &copied{hosts: 1}
	c.note(func() { t.Error("nobody is told") })
}

// TestParts: an RDB file from a server is verified to its end, however it is split.
func TestParts(t *testing.T) {
	body := append([]byte("REDIS0011"), rdb.AppendKey(nil, 0, []byte("key"), 0)...)
	body = append(append(body, 5), "value"...)
	body = rdb.AppendEOF(body)
	file := binary.LittleEndian.AppendUint64(body, crc64.Update(0, body))
	mark := bytes.Repeat([]byte("m"), markLen)
	send := func(size string, sent []byte, one bool) (*spool, error) {
		to, err := newSpool(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { to.f.Close() })
		var r io.Reader = bytes.NewReader(sent)
		if one {
			r = iotest.OneByteReader(r)
		}
		p := newPart(to)
		if err := receive(bufio.NewReaderSize(r, 16), size, p); err != nil {
			return to, err
		}
		return to, p.end()
	}
	for _, one := range []bool{false, true} {
		for size, sent := range map[string][]byte{fmt.Sprint(len(file)): file,
			"EOF:" + string(mark): slices.Concat(file, mark, []byte("*1\r\n"))} {
			to, err := send(size, sent, one)
			if err != nil || to.n != int64(headLen+len(file)-headLen-trailerLen) || to.head.Version != 11 {
				t.Errorf("%s: %d bytes, version %d, %v", size, to.n, to.head.Version, err)
			}
		}
	}
	for n := range len(file) {
		if _, err := send(fmt.Sprint(len(file)), file[:n], false); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes of %d: %v", n, len(file), err)
		}
		if _, err := send(fmt.Sprint(n), file, false); err == nil {
			t.Errorf("%d bytes for a file: no error", n)
		}
		if _, err := send("EOF:"+string(mark), file[:n], false); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes and no mark: %v", n, err)
		}
		damaged := bytes.Clone(file)
		damaged[n] ^= 0x10
		if _, err := send(fmt.Sprint(len(file)), damaged, false); err == nil {
			t.Errorf("byte %d is damaged: no error", n)
		}
	}
	for _, size := range []string{"", "-1", "x", "EOF:short"} {
		if _, err := send(size, file, false); !errors.Is(err, server.ErrAnswer) {
			t.Errorf("size %q: %v", size, err)
		}
	}
}

// TestPartsOfMasters: the data of several masters is concatenated. A template belongs to its own master, and an unknown
// item of one master does not affect the others.
func TestPartsOfMasters(t *testing.T) {
	packed := func(id byte, value string) string {
		return string([]byte{12, 12, 0, 0, 0, 2, 0, id, 1, 0x80 + byte(len(value))}) + value + "\x02\xff"
	}
	hash := func(key, value string) string {
		return "\x20\x01" + key + "\x07\x01" + value + "\x1e\x01" + strings.ToUpper(key) + packed(7, value)
	}
	template := func(name string) string { return "\xf2\x07\x01\x01" + name }
	unknown := "\x3c\x01x\x01y"
	to, err := newSpool(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var parts []int64
	for _, items := range []string{"\xfe\x00" + template("f") + hash("a", "1"),
		template("g") + hash("b", "2") + unknown + "\x00\x01l\x01v", unknown,
		template("h") + hash("c", "3") + expiry + unknown, "\xfe\x00" + hash("d", "4")} {
		parts = append(parts, to.n)
		p := newPart(to)
		body := rdb.AppendEOF([]byte("REDIS0015" + items))
		if _, err := p.Write(binary.LittleEndian.AppendUint64(body, crc64.Update(0, body))); err != nil {
			t.Fatal(err)
		}
		if err := p.end(); err != nil {
			t.Fatal(err)
		}
	}
	if err := to.finish(); err != nil {
		t.Fatal(err)
	}
	found := 0
	src, err := files.OpenFile(t.Context(), New(), "parts", to.f,
		&format.OpenOptions{Options: store.Options{TempDir: t.TempDir(), Report: func(f record.Finding) {
			if f.Kind == record.FindNewer && f.Severity == record.Error {
				found++
			}
		}}}, parts...)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, m := range records(t, src) {
		got += fmt.Sprintf("%s %s=%s %d ", m.h.Key, m.elems[0].Name, m.elems[0].Value, m.h.ExpireMS)
	}
	if want := "A f=1 0 B g=2 0 C h=3 0 D h=4 0 a f=1 0 b g=2 0 c h=3 0 d h=4 0 "; got != want || found != 3 {
		t.Errorf("%s\nwant %s, %d findings", got, want, found)
	}
}

// expiry returns the expiry before a key.
const expiry = "\xfc\x00\x00\x00\x00\x00\x01\x00\x00"

// TestNewerMaster: a master of an unknown version sends values of an unknown type. A full sync loses the rest of its
// data, a scan loses one key.
func TestNewerMaster(t *testing.T) {
	body := "REDIS0015\xfa\x09redis-ver\x068.10.0\xfe\x00\x00\x01a\x011\x3c\x01b\x012\x00\x01c\x013"
	whole := rdb.AppendEOF([]byte(body))
	whole = binary.LittleEndian.AppendUint64(whole, crc64.Update(0, whole))
	addr := redistest.Serve(t, func(words []string) string {
		switch words[0] {
		case "PSYNC":
			return "+FULLRESYNC 0123456789012345678901234567890123456789 0\r\n$" + fmt.Sprint(len(whole)) + "\r\n" + string(whole)
		case "SCAN":
			return "*2\r\n$1\r\n0\r\n*3\r\n" + redistest.Bulk("a") + redistest.Bulk("b") + redistest.Bulk("c")
		case "DUMP":
			typ, value := rdb.Type(0), []byte{1, words[1][0]}
			if words[1] == "b" {
				typ = 60
			}
			return redistest.Bulk(string(rdb.AppendDump(nil, typ, rdb.Version{Number: 15}, value)))
		case "PEXPIRETIME":
			return ":-1\r\n"
		case "FUNCTION":
			return redistest.Bulk(string(rdb.AppendDump(nil, 0xf5, rdb.Version{Number: 15}, []byte("\x0e#!lua name=l\n1"))))
		case "INFO":
			return redistest.Bulk("redis_version:8.10.0\r\nrun_id:1\r\n# Keyspace\r\ndb0:keys=3,expires=0,avg_ttl=0\r\n")
		}
		return answerInfo(words, "")
	})
	for _, scan := range []bool{false, true} {
		src, found, err := source(t, "redis://"+addr, format.ServerOptions{Scan: scan})
		if err != nil {
			t.Fatal(err)
		}
		keys := slices.Sorted(maps.Keys(contents(t, src)))
		want := map[bool]string{false: "[0/a]", true: "[0/FUNCTION l 0/a 0/c]"}[scan]
		if fmt.Sprint(keys) != want || fmt.Sprint(found) != "[newer]" {
			t.Errorf("scan %v: %q, findings %q, want %s", scan, keys, found, want)
		}
	}
}

// copierTo returns a copier without a server.
func copierTo(t *testing.T, to *spool, report func(record.Finding)) *copier {
	t.Helper()
	own, err := server.NewOptions("redis://127.0.0.1:1", nil)
	if err != nil {
		t.Fatal(err)
	}
	o := &format.OpenOptions{}
	o.Options.Report = report
	return &copier{server: &server.Server{Options: own, Major: 7}, to: to, options: o}
}

// TestPayloads: a DUMP payload is verified to its end, and one with unknown data loses only its own key.
func TestPayloads(t *testing.T) {
	version := rdb.Version{Number: 15}
	dump := rdb.AppendDump(nil, 0, version, []byte{5}, []byte("value"))
	send := func(payloads ...[]byte) (*spool, []string, error) {
		to, err := newSpool(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { to.f.Close() })
		var found []string
		c := copierTo(t, to, func(f record.Finding) { found = append(found, fmt.Sprintf("%s %s", f.Kind, f.Key)) })
		f := &fetcher{copier: c, ctx: t.Context()}
		for i, b := range payloads {
			if err := f.readPayload(bytes.NewReader(b), int64(len(b)), []byte{'a' + byte(i)}, 77); err != nil {
				return to, found, err
			}
		}
		return to, found, to.finish()
	}
	if to, _, err := send(dump); err != nil || to.head != (rdb.Header{Version: 15}) {
		t.Errorf("%v, %v", to.head, err)
	}
	if to, _, err := send(rdb.AppendDump(nil, 0, rdb.Version{Number: 80, Valkey: true}, []byte{0})); err != nil ||
		!to.head.Valkey {
		t.Errorf("%v, %v", to.head, err)
	}
	for n := range dump {
		damaged := bytes.Clone(dump)
		damaged[n] ^= 0x10
		if _, _, err := send(damaged); err == nil {
			t.Errorf("byte %d is damaged: no error", n)
		}
		if _, _, err := send(dump[:n]); err == nil {
			t.Errorf("%d bytes: no error", n)
		}
	}
	large := bytes.Repeat([]byte("x"), maxInMemory)
	text := func(b []byte) []byte { return append(rdb.AppendLen(nil, uint64(len(b))), b...) }
	meta := []byte("\xf3\x01meta\x02\x05\x00") // one class, an integer
	withMeta := func(value []byte) []byte {
		b := append(append(bytes.Clone(meta), 0), value...)
		b = binary.LittleEndian.AppendUint16(b, 15)
		return binary.LittleEndian.AppendUint64(b, crc64.Update(0, b))
	}
	to, found, err := send(dump,
		rdb.AppendDump(nil, 60, version, []byte("what is this")), // b
		rdb.AppendDump(nil, 0, version, text(large)),
		rdb.AppendDump(nil, 60, version, text(large)),                   // d
		rdb.AppendDump(nil, 0, version, text(large), []byte("more")),    // e
		rdb.AppendDump(nil, 0, version, []byte{5}, []byte("valuemore")), // f
		withMeta(text([]byte("v"))), withMeta(text(large)),
		rdb.AppendDump(nil, 29, version, []byte("\x01\x01\x01f"), []byte("\x0c\x0c\x00\x00\x00\x02\x00\x01\x01\x81v\x02\xff")),
		dump)
	if err != nil || fmt.Sprint(found) != "[newer b newer d newer e newer f]" {
		t.Fatalf("%v, %q", err, found)
	}
	for _, keep := range []string{"a", "c", "g", "h", "i", "j"} {
		found = append(found, "read "+keep)
	}
	slices.Sort(found)
	src, err := files.OpenFile(t.Context(), New(), "spool", to.f, &format.OpenOptions{Options: store.Options{TempDir: t.TempDir(),
		Report: func(f record.Finding) { found = append(found, f.Kind) }}})
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, m := range records(t, src) {
		keys = append(keys, "read "+string(m.h.Key))
		if m.h.ExpireMS != 77 {
			t.Errorf("%s expires at %d", m.h.Key, m.h.ExpireMS)
		}
	}
	want := "[newer b newer d newer e newer f read a read c read g read h read i read j unread-metadata]"
	if fmt.Sprint(found) != want || fmt.Sprint(keys) != "[read a read c read g read h read i read j]" {
		t.Errorf("%q, %q", found, keys)
	}
}

// TestLibraryPayloads: the answer of FUNCTION DUMP is verified to its end, and unknown data in it loses no keys.
func TestLibraryPayloads(t *testing.T) {
	to, err := newSpool(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer to.f.Close()
	var found []string
	c := copierTo(t, to, func(f record.Finding) { found = append(found, f.Kind) })
	body := rdb.AppendFunction(nil, []byte("#!lua name=l\ncode"))
	whole := func(body []byte) []byte {
		b := binary.LittleEndian.AppendUint16(bytes.Clone(body), 15)
		return binary.LittleEndian.AppendUint64(b, crc64.Update(0, b))
	}
	for _, x := range []struct {
		b     []byte
		found int
		bad   bool
	}{{whole(body), 0, false}, {whole(append(bytes.Clone(body), 0xf0)), 1, false}, {whole([]byte("\x00\x01k\x01v")), 2, false},
		{whole(body)[1:], 2, true}} {
		if err := c.libraries(x.b); (err != nil) != x.bad || len(found) != x.found || to.n != int64(headLen+len(body)) {
			t.Errorf("%q: %v, found %q, %d bytes", x.b, err, found, to.n)
		}
	}
}

// certificate creates a self-signed certificate for 127.0.0.1, and its key, as files.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour),
		NotAfter:    time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &priv.PublicKey, priv)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der},
		key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// TestTLS writes and reads a TLS-only server with a self-signed certificate.
func TestTLS(t *testing.T) {
	t.Parallel() // pauses between attempts
	cert, key := certificate(t)
	s := redistest.StartTLS(t, cert, key, cert)
	list := data(40, 300)
	address := "rediss://" + s.Addr
	if _, err := open(t, address, format.ServerOptions{}, "0"); err == nil || !strings.Contains(err.Error(), "--tls-ca") {
		t.Errorf("a certificate that nobody trusts: %v", err)
	}
	if _, err := open(t, "redis://"+s.Addr, format.ServerOptions{}, "0"); err == nil || !strings.Contains(err.Error(), "TLS there? use rediss://") {
		t.Errorf("without TLS: %v", err)
	}
	if _, err := open(t, "rediss://"+redistest.Start(t).Addr, format.ServerOptions{}, "0"); err == nil ||
		!strings.Contains(err.Error(), "if the server has no TLS, use redis://") {
		t.Errorf("TLS to a server without: %v", err)
	}
	for _, o := range []format.ServerOptions{{CA: cert, Existing: format.Replace}, {Insecure: true, Scan: true,
		Existing: format.Replace}, {CA: cert, Cert: cert, Key: key, Scan: true, Existing: format.Replace}} {
		if err := load(context.Background(), mustOpen(t, address, o, "0"), list, "0", 1); err != nil {
			t.Fatal(err)
		}
		src, _, err := source(t, address, o)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, want(t, list, "0"), contents(t, src))
	}
	for _, o := range []format.ServerOptions{{CA: key}, {CA: "nowhere"}, {Cert: cert, Key: cert}} {
		if _, _, err := source(t, address, o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
	if _, _, err := source(t, "redis://"+s.Addr, format.ServerOptions{CA: cert}); err == nil || !strings.Contains(err.Error(), "write rediss://") {
		t.Error(err)
	}
}
