package resp

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
)

// read returns the requests of a stream, each as its arguments joined by |, and the error that ends it.
func read(in string, limit int) (out []string, err error) {
	for _, slow := range []bool{false, true} {
		src := io.Reader(strings.NewReader(in))
		if slow {
			src = iotest.OneByteReader(src)
		}
		r := NewReader(src)
		r.Limit = limit
		out = nil
		for {
			var args [][]byte
			if args, err = r.Next(); err != nil {
				break
			}
			out = append(out, string(bytes.Join(args, []byte("|"))))
		}
		r.Close()
	}
	return out, err
}

func TestRequests(t *testing.T) {
	for _, c := range []struct{ in, want, err string }{
		{"*1\r\n$4\r\nPING\r\n", "PING", "EOF"},
		{"*2\r\n$3\r\nGET\r\n$2\r\n\r\n\r\n*1\r\n$1\r\na\r\n", "GET|\r\n,a", "EOF"},
		{"PING\r\n\r\n  get  a\tb \nx\n", "PING,get|a|b,x", "EOF"},
		{"*0\r\n*-1\r\nPING\r\n", "PING", "EOF"},
		{`set "a \"\x41\n\r\t\b\a\\" 'b \'"' ""` + "\r\n", "set|a \"A\n\r\t\b\a\\|b '\"|", "EOF"},
		{"GET\va\r\n\v\fGET a\fb\v\n", "GET\va,GET|a\fb\v", "EOF"},
		{"GET \"a\"\v'b'\f\n", "GET|a|b", "EOF"},
		{"GET a\x00b c\r\n\x00GET a\r\nx\n", "GET|a,x", "EOF"},
		{"GET \"a\x00\"\r\n", "", "Protocol error: unbalanced quotes in request"},
		{"a\"b c\"\r\n", "ab c", "EOF"},
		{"*1\r\n$4\r\nPI", "", "unexpected EOF"},
		{"PING", "", "unexpected EOF"},
		{"\"open\r\n", "", "Protocol error: unbalanced quotes in request"},
		{"\"a\"b\r\n", "", "Protocol error: unbalanced quotes in request"},
		{"*x\r\n", "", "Protocol error: invalid multibulk length"},
		{"*2000000\r\n", "", "Protocol error: invalid multibulk length"},
		{"*99999999999999999999999999\r\n", "", "Protocol error: invalid multibulk length"},
		{"*1\r\n:1\r\n", "", "Protocol error: expected '$', got ':'"},
		{"*1\r\n$-1\r\n", "", "Protocol error: invalid bulk length"},
		{"*1\r\n$1000000000\r\n", "", "Protocol error: invalid bulk length"},
		{"*2\r\n$600\r\n" + strings.Repeat("x", 600) + "\r\n$600\r\n", "", "Protocol error: invalid bulk length"},
		{"*" + strings.Repeat("1", MaxLine+2), "", "Protocol error: too big mbulk count string"},
		{strings.Repeat("x", MaxLine+2), "", "Protocol error: too big inline request"},
	} {
		got, err := read(c.in, 1000)
		if strings.Join(got, ",") != c.want || err == nil || err.Error() != c.err {
			t.Errorf("%.40q: %q, %v; want %q, %s", c.in, got, err, c.want, c.err)
		}
	}
}

// TestReaderMemory: a request takes memory as its bytes arrive, and what it takes above the free 64 KiB is announced and
// given back.
func TestReaderMemory(t *testing.T) {
	held, most := 0, 0
	full := errors.New("full")
	r := NewReader(strings.NewReader("*1\r\n$1000000\r\n" + strings.Repeat("x", 1e6) + "\r\n*1\r\n$1\r\na\r\n*1\r\n$1000000\r\nxx"))
	r.Limit = 2e6
	r.Grow = func(n int) error { held += n; most = max(most, held); return nil }
	r.Shrink = func(n int) { held -= n }
	for _, want := range []int{1e6, 1} {
		if args, err := r.Next(); err != nil || len(args[0]) != want {
			t.Fatal(len(args), err)
		}
	}
	if held != 0 || most < 9e5 || most > 3e6 {
		t.Errorf("%d bytes held, at most %d", held, most)
	}
	if _, err := r.Next(); err != io.ErrUnexpectedEOF || held != 0 {
		t.Errorf("%v, %d bytes held for two bytes of a request", err, held)
	}
	r = NewReader(strings.NewReader("*1\r\n$1000000\r\n" + strings.Repeat("x", 1e6)))
	r.Limit, r.Grow = 2e6, func(int) error { return full }
	if _, err := r.Next(); err != full {
		t.Error(err)
	}
	r.Close()
}

