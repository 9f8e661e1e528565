package aof

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"kvferry/record"
)

// all reads commands until the first error, as texts.
func all(c *Commands) (out []string, err error) {
	for {
		args, err := c.Next()
		if err != nil {
			return out, err
		}
		out = append(out, string(bytes.Join(args, []byte("|"))))
	}
}

const good = "*1\r\n$4\r\nPING\r\n#TS:1700000000\r\n*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\na\r\nb\r\n*1\n$2\nxyZZ"

func TestCommands(t *testing.T) {
	c := NewCommands(strings.NewReader(good), "f", 0, int64(len(good)))
	got, err := all(c)
	if want := "PING,SET||a\r\nb,xy"; strings.Join(got, ",") != want || err != io.EOF {
		t.Errorf("got %q, %v", got, err)
	}
	if c.start != int64(len(good)) {
		t.Errorf("the end is at %d", c.start)
	}
}

// TestCut takes every strict prefix: the commands before the cut are read, and the error names the end of the last
// complete one.
func TestCut(t *testing.T) {
	starts := []int64{0, 14, 59, int64(len(good))}
	for n := range len(good) {
		for _, size := range []int64{-1, int64(n)} {
			c := NewCommands(strings.NewReader(good[:n]), "f", 100, size+100*min(size+1, 1))
			got, err := all(c)
			var cut *CutError
			switch {
			case errors.Is(err, io.EOF):
				if last := good[n-min(n, 1) : n]; n > 0 && last != "\n" {
					t.Errorf("%d bytes: no error", n)
				}
			case errors.As(err, &cut):
				if cut.End != int64(100+n) || cut.Off > cut.End || cut.Off < 100+starts[len(got)] {
					t.Errorf("%d bytes: %d commands, then %+v", n, len(got), cut)
				}
			default:
				t.Errorf("%d bytes: %v", n, err)
			}
		}
	}
}

func TestCommandsDamaged(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"PING\r\n", `f: offset 0: line: found 'P'; a command begins with *`},
		{"*1\r\n$4\r\nPING\r\n\x00\x00", `f: offset 14: line: found '\x00'; a`},
		{"\n", "offset 0: line: empty line; a command begins with *"},
		{"*1\r\n\r\n", "offset 4: line: empty line; an argument begins with $"},
		{"*0\r\n", "number of arguments: it is 0"},
		{"*-1\r\n", `"-1" is not a number`},
		{"*1\r\n:4\r\n", `offset 4: line: found ':'; an argument begins with $`},
		{"*1\r\n$-1\r\n", `length of an argument: "-1" is not a number`},
		{"*1\r\n$99999999999\r\n", "length of an argument: 99999999999; the limit is"},
		{"*" + strings.Repeat("1", 200) + "\r\n", "line: longer than 127 bytes"},
		{"#" + strings.Repeat("x", 200) + "\r\n", "line: longer than 127 bytes"},
	} {
		_, err := all(NewCommands(strings.NewReader(c.in), "f", 0, -1))
		var corrupt *record.CorruptError
		if !errors.As(err, &corrupt) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.in, err)
		}
	}
}

// TestClaims reads lengths beyond the end: memory grows with the actual bytes, not with the length.
func TestClaims(t *testing.T) {
	for _, size := range []int64{-1, 30} {
		in := "*2000000000\r\n$4000000000\r\nabc"
		got := testing.AllocsPerRun(1, func() {
			c := NewCommands(strings.NewReader(in), "f", 0, size)
			if _, err := c.Next(); err == nil {
				t.Error("no error")
			}
			if cap(c.buf) > 2<<20 {
				t.Errorf("%d bytes for an argument of 3", cap(c.buf))
			}
		})
		if got > 20 {
			t.Errorf("%v allocations", got)
		}
	}
}

func FuzzCommands(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte("*2\r\n$6\r\nSELECT\r\n$1\r\n0\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := NewCommands(bytes.NewReader(data), "f", 0, int64(len(data)))
		total := 0
		for {
			args, err := c.Next()
			if err != nil {
				break
			}
			for _, a := range args {
				total += len(a)
			}
		}
		if total > len(data) {
			t.Errorf("%d bytes of arguments in %d", total, len(data))
		}
	})
}

func TestManifest(t *testing.T) {
	m, err := DecodeManifest([]byte("# a remark\nfile appendonly.aof.2.base.rdb seq 2 type b\n" +
		"file appendonly.aof.1.incr.aof seq 1 type h\n" +
		"FILE \"a \\x41\\n\\\"q\" seq 2 type i startoffset 5859 endoffset 9 other x\n" +
		"file 'it\\'s' seq 3 type incr\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range m.Loaded() {
		names = append(names, p.Name)
	}
	if got := strings.Join(names, ","); got != "appendonly.aof.2.base.rdb,a A\n\"q,it's" {
		t.Errorf("loaded %q", got)
	}
	again, err := DecodeManifest(m.Append(nil))
	if err != nil || len(again.Parts) != len(m.Parts) {
		t.Fatalf("%v %v", again, err)
	}
	for i := range m.Parts {
		if m.Parts[i] != again.Parts[i] {
			t.Errorf("%v became %v", m.Parts[i], again.Parts[i])
		}
	}
}

func TestManifestRefused(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", "names no file"},
		{"# only\n", "names no file"},
		{"file a seq 1 type b\nfile c seq 2 type b\n", "offset 20: manifest: c: a second base file"},
		{"file a seq 2 type i\nfile c seq 2 type i\n", "seq 2 is not greater than the previous one"},
		{"file a seq 0 type i\n", "not 0"},
		{"file a seq 1 type x\n", `type 'x'`},
		{"file d/a seq 1 type b\n", "is a path"},
		{"file a seq 1\n", "4 words"},
		{"file a seq 1 type b x\n", "7 words"},
		{"\n", "0 words"},
		{"file \"a seq 1 type b\n", "a quote is not closed"},
		{"file \"a\"b seq 1 type b\n", "a quote is not closed"},
		{"file a seq x type b\n", "is not a number"},
		{"file a seq 1 type b", "has no end"},
		{"file " + strings.Repeat("a", 1100) + " seq 1 type b\n", "has no end within 1,023"},
	} {
		_, err := DecodeManifest([]byte(c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.in, err)
		}
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte("file appendonly.aof.2.base.rdb seq 2 type b\nfile 'it\\'s' seq 3 type i\n"))
	f.Add([]byte("file \"a\\x00\\\\\" seq 2 type i\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := DecodeManifest(data)
		if err != nil {
			return
		}
		again, err := DecodeManifest(m.Append(nil))
		if err != nil || len(again.Parts) != len(m.Parts) {
			t.Fatalf("%q: %v", m.Append(nil), err)
		}
		for i := range m.Parts {
			if m.Parts[i] != again.Parts[i] {
				t.Errorf("%v became %v", m.Parts[i], again.Parts[i])
			}
		}
	})
}
