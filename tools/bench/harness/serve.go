package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// gets is the number of GETs in a round.
const gets = 100_000

// firstReply is the maximum time from the start of serve to its first reply on a large directory.
const firstReply = 2 * time.Second

// serve compares kvferry serve with a redis-server that has the same data in memory.
func (b *bench) serve() (out []*result, err error) {
	for _, format := range []string{"nemo", "blackwidow"} {
		src, err := b.data.mixIn(format, b.o.elements)
		if err != nil {
			return nil, err
		}
		results, err := b.served(format, src)
		if err != nil {
			return nil, err
		}
		out = append(out, results...)
		r, err := b.feed(format, src)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	r, err := b.firstReply()
	return append(out, r), err
}

// served measures reading through clients. Both servers run all the time and are asked in turn.
func (b *bench) served(format, src string) (out []*result, err error) {
	file, err := b.data.mixIn("rdb", b.o.elements)
	if err != nil {
		return nil, err
	}
	theirs, err := b.startRedis(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, theirs.stop()) }()
	ours, err := b.startServe(src)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ours.stop()) }()
	servers := []*server{theirs, ours}
	keys, err := ours.scan("TYPE", "string")
	if err != nil {
		return nil, err
	}
	scan, err := b.inTurn(servers, func(s *server, _ int) ([]time.Duration, error) {
		began := time.Now()
		keys, err := s.scan()
		if err == nil && len(keys) < int(b.o.elements/3) {
			err = fmt.Errorf("%s: %d keys", s.name, len(keys))
		}
		return []time.Duration{time.Since(began)}, err
	})
	if err != nil {
		return nil, err
	}
	get, err := b.inTurn(servers, func(s *server, round int) ([]time.Duration, error) { return s.gets(keys, uint64(round)) })
	if err != nil {
		return nil, err
	}
	x := compared("SCAN of "+format+" with COUNT 1000 against redis-server", 0.5, servers, scan, 50)
	y := compared("GETs of random strings of "+format+" against redis-server, p50", 0, servers, get, 50)
	z := compared("GETs of random strings of "+format+" against redis-server, p99", 0, servers, get, 99)
	return []*result{x, y, z}, nil
}

// feed compares sending everything to a replica with writing the file.
func (b *bench) feed(format, src string) (*result, error) {
	s, err := b.startServe(src)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(b.o.dir, "out-replica.rdb")
	r, err := b.against("redis-cli --rdb from a served "+format+" against convert to rdb, without the proof", 0.8,
		b.convertTo("rdb", src, "convert", false, "--no-prove"),
		&command{Name: "redis-cli", Argv: []string{"/bin/sh", "-c", `redis-cli -s "$0" --rdb "$1" >&2`, s.socket, file},
			Output: file})
	return r, errors.Join(err, s.stop())
}

// firstReply measures the start on a directory of as many tables as 100 GB of Pika have.
func (b *bench) firstReply() (*result, error) {
	src, err := b.data.many(b.o.elements)
	if err != nil {
		return nil, err
	}
	tables, err := filepath.Glob(filepath.Join(src, "*", "*.sst"))
	if err != nil {
		return nil, err
	}
	var times []time.Duration
	for range b.o.rounds {
		began := time.Now()
		s, err := b.startServe(src)
		if err != nil {
			return nil, err
		}
		_, err = s.ask("GET", "none")
		times = append(times, time.Since(began))
		if err = errors.Join(err, s.stop()); err != nil {
			return nil, err
		}
	}
	slices.Sort(times)
	took := times[len(times)/2]
	return &result{Name: fmt.Sprintf("first reply of serve on a directory of %d tables", len(tables)),
		Want: "≤ " + seconds(firstReply),
		Got:  seconds(took), OK: took <= firstReply, Medians: map[string]sample{"kvferry": {Wall: took}}}, nil
}

// server is a running server and a connection to it.
type server struct {
	name, dir, socket string
	cmd               *exec.Cmd
	conn              net.Conn
	r                 *bufio.Reader
	request           []byte
}

func (b *bench) startServe(src string) (*server, error) {
	return start("kvferry", b.kvferry, func(_, socket string) []string { return []string{"serve", src, "--unix-socket", socket} })
}

func (b *bench) startRedis(file string) (*server, error) {
	return start("redis-server", "redis-server", func(dir, socket string) []string {
		return []string{"--port", "0", "--unixsocket", socket, "--dir", filepath.Dir(file), "--dbfilename", filepath.Base(file),
			"--save", "", "--loglevel", "warning"}
	})
}

