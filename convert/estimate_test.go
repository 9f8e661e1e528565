package convert

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kvferry/convert/plan"
	"kvferry/convert/result"
	"kvferry/convert/work"
	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/internal/sys/disk"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
	"kvferry/store"
)

// TestUsualBudget checks that samples grow with the source, between two bounds.
func TestUsualBudget(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	for size, want := range map[int64]int64{0: 64 * mib, gib: 64 * mib, 10 * gib: gib / 10, 50 * gib: 256 * mib,
		1024 * gib: 256 * mib} {
		if got := usualBudget(size); got != want {
			t.Errorf("of %d: %d, want %d", size, got, want)
		}
	}
}

// TestEstimate checks that the results of a sample are scaled to the plan by the bytes of the source, also if the
// whole source was counted.
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
	res := func(bytes, records int64) *result.Result {
		return &result.Result{Tables: []store.Table{{Bytes: bytes - 1}, {Bytes: 1}},
			Parts: []result.PartDigest{{Digest: record.Digest{Records: records, Elements: 2 * records}}}}
	}
	make := func(change func(*Options), whole bool, results []*result.Result) *Estimate {
		b := newBench(t, nil)
		b.o.Workers, b.to.Bounds.Place = 2, format.InDirectory
		change(&b.o)
		all := &plan.Plan{Bytes: 5000, Tasks: []pass.Task{{DB: "0", Types: hash, Bytes: 2000},
			{DB: "0", Types: hash, Bytes: 1000}, {DB: "0", Types: set, Bytes: 2000}}}
		part := &plan.Plan{Tasks: []pass.Task{{DB: "0", Types: hash, Bytes: 100}, {N: 1, DB: "0", Types: hash, Bytes: 100},
			{N: 2, DB: "0", Types: set, Bytes: 50}}}
		e := &estimator{sample: &plan.Sample{Tasks: part.Tasks, Weights: []float64{10, 20, 40}, Bytes: 250, Whole: whole},
			of: &attempt{id: &work.Identity{Plan: all}, results: results},
			took: []time.Duration{time.Second, 2 * time.Second,
				3 * time.Second}, usage: usage, final: 1000, finish: 7 * time.Second, prove: 3 * time.Second,
			attempt: &attempt{run: &run{o: &b.o}, results: []*result.Result{res(100, 5), res(200, 10), res(300, 0)}}}
		return e.result()
	}
	none := func(*Options) {}
	for name, c := range map[string]struct {
		change  func(*Options)
		whole   bool
		results []*result.Result
		want    Estimate
	}{
		// tables 100*10+200*20+300*40, plus 400 bytes of overhead; 1*10+2*20+3*40 s on two workers
		"by bytes":  {none, false, nil, Estimate{TargetBytes: 17_400, DiskBytes: 17_400, TempBytes: 12_000, Seconds: 85 + 85 + 7, Run: 85, Prove: 85}},
		"of a file": {func(o *Options) { o.Target.Format.(*fake.Format).Bounds.Place = format.InFile }, false, nil, Estimate{TargetBytes: 17_400, DiskBytes: 34_400, TempBytes: 12_000, Seconds: 85 + 85 + 7*17.4, Finish: 7 * 17.4, Run: 85, Prove: 85}},
		"with SST":  {func(o *Options) { o.SST = true }, false, nil, Estimate{TargetBytes: 34_000, DiskBytes: 17_000, TempBytes: 12_000, Seconds: 177, Run: 85, Prove: 85}},
		"one core":  {func(o *Options) { o.Workers = 1 }, false, nil, Estimate{TargetBytes: 17_400, DiskBytes: 17_400, TempBytes: 12_000, Seconds: 170 + 85 + 7, Run: 170, Prove: 85}},
		"many":      {func(o *Options) { o.Workers = 9 }, true, nil, Estimate{TargetBytes: 17_400, DiskBytes: 17_400, TempBytes: 600, Seconds: 170.0/3 + 85 + 7, Run: 170.0 / 3, Prove: 85}},
		"counted":   {none, false, []*result.Result{res(1, 10), res(1, 20), nil}, Estimate{TargetBytes: 17_400, DiskBytes: 17_400, TempBytes: 12_000, Seconds: 177, Run: 85, Prove: 85}},
	} {
		c.want.SampleBytes, c.want.SourceBytes = 250, 5000
		if name != "of a file" { // where joining the parts copies them
			c.want.Finish = 7
		}
		if got := make(c.change, c.whole, c.results); fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", c.want) {
			t.Errorf("%s:\n%+v, want\n%+v", name, *got, c.want)
		}
	}
}

// TestUnseen checks that the types missing in a sample are listed, unless they were lost.
func TestUnseen(t *testing.T) {
	src := &fake.Source{}
	for _, typ := range []record.Type{record.String, record.Hash, record.List, record.Stream, record.Set} {
		src.Add(fake.Record{DB: "0", Type: typ})
	}
	a := &attempt{src: src, id: &work.Identity{Plan: &plan.Plan{Tasks: []pass.Task{
		{DB: "0", Types: record.Of(record.String, record.Hash, record.ZSet)}, {DB: "0", Types: record.Of(record.List, record.Stream)}}}}}
	rep := &Report{
		Parts: []result.PartDigest{{Type: "string", Digest: record.Digest{Records: 1}}, {Type: "list"}},
		Losses: []LossKind{{Kind: "stream", Samples: []result.Sample{{Type: "stream"}}},
			{Kind: "field-expiry", Samples: []result.Sample{{Type: "hash"}}}},
	}
	if got := fmt.Sprint(a.unseen(rep)); got != "[list]" {
		t.Errorf("not seen: %s, want list: the source has no zset, and no task is about sets", got)
	}
	rep.Losses = nil
	if got := fmt.Sprint(a.unseen(rep)); got != "[hash list stream]" {
		t.Errorf("without losses: %s", got)
	}
}

// TestEstimateOnServer checks that an estimate does not write to a server.
func TestEstimateOnServer(t *testing.T) {
	b, _ := serverBench(t, fake.Dataset(1))
	b.o.Estimate = true
	if _, err := DryRun(context.Background(), &b.o); !errors.Is(err, errOnServer) {
		t.Errorf("an estimate: %v", err)
	}
	b.o.Estimate = false
	if rep, err := DryRun(context.Background(), &b.o); err != nil || rep.Estimate != nil || rep.Records() == 0 {
		t.Errorf("a dry run: %v", err)
	}
}
