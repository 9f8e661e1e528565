package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// limitRSS is the maximum resident memory of a conversion with --memory 256MiB.
const limitRSS = 512 << 20

// result is one line of the report.
type result struct {
	Name    string              `json:"name"`
	Want    string              `json:"want"`
	Got     string              `json:"got"`
	OK      bool                `json:"ok"`
	Ratio   float64             `json:"ratio,omitempty"`     // wall times
	CPU     float64             `json:"cpu_ratio,omitempty"` // CPU times
	Medians map[string]sample   `json:"medians"`
	Samples map[string][]sample `json:"samples"`
}

// bench holds the programs and datasets.
type bench struct {
	o                               options
	kvferry, reference, scan, limit string
	data                            *datasets
}

// group is a set of cases measured together.
type group struct {
	name string
	run  func() ([]*result, error)
}

// groups returns the groups listed in only, separated by commas, or all if only is "".
func (b *bench) groups(only string) ([]group, error) {
	all := []group{{"speed", b.speed}, {"workers", b.workers}, {"growth", b.growth}, {"memory", b.memory},
		{"ardb", b.ardb}, {"kvrocks", b.kvrocks}, {"ssdb", b.ssdb}, {"pika", b.pika}, {"parquet", b.parquet}, {"objects", b.objects}, {"reading", b.reading}, {"redis", b.redis}, {"serve", b.serve}}
	if only == "" {
		return all, nil
	}
	var out []group
	for _, name := range strings.Split(only, ",") {
		i := slices.IndexFunc(all, func(g group) bool { return g.name == name })
		if i < 0 {
			return nil, fmt.Errorf("unknown group %q", name)
		}
		out = append(out, all[i])
	}
	return out, nil
}

func (b *bench) convert(src, name string, pinned bool, flags ...string) *command {
	return b.convertTo("blackwidow", src, name, pinned, flags...)
}

func (b *bench) convertTo(format, src, name string, pinned bool, flags ...string) *command {
	out := filepath.Join(b.o.dir, "out-"+name)
	argv := append([]string{b.kvferry, "convert", src, format + ":" + out}, flags...)
	return &command{Name: name, Argv: argv, Output: out, Pinned: pinned}
}

func (b *bench) load(src string) *command {
	out := filepath.Join(b.o.dir, "out-reference")
	return &command{Name: "reference", Argv: []string{b.reference, "load", src, out}, Output: out, Pinned: true}
}

