package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvferry/fixtures"
)

// source is a dataset to damage, and the outcomes of the commands on the undamaged dataset.
type source struct {
	name   string
	dir    string   // the dataset: a directory, or an RDB file
	files  []string // relative to dir; "." for a file
	target string   // target of conversions: its own format if writable

	dump, verify, convert *outcome
	sound                 *reading // outcomes of all commands
}

// targets maps name prefixes of datasets to targets of conversions.
var targets = []struct{ prefix, target string }{
	{"nemo", "nemo"}, {"bw", "blackwidow"}, {"pika35", "pika3.5"}, {"pika4", "pika4"}, {"ardb-leveldb", "ardb+leveldb"}, {"ardb", "ardb"},
	{"kvrocks", "kvrocks"}, {"rdb", "rdb"}, {"aof", "rdb"},
}

// unpack extracts the databases of the original engines below dir.
func unpack(dir string, outside bool) (out []*source, err error) {
	for _, a := range fixtures.Archives(outside) {
		for _, t := range targets {
			if !strings.HasPrefix(a.Name, t.prefix) {
				continue
			}
			s := &source{name: a.Name, target: t.target}
			if s.dir, err = a.Extract(dir); err != nil {
				return nil, err
			}
			if s.files, err = filesOf(s.dir); err != nil {
				return nil, err
			}
			out = append(out, s)
			break
		}
	}
	return out, nil
}

// filesOf lists the regular files of a tree, which may be absent.
func filesOf(dir string) (out []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			rel, _ := filepath.Rel(dir, path)
			out = append(out, rel)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return out, err
}

// learn runs the commands on the undamaged source. A source that is not read to its end, like a log with a script, is
// not usable.
func (s *source) learn(r *runner) (usable bool) {
	if s.dump == nil {
		s.dump, s.verify = r.dump(s.dir), r.verify(s.dir)
		s.convert = r.convert(s.dir, s.target)
	}
	return s.dump.code == 0 && s.dump.sum.lines > 0
}

// named reports whether the name of a file matches a pattern.
func named(file, pattern string) bool {
	ok, _ := filepath.Match(pattern, filepath.Base(file))
	return ok
}

// has reports whether the name of a file of the source matches a pattern.
func (s *source) has(pattern string) bool {
	return slices.ContainsFunc(s.files, func(f string) bool { return named(f, pattern) })
}

// size returns the total size of the source's files.
func (s *source) size() (n int64) {
	for _, f := range s.files {
		if info, err := os.Stat(filepath.Join(s.dir, f)); err == nil {
			n += info.Size()
		}
	}
	return n
}

// copyTo makes a copy of the source. Its files are hard links: change them only with replace.
func (s *source) copyTo(dir string) error {
	for _, rel := range s.files {
		to := filepath.Join(dir, rel)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.Link(filepath.Join(s.dir, rel), to); err != nil {
			return err
		}
	}
	return nil
}

// replace replaces a file of a copy. Zeros at its end become a hole.
func replace(path string, data []byte) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, bytes.TrimRight(data, "\x00"), 0o644); err != nil {
		return err
	}
	return os.Truncate(path, int64(len(data)))
}
