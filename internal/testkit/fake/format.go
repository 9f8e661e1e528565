// Package fake is a format for tests. Its datasets are in memory or JSON, and it fails, forgets and corrupts data on
// request.
package fake

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"kvferry/format"
	"kvferry/record"
)

// Now is the clock of tests.
var Now = time.Unix(1700000000, 0)

// Format is a format for tests: a dataset is a directory of JSON files, one a shard.
type Format struct {
	Bounds format.Limits
	Groups []record.TypeSet
	// Wrap changes what Open returns.
	Wrap func(*Source)
	// Spoil changes a record before the target stores it, for proofs that must fail.
	Spoil func(*Record)
	// FailAfter makes writers fail after n records; 0 means never.
	FailAfter int
	// Forgets is the number of a task whose tables the target reports only once; 0 means none.
	Forgets int
	// OnShard is called with the memory limit of each writer.
	OnShard func(memory int64)
	// MidFinish is called between the renames of Finish.
	MidFinish func()
}

// PerType has one group per type, like a target of five stores.
var PerType = []record.TypeSet{record.Of(record.String), record.Of(record.Hash), record.Of(record.List),
	record.Of(record.Set), record.Of(record.ZSet)}

// NewFormat returns a format that holds a name under several types, in a group each.
func NewFormat() *Format {
	return &Format{Bounds: format.Limits{SameName: true}, Groups: PerType}
}

func (f *Format) Name() string                           { return "fake" }
func (f *Format) Limits() format.Limits                  { return f.Bounds }
func (f *Format) Detect(*format.Evidence) format.Verdict { return format.Verdict{} }

func (f *Format) Open(_ context.Context, dir string, o *format.OpenOptions) (format.Source, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, "CURRENT")); err != nil {
		return nil, err
	}
	s := &Source{Of: f, Resort: o.Options.Resort, Laid: format.LayoutFlat, Weight: 1, Whole: true}
	var records []Record
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		dec := json.NewDecoder(bytes.NewReader(data))
		for {
			var r Record
			if err := dec.Decode(&r); err == io.EOF {
				break
			} else if err != nil {
				return nil, err
			}
			records = append(records, r)
		}
	}
	s.Add(records...)
	if f.Wrap != nil {
		f.Wrap(s)
	}
	return s, nil
}

var (
	_ format.Format = (*Format)(nil)
	_ format.Source = (*Source)(nil)
	_ format.Target = (*Target)(nil)
)

// Dataset makes records of every type and key.
func Dataset(dbs int) []Record {
	var out []Record
	for db := range dbs {
		for i := range 60 {
			typ := record.Type(1 + i%5)
			r := Record{DB: fmt.Sprint(db), Type: typ, Key: []byte(fmt.Sprintf("key%02d", i/2))}
			for j := range 1 + i%4 {
				e := record.Element{Name: []byte(fmt.Sprint("n", j)), Value: []byte(fmt.Sprint(i, j))}
				if r.Type == record.ZSet {
					e.Score = float64(j)
				}
				r.Elems = append(r.Elems, e)
				if typ == record.String {
					r.Elems[0].Name = nil
					break
				}
			}
			out = append(out, r)
		}
	}
	return out
}
