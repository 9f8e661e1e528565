package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// redis compares kvferry with Redis's own programs and with another RDB reader.
func (b *bench) redis() ([]*result, error) {
	var out []*result
	for _, f := range []func() (*result, error){b.rdbJSON, b.rdbFingerprint, b.rdbLoad, b.rdbLoadAll, b.rdbSource, b.rdbMemory,
		b.logReplay, b.live} {
		r, err := f()
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// program returns a command that runs on one core.
func program(name, output string, argv ...string) *command {
	return &command{Name: name, Argv: argv, Output: output, Pinned: true}
}

// rdbJSON compares JSON lines of an RDB file with the output of another reader.
func (b *bench) rdbJSON() (*result, error) {
	file, err := b.data.mixIn("rdb", b.o.elements)
	if err != nil {
		return nil, err
	}
	peer, ours := filepath.Join(b.o.dir, "out-peer.json"), filepath.Join(b.o.dir, "out-dump.jsonl")
	return b.against("one core, an RDB file as JSON lines against hdt3213/rdb", 5,
		program("hdt3213/rdb", peer, filepath.Join(b.o.bin, "hdt3213-rdb"), "-c", "json", "-o", peer, file),
		program("dump", ours, b.kvferry, "dump", "rdb:"+file, "-o", ours, "--workers", "1"))
}

// rdbFingerprint compares reading an RDB file with reading the same records from blackwidow.
func (b *bench) rdbFingerprint() (*result, error) {
	file, dir, err := b.both()
	if err != nil {
		return nil, err
	}
	// reading an RDB file also detects duplicate keys
	return b.against("one core, fingerprint of an RDB file against blackwidow", 0.7,

		program("blackwidow", "", b.kvferry, "fingerprint", dir, "--workers", "1"),
		program("rdb", "", b.kvferry, "fingerprint", "rdb:"+file, "--workers", "1"))
}

// both returns the mix as an RDB file and in blackwidow.
func (b *bench) both() (file, dir string, err error) {
	if file, err = b.data.mixIn("rdb", b.o.elements); err == nil {
		dir, err = b.data.mixIn("blackwidow", b.o.elements)
	}
	return file, dir, err
}

// loader makes redis-server load a file.
func (b *bench) loader(file string) *command {
	return &command{Name: "redis-server", Argv: []string{filepath.Join(b.o.bin, "server"), "load", file}}
}

// rdbLoad compares writing an RDB file with a server loading it.
func (b *bench) rdbLoad() (*result, error) {
	file, dir, err := b.both()
	if err != nil {
		return nil, err
	}
	c := b.convertTo("rdb", dir, "kvferry", true, "--workers", "1", "--no-prove")
	return b.against("one core, blackwidow to rdb, without the proof, against redis-server loading the file", 0, b.loader(file),
		c)
}

// rdbLoadAll is rdbLoad on all cores, the default of users.
func (b *bench) rdbLoadAll() (*result, error) {
	file, dir, err := b.both()
	if err != nil {
		return nil, err
	}
	return b.against("all cores, blackwidow to rdb, without the proof, against redis-server loading the file", 2, b.loader(file),
		b.convertTo("rdb", dir, "kvferry", false, "--no-prove"))
}

// rdbSource compares an unsorted source with a sorted one.
func (b *bench) rdbSource() (*result, error) {
	file, dir, err := b.both()
	if err != nil {
		return nil, err
	}
	return b.against("one core, rdb to blackwidow against blackwidow to blackwidow, without the proof", 0.5,
		b.convertTo("blackwidow", dir, "blackwidow", true, "--workers", "1", "--no-prove"),
		b.convertTo("blackwidow", "rdb:"+file, "rdb", true, "--workers", "1", "--no-prove"))
}

// rdbMemory measures the peak memory of a sort that does not fit in memory.
func (b *bench) rdbMemory() (*result, error) {
	file, err := b.data.mixIn("rdb", b.o.elements)
	if err != nil {
		return nil, err
	}
	s, err := run(b.convert("rdb:"+file, "kvferry", false, "--memory", "256MiB"))
	if err != nil {
		return nil, err
	}
	return &result{
		Name: "peak memory, rdb to blackwidow, " + millions(b.o.elements), Want: "< 512 MiB with --memory 256MiB",
		OK: s.RSS < limitRSS, Got: fmt.Sprintf("%d MiB, %s", s.RSS>>20, seconds(s.Wall)),
		Medians: map[string]sample{"kvferry": s}, Samples: map[string][]sample{"kvferry": {s}},
	}, nil
}

// logReplay compares replaying random commands with a server loading them.
func (b *bench) logReplay() (*result, error) {
	n := b.o.elements * 2 / 5
	file, err := b.data.hsets(n)
	if err != nil {
		return nil, err
	}
	return b.against("one core, "+millions(n)+" HSETs of an append-only file to rdb, without the proof, against redis-server loading them",
		0, b.loader(file), b.convertTo("rdb", "aof:"+file, "kvferry", true, "--workers", "1", "--no-prove"))
}

// live compares loading a server with redis-cli --pipe, whose commands are already in a file.
func (b *bench) live() (*result, error) {
	src, err := b.data.mixIn("blackwidow", b.o.elements)
	if err != nil {
		return nil, err
	}
	commands := src + ".resp"
	if err := produce(commands, b.kvferry, "dump", src, "--format", "resp", "-o", commands+partial); err != nil {
		return nil, err
	}
	server, cpu := filepath.Join(b.o.bin, "server"), filepath.Join(b.o.dir, "out-cpu")
	r, err := b.against("blackwidow to a live redis-server against redis-cli --pipe", 0.9,
		&command{Name: "redis-cli", Argv: []string{server, "pipe", commands}},
		&command{Name: "kvferry", Output: cpu, Argv: []string{server, "run", cpu, b.kvferry, "convert", src, "unix://SOCKET"}})
	if err != nil {
		return nil, err
	}
	return r, b.addServer(r, server, cpu, src)
}

// addServer adds the CPU time of kvferry and of the server it loads.
func (b *bench) addServer(r *result, server, cpu, src string) error {
	defer os.RemoveAll(cpu)
	s, err := measure(&command{Argv: []string{server, "run", cpu, b.kvferry, "convert", src, "unix://SOCKET"}})
	if err != nil {
		return err
	}
	text, err := os.ReadFile(cpu)
	if err != nil {
		return err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return err
	}
	its := time.Duration(n)
	ours := s.CPU - its
	r.Want += ", CPU below the server's"
	r.Got += fmt.Sprintf("; CPU: kvferry %s, server %s", seconds(ours), seconds(its))
	r.OK = r.OK && ours < its
	return nil
}
