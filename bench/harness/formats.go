package main

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// ardb compares conversions from and to Ardb with the reference on one core. The reference scans and
// loads with the source's own orders.
func (b *bench) ardb() ([]*result, error) {
	var out []*result
	for _, c := range []struct {
		from, to string
		least    float64
		flags    []string
	}{
		{"ardb", "blackwidow", 1, []string{"--no-prove"}},
		{"ardb", "blackwidow", 0, nil},
		{"blackwidow", "ardb", 1, []string{"--no-prove"}},
		{"blackwidow", "ardb", 0, nil},
	} {
		src, err := b.data.mixIn(c.from, b.o.elements)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("one core, %s to %s, with", c.from, c.to)
		if c.flags != nil {
			name += "out"
		}
		kvferry := b.convertTo(c.to, src, "kvferry", true, append([]string{"--workers", "1"}, c.flags...)...)
		r, err := b.against(name+" the proof", c.least, b.load(src), kvferry)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

const (
	// limitReading is the resident memory that commands which read stay below by default.
	limitReading = 256 << 20
	// dumpRate is the output of a dump in bytes a second and core that is fast enough.
	dumpRate = 200e6
)

// reading compares commands that read with a bare walk over the rows, on one core.
func (b *bench) reading() ([]*result, error) {
	src, err := b.data.mix(b.o.elements, 1)
	if err != nil {
		return nil, err
	}
	scan := &command{Name: "scan", Argv: []string{b.scan, src}, Pinned: true}
	var out []*result
	for _, c := range []struct {
		name  string
		least float64
		flags []string
	}{
		{"verify", 0.5, nil},
		{"fingerprint", 0.6, nil},
		{"inspect", 0.6, []string{"--json"}},
	} {
		argv := append([]string{b.kvferry, c.name, src, "--workers", "1"}, c.flags...)
		r, err := b.against("one core, "+c.name+" against a bare scan", c.least, scan, &command{Name: c.name, Argv: argv, Pinned: true})
		if err != nil {
			return nil, err
		}
		out = append(out, lean(r, c.name))
	}
	r, err := b.dump(src)
	if err != nil {
		return nil, err
	}
	return append(out, lean(r, "dump")), nil
}

// lean adds the bound on memory.
func lean(r *result, name string) *result {
	rss := r.Medians[name].RSS
	r.Want += ", < 256 MiB"
	r.Got += fmt.Sprintf(", %d MiB", rss>>20)
	r.OK = r.OK && rss < limitReading
	return r
}

// dump measures JSON lines by the bytes written, against a bare buffered writer of as many.
func (b *bench) dump(src string) (*result, error) {
	path := filepath.Join(b.o.dir, "out-dump.jsonl")
	dump := &command{Name: "dump", Argv: []string{b.kvferry, "dump", src, "-o", path, "--workers", "1"}, Output: path, Pinned: true}
	s, err := run(dump)
	if err != nil {
		return nil, err
	}
	path = filepath.Join(b.o.dir, "out-write")
	writer := &command{Name: "writer", Argv: []string{b.scan, "-write", path, strconv.FormatInt(s.Out, 10)}, Output: path, Pinned: true}
	r, err := b.against("one core, dump as JSON lines", 0, writer, dump)
	if err != nil {
		return nil, err
	}
	m := r.Medians["dump"]
	rate := float64(m.Out) / m.Wall.Seconds()
	r.Want = "≥ 200 MB/s, or ≥ 0.67 × the speed of a bare writer"
	r.Got = fmt.Sprintf("%.0f MB/s; %s", rate/1e6, r.Got)
	r.OK = rate >= dumpRate || r.Ratio >= 1/1.5
	return r, nil
}
