package plan

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/pass/filter"
	"kvferry/internal/sys/pace"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

// sizes is a source that only has sizes.
type sizes struct {
	fake.Source
	dbs   []string
	types record.TypeSet
	size  func(db string, t record.TypeSet) int64
}

func (s *sizes) Databases() []string                    { return s.dbs }
func (s *sizes) Types(string) record.TypeSet            { return s.types }
func (s *sizes) Size(db string, t record.TypeSet) int64 { return s.size(db, t) }
func (s *sizes) Split(_ string, _ record.TypeSet, n int) ([]format.Span, error) {
	out := []format.Span{{}}
	for i := 1; i < n; i++ {
		key := []byte(fmt.Sprintf("%03d", i))
		out[i-1].Hi = key
		out = append(out, format.Span{Lo: key})
	}
	return out, nil
}

// on returns an Each with the given number of goroutines.
func on(goroutines int) Each {
	return func(n int, do func(int) error) error { return pace.Each(n, goroutines, do) }
}

func TestPlan(t *testing.T) {
	src := &sizes{dbs: []string{"0", "3"}, types: record.Of(record.String, record.Hash, record.Stream),
		size: func(db string, s record.TypeSet) int64 {
			switch {
			case s.Has(record.Stream):
				return 10
			case db == "3":
				return 0
			case s.Has(record.Hash):
				return 3*taskBytes + 1
			}
			return 1 << 40
		}}
	p, err := New(src, src.dbs, src.dbs, fake.PerType, Order{}, new(filter.Filter), on(1))
	if err != nil {
		t.Fatal(err)
	}
	for _, workers := range []int{2, 3, 64} {
		again, err := New(src, src.dbs, src.dbs, fake.PerType, Order{}, new(filter.Filter), on(workers))
		if err != nil || !reflect.DeepEqual(again, p) {
			t.Errorf("%d workers plan something else; %v", workers, err)
		}
	}
	type want struct {
		db    string
		types record.Type
		group record.TypeSet
		n     int
	}
	n := 0
	for _, w := range []want{
		{"0", record.String, record.Of(record.String), 1 << 40 / mostTaskBytes},
		{"0", record.Hash, record.Of(record.Hash), 4},
		{"0", record.Stream, 0, 1},
		{"3", record.String, record.Of(record.String), 1},
		{"3", record.Hash, record.Of(record.Hash), 1},
		{"3", record.Stream, 0, 1},
	} {
		for range w.n {
			task := p.Tasks[n]
			if task.N != n || task.DB != w.db || task.Types != record.Of(w.types) || task.Group != w.group {
				t.Fatalf("task %d: %+v, want %+v", n, task, w)
			}
			if w.n > 1 && p.spans(&task) != w.n {
				t.Errorf("%d spans", p.spans(&task))
			}
			n++
		}
	}
	if n != len(p.Tasks) {
		t.Errorf("%d tasks, want %d", len(p.Tasks), n)
	}
	if p.Bytes != 1<<40+3*taskBytes+21 {
		t.Errorf("%d bytes", p.Bytes)
	}
}

