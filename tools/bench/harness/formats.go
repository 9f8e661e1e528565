package main

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// pair is a conversion to compare with the reference, with and without the proof.
type pair struct {
	from, to         string
	unproved, proved float64 // minimum ratios; 0: no bound
}

// ardb compares conversions from and to Ardb.
func (b *bench) ardb() ([]*result, error) {
	return b.pairs(pair{"ardb", "blackwidow", 1.7, 0}, pair{"blackwidow", "ardb", 1.6, 1.2})
}

// kvrocks compares conversions to Kvrocks, and from there to Redis.
func (b *bench) kvrocks() ([]*result, error) {
	return b.pairs(pair{"blackwidow", "kvrocks", 1.3, 1}, pair{"kvrocks", "rdb", 1.3, 1})
}

// ssdb compares conversions from SSDB.
func (b *bench) ssdb() ([]*result, error) { return b.pairs(pair{"ssdb", "kvrocks", 1.3, 0}) }

// pika compares conversions to and from Pika 4.0. It also compares a scan of tables in format_version 5, which
// RocksDB has since 6.6, with a scan of the same rows in format_version 2.
func (b *bench) pika() ([]*result, error) {
	out, err := b.pairs(pair{"nemo", "floyd", 1.3, 1}, pair{"floyd", "blackwidow", 1.3, 1})
	if err != nil {
		return nil, err
	}
	scan := func(name string, version int) (*command, error) {
		dir, err := b.data.tables(version, b.o.elements)
		return &command{Name: name, Argv: []string{b.scan, dir}, Pinned: true}, err
	}
	old, err := scan("version 2", 2)
	if err != nil {
		return nil, err
	}
	modern, err := scan("version 5", 5)
	if err != nil {
		return nil, err
	}
	r, err := b.against("one core, a scan of tables of format_version 5 against 2", 0.9, old, modern)
	return append(out, r), err
}

// pairs compares conversions with the reference on one core. The reference scans and loads with the source's own
// comparers.
func (b *bench) pairs(pairs ...pair) ([]*result, error) {
	var out []*result
	for _, p := range pairs {
		src, err := b.data.mixIn(p.from, b.o.elements)
		if err != nil {
			return nil, err
		}
		for _, proved := range []bool{false, true} {
			name, least, flags := "without", p.unproved, []string{"--workers", "1", "--no-prove"}
			if proved {
				name, least, flags = "with", p.proved, flags[:2]
			}
			name = fmt.Sprintf("one core, %s to %s, %s the proof", p.from, p.to, name)
			r, err := b.against(name, least, b.load(src), b.convertTo(p.to, src, "kvferry", true, flags...))
			if err != nil {
				return nil, err
			}
			out = append(out, r)
		}
	}
	return out, nil
}

const (
	// limitReading is the maximum resident memory of reading commands with default flags.
	limitReading = 256 << 20
	// dumpRate is the output of a dump, in bytes per second and core, that counts as fast enough.
	dumpRate = 200e6
)

// reading compares reading commands with a bare scan of the rows, on one core.
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
		{"verify", 0.8, nil},
		{"fingerprint", 0.7, nil},
		{"inspect", 0.75, []string{"--format", "json"}},
	} {
		argv := append([]string{b.kvferry, c.name, src, "--workers", "1"}, c.flags...)
		r, err := b.against("one core, "+c.name+" against a bare scan", c.least, scan,
			&command{Name: c.name, Argv: argv, Pinned: true})
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

// lean adds the bound on memory to a result.
func lean(r *result, name string) *result {
	rss := r.Medians[name].RSS
	r.Want += ", < 256 MiB"
	r.Got += fmt.Sprintf(", %d MiB", rss>>20)
	r.OK = r.OK && rss < limitReading
	return r
}

// dump measures JSON lines by the bytes written, against a bare buffered writer of the same size.
func (b *bench) dump(src string) (*result, error) {
	path := filepath.Join(b.o.dir, "out-dump.jsonl")
	dump := &command{Name: "dump", Argv: []string{b.kvferry, "dump", src, "-o", path, "--workers", "1"}, Output: path,
		Pinned: true}
	s, err := run(dump)
	if err != nil {
		return nil, err
	}
	path = filepath.Join(b.o.dir, "out-write")
	writer := &command{Name: "writer", Argv: []string{b.scan, "-write", path, strconv.FormatInt(s.Out, 10)}, Output: path,
		Pinned: true}
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

// limitParquet is the least speed of a dump to Parquet on one core, in bytes of keys and elements a second.
const limitParquet = 150e6

// parquet measures a dump to Parquet files and a conversion of them.
func (b *bench) parquet() ([]*result, error) {
	src, err := b.data.mixIn("blackwidow", b.o.elements)
	if err != nil {
		return nil, err
	}
	dir := src + "-parquet"
	dump := &command{Name: "dump", Argv: []string{b.kvferry, "dump", "--format", "parquet", "--workers", "1", "--memory",
		"256MiB", "-o", dir, src},
		Output: dir, Pinned: true}
	samples, err := interleave(b.o.rounds, dump)
	if err != nil {
		return nil, err
	}
	m := median(samples[0])
	speed := float64(b.o.elements) * mixBytes / m.CPU.Seconds()
	speeds := &result{Name: "dump to Parquet, one core",
		Want: fmt.Sprintf("≥ %.0f MB of keys and elements a second of CPU", limitParquet/1e6), OK: speed >= limitParquet,
		Got: fmt.Sprintf("%.0f MB a second of CPU, %s, peak %d MiB with --memory 256MiB", speed/1e6, seconds(m.Wall),
			m.RSS>>20),
		Medians: map[string]sample{dump.Name: m}, Samples: map[string][]sample{dump.Name: samples[0]}}
	if err := produce(dir, b.kvferry, "dump", "--format", "parquet", "-o", dir+partial, src); err != nil {
		return nil, err
	}
	back, err := b.against("parquet to blackwidow against blackwidow to blackwidow, one core", 0.5,
		b.convert(src, "blackwidow", true, "--workers", "1"), b.convert("parquet:"+dir, "parquet", true, "--workers", "1"))
	return []*result{speeds, back}, err
}

// mixBytes are the bytes of keys and elements of the mix, for each element: 439,056,500 for 5 million.
const mixBytes = 87.8