// against measures the speed of c relative to base. It must be at least least; 0 sets no bound.
func (b *bench) against(name string, least float64, base, c *command) (*result, error) {
	samples, err := interleave(b.o.rounds, base, c)
	if err != nil {
		return nil, err
	}
	x, y := median(samples[0]), median(samples[1])
	r := &result{
		Name: name, Want: fmt.Sprintf("≥ %g ×", least),
		Ratio: ratio(x.Wall, y.Wall), CPU: ratio(x.CPU, y.CPU),
		Medians: map[string]sample{base.Name: x, c.Name: y},
		Samples: map[string][]sample{base.Name: samples[0], c.Name: samples[1]},
	}
	r.Got = fmt.Sprintf("%.2f × (CPU %.2f ×): %s %s, %s %s", r.Ratio, r.CPU, base.Name, seconds(x.Wall), c.Name, seconds(y.Wall))
	r.OK = r.Ratio >= least
	if least == 0 {
		r.Want = "no bound"
	}
	return r, nil
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// speed compares conversions with the reference on one core.
func (b *bench) speed() ([]*result, error) {
	var out []*result
	for _, c := range []struct {
		name  string
		runs  int
		least float64
		flags []string
	}{
		{"one core, without the proof", 1, 2, []string{"--no-prove"}},
		{"one core, with the proof", 1, 1.6, nil},
		{fmt.Sprintf("one core, %d overlapping runs, without the proof", overlapRuns), overlapRuns, 1.8, []string{"--no-prove"}},
		{fmt.Sprintf("one core, %d overlapping runs, with the proof", overlapRuns), overlapRuns, 0, nil},
	} {
		src, err := b.data.mix(b.o.elements, c.runs)
		if err != nil {
			return nil, err
		}
		flags := append([]string{"--workers", "1"}, c.flags...)
		r, err := b.against(c.name, c.least, b.load(src), b.convert(src, "kvferry", true, flags...))
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	r, err := b.bound()
	return append(out, r), err
}

// limitTime is the maximum time of a conversion without the proof, relative to the limit program.
const limitTime = 1.8

// bound compares a conversion with a pass over the blocks of the source that decodes no rows.
func (b *bench) bound() (*result, error) {
	src, err := b.data.mix(b.o.elements, 1)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(b.o.dir, "out-limit")
	limit := &command{Name: "limit", Argv: []string{b.limit, src, path}, Output: path, Pinned: true}
	r, err := b.against("one core, without the proof, against the blocks alone", 1/limitTime, limit,
		b.convert(src, "kvferry", true, "--workers", "1", "--no-prove"))
	if err != nil {
		return nil, err
	}
	r.Want = fmt.Sprintf("≤ %.1f × the time", limitTime)
	r.Got = fmt.Sprintf("%.2f × the time (CPU %.2f ×): limit %s, kvferry %s", 1/r.Ratio, 1/r.CPU,
		seconds(r.Medians["limit"].Wall), seconds(r.Medians["kvferry"].Wall))
	return r, nil
}

// workers compares two workers with one.
func (b *bench) workers() ([]*result, error) {
	src, err := b.data.mix(b.o.elements, 1)
	if err != nil {
		return nil, err
	}
	r, err := b.against("two workers against one", 1.8,
		b.convert(src, "one worker", false, "--workers", "1"), b.convert(src, "two workers", false, "--workers", "2"))
	if err != nil {
		return nil, err
	}
	return []*result{r}, nil
}

// growth compares the cost per element for several sizes.
func (b *bench) growth() ([]*result, error) {
	r := &result{Name: "linear growth", Medians: map[string]sample{}, Samples: map[string][]sample{}, OK: true}
	sizes := []int64{b.o.elements / 5, b.o.elements}
	if b.o.full {
		sizes = append(sizes, 4*b.o.elements)
	}
	r.Want = "≤ 1.2 × the cost of an element at the smallest size"
	var first float64
	for _, n := range sizes {
		src, err := b.data.mix(n, 1)
		if err != nil {
			return nil, err
		}
		c := b.convert(src, millions(n), true, "--workers", "1")
		samples, err := interleave(b.o.rounds, c)
		if err != nil {
			return nil, err
		}
		m := median(samples[0])
		r.Medians[c.Name], r.Samples[c.Name] = m, samples[0]
		each := float64(m.CPU.Nanoseconds()) / float64(n)
		if first == 0 {
			first = each
		}
		if r.Got != "" {
			r.Got += ", "
		}
		r.Got += fmt.Sprintf("%s: %.0f ns CPU an element", millions(n), each)
		r.CPU = each / first
		r.OK = r.OK && r.CPU <= 1.2
	}
	return []*result{r}, nil
}

func millions(n int64) string {
	if n%1_000_000 == 0 {
		return fmt.Sprintf("%dM", n/1_000_000)
	}
	return fmt.Sprintf("%.2gM", float64(n)/1e6)
}

// memory measures peak resident memory.
func (b *bench) memory() ([]*result, error) {
	var out []*result
	n := b.o.elements
	for _, c := range []struct {
		name string
		src  func() (string, error)
	}{
		{"mix of " + millions(n), func() (string, error) { return b.data.mix(n, 1) }},
		{fmt.Sprintf("mix of %s in %d runs", millions(n), overlapRuns), func() (string, error) { return b.data.mix(n, overlapRuns) }},
		{"one zset of " + millions(n), func() (string, error) { return b.data.generate("zset", n) }},
		{"one list of " + millions(n), func() (string, error) { return b.data.generate("list", n) }},
		{"one list of " + millions(n) + ", links shuffled", func() (string, error) { return b.data.generate("linked", n) }},
	} {
		src, err := c.src()
		if err != nil {
			return nil, err
		}
		s, err := run(b.convert(src, "kvferry", false, "--memory", "256MiB"))
		if err != nil {
			return nil, err
		}
		out = append(out, &result{
			Name: "peak memory, " + c.name, Want: "< 512 MiB with --memory 256MiB", OK: s.RSS < limitRSS,
			Got:     fmt.Sprintf("%d MiB, %s", s.RSS>>20, seconds(s.Wall)),
			Medians: map[string]sample{"kvferry": s}, Samples: map[string][]sample{"kvferry": {s}},
		})
	}
	return out, nil
}
