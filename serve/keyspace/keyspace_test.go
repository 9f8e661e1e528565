package keyspace_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"kvferry/ardb"
	"kvferry/blackwidow"
	"kvferry/fixtures"
	"kvferry/floyd"
	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/pass/filter"
	"kvferry/internal/testkit/formattest"
	"kvferry/kvrocks"
	"kvferry/nemo"
	"kvferry/record"
	"kvferry/serve/command"
	"kvferry/serve/keyspace"
)

// put is a record to write: a type, a key and elements. A sorted set's members have their positions as scores.
func put(typ record.Type, key string, elems ...string) *one {
	r := &one{h: record.Header{DB: "0", Type: typ, Key: []byte(key), Len: int64(len(elems)), ByName: true}}
	for i, e := range elems {
		switch typ {
		case record.String, record.List:
			r.elems = append(r.elems, record.Element{Value: []byte(e)})
		case record.ZSet:
			r.elems = append(r.elems, record.Element{Name: []byte(e), Score: float64(i)})
		case record.Set:
			r.elems = append(r.elems, record.Element{Name: []byte(e)})
		default:
			r.elems = append(r.elems, record.Element{Name: []byte(e), Value: []byte("value of " + e)})
		}
	}
	return r
}

// one is a cursor of one record.
type one struct {
	h     record.Header
	elems []record.Element
	began bool
}

func (r *one) Next() (*record.Header, error) {
	if r.began {
		return nil, io.EOF
	}
	r.began = true
	return &r.h, nil
}

