package main

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
)

// overlapRuns is the number of sorted runs in a source with overlapping writes.
const overlapRuns = 13

// datasets creates sources on demand, once each, in its own directory.
type datasets struct {
	dir                              string
	gen, overlap, convert, reference string // programs
	seed                             uint64
}

// generate returns the directory of a dataset of a kind: "mix", "zset", "list" or "linked".
func (d *datasets) generate(kind string, n int64) (string, error) {
	dir := filepath.Join(d.dir, fmt.Sprintf("%s-%d", kind, n))
	return dir, produce(dir, d.gen, kind, dir+partial, strconv.FormatInt(n, 10), "--seed", strconv.FormatUint(d.seed, 10))
}

// mix returns the benchmark's mix, as one sorted run or several overlapping ones.
func (d *datasets) mix(n int64, runs int) (string, error) {
	src, err := d.generate("mix", n)
	if err != nil || runs == 1 {
		return src, err
	}
	dir := fmt.Sprintf("%s-runs%d", src, runs)
	return dir, produce(dir, d.overlap, src, dir+partial, strconv.Itoa(runs))
}

// mixIn returns the benchmark's mix in another format.
func (d *datasets) mixIn(format string, n int64) (string, error) {
	src, err := d.mix(n, 1)
	if err != nil || format == "nemo" { // the original mix
		return src, err
	}
	dir := src + "-" + format
	argv := []string{d.convert, "convert", src, format + ":" + dir + partial}
	if format == "ssdb" { // which has no sets, and integers for scores
		argv = append(argv, "--allow-loss", "set,score-precision,collection-expiry")
	}
	return dir, produce(dir, argv...)
}

// many returns the benchmark's mix in as many tables as 100 GB of Pika have, whose tables are of 20 MB.
func (d *datasets) many(n int64) (string, error) {
	const bytes, tables = 100, 5000 // an element, about
	dir := filepath.Join(d.dir, fmt.Sprintf("mix-%d-many", n))
	return dir, produce(dir, d.gen, "mix", dir+partial, strconv.FormatInt(n, 10), "--seed", strconv.FormatUint(d.seed, 10),
		"--table-size", strconv.FormatInt(n*bytes/tables, 10))
}

// tables returns the benchmark's mix in tables that RocksDB wrote with a format_version.
func (d *datasets) tables(version int, n int64) (string, error) {
	src, err := d.mix(n, 1)
	if err != nil {
		return "", err
	}
	dir := fmt.Sprintf("%s-version%d", src, version)
	return dir, produce(dir, d.reference, "load", src, dir+partial, strconv.Itoa(version))
}

// hsets returns an append-only file of n HSETs of random fields in random hashes.
func (d *datasets) hsets(n int64) (string, error) {
	file := filepath.Join(d.dir, fmt.Sprintf("hsets-%d.aof", n))
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	f, err := os.Create(file + partial)
	if err != nil {
		return "", err
	}
	r, w := rand.New(rand.NewPCG(d.seed, 0)), bufio.NewWriter(f)
	for range n {
		key, field, value := fmt.Sprint("hash:", r.Int64N(n/10+1)), fmt.Sprint("field", r.IntN(100)), fmt.Sprint("value",
			r.Uint64())
		fmt.Fprintf(w, "*4\r\n$4\r\nHSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(key), key, len(field), field,
			len(value), value)
	}
	if err := errors.Join(w.Flush(), f.Close()); err != nil {
		return "", err
	}
	return file, os.Rename(file+partial, file)
}

// partial is the suffix of an unfinished dataset.
const partial = ".part"

// produce runs a program that writes dir.part and renames it to dir, so that a dataset is complete or absent.
func produce(dir string, argv ...string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.RemoveAll(dir + partial); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "making %s\n", filepath.Base(dir))
	if _, err := measure(&command{Argv: argv}); err != nil {
		return err
	}
	return os.Rename(dir+partial, dir)
}