// start starts a server and waits until it has loaded its data.
func start(name, program string, argv func(dir, socket string) []string) (*server, error) {
	dir, err := os.MkdirTemp("", "kvferry-bench-serve-")
	if err != nil {
		return nil, err
	}
	s := &server{name: name, dir: dir, socket: filepath.Join(dir, "socket")}
	s.cmd = exec.Command(program, argv(dir, s.socket)...)
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	for range 60000 {
		if s.conn, err = net.Dial("unix", s.socket); err == nil {
			s.r = bufio.NewReaderSize(s.conn, 64<<10)
			if s.ready() {
				return s, nil
			}
			s.conn.Close()
		}
		time.Sleep(2 * time.Millisecond)
	}
	return nil, errors.Join(fmt.Errorf("%s does not answer: %w", name, err), s.stop())
}

func (s *server) ready() bool {
	_, err := s.ask("PING")
	return err == nil
}

func (s *server) stop() error {
	if s.conn != nil {
		s.conn.Close()
	}
	err := s.cmd.Process.Signal(os.Interrupt)
	wait := s.cmd.Wait()
	if err == nil && s.name == "kvferry" {
		err = wait
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// ask sends a command and returns the first line of the reply, or a string, which is nil if it is missing.
func (s *server) ask(args ...string) ([]byte, error) {
	b := append(s.request[:0], '*')
	b = append(strconv.AppendInt(b, int64(len(args)), 10), '\r', '\n')
	for _, arg := range args {
		b = append(b, '$')
		b = append(strconv.AppendInt(b, int64(len(arg)), 10), '\r', '\n')
		b = append(append(b, arg...), '\r', '\n')
	}
	s.request = b
	if _, err := s.conn.Write(b); err != nil {
		return nil, err
	}
	return s.next()
}

// next reads a line, or a string. It is valid until the next call.
func (s *server) next() ([]byte, error) {
	line, err := s.r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	if line[0] == '-' {
		return nil, fmt.Errorf("%s: %s", s.name, line)
	}
	if line[0] != '$' {
		return line, nil
	}
	if line[1] == '-' {
		return nil, nil
	}
	n, err := number(line)
	if err != nil {
		return nil, err
	}
	text := make([]byte, n+2)
	_, err = io.ReadFull(s.r, text)
	return text[:n], err
}

// number returns the number in a line such as "*2\r\n".
func number(line []byte) (int, error) { return strconv.Atoi(strings.TrimSpace(string(line[1:]))) }

// scan returns all keys.
func (s *server) scan(options ...string) (keys []string, err error) {
	for cursor := "0"; ; {
		if _, err := s.ask(append([]string{"SCAN", cursor, "COUNT", "1000"}, options...)...); err != nil {
			return nil, err
		}
		next, err := s.next()
		if err != nil {
			return nil, err
		}
		cursor = string(next)
		line, err := s.next()
		if err != nil {
			return nil, err
		}
		n, err := number(line)
		if err != nil {
			return nil, err
		}
		for range n {
			key, err := s.next()
			if err != nil {
				return nil, err
			}
			keys = append(keys, string(key))
		}
		if cursor == "0" {
			return keys, nil
		}
	}
}

// gets returns the times of GETs of random keys, one after the other.
func (s *server) gets(keys []string, seed uint64) ([]time.Duration, error) {
	r, out := rand.New(rand.NewPCG(seed, 0)), make([]time.Duration, gets)
	for i := range out {
		began := time.Now()
		v, err := s.ask("GET", keys[r.IntN(len(keys))])
		if err == nil && v == nil {
			err = fmt.Errorf("%s: a key is missing", s.name)
		}
		if err != nil {
			return nil, err
		}
		out[i] = time.Since(began)
	}
	return out, nil
}

// inTurn calls f with the servers alternately, once to warm the cache and then rounds times, and returns the times of
// each server.
func (b *bench) inTurn(servers []*server, f func(s *server, round int) ([]time.Duration, error)) ([][]time.Duration, error) {
	out := make([][]time.Duration, len(servers))
	for round := -1; round < b.o.rounds; round++ {
		for i, s := range servers {
			times, err := f(s, round)
			if err != nil {
				return nil, err
			}
			if round >= 0 {
				out[i] = append(out[i], times...)
			}
		}
	}
	return out, nil
}

// compared compares percentiles of the times of two servers.
func compared(name string, least float64, servers []*server, times [][]time.Duration, percent int) *result {
	r := &result{Name: name, Want: fmt.Sprintf("≥ %g ×", least), Medians: map[string]sample{}}
	var at [2]time.Duration
	for i, s := range servers {
		slices.Sort(times[i])
		at[i] = times[i][(len(times[i])-1)*percent/100]
		r.Medians[s.name] = sample{Wall: at[i]}
	}
	r.Ratio = ratio(at[0], at[1])
	r.Got = fmt.Sprintf("%.2f ×: %s %s, %s %s", r.Ratio, servers[0].name, at[0].Round(time.Microsecond), servers[1].name,
		at[1].Round(time.Microsecond))
	r.OK = r.Ratio >= least
	if least == 0 {
		r.Want = "no bound"
	}
	return r
}