func (r *one) Read(dst []record.Element) (int, error) {
	n := copy(dst, r.elems)
	if r.elems = r.elems[n:]; n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (r *one) Heavy() bool              { return false }
func (r *one) End(*record.Record) error { return nil }
func (r *one) Close() error             { return nil }

// open writes records, in order of their keys, and opens the keyspace.
func open(t testing.TB, f format.Format, sel *filter.Selection, change func(*formattest.Memory), records ...*one) *keyspace.Keyspace {
	t.Helper()
	m := formattest.NewMemory(t, f)
	dst := m.Create(t, format.CreateOptions{TempDir: t.TempDir(), Version: 1, DBs: []string{"0"}, Now: fixtures.Clock})
	src := formattest.Fill(t, dst, 1<<20, func(types record.TypeSet) record.Reader {
		var out []record.Reader
		for _, r := range records {
			if types.Has(r.h.Type) {
				out = append(out, record.Gather(r, nil))
			}
		}
		return record.Merge(out...)
	})
	if change != nil {
		change(m)
	}
	k, err := keyspace.New(context.Background(), &inspect.Scan{Source: src, Selection: sel, Now: fixtures.Clock, Memory: 16 << 20, TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// read opens a key and shows its type and elements, "none" or the error.
func read(k *keyspace.Keyspace, key string, how command.Reading) string {
	v, err := k.Open(context.Background(), k.Databases()[0], []byte(key), how)
	if err != nil {
		return err.Error()
	}
	if v == nil {
		return "none"
	}
	defer v.Close()
	out := []string{v.Header().Type.String()}
	var batch [3]record.Element
	for {
		n, err := v.Read(batch[:])
		for _, e := range batch[:n] {
			out = append(out, string(e.Name)+string(e.Value))
		}
		if err == io.EOF {
			return strings.Join(out, " ")
		}
		if err != nil {
			return strings.Join(append(out, err.Error()), " ")
		}
	}
}

func some(prefix string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("%s%04d", prefix, i))
	}
	return out
}

func at(t record.Type, name string, index int64, only bool) command.Reading {
	how := command.Reading{Type: t, Start: &record.Start{Index: index}, Only: only}
	if name != "" {
		how.Start.Name = []byte(name)
	}
	return how
}

// TestOpen: a Reading has the same result whether the source seeks its start or not.
func TestOpen(t *testing.T) {
	for _, f := range []format.Format{nemo.New(), blackwidow.New(), ardb.New()} {
		k := open(t, f, nil, nil, put(record.Hash, "h", some("f", 200)...), put(record.List, "l", some("e", 200)...), put(record.Set, "s", some("m", 200)...),
			put(record.String, "t", "text"), put(record.ZSet, "z", some("m", 200)...))
		for _, x := range []struct {
			key  string
			how  command.Reading
			want string
		}{
			{"t", command.Reading{}, "string text"}, {"none", command.Reading{}, "none"}, {"t", at(record.Hash, "x", 0, true), "string text"},
			{"h", at(record.Hash, "f0150", 0, true), "hash f0150value of f0150"}, {"h", at(record.Hash, "f", 0, true), "hash"}, {"h", at(record.Hash, "x", 0, true), "hash"},
			{"none", at(record.Hash, "x", 0, true), "none"}, {"s", at(record.Hash, "f0150", 0, true), "set " + strings.Join(some("m", 200), " ")},
			{"s", at(record.Set, "m0199", 0, false), "set m0199"}, {"z", at(record.ZSet, "m0007", 0, true), "zset m0007"},
			{"l", at(record.List, "", 197, false), "list e0197 e0198 e0199"}, {"l", at(record.List, "", 3, true), "list e0003"},
			{"l", at(record.List, "", 200, true), "list"}, {"l", at(record.List, "", 1<<40, false), "list"},
		} {
			if got := read(k, x.key, x.how); got != x.want {
				t.Errorf("%s: %s %+v: %.100s, want %.100s", f.Name(), x.key, x.how, got, x.want)
			}
		}
	}
}

// TestSelectedBySize: a lookup of an element sees a record exactly if a read of all of it does, although the elements
// from its start on weigh too little, or little enough.
func TestSelectedBySize(t *testing.T) {
	const n = 600 // more than a page of a scan
	for name, x := range map[string]struct {
		sel      filter.Selection
		selected bool
	}{
		"all":             {filter.Selection{}, true},
		"enough elements": {filter.Selection{MinElements: 5}, true},
		"enough bytes":    {filter.Selection{MinBytes: 2500}, true},
		"few elements":    {filter.Selection{MinElements: n + 1}, false},
		"many bytes":      {filter.Selection{MaxBytes: 2000}, false},
	} {
		for _, f := range []format.Format{blackwidow.New(), nemo.New()} {
			k := open(t, f, &x.sel, nil, put(record.Hash, "h", some("f", n)...), put(record.List, "l", some("e", n)...), put(record.Set, "s", some("m", n)...))
			if k.Seeks(record.Hash) != (name == "all") {
				t.Errorf("%s: %s seeks fields: %t", name, f.Name(), k.Seeks(record.Hash))
			}
			for _, l := range []struct {
				key  string
				how  command.Reading
				want string
			}{
				{"h", at(record.Hash, "f0599", 0, true), "hash f0599value of f0599"}, {"l", at(record.List, "", 598, true), "list e0598"},
				{"s", at(record.Set, "m0598", 0, true), "set m0598"},
			} {
				if !x.selected {
					l.want = "none"
				}
				all := read(k, l.key, command.Reading{Type: l.how.Type})
				if got := read(k, l.key, l.how); got != l.want || (all != "none") != x.selected {
					t.Errorf("%s: %s %s: %.100s, want %s; all of it: %.100s", name, f.Name(), l.key, got, l.want, all)
				}
			}
			checkCommands(t, name+": "+f.Name(), k, x.selected)
		}
	}
}

// checkCommands compares the replies of commands that look an element up with those of commands that read all.
func checkCommands(t *testing.T, name string, k *keyspace.Keyspace, selected bool) {
	t.Helper()
	do := doer(t, k)
	for line, want := range map[string]string{"HGET h f0599": "value of f0599", "LINDEX l 598": "e0598", "LINDEX l -1": "e0599", "HGETALL h": "value of f0599"} {
		if got := do(line); strings.Contains(got, want) != selected {
			t.Errorf("%s: %s: %.100q", name, line, got)
		}
	}
	cursor := strings.Split(do("HSCAN h 0"), "\r\n")[2]
	if (cursor != "0") != selected {
		t.Errorf("%s: a scan begins with cursor %s", name, cursor)
	}
	for range 2 { // the second call has no pass that waits, and looks its place up
		if got := do("HSCAN h " + cursor); strings.Contains(got, "value of f0599") != selected || strings.Contains(got, "f0000") {
			t.Errorf("%s: the scan goes on with %.100q", name, got)
		}
	}
}

// doer returns a function that runs a command.
func doer(t *testing.T, k command.Keyspace) func(line string) string {
	t.Helper()
	a := newAsked(t, k)
	return func(line string) string { return a.do(strings.Fields(line)...) }
}

// unordered is a keyspace that seeks no scores.
type unordered struct{ *keyspace.Keyspace }

func (k unordered) Open(ctx context.Context, db command.Database, key []byte, how command.Reading) (command.Value, error) {
	how.Start = nil
	return k.Keyspace.Open(ctx, db, key, how)
}

// TestScores: ranges have the same members whether the source seeks scores or not.
func TestScores(t *testing.T) {
	const n = 1500
	r := rand.New(rand.NewPCG(1, 2))
	zset := put(record.ZSet, "z", some("m", n)...)
	some := []float64{0, math.Copysign(0, -1), -1e13, 1e13, 1, 1.000001, 1.000002, 0.9999999, -2.5}
	for i := range zset.elems {
		if zset.elems[i].Score = float64(r.IntN(4000)-2000) / 7; r.IntN(3) == 0 {
			zset.elems[i].Score = some[r.IntN(len(some))]
		}
	}
	for _, f := range []format.Format{nemo.New(), blackwidow.New(), floyd.New(), kvrocks.New(), ardb.New()} {
		fresh := *zset
		k := open(t, f, nil, nil, &fresh)
		v, err := k.Open(t.Context(), k.Databases()[0], []byte("z"), command.Reading{Type: record.ZSet, Start: &record.Start{ByScore: true, Score: 281}})
		if err != nil {
			t.Fatal(err)
		}
		var batch [n]record.Element
		got, err := v.Read(batch[:])
		if sought := f.Name() != "ardb"; err != nil || v.Header().Sought != sought || sought && got > n/10 {
			t.Errorf("%s: %v, sought: %t, %d members", f.Name(), err, v.Header().Sought, got)
		}
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
		seeks, reads := doer(t, k), doer(t, unordered{k})
		score := func() string {
			s := strconv.FormatFloat(some[r.IntN(len(some))], 'g', -1, 64)
			if r.IntN(2) == 0 {
				s = strconv.FormatFloat(float64(r.IntN(4000)-2000)/7, 'g', -1, 64)
			}
			return []string{"", "("}[r.IntN(2)] + s
		}
		for range 12 {
			a, b, limit := score(), score(), fmt.Sprintf("LIMIT %d %d", r.IntN(20), r.IntN(40)-1)
			for _, line := range []string{"ZCOUNT z " + a + " " + b, "ZRANGEBYSCORE z " + a + " " + b + " WITHSCORES", "ZRANGEBYSCORE z " + a + " +inf " + limit,
				"ZRANGEBYSCORE z -inf " + b + " WITHSCORES " + limit, "ZREVRANGEBYSCORE z " + a + " " + b + " " + limit,
				fmt.Sprintf("ZRANGE z %d %d WITHSCORES", r.IntN(50), r.IntN(80)-3), fmt.Sprintf("ZREVRANGE z %d %d", r.IntN(50), r.IntN(50))} {
				if got, want := seeks(line), reads(line); got != want {
					t.Fatalf("%s: %s: %.300q, want %.300q", f.Name(), line, got, want)
				}
			}
		}
	}
}

// TestCloseScores: every limit of ranges between scores that are equal, or differ in the seventh digit, where rows in the
// order of scores are in the order of names.
func TestCloseScores(t *testing.T) {
	scores := []float64{-1, 0.9999998, 0.9999999, 1, 1.0000001, 1.0000002, 1.0009, 2}
	zset := put(record.ZSet, "z", some("m", 2*len(scores)*9)...)
	for i := range zset.elems { // names and scores are in no common order, and each score has several members
		zset.elems[i].Score = scores[(len(zset.elems)-i)*5%(2*len(scores))/2]
	}
	for _, f := range []format.Format{nemo.New(), blackwidow.New(), floyd.New(), kvrocks.New()} {
		fresh := *zset
		k := open(t, f, nil, nil, &fresh)
		seeks, reads := doer(t, k), doer(t, unordered{k})
		same := func(line string, args ...any) {
			t.Helper()
			if line = fmt.Sprintf(line, args...); seeks(line) != reads(line) {
				t.Fatalf("%s: %s: %.300q, want %.300q", f.Name(), line, seeks(line), reads(line))
			}
		}
		for i, from := range scores {
			for _, open := range []string{"", "("} {
				same("ZCOUNT z %s%v %v", open, from, scores[len(scores)-1-i])
				for to := i; to < len(scores); to += 3 {
					for _, limit := range [][2]int{{0, 1}, {0, 17}, {0, 18}, {1, 18}, {5, 1}, {17, 2}, {18, 18}, {19, -1}} {
						same("ZRANGEBYSCORE z %s%v %s%v WITHSCORES LIMIT %d %d", open, from, open, scores[to], limit[0], limit[1])
					}
				}
			}
		}
		for _, rank := range [][2]int{{0, 0}, {0, 17}, {0, 18}, {17, 18}, {35, 36}, {80, 90}, {0, -1}, {-3, -1}} {
			same("ZRANGE z %d %d WITHSCORES", rank[0], rank[1])
			same("ZREVRANGE z %d %d WITHSCORES", rank[0], rank[1])
		}
	}
}

// TestDamagedScores: a range with a member that its index row alone names is damaged, and others are served.
func TestDamagedScores(t *testing.T) {
	k := open(t, blackwidow.New(), nil, func(m *formattest.Memory) {
		if !m.Store("zsets").Delete("data_cf", blackwidow.AppendDataKey(nil, blackwidow.DataKey{Key: []byte("z"), Version: 1, Name: []byte("m0100")})) {
			t.Fatal("no such row")
		}
	}, put(record.ZSet, "z", some("m", 200)...))
	do := doer(t, k)
	for line, want := range map[string]string{
		"ZCOUNT z 80 84": ":5\r\n", "ZCOUNT z 90 100": `-ERR the value of "z" is damaged: zset-missing-member-row: `,
		"ZRANGE z 0 1": "*2\r\n$5\r\nm0000\r\n$5\r\nm0001\r\n", "ZRANGEBYSCORE z 100 100": `-ERR the value of "z" is damaged: `,
	} {
		if got := do(line); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// TestRenamed: with Rename, all records of a name can be listed and read, each under one name, in steps of any length.
func TestRenamed(t *testing.T) {
	sel := filter.Selection{Filter: filter.Filter{Match: []string{"a*", "b"}}}
	made := func() *keyspace.Keyspace {
		return open(t, nemo.New(), &sel, nil, put(record.String, "a", "text"), put(record.String, "a!", "other"), put(record.String, "b", "x"),
			put(record.Hash, "a", "f"), put(record.Hash, "a:hash", "g"), put(record.Hash, "c", "f"), put(record.List, "a", "e"), put(record.ZSet, "b", "m"), put(record.String, "a:set", "y"))
	}
	do := doer(t, made())
	if got := do("SCAN 0"); strings.Contains(got, "a:list") || do("EXISTS a:list") != ":0\r\n" {
		t.Errorf("without Rename: %q", got)
	}
	k := made()
	k.Rename = true
	do = doer(t, k)
	for _, tt := range []struct{ line, want string }{
		{"GET a", "$4\r\ntext\r\n"}, {"TYPE a:hash", "+hash\r\n"}, {"HGET a:hash g", "$10\r\nvalue of g\r\n"}, {"HGET a:hash_ f", "$10\r\nvalue of f\r\n"},
		{"LRANGE a:list 0 -1", "*1\r\n$1\r\ne\r\n"}, {"ZSCORE b:zset m", "$1\r\n0\r\n"}, {"GET a:list", "-WRONGTYPE"},
		{"EXISTS a:list_ a:hash__ a:string a:zset b:hash c:hash a:set_ x:hash a_ : c c:list", ":0\r\n"}, {"EXISTS a a! b a:hash a:hash_ a:list b:zset a:set", ":8\r\n"},
	} {
		if got := do(tt.line); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.line, got, tt.want)
		}
	}
	const all = "a a:hash_ a:list a! a:hash a:set b b:zset"
	for count := 1; count < 10; count++ {
		var got []string
		for cursor := "0"; len(got) < 20; {
			line := fmt.Sprintf("SCAN %s COUNT %d", cursor, count)
			page := do(line)
			if again := do(line); again != page { // which has no pass that waits
				t.Fatalf("%s: %q, then %q", line, page, again)
			}
			lines := strings.Split(page, "\r\n")
			for i := 5; i < len(lines); i += 2 {
				got = append(got, lines[i])
			}
			if cursor = lines[2]; cursor == "0" {
				break
			}
		}
		if names := strings.Join(got, " "); names != all {
			t.Errorf("count %d: %s, want %s", count, names, all)
		}
	}
	if n := k.Count(k.Databases()[0]); n.Keys != 8 || !n.Exact {
		t.Errorf("%+v", n)
	}
}

// TestDamaged: elements are not served at wrong places, and the others are.
func TestDamaged(t *testing.T) {
	k := open(t, blackwidow.New(), nil, func(m *formattest.Memory) {
		lists := m.Store("lists")
		row := blackwidow.AppendListKey(nil, blackwidow.ListKey{Key: []byte("l"), Version: 1, Index: 1<<63 - 1 + 101})
		if !lists.Delete("data_cf", row) {
			t.Fatal("no such row")
		}
	}, put(record.List, "l", some("e", 200)...), put(record.List, "m", "x"))
	lost := `the value of "l" is damaged: list-missing-index: `
	for _, x := range []struct {
		how  command.Reading
		want string
	}{
		{at(record.List, "", 100, true), lost}, {at(record.List, "", 101, true), "list e0101"},
		{command.Reading{}, lost},
	} {
		if got := read(k, "l", x.how); !strings.Contains(got, x.want) {
			t.Errorf("%+v: %.200s, want %s", x.how, got, x.want)
		}
	}
	if got := read(k, "m", command.Reading{}); got != "list x" {
		t.Error(got)
	}
	v, err := k.Open(context.Background(), k.Databases()[0], []byte("l"), command.Reading{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	var batch [200]record.Element
	for err == nil {
		_, err = v.Read(batch[:])
	}
	var damaged *command.DamagedError
	if !errors.As(err, &damaged) || string(damaged.Key) != "l" {
		t.Error(err)
	}
}
