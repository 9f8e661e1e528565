package aof

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"kvferry/format"
	"kvferry/record"
)

// Format is the append-only file of Redis and Valkey.
type Format struct{}

// New returns the format.
func New() *Format { return new(Format) }

// Name is what locations call it.
func (*Format) Name() string { return "aof" }

// Detect looks for a manifest or an append-only file.
func (*Format) Detect(ev *format.Evidence) format.Verdict {
	switch {
	case len(ev.Stores) > 0:
		return format.Verdict{}
	case bytes.HasPrefix(ev.Head, []byte("*")) && bytes.Contains(ev.Head, []byte("\r\n$")):
		return format.Verdict{Score: 95, Why: []string{"begins with a command"}}
	case isSnapshot(ev.Head) && preamble(ev.Head):
		return format.Verdict{Score: 105, Why: []string{"begins with an RDB part that says it is of an append-only file"}}
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
	return format.Verdict{Score: 95, Why: []string{fmt.Sprintf("%s of an append-only log", record.Plural(int64(len(log.Files)), "file"))}}
}

// preamble reports whether an RDB file says that it is the first part of an append-only file: the field aof-preamble
// (to 6.2) or aof-base is 1, an integer of 8 bits.
func preamble(head []byte) bool {
	return bytes.Contains(head, []byte("aof-preamble\xc0\x01")) || bytes.Contains(head, []byte("aof-base\xc0\x01"))
}

// Limits says that a log holds all that a server does.
func (*Format) Limits() format.Limits {
	return format.Limits{
		Place:        format.InFiles,
		NoTarget:     "append-only files are not written yet: write rdb:dump.rdb, from which servers start too",
		Types:        record.AllTypes,
		EmptyKey:     true,
		FieldExpiry:  true,
		StreamGroups: true,
		Whole:        true,
		Databases:    "any number",
		Numbered:     true,
		Layout:       format.LayoutFlat,
		Detail:       "append-only files of Redis 1.3 to 8 and Valkey: one file, an RDB preamble, or a directory with a manifest",
	}
}

// Create is not there yet.
func (f *Format) Create(context.Context, string, *format.CreateOptions) (format.Target, error) {
	return nil, errors.New(f.Limits().NoTarget)
}
