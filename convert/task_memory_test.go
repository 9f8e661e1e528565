package convert

import (
	"bytes"
	"maps"
	"testing"

	"kvferry/format"
	"kvferry/internal/testkit/fake"
)

// TestMemoryOfTasks checks that readers and writers get a quarter of the memory each, and that the proof gets half.
// The largest tasks share all of it.
func TestMemoryOfTasks(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	b.o.Workers, b.o.Memory = 1, 400<<20
	most := map[string]int64{}
	note := func(what string) func(*format.Env) {
		return func(e *format.Env) { most[what] = max(most[what], e.Memory) }
	}
	b.from.Wrap = func(s *fake.Source) { s.OnEnv = note("read") }
	b.to.Wrap = func(s *fake.Source) { s.OnEnv = note("proved") }
	b.to.OnShard = func(memory int64) { most["written"] = max(most["written"], memory) }
	b.run()
	if want := map[string]int64{"read": 100 << 20, "written": 100 << 20, "proved": 200 << 20}; !maps.Equal(most, want) {
		t.Errorf("%v, want %v", most, want)
	}
}

// TestLargeValues checks that neither the target nor the report depends on the memory that tasks share.
func TestLargeValues(t *testing.T) {
	records := fake.Dataset(1)
	for i := range records {
		if i%3 == 0 {
			records[i].Elems[0].Value = bytes.Repeat([]byte("v"), 20<<10)
		}
	}
	want := newBench(t, records)
	want.o.Workers = 1
	want.from.Wrap = func(s *fake.Source) { s.Weight = oneTask / 6 }
	rep := want.run()
	b := newBench(t, records)
	b.o.Workers, b.o.Memory = 4, 1<<20
	b.from.Wrap = want.from.Wrap
	var last Progress
	b.o.Progress = func(p Progress) { last = max2(last, p) }
	got := b.run()
	if got.Records() != rep.Records() || got.Ledger[0].Rows != rep.Ledger[0].Rows || len(got.Losses) != 0 {
		t.Errorf("%+v", got)
	}
	if last.Records > rep.Records() || last.TasksDone > last.Tasks {
		t.Errorf("progress went to %+v", last)
	}
}

// max2 returns the progress with more records if both are of the same phase, else b.
func max2(a, b Progress) Progress {
	if a.Phase == b.Phase && a.Records > b.Records {
		return a
	}
	return b
}