// FuzzReader: any bytes are requests or an error, and requests that are written anew are read the same.
func FuzzReader(f *testing.F) {
	for _, s := range []string{"*1\r\n$4\r\nPING\r\n", "PING a 'b'\r\n", "*2\r\n$1\r\na\r\n$0\r\n\r\n", "*1\r\n$9", "\"\\x4\"\n", "*-1\r\n*3\r\n$1\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r := NewReader(bytes.NewReader(in))
		r.Limit = 1 << 16
		for {
			args, err := r.Next()
			if err != nil {
				return
			}
			var again bytes.Buffer
			w := NewWriter(&again)
			w.Header(Array, int64(len(args)))
			for _, a := range args {
				w.Bulk(a)
			}
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
			same, err := NewReader(&again).Next()
			if err != nil || !bytes.Equal(bytes.Join(same, []byte{0}), bytes.Join(args, []byte{0})) {
				t.Fatalf("%q: %q, %v", args, same, err)
			}
		}
	})
}

// TestReplies are the golden bytes of every kind of reply in both versions.
func TestReplies(t *testing.T) {
	for _, c := range []struct {
		write      func(w *Writer)
		two, three string
	}{
		{func(w *Writer) { w.OK() }, "+OK\r\n", "+OK\r\n"},
		{func(w *Writer) { w.Bulk([]byte("a\r\n")) }, "$3\r\na\r\n\r\n", "$3\r\na\r\n\r\n"},
		{func(w *Writer) { w.Int(-7) }, ":-7\r\n", ":-7\r\n"},
		{func(w *Writer) { w.Bool(true); w.Bool(false) }, ":1\r\n:0\r\n", "#t\r\n#f\r\n"},
		{func(w *Writer) { w.Null() }, "$-1\r\n", "_\r\n"},
		{func(w *Writer) { w.NullArray() }, "*-1\r\n", "_\r\n"},
		{func(w *Writer) { w.Double(0.1) }, "$19\r\n0.10000000000000001\r\n", ",0.10000000000000001\r\n"},
		{func(w *Writer) { w.Double(math.Inf(-1)) }, "$4\r\n-inf\r\n", ",-inf\r\n"},
		{func(w *Writer) { w.Double(math.Inf(1)); w.Double(math.NaN()) }, "$3\r\ninf\r\n$3\r\nnan\r\n", ",inf\r\n,nan\r\n"},
		{func(w *Writer) { w.Double(1e300) }, "$23\r\n1.0000000000000001e+300\r\n", ",1.0000000000000001e+300\r\n"},
		{func(w *Writer) { w.Verbatim("a") }, "$1\r\na\r\n", "=5\r\ntxt:a\r\n"},
		{func(w *Writer) { w.Error("ERR a\r\nb") }, "-ERR a  b\r\n", "-ERR a  b\r\n"},
		{func(w *Writer) { w.Header(Map, 1); w.Header(Set, 2) }, "*2\r\n*2\r\n", "%1\r\n~2\r\n"},
		{func(w *Writer) { w.BulkLen(2); w.Piece([]byte("ab\r\n")) }, "$2\r\nab\r\n", "$2\r\nab\r\n"},
	} {
		for proto, want := range map[int]string{2: c.two, 3: c.three} {
			var out bytes.Buffer
			w := NewWriter(&out)
			w.Proto = proto
			c.write(w)
			if err := w.Flush(); err != nil || out.String() != want || w.Written() != int64(len(want)) {
				t.Errorf("version %d: %q, want %q (%v)", proto, out.String(), want, err)
			}
		}
	}
}

