package floyd

import (
	"context"
	"fmt"
	"math"
	"path"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/record"
	"kvferry/store"
)

const serverPika4 = "pika4"

// maxElements is the maximum number of elements of collections other than lists.
const maxElements = math.MaxInt32

var lossInfos = append([]record.LossInfo{
	{Kind: record.LossInnerNUL, Text: "A key contains a NUL but does not end with one. Pika 4.0 does not write the bytes after the last NUL, so it would lose the key or mistake " +
		"it for another; the record is left out."},
}, dataset.PikaStreamLosses...)

// floydFormat is the Format.
type floydFormat struct {
	server string
	slots  int // by which the dataset was just written; 0: not known
}

// New returns the format.
func New() format.Format { return floydFormat{} }

// Name returns "floyd".
func (floydFormat) Name() string { return "floyd" }

// Servers lists Pika 4.0.
func (floydFormat) Servers() []format.Server {
	return []format.Server{{Name: serverPika4, First: "4.0", Last: "4.0", Detail: "Pika 4.0: databases in db0, db1, …, each of several instances"}}
}

// For returns the format for a server. It is the same for all servers.
func (floydFormat) For(server string) format.Format { return floydFormat{server: server} }

// Server returns the name given to For.
func (f floydFormat) Server() string { return f.server }

// Limits describes the values that floyd can hold.
func (floydFormat) Limits() format.Limits {
	return format.Limits{
		Types:      allTypes,
		EmptyKey:   true,
		NoInnerNUL: true, NoStreamExpiry: true, NoBlankStream: true,
		FirstMS:     1,
		MaxScore:    math.Inf(1),
		MaxElements: maxElements,
		Unbounded:   record.Of(record.List),
		Databases:   "db0 to db7, each spread over instances 0, 1, …",
		Numbered:    true,
		MaxDBs:      8,
		Layouts:     true,
		Layout:      format.LayoutDB,
		Instances:   defaultInstances,
		Slots:       defaultSlots,
		Stores:      []format.StoreSupport{{Store: "rocksdb", Read: true, Write: true}},
		Detail:      "Pika 4.0, on RocksDB 8.7.3",
		ScoreDetail: "any float64 but NaN",
		OtherDetails: []string{
			"a key has only one type",
			"a key that contains a NUL must end with a NUL",
			"lists may have any number of elements",
			"streams have neither groups nor an expiry",
		},
		Losses: lossInfos,
		Beside: dataset.PikaBeside,
		Start: []string{dataset.PikaStart, "Set `db-instance-num` and `default-slot-num` to {instances} and {slots}: " +
			"with other numbers the server does not find all keys."},
	}
}

// Comparers are the orders of the column families that are not bytewise, for opening stores.
func Comparers() []store.Comparer {
	return []store.Comparer{ListsDataKeyComparator, ZSetsScoreKeyComparator}
}

// Detect looks for instances, in the root or in the directories of databases.
func (floydFormat) Detect(ev *format.Evidence) format.Verdict {
	var v format.Verdict
	for i := range ev.Stores {
		s := &ev.Stores[i]
		if home, n := path.Dir(s.Path), path.Base(s.Path); !dataset.IsNumber(n) || home != "." && !dataset.IsDB(home) {
			continue
		}
		score, why := weigh(s)
		if why != "" {
			v.Score = max(v.Score, score)
			v.Why = append(v.Why, why)
		}
	}
	return v
}

// weigh returns how likely a store is an instance, and why.
func weigh(s *format.StoreEvidence) (score int, why string) {
	if s.Kind != "rocksdb" {
		return 0, ""
	}
	for _, k := range s.Keyspaces {
		want := orders[k.Name]
		if want == nil {
			return 0, fmt.Sprintf("%s has a column family %q, which floyd's does not", s.Path, k.Name)
		}
		if k.Comparer != "" && k.Comparer != want.Name {
			return 0, fmt.Sprintf("%s: %s is ordered by %s; floyd orders it by %s", s.Path, k.Name, k.Comparer, want.Name)
		}
		switch {
		case k.Comparer != "" && !want.IsBytewise():
			score = 100
		case k.Name != cfDefault:
			score = max(score, 80)
		}
	}
	if score == 0 {
		return 0, ""
	}
	return score, s.Path + " is a RocksDB database with the column families of floyd's instances"
}

// Open opens a source.
func (f floydFormat) Open(ctx context.Context, dir string, o *format.OpenOptions) (format.Source, error) {
	return open(ctx, f, dir, o)
}

// Create starts a target.
func (f floydFormat) Create(ctx context.Context, dir string, o *format.CreateOptions) (format.Target, error) {
	return create(ctx, f, dir, o)
}
