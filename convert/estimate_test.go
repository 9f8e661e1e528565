package convert

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kvferry/format"
	"kvferry/internal/disk"
	"kvferry/record"
	"kvferry/store"
)

// TestBudgets: samples grow with the source between two bounds.
func TestBudgets(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	for name, c := range map[string]struct {
		budget func(int64) int64
		want   [5]int64 // of a source of nothing, 1 GiB, 5 GiB, 50 GiB, 1 TiB
	}{
		"full":  {fullBudget, [5]int64{32 * mib, 32 * mib, 5 * gib / 50, 256 * mib, 256 * mib}},
		"quick": {quickBudget, [5]int64{128 * mib, 128 * mib, 128 * mib, 50 * gib / 200, 512 * mib}},
		"space": {spaceBudget, [5]int64{16 * mib, 16 * mib, 5 * gib / 100, 128 * mib, 128 * mib}},
	} {
		for i, size := range []int64{0, gib, 5 * gib, 50 * gib, 1024 * gib} {
			if got := c.budget(size); got != c.want[i] {
				t.Errorf("%s of %d: %d, want %d", name, size, got, c.want[i])
			}
		}
	}
}

// weighed is a source that tells how its bytes lie over its keys, or over sections of its file.
type weighed struct {
	fakeSource
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

// TestTakeSample: what is small is taken whole, of what is large so much as is asked for, at places that lie apart.
func TestTakeSample(t *testing.T) {
	const mib = 1 << 20
	var keys []store.Weighted
	for i := range 1000 {
		keys = append(keys, store.Weighted{Key: fmt.Appendf(nil, "%04d", i), Bytes: mib / 10})
	}
	task := func(db string, types record.TypeSet, bytes int64) Task {
		return Task{DB: db, Types: types, Bytes: bytes}
	}
	text := func(s *sample) (out string) {
		for i, t := range s.tasks {
			out += fmt.Sprintf("%d:%s/%s[%s,%s)%d-%d %d×%.4g ", t.N, t.DB, t.Types, t.Span.Lo, t.Span.Hi, t.Span.From, t.Span.To, t.Bytes, s.weights[i])
		}
		return fmt.Sprintf("%s= %d %t", out, s.bytes, s.whole)
	}
	var large []string
	for i := range 16 {
		large = append(large, fmt.Sprintf("%d:0/hash[%04d,%04d)0-0 4194304×15.62", i, 31+i*125/2, 35+i*125/2))
	}
	hashes, sets := record.Of(record.Hash), record.Of(record.Set)
	for _, c := range []struct {
		name   string
		src    format.Source
		tasks  []Task
		budget int64
		asked  []int
		want   string
	}{
		{"whole", &weighed{keys: keys}, []Task{task("0", hashes, 60), task("0", hashes, 40), task("1", hashes, 7)}, 107, nil,
			"0:0/hash[,)0-0 60×1 1:0/hash[,)0-0 40×1 2:1/hash[,)0-0 7×1 = 107 true"},
		{"one more", &weighed{keys: keys}, []Task{task("0", hashes, 60), task("0", hashes, 40)}, 99, nil,
			"0:0/hash[,)0-0 60×1 1:0/hash[,)0-0 40×1 = 100 false"}, // more than half of it is no sample
		{"at places", &weighed{keys: keys}, []Task{task("0", hashes, 60*mib), task("0", hashes, 40*mib), task("0", sets, mib)}, 8 * mib, []int{1414}, // 16 for each of 7 places
			"0:0/hash[0071,0083)0-0 1258291×11.9 1:0/hash[0214,0226)0-0 1258291×11.9 2:0/hash[0357,0369)0-0 1258291×11.9 " +
				"3:0/hash[0500,0512)0-0 1258291×11.9 4:0/hash[0642,0654)0-0 1258291×11.9 5:0/hash[0785,0797)0-0 1258291×11.9 " +
				"6:0/hash[0928,0940)0-0 1258291×11.9 7:0/set[,)0-0 1048576×1 = 9856613 false"},
		{"large", &weighed{keys: keys}, []Task{task("0", hashes, 1000*mib)}, 64 * mib, []int{4000}, // places of 4 MiB
			strings.Join(large, " ") + " = 67108864 false"},
		{"sections", &inSections{n: 10}, []Task{task("0", hashes, 1000)}, 200, nil,
			"0:0/hash[,)200-300 100×5 1:0/hash[,)700-800 100×5 = 200 false"},
		{"one section", &inSections{n: 1}, []Task{task("0", hashes, 1000)}, 200, nil, "0:0/hash[,)0-0 1000×1 = 1000 false"},
	} {
		p := &Plan{Tasks: c.tasks}
		for _, x := range c.tasks {
			p.Bytes += x.Bytes
		}
		s, err := takeSample(c.src, p, c.budget)
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
	if _, err := takeSample(&weighed{}, &Plan{Tasks: []Task{task("0", hashes, 1000)}, Bytes: 1000}, 100); err == nil {
		t.Error("a source that cannot be weighed is sampled")
	}
}

// TestEstimate: what a sample took is scaled up to the plan, by the bytes of the source or, when all of it was counted,
// by what is in it.
func TestEstimate(t *testing.T) {
	dir := t.TempDir()
	usage := disk.Watch(dir)
	defer usage.Stop()
	f, err := disk.Create(filepath.Join(dir, "spill"))
	if err == nil {
		_, err = f.Write(make([]byte, 600))
	}
	if err := errors.Join(err, f.Close(), os.Remove(f.Name())); err != nil {
		t.Fatal(err)
	}
	hash, set := record.Of(record.Hash), record.Of(record.Set)
	res := func(bytes, records int64) *taskResult {
		return &taskResult{Tables: []store.Table{{Bytes: bytes - 1}, {Bytes: 1}},
			Parts: []PartDigest{{Digest: record.Digest{Records: records, Elements: 2 * records}}}}
	}
	make := func(change func(*Options), whole bool, results []*taskResult) *Estimate {
		b := newBench(t, nil)
		b.o.Workers, b.to.limits.Place = 2, format.InDirectory
		change(&b.o)
		plan := &Plan{Bytes: 5000, Tasks: []Task{{DB: "0", Types: hash, Bytes: 2000}, {DB: "0", Types: hash, Bytes: 1000}, {DB: "0", Types: set, Bytes: 2000}}}
		part := &Plan{Tasks: []Task{{DB: "0", Types: hash, Bytes: 100}, {N: 1, DB: "0", Types: hash, Bytes: 100}, {N: 2, DB: "0", Types: set, Bytes: 50}}}
		e := &estimator{sample: &sample{tasks: part.Tasks, weights: []float64{10, 20, 40}, bytes: 250, whole: whole},
			of:   &attempt{id: &identity{Plan: plan}, results: results},
			took: []time.Duration{time.Second, 2 * time.Second, 3 * time.Second}, usage: usage, final: 1000, finish: 7 * time.Second, prove: 3 * time.Second,
			attempt: &attempt{run: &run{o: &b.o}, results: []*taskResult{res(100, 5), res(200, 10), res(300, 0)}}}
		return e.result()
	}
	none := func(*Options) {}
	for name, c := range map[string]struct {
		change  func(*Options)
		whole   bool
		results []*taskResult
		want    Estimate
	}{
		// tables 100*10+200*20+300*40, beside 400 bytes that are there once; 1*10+2*20+3*40 s of two workers
		"by bytes":  {none, false, nil, Estimate{TargetBytes: 17_400, DiskBytes: 17_400, TempBytes: 12_000, Seconds: 85 + 85 + 7, Run: 85, Prove: 85}},
		"of a file": {func(o *Options) { o.Target.Format.(*fake).limits.Place = format.InFile }, false, nil, Estimate{TargetBytes: 17_400, DiskBytes: 34_400, TempBytes: 12_000, Seconds: 177, Run: 85, Prove: 85}},
		"with SST":  {func(o *Options) { o.SST = true }, false, nil, Estimate{TargetBytes: 34_000, DiskBytes: 17_000, TempBytes: 12_000, Seconds: 177, Run: 85, Prove: 85}},
		"one core":  {func(o *Options) { o.Workers = 1 }, false, nil, Estimate{TargetBytes: 17_400, DiskBytes: 17_400, TempBytes: 12_000, Seconds: 170 + 85 + 7, Run: 170, Prove: 85}},
		"many":      {func(o *Options) { o.Workers = 9 }, true, nil, Estimate{TargetBytes: 17_400, DiskBytes: 17_400, TempBytes: 600, Seconds: 170.0/3 + 85 + 7, Run: 170.0 / 3, Prove: 85}},
		// hashes: 15*(3+... ) counted 30+60, the sample seems 10*15+20*30 = 750: weights times 90/750; sets: none was in the sample
		"by counts": {none, false, []*taskResult{res(1, 10), res(1, 20), nil}, Estimate{TargetBytes: 13_000, DiskBytes: 13_000, TempBytes: 12_000, Seconds: 63 + 63 + 7, Run: 63, Prove: 63}},
	} {
		c.want.SampleBytes, c.want.SourceBytes = 250, 5000
		if got := make(c.change, c.whole, c.results); fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", c.want) {
			t.Errorf("%s:\n%+v, want\n%+v", name, *got, c.want)
		}
	}
}
