package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
	"kvferry/store"
)

// weighed is a source that reports the distribution of its bytes over keys, or over sections of its file.
type weighed struct {
	fake.Source
	keys  []store.Weighted
	asked []int
}

func (s *weighed) Weigh(_ string, _ record.TypeSet, n int) ([]store.Weighted, error) {
	s.asked = append(s.asked, n)
	if s.keys == nil {
		return nil, errors.New("no keys")
	}
	return slices.Clone(s.keys), nil
}

type inSections struct {
	weighed
	n int64
}

func (s *inSections) Sections(string, record.TypeSet, int) (out []format.Span, err error) {
	for i := range s.n {
		out = append(out, format.Span{From: 100 * i, To: 100 * (i + 1)})
	}
	return out, nil
}

// TestTakeSample checks that small tasks are sampled as a whole, and that the requested amount of large ones is
// sampled at distant places.
func TestTakeSample(t *testing.T) {
	const mib = 1 << 20
	var keys []store.Weighted
	for i := range 1000 {
		keys = append(keys, store.Weighted{Key: fmt.Appendf(nil, "%04d", i), Bytes: mib / 10})
	}
	task := func(db string, types record.TypeSet, bytes int64) pass.Task {
		return pass.Task{DB: db, Types: types, Bytes: bytes}
	}
	text := func(s *Sample) (out string) {
		for i, t := range s.Tasks {
			out += fmt.Sprintf("%d:%s/%s[%s,%s)%d-%d %d×%.4g ", t.N, t.DB, t.Types, t.Span.Lo, t.Span.Hi, t.Span.From, t.Span.To,
				t.Bytes, s.Weights[i])
		}
		return fmt.Sprintf("%s= %d %t", out, s.Bytes, s.Whole)
	}
	var large []string
	for i := range 16 {
		large = append(large, fmt.Sprintf("%d:0/hash[%04d,%04d)0-0 4194304×15.62", i, 31+i*125/2, 35+i*125/2))
	}
	hashes, sets := record.Of(record.Hash), record.Of(record.Set)
	for _, c := range []struct {
		name   string
		src    format.Source
		tasks  []pass.Task
		budget int64
		asked  []int
		want   string
	}{
		{"whole", &weighed{keys: keys}, []pass.Task{task("0", hashes, 60), task("0", hashes, 40), task("1", hashes, 7)}, 107, nil,
			"0:0/hash[,)0-0 60×1 1:0/hash[,)0-0 40×1 2:1/hash[,)0-0 7×1 = 107 true"},
		{"one more", &weighed{keys: keys}, []pass.Task{task("0", hashes, 60), task("0", hashes, 40)}, 99, nil,
			"0:0/hash[,)0-0 60×1 1:0/hash[,)0-0 40×1 = 100 false"}, // more than half is not sampled
		{"at places", &weighed{keys: keys}, []pass.Task{task("0", hashes, 60*mib), task("0", hashes, 40*mib), task("0", sets, mib)}, 8 * mib, []int{1414}, // 16 cells for each of 7 places
			"0:0/hash[0071,0083)0-0 1258291×11.9 1:0/hash[0214,0226)0-0 1258291×11.9 2:0/hash[0357,0369)0-0 1258291×11.9 " +
				"3:0/hash[0500,0512)0-0 1258291×11.9 4:0/hash[0642,0654)0-0 1258291×11.9 5:0/hash[0785,0797)0-0 1258291×11.9 " +
				"6:0/hash[0928,0940)0-0 1258291×11.9 7:0/set[,)0-0 1048576×1 = 9856613 false"},
		{"large", &weighed{keys: keys}, []pass.Task{task("0", hashes, 1000*mib)}, 64 * mib, []int{4000}, // places of 4 MiB
			strings.Join(large, " ") + " = 67108864 false"},
		{"sections", &inSections{n: 10}, []pass.Task{task("0", hashes, 1000)}, 200, nil,
			"0:0/hash[,)200-300 100×5 1:0/hash[,)700-800 100×5 = 200 false"},
		{"one section", &inSections{n: 1}, []pass.Task{task("0", hashes, 1000)}, 200, nil, "0:0/hash[,)0-0 1000×1 = 1000 false"},
	} {
		p := &Plan{Tasks: c.tasks}
		for _, x := range c.tasks {
			p.Bytes += x.Bytes
		}
		s, err := TakeSample(c.src, p, c.budget)
		if err != nil {
			t.Fatal(err)
		}
		if got := text(s); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if w, ok := c.src.(*weighed); ok && !slices.Equal(w.asked, c.asked) {
			t.Errorf("%s: asked for %d keys, want %d", c.name, w.asked, c.asked)
		}
	}
	if _, err := TakeSample(&weighed{}, &Plan{Tasks: []pass.Task{task("0", hashes, 1000)}, Bytes: 1000}, 100); err == nil {
		t.Error("a source that cannot be weighed is sampled")
	}
}

// TestPick checks that places are chosen in proportion to their bytes, and that the weighted sum estimates the total.
func TestPick(t *testing.T) {
	var keys []store.Weighted
	for i := range 1000 {
		size := int64(10)
		if i == 500 {
			size = 10_000 // half of all bytes, as one large record
		}
		for range size / 10 {
			keys = append(keys, store.Weighted{Key: fmt.Appendf(nil, "%04d", i), Bytes: 10})
		}
	}
	cells := keyCells(keys)
	if len(cells) != 1000 || cells[0].span.Lo != nil || cells[999].span.Hi != nil || string(cells[1].span.Lo) != "0001" {
		t.Fatalf("%d cells", len(cells))
	}
	picked := pick(cells, 8, 0.05)
	var sum, read float64
	large := 0
	last := ""
	for _, p := range picked {
		if string(p.span.Lo) < last {
			t.Errorf("%q comes twice", p.span.Lo)
		}
		last = string(p.span.Hi)
		sum += p.weight * p.share
		read += p.share
		if p.share > 0.4 {
			large++
		}
	}
	if sum < 0.999 || sum > 1.001 || large != 1 || read > 0.55 || len(picked) > 6 {
		t.Errorf("%d of 8 places, weights sum up to %v, %d times the large one, %.2f read", len(picked), sum, large, read)
	}
	spans := []format.Span{{From: 0, To: 10}, {From: 10, To: 20}, {From: 20, To: 30}}
	if got := fmt.Sprint(pick(cut(spans, func(s format.Span) int64 { return s.To - s.From }), 1, 0.6)); got != "[{{[] [] 10 30} 0.6666666666666666 1.5}]" {
		t.Error(got)
	}
}

// TestWholeSample: a source no larger than the sample is read whole.
func TestWholeSample(t *testing.T) {
	for bytes, whole := range map[int64]bool{99: true, 100: true, 101: false} {
		s, err := TakeSample(nil, &Plan{Bytes: bytes}, 100)
		if err != nil || s.Whole != whole {
			t.Errorf("%d bytes: whole %t, %v", bytes, s.Whole, err)
		}
	}
}
