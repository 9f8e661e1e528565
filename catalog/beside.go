package catalog

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/object"
	"kvferry/record"
	"kvferry/redis"
	"kvferry/redis/aof"
)

// beside describes the log and the dump of a server, which loads only one of them.
type beside struct {
	*aof.Beside
	given    bool // the location names the log or the dump, not the directory of both
	once     sync.Once
	findings []record.Finding
}

// chooseDump looks for the log and the dump of a server. Of a directory without the name of a format, it makes the dump
// the dataset if the log ends before the dump, or is empty.
func (f *Found) chooseDump(named bool) error {
	var b *aof.Beside
	var err error
	switch name := f.Format.Name(); {
	case object.IsWeb(f.Location.Path), f.Location.Path == standardInput:
	case name == aof.Name:
		b, err = aof.FindDumpOf(f.Location.Path)
	case name == redis.Name:
		b, err = aof.FindLogOf(f.Location.Path)
	}
	if b == nil || err != nil {
		return nil // opening the dataset reports the error
	}
	f.beside = &beside{Beside: b, given: !b.Server || named}
	if f.Format.Name() != aof.Name || f.beside.given || b.Dump == "" || !b.LogOlder() && !f.beside.empty() {
		return nil
	}
	head, err := redis.Head(b.Dump)
	f.Format, f.Evidence = redis.New(), &format.Evidence{Dir: b.Dump, Head: head}
	f.Location.Format, f.Location.Path = redis.Name, b.Dump
	return err
}

// empty reports whether the log is empty and the dump is not.
func (b *beside) empty() bool { return b.Dump != "" && b.LogEmpty() && !b.DumpEmpty() }

// reportBeside reports the datasets next to this one, with the number of their records. An empty log next to a dump with
// records is an error: a server with appendonly yes starts empty, although the dump has its data.
func (f *Found) reportBeside(ctx context.Context, o *format.OpenOptions) error {
	b := f.beside
	if b == nil || o.Options.Own {
		return nil
	}
	byLog := f.Format.Name() == aof.Name
	if !b.given && b.empty() && !o.Options.Salvage {
		return fmt.Errorf("%s: the append-only log is empty, and %s is not: a server with appendonly yes starts without its records; "+
			"choose %s:%s or %s:%s", f.Given, b.Dump, redis.Name, b.Dump, aof.Name, b.fileOfLog())
	}
	if o.Options.Report == nil {
		return nil
	}
	b.once.Do(func() { b.describe(ctx, byLog, o) })
	for _, finding := range b.findings {
		o.Options.Report(finding)
	}
	return ctx.Err()
}

// maxReplayed bounds the size of a log that kvferry replays to count its records if the location names the dump.
const maxReplayed = 1 << 30

// fileOfLog returns a location that names only the log.
func (b *beside) fileOfLog() string {
	if path := disk.Join(b.At, "appendonly.aof.manifest"); exists(path) {
		return path
	}
	return disk.Join(b.Log.Dir, b.Log.Files[len(b.Log.Files)-1])
}

func exists(path string) bool {
	_, err := disk.Stat(path)
	return err == nil
}

// describe makes the findings.
func (b *beside) describe(ctx context.Context, byLog bool, o *format.OpenOptions) {
	add := func(kind string, severity record.Severity, path, detail string) {
		b.findings = append(b.findings, record.Finding{Kind: kind, Severity: severity, Detail: detail,
			Place: record.InFile(filepath.Base(path))})
	}
	last, _ := b.LogTime()
	var held string // by the log, if kvferry reads the dump
	switch {
	case byLog:
	case b.given && b.Log.Bytes() > maxReplayed:
		held = record.Bytes(b.Log.Bytes())
	default:
		held = count(ctx, aof.New(), b.At, o)
	}
	switch {
	case b.Dump == "":
	case byLog:
		made, _ := b.DumpTime()
		add(record.FindDatasetBeside, record.Note, b.Dump, fmt.Sprintf("an RDB file with %s of %s, which a server with appendonly no loads; kvferry reads the log, last written %s, as a server with appendonly yes does",
			count(ctx, redis.New(), b.Dump, o), clock(made), clock(last)))
	case slices.Contains(b.Log.Files, filepath.Base(b.Dump)):
		add(record.FindDatasetBeside, record.Note, b.At,
			fmt.Sprintf("%s belongs to an append-only log with %s; kvferry reads only this file", filepath.Base(b.Dump), held))
	default:
		age := "newer"
		if !b.LogOlder() {
			age = "not newer"
		}
		add(record.FindDatasetBeside, record.Note, b.At, fmt.Sprintf("an append-only log with %s, last written %s, which a server with appendonly yes loads; kvferry reads %s, which is %s, as a server with appendonly no does",
			held, clock(last), filepath.Base(b.Dump), age))
	}
	if b.empty() && (byLog || !b.given) {
		dump := filepath.Base(b.Dump)
		add(aof.FindEmpty, record.Error, b.At, fmt.Sprintf("the append-only log is empty, and %s is not: a server with appendonly yes starts without its records",
			dump))
		empty := &b.findings[len(b.findings)-1]
		empty.Lost, empty.Sure = "nothing of "+dump, "an empty log does not show whether it once had data"
		if byLog {
			empty.Lost = "the records of " + dump + ", which kvferry does not read"
		}
	}
	for _, path := range b.Others {
		add(record.FindDatasetBeside, record.Note, path, fmt.Sprintf("another append-only log, such as a backup, with %s; kvferry does not read it",
			count(ctx, aof.New(), path, o)))
	}
}

// clock formats a time of a file.
func clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// count opens another dataset and returns the number of its records as text.
func count(ctx context.Context, f format.Format, path string, o *format.OpenOptions) string {
	options := format.OpenOptions{Options: o.Options}
	options.Options.Report, options.Options.Copied, options.Options.Sources, options.Options.Salvage = nil, nil, nil, true
	src, err := f.Open(ctx, path, &options)
	if err != nil {
		return fmt.Sprintf("records that kvferry cannot count (%v)", err)
	}
	counted, ok := format.As[interface{ Items() int64 }](src)
	if err := src.Close(); err != nil || !ok {
		return fmt.Sprintf("records that kvferry cannot count (%v)", errors.Join(err))
	}
	n := counted.Items()
	if half, ok := format.As[interface{ Half() int64 }](src); ok {
		n -= half.Half()
	}
	return record.Count(n, "record")
}
