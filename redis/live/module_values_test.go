package live

import (
	"bufio"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/testkit/redistest"
	"kvferry/record"
	"kvferry/redis/live/server"
	"kvferry/redis/rdb"
)

// moduleValue is an empty value of a module type: its opcode, the id of the name, the end.
func moduleValue(name string) record.Element {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	var id uint64
	for _, c := range name {
		id = id<<6 | uint64(strings.IndexRune(letters, c))
	}
	return record.Element{Name: []byte(name), Value: append(binary.BigEndian.AppendUint64([]byte{0x81}, id<<10|1), 0)}
}

// TestOpaque: a server without the module refuses its values, and is asked once; other opaque values are not sent.
func TestOpaque(t *testing.T) {
	s := redistest.Start(t)
	tg := mustOpen(t, "redis://"+s.Addr, format.ServerOptions{}, "0").(*target)
	h := record.Header{Key: []byte("k"), Type: record.Other}
	losses := func(e record.Element) (out []record.Loss) {
		left := tg.ElementLosses(&h, []record.Element{e}, func(l record.Loss) { out = append(out, l) })
		if len(left) > 0 || len(out) != 1 || !out[0].Drops || out[0].Kind != record.LossModule {
			t.Errorf("%s: %d elements left, %+v", e.Name, len(left), out)
		}
		return append(out, record.Loss{})
	}
	value := moduleValue(vectorSet)
	if !rdb.IsModule(&value) {
		t.Fatalf("no value of a module: %x", value.Value)
	}
	for range 2 {
		if l := losses(value)[0]; !strings.Contains(l.Detail, `a value of type "vectorset": the server refuses it (ERR Bad data format)`) {
			t.Error(l.Detail)
		}
	}
	if text := redistest.Text(s.Client().Must(t, "INFO", "commandstats")); !strings.Contains(text, "cmdstat_restore:calls=2,") {
		// one is the probe for RESTORE
		t.Error(text)
	}
	if l := losses(record.Element{Name: []byte("other"), Value: []byte("x")})[0]; !strings.Contains(l.Detail, `"other": no command creates it`) {
		t.Error(l.Detail)
	}
	tg.verified = true
	if l := losses(value)[0]; !strings.Contains(l.Avoid, "leave out --verify") {
		t.Errorf("%+v", l)
	}
	h.Keyless = record.Library
	lib := record.Element{Name: []byte("lib"), Value: []byte("#!lua name=lib\n")}
	if left := tg.ElementLosses(&h, []record.Element{lib}, func(l record.Loss) { t.Errorf("%+v", l) }); len(left) != 1 {
		t.Error("a library is no value of a module")
	}
}

// TestOpaqueReplica: a read-only replica tries no value, and can be compared with one that has it.
func TestOpaqueReplica(t *testing.T) {
	addr := redistest.Serve(t, func(words []string) string {
		if words[0] == "RESTORE" {
			return "-READONLY You can't write against a read only replica.\r\n"
		}
		return answerInfo(words, "")
	})
	s, err := server.Connect(t.Context(), "redis://"+addr, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Client.Close()
	value := moduleValue("graphdata")
	l := newLimits(t.Context(), s, false)
	if !l.takes(&value, func(l record.Loss) { t.Errorf("%+v", l) }) {
		t.Error("the value is left out")
	}
}

// TestNotEmpty: with --verify, the server must be empty.
func TestNotEmpty(t *testing.T) {
	s := redistest.Start(t)
	s.Client().Must(t, "FUNCTION", "LOAD", "#!lua name=lib\nredis.register_function('f', function() return 1 end)")
	tg := mustOpen(t, "redis://"+s.Addr, format.ServerOptions{}, "0").(*target)
	if n := tg.server.Libraries(t.Context()); n != 1 {
		t.Errorf("%d libraries", n)
	}
	tg.verified = true
	tg.to.Libraries, tg.to.Before = 1, map[string]int64{"0": 0}
	if err := tg.databases(); err == nil || !strings.Contains(err.Error(), "function libraries (1), which FLUSHALL keeps") {
		t.Error(err)
	}
	tg.to.Before["0"] = 2
	if err := tg.databases(); err == nil || !strings.Contains(err.Error(), "database 0 holds 2 keys: --verify compares all data") {
		t.Error(err)
	}
	tg.to.Libraries, tg.to.Before = 0, nil
	if err := tg.databases(); err != nil {
		t.Error(err)
	}
}

// TestFetched: the answer about a key is its value, its absence, a redirection, or an error.
func TestFetched(t *testing.T) {
	const whole = "$13\r\n\x00\x01a\x0b\x00\x00\x00\x00\x00\x00\x00\x00\x00\r\n" // a type, a string, a version, no checksum
	for _, x := range []struct {
		answers, want string
		added, moved  bool
	}{
		{answers: ":-1\r\n" + whole, added: true},
		{answers: ":4102444800000\r\n" + whole, added: true},
		{answers: ":-2\r\n$-1\r\n"},
		{answers: ":-1\r\n-MOVED 1 127.0.0.1:1\r\n", moved: true},
		{answers: ":-1\r\n-ASK 1 127.0.0.1:1\r\n", moved: true},
		{answers: "+OK\r\n:-1\r\n+OK\r\n" + whole, added: true},
		{answers: "-MOVED 1 127.0.0.1:1\r\n" + whole, moved: true},
		{answers: "-ASK 1 127.0.0.1:1\r\n$-1\r\n", moved: true},
		{answers: ":-1\r\n-CLUSTERDOWN The cluster is down\r\n", want: "gave up after 1m0s; the server still replies CLUSTERDOWN"},
		{answers: ":-1\r\n-ERR no\r\n", want: "key k: error from the server: ERR no"},
		{answers: "-ERR never\r\n" + whole, want: "key k: error from the server: ERR never"},
		{answers: ":-1\r\n$x\r\n", want: server.ErrAnswer.Error()},
		{answers: ":x\r\n" + whole, want: server.ErrAnswer.Error()},
		{answers: ":-1\r\n$3\r\nabc\r\n", want: "too short"},
		{answers: "", want: "EOF"},
		{answers: ":-1\r\n", want: "EOF"},
		{answers: ":-1\r\n" + whole[:9], want: "EOF"},
		{answers: ":-1\r\n" + whole[:len(whole)-1], want: "EOF"},
	} {
		to, err := newSpool(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		f := &fetcher{copier: &copier{server: &server.Server{Major: 7}, to: to}, ctx: t.Context()}
		before := to.n
		err = f.value(&node{in: bufio.NewReader(strings.NewReader(x.answers))}, []byte("k"))
		if x.want == "" && err != nil || x.want != "" &&
			(err == nil || !strings.Contains(strings.ReplaceAll(err.Error(), `"`, ""), x.want)) {
			t.Errorf("%q: %v, want %q", x.answers, err, x.want)
		}
		var c *record.CorruptError
		if errors.As(err, &c) && string(c.Key) != "k" {
			t.Errorf("%q: an error about key %q", x.answers, c.Key)
		}
		if x.want == "" && (to.n > before) != x.added || (len(f.moved) == 1) != x.moved {
			t.Errorf("%q: %d bytes, moved %v", x.answers, to.n-before, f.moved)
		}
		to.f.Close()
	}
}