// TestAggregate: a reply of any size has its length first, and an error follows no part of it.
func TestAggregate(t *testing.T) {
	bad := errors.New("damaged")
	for _, n := range []int{0, 3, 100_000} {
		var out, want bytes.Buffer
		calls := 0
		w, plain := NewWriter(&out), NewWriter(&want)
		emit := func(w *Writer) func() (int64, error) {
			return func() (int64, error) {
				calls++
				for i := range n {
					w.Int(int64(i))
				}
				return int64(n), nil
			}
		}
		if err := w.Aggregate(Array, emit(w)); err != nil {
			t.Fatal(err)
		}
		if passes := calls; passes > 2 || passes > 1 && n < 1000 {
			t.Errorf("%d elements: %d passes", n, passes)
		}
		plain.Header(Array, int64(n))
		emit(plain)()
		if err := errors.Join(w.Flush(), plain.Flush()); err != nil || !bytes.Equal(out.Bytes(), want.Bytes()) {
			t.Errorf("%d elements: %d bytes, want %d (%v)", n, out.Len(), want.Len(), err)
		}
		out.Reset()
		if err := w.Aggregate(Array, func() (int64, error) { emit(w)(); return 0, bad }); err != bad || w.Flush() != nil || out.Len() > 0 {
			t.Errorf("%v after %d bytes of a reply", err, out.Len())
		}
	}
}

// TestAggregateInside: an aggregate within another one, small or large.
func TestAggregateInside(t *testing.T) {
	for _, n := range []int{2, 50_000} {
		var out bytes.Buffer
		w := NewWriter(&out)
		inner := func() (int64, error) {
			for range n {
				w.OK()
			}
			return int64(n), nil
		}
		err := w.Aggregate(Array, func() (int64, error) {
			w.BulkString("a")
			return 2, w.Aggregate(Array, inner)
		})
		if err = errors.Join(err, w.Flush()); err != nil {
			t.Fatal(err)
		}
		var want bytes.Buffer
		plain := NewWriter(&want)
		plain.Header(Array, 2)
		plain.BulkString("a")
		plain.Header(Array, int64(n))
		plain.Piece(bytes.Repeat([]byte("+OK\r\n"), n))
		if plain.Flush(); !bytes.Equal(out.Bytes(), want.Bytes()) {
			t.Errorf("%d: %d bytes, want %d", n, out.Len(), want.Len())
		}
	}
}

// TestChanged: a second pass that fails or differs ends the connection.
func TestChanged(t *testing.T) {
	for _, again := range []func() (int64, error){
		func() (int64, error) { return 1, nil }, func() (int64, error) { return 0, io.ErrUnexpectedEOF }} {
		w := NewWriter(io.Discard)
		first := true
		err := w.Aggregate(Array, func() (int64, error) {
			if !first {
				return again()
			}
			first = false
			w.Bulk(make([]byte, 2*MaxHeld))
			return 2, nil
		})
		if err == nil || w.Err() == nil || w.Flush() == nil {
			t.Errorf("%v, %v", err, w.Err())
		}
	}
}

// TestExpectNested: an aggregate within one whose length is expected is held until its own length is known.
func TestExpectNested(t *testing.T) {
	for _, size := range []int{10, 1000, MaxHeld} {
		var want, got bytes.Buffer
		for _, expect := range []bool{false, true} {
			out := &want
			if expect {
				out = &got
			}
			w := NewWriter(out)
			err := w.Aggregate(Array, func() (int64, error) {
				if expect {
					w.Expect(20)
				}
				for range 20 {
					if err := w.Aggregate(Array, func() (int64, error) {
						for range 10 {
							w.Bulk(make([]byte, size))
						}
						return 10, nil
					}); err != nil {
						return 0, err
					}
				}
				return 20, nil
			})
			if err != nil || w.Flush() != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(want.Bytes(), got.Bytes()) {
			t.Errorf("elements of %d bytes: %d bytes, want %d", size, got.Len(), want.Len())
		}
	}
}