func TestPlanOfOneGroup(t *testing.T) {
	src := &sizes{dbs: []string{"0"}, types: record.AllTypes, size: func(string, record.TypeSet) int64 { return 1 }}
	p, err := New(src, src.dbs, src.dbs, []record.TypeSet{record.AllTypes}, Order{},
		&filter.Filter{Types: record.Of(record.List, record.ZSet)}, on(2))
	if err != nil || len(p.Tasks) != 1 || p.Tasks[0].Types != record.Of(record.List, record.ZSet) ||
		p.Tasks[0].Group != record.AllTypes {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestPlanOfPieces checks that spans are smaller if all types are written to one place, to keep workers busy.
func TestPlanOfPieces(t *testing.T) {
	for size, want := range map[int64]int{1: 1, 3*pieceBytes + 1: 4, taskBytes: taskBytes / pieceBytes, 1 << 30: maxSpans,
		1 << 40: 1 << 40 / mostTaskBytes} {
		src := &sizes{dbs: []string{"0"}, types: record.Of(record.Hash), size: func(string, record.TypeSet) int64 { return size }}
		p, err := New(src, src.dbs, src.dbs, []record.TypeSet{record.AllTypes}, Order{Pieces: true}, new(filter.Filter), on(1))
		if err != nil || len(p.Tasks) != want {
			t.Errorf("%d bytes: %d tasks, want %d; %v", size, len(p.Tasks), want, err)
		}
	}
}

// TestPlanOfSets checks that spans of sets and sorted sets are half as large, because they are twice the work.
func TestPlanOfSets(t *testing.T) {
	for typ, want := range map[record.Type][2]int{record.Hash: {2, maxSpans}, record.Set: {4, maxSpans},
		record.ZSet: {4, maxSpans}} {
		for i, size := range []int64{2 * taskBytes, 1 << 30} {
			src := &sizes{dbs: []string{"0"}, types: record.Of(typ), size: func(string, record.TypeSet) int64 { return size }}
			p, err := New(src, src.dbs, src.dbs, fake.PerType, Order{}, new(filter.Filter), on(1))
			if err != nil || len(p.Tasks) != want[i] || p.Tasks[0].Work() != p.Tasks[0].Bytes*int64(want[0]/2) {
				t.Errorf("%d bytes of %s: %d tasks, work %d, want %d; %v", size, typ, len(p.Tasks), p.Tasks[0].Work(), want[i],
					err)
			}
		}
	}
}

// TestPlanOfPasses checks that a source gets few spans if each costs a pass over all data.
func TestPlanOfPasses(t *testing.T) {
	for size, want := range map[int64]int{4 * taskBytes: 1, passBytes + 1: 2, 1 << 40: 1 << 40 / mostPassBytes} {
		for _, anyOrder := range []bool{false, true} {
			src := &inOneFile{sizes{dbs: []string{"0"}, types: record.Of(record.Hash), size: func(string, record.TypeSet) int64 {
				return size
			}}}
			p, err := New(src, src.dbs, src.dbs, fake.PerType, Order{Any: anyOrder}, new(filter.Filter), on(1))
			if anyOrder && len(p.Tasks) <= want {
				t.Errorf("%d bytes in any order: %d tasks, want more than %d", size, len(p.Tasks), want)
			}
			if err != nil || !anyOrder && len(p.Tasks) != want {
				t.Errorf("%d bytes: %d tasks, want %d; %v", size, len(p.Tasks), want, err)
			}
		}
	}
}

// inOneFile is a source without key order.
type inOneFile struct{ sizes }

func (s *inOneFile) Sections(db string, t record.TypeSet, n int) ([]format.Span, error) {
	return s.Split(db, t, n)
}

// TestNothing checks the reasons for an empty plan.
func TestNothing(t *testing.T) {
	src := &sizes{dbs: []string{"0", "1"}, types: record.Of(record.Hash)}
	for types, want := range map[record.TypeSet]string{record.Of(record.List, record.Set): "the source holds no list,set",
		record.Of(record.List, record.Hash): "the source has no databases",
		0:                                   "the source has no databases"} {
		if got := nothing(src, &filter.Filter{Types: types}); got != want {
			t.Errorf("%s: %s, want %s", types, got, want)
		}
	}
	if got := nothing(&sizes{}, new(filter.Filter)); got != "the source has no databases" {
		t.Error(got)
	}
}

func TestTargetNames(t *testing.T) {
	four := format.Limits{Numbered: true, MaxDBs: 4}
	numbered, ardb, kvrocks := format.Limits{Numbered: true}, format.Limits{}, format.Limits{DefaultDB: "home"}
	prefixed := format.Limits{DefaultDB: "home", DBPrefix: "db"}
	for _, c := range []struct {
		in        string
		from, to  format.Limits
		flat      bool
		namespace string
		want      string
	}{
		{in: "0 1 2", to: numbered, want: "0 1 2"},
		{in: "0 bar foo 2", to: numbered, want: "0 1 3 2"},
		{in: "01 -1 +1", to: numbered, want: "0 1 2"},
		{in: "a", to: numbered, want: "0"},
		{in: "7", to: numbered, want: "7"},
		{in: "3", to: four, want: "3"},
		{in: "4", to: four, want: "0"},
		{in: "0 4", to: four, want: "0 4"},
		{in: "a b c 3", to: four, want: "0 1 2 3"},
		{in: "7", to: numbered, flat: true, want: "0"},
		{in: "0 bar 2", to: ardb, want: "0 bar 2"},
		{in: "0 1", to: kvrocks, want: "home 1"},
		{in: "0 home", to: kvrocks, want: "0 home"},
		{in: "a home", from: kvrocks, to: numbered, want: "1 0"},
		{in: "0 home", from: kvrocks, to: numbered, want: "0 1"},
		{in: "a home", from: kvrocks, to: ardb, want: "a 0"},
		{in: "a home", from: kvrocks, to: kvrocks, want: "a home"},
		{in: "home db1 db7 x", from: kvrocks, to: numbered, want: "0 1 7 2"},
		{in: "home db0 db01 db2", from: kvrocks, to: numbered, want: "0 1 3 2"},
		{in: "1 db1 home", from: kvrocks, to: numbered, want: "1 2 0"},
		{in: "0 1 12 x", to: prefixed, want: "home db1 db12 x"},
		{in: "1 db1", to: prefixed, want: "1 db1"},
		{in: "home 1", from: kvrocks, to: prefixed, want: "home 1"},
		{in: "0 1", to: kvrocks, namespace: "users", want: "users 1"},
		{in: "7", to: kvrocks, namespace: "users", want: "users"},
	} {
		if got := strings.Join(TargetNames(strings.Fields(c.in), c.from, c.to, c.flat, c.namespace), " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.in, got, c.want)
		}
	}
	for db, want := range map[string]bool{"0": false, "3": false, "4": true, "10": true, "a": false} {
		if Unseen(db, four) != want || Unseen(db, numbered) {
			t.Errorf("database %s is unseen: %v", db, !want)
		}
	}
}

// TestPlanOfOnePass checks that types that share a keyspace of the source are read together, including types that are
// lost.
func TestPlanOfOnePass(t *testing.T) {
	src := &together{sizes{dbs: []string{"0"}, types: record.RedisTypes, size: func(string, record.TypeSet) int64 { return 1 }}}
	p, err := New(src, src.dbs, src.dbs, fake.PerType, Order{}, &filter.Filter{Types: record.RedisTypes &^ record.Of(record.Set)},
		on(2))
	if err != nil || len(p.Tasks) != 2 {
		t.Fatalf("%+v, %v", p, err)
	}
	hash := record.Of(record.Hash)
	all := record.RedisTypes &^ record.Of(record.Set) &^ hash
	if p.Tasks[0].Types != all || p.Tasks[0].Group != all&^record.Of(record.Stream) {
		t.Errorf("%s into %s", p.Tasks[0].Types, p.Tasks[0].Group)
	}
	if p.Tasks[1].Types != hash || p.Tasks[1].Group != hash {
		t.Errorf("%s into %s", p.Tasks[1].Types, p.Tasks[1].Group)
	}
}

// together is a source that has a keyspace for hashes and one for all other types.
type together struct{ sizes }

func (s *together) Where(string, []byte) []format.Range {
	out := []format.Range{{Keyspace: "hashes", Type: record.Hash}}
	for _, t := range []record.Type{record.String, record.List, record.Set, record.ZSet, record.Stream} {
		out = append(out, format.Range{Keyspace: "rows", Type: t})
	}
	return out
}
