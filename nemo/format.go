package nemo

import (
	"context"
	"fmt"
	"math"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/record"
	"kvferry/store"
)

// maxElements is the largest count that the engine's commands handle.
const maxElements = math.MaxInt32

// nemoFormat is the Format, in the dialect of a server or, with "", in the dialect that all servers open.
type nemoFormat struct{ server string }

// New returns the format.
func New() format.Format { return nemoFormat{} }

// Name returns "nemo".
func (nemoFormat) Name() string { return "nemo" }

// Servers lists Pika 1.x to 2.3.
func (nemoFormat) Servers() []format.Server {
	return []format.Server{{Name: "pika2", First: "1", Last: "2.3", Detail: "Pika 1.x to 2.3"}}
}

// For returns the format for a server. It is the same for all servers.
func (nemoFormat) For(server string) format.Format { return nemoFormat{server} }

// Server returns the name given to For.
func (f nemoFormat) Server() string { return f.server }

// Limits describes the values that nemo can hold.
func (nemoFormat) Limits() format.Limits {
	return format.Limits{
		Types:       allTypes,
		Seconds:     true,
		MaxExpireMS: dataset.LastSecond * 1000,
		FirstMS:     1000,
		Signed:      allTypes &^ record.Of(record.String),
		MaxKey:      MaxKey,
		MaxScore:    MaxScore,
		MaxElements: maxElements,
		SameName:    true,
		Databases:   "one in the root, or db0, db1, …",
		Numbered:    true,
		Beside:      dataset.PikaBeside, Start: []string{dataset.PikaStart},
		Layouts:     true,
		Stores:      []format.StoreSupport{{Store: "rocksdb", Read: true, Write: true}},
		Detail:      "Pika 1.x to 2.3, on RocksDB 5.0.1",
		ScoreDetail: "float64 from -1e13 to 1e13; ranked by 5 decimals",
		OtherDetails: []string{
			"keys of collections have 1 to 254 bytes; keys of strings have any length, including 0",
		},
	}
}

// Detect looks for the five directories, in the root or in db0, db1, ….
func (nemoFormat) Detect(ev *format.Evidence) format.Verdict {
	look := dataset.Look{Names: dirs(), Home: func(dir string) bool { return dir == "" || dataset.IsDB(dir) },
		Judge: func(_ string, s *format.StoreEvidence) (string, bool) {
			if why := unlike(s); why != "" {
				return why, false
			}
			return s.Path + " is a RocksDB database with one bytewise column family", true
		}}
	return look.Weigh(ev)
}

// unlike returns why a directory with the right name is no nemo store; "" if it may be one.
func unlike(s *format.StoreEvidence) string {
	if s.Kind != "rocksdb" {
		return fmt.Sprintf("%s is a %s directory; nemo uses RocksDB", s.Path, s.Kind)
	}
	for _, k := range s.Keyspaces {
		if k.Name != "default" {
			return fmt.Sprintf("%s has a column family %q; nemo has only the default one", s.Path, k.Name)
		}
		if k.Comparer != "" && k.Comparer != store.Bytewise.Name {
			return fmt.Sprintf("%s is ordered by %s; nemo's order is bytewise", s.Path, k.Comparer)
		}
	}
	return ""
}

// Open opens a source.
func (f nemoFormat) Open(ctx context.Context, dir string, o *format.OpenOptions) (format.Source, error) {
	return open(ctx, f, dir, o)
}

// Create starts a target.
func (f nemoFormat) Create(ctx context.Context, dir string, o *format.CreateOptions) (format.Target, error) {
	return create(ctx, f, dir, o)
}
