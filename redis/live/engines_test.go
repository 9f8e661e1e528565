package live

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/redistest"
	"kvferry/record"
)

// TestValkey: Valkey 9.1 sends data that only new replicas can read.
func TestValkey(t *testing.T) {
	s := redistest.StartEngine(t, redistest.Engine(t, "Valkey", "9.1"), undelayed...)
	c := s.Client()
	c.Must(t, "HSET", "h", "f", "v", "g", "w")
	c.Must(t, "HPEXPIREAT", "h", "4102444800000", "FIELDS", "1", "f")
	for _, scan := range []bool{false, true} {
		src, found, err := source(t, "redis://"+s.Addr, format.ServerOptions{Scan: scan})
		if err != nil || len(found) > 0 {
			t.Fatalf("scan %v: %v, findings %v", scan, err, found)
		}
		diff(t, map[string]string{"0/h": redistest.Form("hash", 0, []string{"f=v@4102444800000", "g=w"})}, contents(t, src))
	}
}

// passOn proxies connections to a server through one function per direction. Both ends close when either function
// returns.
func passOn(t *testing.T, to string, asked, answered func(dst io.Writer, src io.Reader)) (addr string) {
	t.Helper()
	return redistest.Accept(t, func(in net.Conn) {
		out, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			asked(out, in)
			in.Close()
			out.Close()
		}()
		answered(in, out)
		in.Close()
		out.Close()
		<-ended
	})
}

// copyAll copies until either end closes.
func copyAll(dst io.Writer, src io.Reader) { _, _ = io.Copy(dst, src) }

// answerInfo answers the first commands of every connection.
func answerInfo(words []string, info string) string {
	switch strings.ToUpper(words[0]) {
	case "HELLO":
		return "-ERR unknown command\r\n"
	case "INFO":
		return redistest.Bulk("redis_version:8.0.0\r\nrun_id:1\r\n" + info)
	case "CLUSTER":
		return "-ERR This instance has cluster support disabled\r\n"
	}
	return "+OK\r\n"
}

// TestLinkClosed: if a master closes the link without an error, the message suggests a remedy.
func TestLinkClosed(t *testing.T) {
	t.Parallel() // retries after pauses
	addr := redistest.Serve(t, func(words []string) string {
		if words[0] == "PSYNC" {
			return ""
		}
		return answerInfo(words, "")
	})
	_, err := New().With(new(format.ServerOptions)).Open(context.Background(), "redis://"+addr, &format.OpenOptions{})
	if err == nil || !strings.Contains(err.Error(), "the server closed the connection in each of 5 attempts") ||
		!strings.Contains(err.Error(), "--scan") || strings.Contains(err.Error(), "EOF") {
		t.Error(err)
	}
}

// TestVectorSets: a module value goes to a server that accepts it, and is a loss if the server refuses it.
func TestVectorSets(t *testing.T) {
	path := redistest.Engine(t, "Redis", "8.6")
	from := redistest.StartEngine(t, path, undelayed...)
	c := from.Client()
	for _, key := range []string{"v{a}", "v{b}"} {
		for i := range 40 {
			c.Must(t, "VADD", key, "VALUES", "3", fmt.Sprint(i), "1", fmt.Sprint(i*i), fmt.Sprintf("member%d", i))
		}
		c.Must(t, "VSETATTR", key, "member3", `{"a":1}`)
	}
	c.Must(t, "PEXPIREAT", "v{b}", "4102444800000")
	src, _, err := source(t, "redis://"+from.Addr, format.ServerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	list := records(t, src)
	if len(list) != 2 {
		t.Fatalf("%d records", len(list))
	}
	to, old := redistest.StartEngine(t, path), redistest.Start(t)
	for address, refused := range map[string]bool{"redis://" + to.Addr: false, "redis://" + old.Addr: true} {
		tg := mustOpen(t, address, format.ServerOptions{}, "0")
		for _, m := range list {
			var losses []string
			left := tg.ElementLosses(&m.h, append([]record.Element(nil), m.elems...),
				func(l record.Loss) { losses = append(losses, l.Kind+" "+l.Detail) })
			if refused != (len(left) == 0) || refused != (len(losses) == 1 && strings.Contains(losses[0],
				`module a value of type "vectorset": the server refuses it (ERR Bad data format)`)) || len(tg.Losses(&m.h)) > 0 {
				t.Errorf("%s: %d elements left, losses %q", address, len(left), losses)
			}
		}
		if refused {
			continue
		}
		tg.(*target).verified = true
		tg.ElementLosses(&list[0].h, list[0].elems, func(l record.Loss) {
			if !strings.Contains(l.Avoid, "leave out --verify") {
				t.Errorf("%+v", l)
			}
			refused = true
		})
		tg.(*target).verified = false
		if !refused {
			t.Error("a proof would compare what servers store in another order")
		}
		if n := to.Client().Must(t, "DBSIZE"); n != int64(0) {
			t.Errorf("asking left %v keys", n)
		}
		if err := load(context.Background(), tg, list, "0", 1); err != nil {
			t.Fatal(err)
		}
		check(t, tg, map[string]int64{"0": 2})
	}
	for _, key := range []string{"v{a}", "v{b}"} {
		for _, command := range [][]string{{"VCARD", key}, {"VDIM", key}, {"VEMB", key, "member7"}, {"VGETATTR", key, "member3"},
			{"PEXPIRETIME", key}, {"VSIM", key, "ELE", "member5", "COUNT", "40", "TRUTH"}} {
			want, got := fmt.Sprintf("%q", c.Must(t, command...)), fmt.Sprintf("%q", to.Client().Must(t, command...))
			if want != got {
				t.Errorf("%q: %.300s, want %.300s", command, got, want)
			}
		}
	}
}

// records reads all records of a source.
func records(t *testing.T, src format.Source) (list []made) {
	t.Helper()
	r, err := formattest.Walk(src.Records(context.Background(), "0", record.AllTypes, format.Span{},
		&format.Env{Now: time.Now(), TempDir: t.TempDir()}))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		h, err := r.Next()
		if err == io.EOF {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		m := made{h: *h}
		m.h.Key = bytes.Clone(h.Key)
		for batch := make([]record.Element, 8); ; {
			n, err := r.Read(batch)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range batch[:n] {
				m.elems = append(m.elems, record.Element{Name: bytes.Clone(e.Name), Value: bytes.Clone(e.Value)})
			}
		}
		list = append(list, m)
	}
}
