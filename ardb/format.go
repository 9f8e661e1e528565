package ardb

import (
	"context"
	"fmt"
	"path"

	"kvferry/ardb/codec"
	"kvferry/format"
	"kvferry/record"
)

// lmdbReason says why LMDB is not written.
const lmdbReason = "a stock server searches an LMDB file in byte order after its first restart, so that no order of rows serves " +
	"both its lookups and its ranges; write ardb+rocksdb or ardb+leveldb"

// ardbFormat is the Format.
type ardbFormat struct{}

// New returns the format.
func New() format.Format { return ardbFormat{} }

// Name returns "ardb".
func (ardbFormat) Name() string { return "ardb" }

// Limits says what Ardb can hold.
func (ardbFormat) Limits() format.Limits {
	return format.Limits{
		Types:     record.RedisTypes,
		EmptyKey:  true,
		Databases: "namespaces of 1 to 512 bytes, all in one store",
		Stores: []format.StoreSupport{
			{Store: storeRocksDB, Read: true, Write: true},
			{Store: storeLevelDB, Read: true, Write: true},
			{Store: storeLMDB, Read: true, Why: lmdbReason},
		},
		Detail:      "Ardb 0.9 and 0.10, on RocksDB 5.14.2, LevelDB 1.23 and LMDB 0.9.24",
		ScoreDetail: "float64, no NaN",
		OtherDetails: []string{
			"a key has one type",
			"integers of one hash or set span less than 2^63 (less than 2^31 for servers before 0.9.7)",
			"stream entries have up to 127 fields; no consumer groups",
		},
		Losses: lossInfos,
	}
}

// Detect looks for the comparator, and on LMDB for the directory of namespaces.
func (ardbFormat) Detect(ev *format.Evidence) format.Verdict {
	var v format.Verdict
	for i := range ev.Stores {
		s := &ev.Stores[i]
		if dir := path.Dir(s.Path); dir != "." {
			continue // an engine's directory is the dataset or right below it
		}
		score, why := weigh(s)
		if score > 0 && path.Base(s.Path) == s.Kind {
			score += 5
		}
		v.Score = max(v.Score, score)
		if why != "" {
			v.Why = append(v.Why, why)
		}
	}
	return v
}

// weigh says how much a store looks like one of Ardb's.
func weigh(s *format.StoreEvidence) (int, string) {
	for _, k := range s.Keyspaces {
		switch {
		case k.Comparer == codec.ComparerName:
			return 95, fmt.Sprintf("%s is ordered by %s", s.Path, codec.ComparerName)
		case k.Comparer == "ARDBRocksDB" || k.Comparer == "ARDBLevelDB":
			return 0, fmt.Sprintf("%s is of Ardb 0.8, whose layout is another", s.Path)
		case s.Kind == storeLMDB && k.Name == codec.LMDBNamespace:
			return 95, fmt.Sprintf("%s has the database %s", s.Path, codec.LMDBNamespace)
		}
	}
	return 0, ""
}

// Open opens a source.
func (f ardbFormat) Open(ctx context.Context, dir string, o *format.OpenOptions) (format.Source, error) {
	s, err := open(ctx, f, dir, o)
	if err != nil {
		return nil, err // not a nil *source in an interface
	}
	return s, nil
}
