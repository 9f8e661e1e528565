package aof

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	"kvferry/format"
	"kvferry/record"
	"kvferry/redis"
	"kvferry/redis/rdb"
)

// Name is the name of the format in locations.
const Name = "aof"

// Format is the append-only file of Redis and Valkey.
type Format struct{ base format.Format }

// New returns the format. The bases of its targets have the version that most servers load.
func New() *Format { return &Format{redis.NewBase(rdb.DefaultVersion)} }

// WithVersion returns a format whose targets have a base in one of rdb.Versions.
func WithVersion(version string) (format.Format, error) {
	v, err := rdb.ParseVersion(version)
	if err != nil {
		return nil, err
	}
	return &Format{redis.NewBase(v)}, nil
}

// TargetVersion returns the version of the bases of targets, or "" for the usual one.
func (f *Format) TargetVersion() string {
	return f.base.(interface{ TargetVersion() string }).TargetVersion()
}

// Name returns Name.
func (*Format) Name() string { return Name }

// Detect looks for a manifest or an append-only file.
func (*Format) Detect(ev *format.Evidence) format.Verdict {
	switch {
	case len(ev.Stores) > 0:
		return format.Verdict{}
	case ev.Head != nil && parsePart(filepath.Base(ev.Dir)) != nil:
		return format.Verdict{Score: 105, Why: []string{"a file of an append-only log of several parts"}}
	case commandFirst(ev.Head):
		return format.Verdict{Score: 95, Why: []string{"begins with a command"}}
	case isSnapshot(ev.Head) && preamble(ev.Head):
		return format.Verdict{Score: 105, Why: []string{"begins with an RDB part that is marked as part of an append-only file"}}
	case ev.Head != nil && !bytes.HasPrefix(ev.Head, []byte("file ")):
		return format.Verdict{}
	}
	log, err := Find(ev.Dir)
	switch {
	case errors.Is(err, ErrNotLog):
		return format.Verdict{}
	case err != nil:
		return format.Verdict{Score: 50, Why: []string{err.Error()}}
	}
	return format.Verdict{Score: 95, Why: []string{fmt.Sprintf("%s of an append-only log", record.Count(int64(len(log.Files)), "file"))}}
}

// commandFirst reports whether a file begins with a command, or with annotations (aof-timestamp-enabled) and a command.
func commandFirst(head []byte) bool {
	noted := bytes.HasPrefix(head, []byte("#TS:"))
	for bytes.HasPrefix(head, []byte("#")) {
		_, head, _ = bytes.Cut(head, []byte("\n"))
	}
	return bytes.HasPrefix(head, []byte("*")) && bytes.Contains(head, []byte("\r\n$")) || noted && len(head) == 0
}

// preamble reports whether an RDB file is marked as the first part of an append-only file: the field aof-preamble (up
// to 6.2) or aof-base is 1, an 8-bit integer.
func preamble(head []byte) bool {
	return bytes.Contains(head, []byte("aof-preamble\xc0\x01")) || bytes.Contains(head, []byte("aof-base\xc0\x01"))
}

// Limits returns the limits of the base of a target; a log itself can hold all data of a server.
func (f *Format) Limits() format.Limits {
	l := f.base.Limits()
	l.Place = format.InFiles
	l.Layout = format.LayoutFlat
	l.Databases = "any number"
	l.Detail = "append-only files of Redis 1.3 to 8 and Valkey: one file, an RDB preamble, or a directory with a manifest; " +
		"written as a directory of Redis 7.0 and later and Valkey, with a base in RDB " + f.Version()
	l.OtherDetails = nil
	l.Start = []string{"Set `dir` to `{path}` and `appendonly` to `yes`.", l.Start[1]}
	return l
}

// Version names the version of the bases of targets.
func (f *Format) Version() string { return redis.VersionOf(f.base).String() }
