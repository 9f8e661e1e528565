package compare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/testkit/fake"
	"kvferry/internal/text/patch"
	"kvferry/record"
)

// patchOf compares two datasets and returns the patch operations as lines.
func patchOf(t *testing.T, a, b *fake.Source, change func(*Options)) ([]string, *Result, error) {
	t.Helper()
	var buf bytes.Buffer
	out, err := patch.NewWriter(&buf, patch.Head{From: "a", To: "b"})
	if err != nil {
		t.Fatal(err)
	}
	o := &Options{A: scanOf(a), B: scanOf(b)}
	o.A.TempDir, o.B.TempDir = t.TempDir(), t.TempDir()
	if change != nil {
		change(o)
	}
	res, err := Patch(context.Background(), o, out)
	if err != nil {
		return nil, nil, err
	}
	if _, err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return linesOf(t, &buf), res, nil
}

func linesOf(t *testing.T, in io.Reader) (lines []string) {
	t.Helper()
	r, err := patch.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	for {
		op, h, err := r.Next()
		if err == io.EOF {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%s %s/%s %s %d:", op, h.DB, h.Type, h.Key, h.ExpireMS)
		for batch := make([]record.Element, 2); op == patch.Put; {
			n, err := r.Read(batch)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range batch[:n] {
				line += fmt.Sprintf(" %s=%s", e.Name, e.Value)
			}
		}
		lines = append(lines, line)
	}
}

// server turns a dataset into one on a server.
func server(s *fake.Source) *fake.Source {
	s.Of.Bounds.Place = format.OnServer
	return s
}

// TestPatch checks that a patch puts changed keys as a whole, sets expiries if only they differ, and deletes keys.
func TestPatch(t *testing.T) {
	ms := fake.Now.UnixMilli()
	a := fake.New(
		fake.Rec(record.String, "same", fake.Value("v")),
		fake.Rec(record.String, "ttl", fake.Value("v")).Expires(ms+5000),
		fake.Rec(record.Hash, "h", fake.Pair("b", "2"), fake.Pair("a", "1"), fake.Pair("c", "3"), fake.Pair("d", "4")),
		fake.Rec(record.Set, "new", fake.Member("m")),
		fake.Rec(record.Set, "empty"),
		fake.Rec(record.List, "type", fake.Value("x")),
	)
	b := server(fake.New(
		fake.Rec(record.String, "same", fake.Value("v")),
		fake.Rec(record.String, "ttl", fake.Value("v")),
		fake.Rec(record.Hash, "h", fake.Pair("a", "1"), fake.Pair("b", "other")),
		fake.Rec(record.Set, "old", fake.Member("m")),
		fake.Rec(record.String, "type", fake.Value("x")), // replaced by putting the list
	))
	want := []string{"put 0/hash h 0: b=2 a=1 c=3 d=4", "put 0/set new 0: m=", "delete 0/set old 0:",
		"expire 0/string ttl 1700000005000:", "put 0/list type 0: =x"}
	for _, direct := range []bool{false, true} {
		got, res, err := patchOf(t, a, b, func(o *Options) { o.Direct = direct })
		if err != nil {
			t.Fatal(err)
		}
		sorted := slices.Sorted(slices.Values(got))
		slices.Sort(want)
		if !slices.Equal(sorted, want) {
			t.Errorf("direct %v: got\n%s\nwant\n%s", direct, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if res.Equal || res.Missing != 2 || res.Extra != 2 || res.Differing != 2 || res.Differences != 6 || !res.PlainZero {
			t.Errorf("direct %v: %+v", direct, res)
		}
	}
	if got, res, err := patchOf(t, a, server(fake.New(a.Held["0"]...)), nil); got != nil || !res.Equal || !res.Fingerprints ||
		err != nil {
		t.Errorf("of a copy: %q, %+v, %v", got, res, err)
	}
}

// TestPatchMapped checks that a patch uses the server's names for databases.
func TestPatchMapped(t *testing.T) {
	a, b := fake.Named("0", "bar"), server(fake.Named("0", "2", "3"))
	b.Held["2"][0] = fake.Rec(record.String, "k", fake.Value("other")).In("2")
	got, res, err := patchOf(t, a, b, func(o *Options) { o.Map = dbMap(t, "bar=2") })
	want := []string{"put 2/string k 0: =v1", "delete 3/set s 0:", "delete 3/string k 0:"}
	slices.Sort(got)
	if err != nil || !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) ||
		len(res.Renamed) != 1 {
		t.Errorf("got %q, %v", got, err)
	}
	if got, _, err := patchOf(t, fake.Named("0", "7"), server(fake.Named("0", "1")), nil); err != nil || len(got) != 4 ||
		!strings.HasPrefix(got[0], "put 7/") {
		t.Errorf("a database that the server does not have: %q, %v", got, err)
	}
	got, _, err = patchOf(t, fake.Named("0", "bar"), server(fake.Named("0", "1")), nil)
	if wrong := (*NumberError)(nil); !errors.As(err, &wrong) || wrong.DB != "bar" || len(got) > 0 {
		t.Errorf("a database without a number: %q, %v", got, err)
	}
}

// TestPatchFails checks data that a server cannot hold, and data that changes during the comparison.
func TestPatchFails(t *testing.T) {
	two := fake.New(fake.Rec(record.String, "k", fake.Value("v")), fake.Rec(record.Set, "k", fake.Member("m")))
	if _, _, err := patchOf(t, two, server(fake.New()), nil); err == nil || !strings.Contains(err.Error(), `key "k" has several types`) {
		t.Errorf("a key of two types: %v", err)
	}
	a := fake.New(fake.Rec(record.Set, "a", fake.Member("m")), fake.Rec(record.Set, "b", fake.Member("m")))
	passes := 0
	a.Fail = func(h *record.Header, _ *format.Env) error {
		if string(h.Key) == "b" {
			if passes++; passes == 2 {
				a.Held["0"] = a.Held["0"][:1]
			}
		}
		return nil
	}
	if _, _, err := patchOf(t, a, server(fake.New()), nil); err == nil || !strings.Contains(err.Error(), `key "b" no longer exists`) {
		t.Errorf("a key that is gone: %v", err)
	}
	boom := errors.New("boom")
	for _, direct := range []bool{false, true} {
		for _, first := range []bool{false, true} {
			a, b := fake.Planted()
			bad := map[bool]*fake.Source{true: a, false: b}[first]
			bad.Fail = func(h *record.Header, _ *format.Env) error {
				if string(h.Key) == "set" {
					return boom
				}
				return nil
			}
			if _, _, err := patchOf(t, a, b, func(o *Options) { o.Direct = direct }); !errors.Is(err, boom) {
				t.Errorf("direct %v, first %v: %v", direct, first, err)
			}
			bad.Fail, bad.FailInside = nil, func(*record.Header) error { return boom }
			bad.Held["0"] = append(bad.Held["0"], fake.Rec(record.Set, "zz", fake.Member("1"), fake.Member("2"), fake.Member("3"),
				fake.Member("4")).In("0"))
			if _, _, err := patchOf(t, a, b, func(o *Options) { o.Direct = direct }); !errors.Is(err, boom) {
				t.Errorf("direct %v, first %v, within: %v", direct, first, err)
			}
		}
	}
}

// TestDecisions checks that decisions are read back from their file as they were made, except those without an
// operation.
func TestDecisions(t *testing.T) {
	d, err := newDecisions(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.f.Close()
	for _, x := range []decision{{op: patch.Put, header: record.Header{Type: record.Set, Key: []byte("a")}, elements: 300},
		{op: patch.Delete, header: record.Header{Type: record.String, Key: []byte("b"), ExpireMS: -1}}, {header: record.Header{Type: record.Set, Key: []byte("c")}}} {
		if err := d.add(&x, x.op != patch.Delete); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.writeHeld(); err != nil {
		t.Fatal(err)
	}
	next, err := d.read()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for {
		x, err := next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %s %s %d %d", x.op, x.header.Type, x.header.Key, x.header.ExpireMS, x.elements))
	}
	if want := []string{"put set a 0 300", "delete string b -1 0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := newDecisions("/nowhere/at/all"); err == nil {
		t.Error("without a directory: no error")
	}
}

// TestEmptyKey checks that the empty key is a key like any other where its type changes: a patch that deletes the old
// type after it has put the new one loses the key.
func TestEmptyKey(t *testing.T) {
	for _, types := range [][2]record.Type{{record.String, record.List}, {record.List, record.String}} {
		of := func(key string) (out []string) {
			a, b := fake.New(fake.Rec(types[0], key, fake.Value("x"))), server(fake.New(fake.Rec(types[1], key, fake.Value("y"))))
			lines, _, err := patchOf(t, a, b, nil)
			if err != nil {
				t.Fatal(err)
			}
			diffOf(t, a, b, func(o *Options) {
				o.Tell = func(d *Difference) error {
					lines = append(lines, fmt.Sprintf("%s retyped: %v", told(d), d.Retyped))
					return nil
				}
			})
			return lines
		}
		want := of("k")
		for i := range want {
			want[i] = strings.Replace(want[i], " k", " ", 1)
		}
		if got := of(""); !slices.Equal(got, want) || len(want) != 3 {
			t.Errorf("%s to %s: %q, want %q", types[1], types[0], got, want)
		}
	}
}
