package ardb

import (
	"fmt"
	"path"

	"kvferry/ardb/codec"
	"kvferry/format"
	"kvferry/record"
)

// lmdbReason explains why kvferry does not write LMDB.
const lmdbReason = "a stock server searches an LMDB file in byte order after its first restart, so that no order of rows serves " +
	"both its lookups and its ranges; write ardb+rocksdb or ardb+leveldb"

// serverOld is the name in locations of the last server that compares integers by 32 bits.
const serverOld = "ardb0.9.6"

// oldReason explains why kvferry does not write LevelDB databases of serverOld.
const oldReason = "servers before 0.9.7 compare integers by 32 bits, so LevelDB's index of expiries has no order for times more than 24 days " +
	"apart; write ardb0.9.6+rocksdb, or start a newer server and write ardb+leveldb"

// Kinds of losses that only Ardb has.
const (
	// LossIntSpan: the integers of a hash or set are so far apart that the server's comparison wraps around.
	LossIntSpan = "int-span"
	// LossStreamFields: a stream entry has more fields than a row can count.
	LossStreamFields = "stream-fields"
)

var lossInfos = append([]record.LossInfo{
	{Kind: LossIntSpan, Types: record.Of(record.Hash, record.Set), Text: "Integer fields of a hash or members of a set are 2^63 or more apart, where Ardb's comparator overflows; those too far from earlier ones are left out. Servers before 0.9.7 compare 32 bits: for `ardb0.9.6:` the limit is 2^31."},
	{Kind: LossStreamFields, Types: record.Of(record.Stream), Text: "A stream entry has more than 127 fields; it is left out."},
}, record.GroupProgress())

// ardbFormat is the Format, in the dialect of a server or, with "", in that of 0.9.7 and later.
type ardbFormat struct{ server string }

// New returns the format.
func New() format.Format { return ardbFormat{} }

// Name returns "ardb".
func (ardbFormat) Name() string { return "ardb" }

// Servers lists the servers that accept less than the newest ones. They use the same rows, so reading does not
// differ.
func (ardbFormat) Servers() []format.Server {
	return []format.Server{{Name: serverOld, First: "0.9.0", Last: "0.9.6", Detail: "Ardb 0.9.0 to 0.9.6: no streams, integers of a hash or set less than 2^31 apart; RocksDB only"}}
}

// For returns the format in the dialect of a server.
func (ardbFormat) For(server string) format.Format { return ardbFormat{server} }

// Server returns the name given to For.
func (f ardbFormat) Server() string { return f.server }

// spanBits limits the distance between the integers of one hash or set: less than 2 to the power of spanBits.
func (f ardbFormat) spanBits() int {
	if f.server == serverOld {
		return 31
	}
	return 63
}

// Limits describes the values that Ardb can hold.
func (f ardbFormat) Limits() format.Limits {
	l := format.Limits{
		Types:     record.RedisTypes,
		EmptyKey:  true,
		Databases: "namespaces of 1 to 512 bytes, all in one store",
		Stores: []format.StoreSupport{
			{Store: kindRocksDB, Read: true, Write: true},
			{Store: kindLevelDB, Read: true, Write: true},
			{Store: kindLMDB, Read: true, Why: lmdbReason},
		},
		Detail:      "Ardb 0.9 and 0.10, on RocksDB 5.14.2, LevelDB 1.23 and LMDB 0.9.24",
		ScoreDetail: "float64, no NaN",
		OtherDetails: []string{
			"a key has only one type",
			"integers of one hash or set span less than 2^63 (less than 2^31 for ardb0.9.6)",
			"stream entries have up to 127 fields; no consumer groups",
		},
		FirstMS:    1,
		NoProgress: true,
		Losses:     lossInfos,
		Start:      []string{"Set `data-dir` in ardb.conf to `{path}`, in which the directory has the name of the server's engine."},
		Beside:     []string{"backup", "repl"},
	}
	if f.server == serverOld {
		l.Detail = "Ardb 0.9.0 to 0.9.6"
		l.Types &^= record.Of(record.Stream)
		l.Stores[1].Write, l.Stores[1].Why = false, oldReason
	}
	return l
}

// Detect looks for the comparator, and on LMDB for the directory of namespaces.
func (ardbFormat) Detect(ev *format.Evidence) format.Verdict {
	var v format.Verdict
	for i := range ev.Stores {
		s := &ev.Stores[i]
		if dir := path.Dir(s.Path); dir != "." {
			continue // an engine's directory is the dataset or a directory in it
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

// weigh returns how likely a store is Ardb's, and why.
func weigh(s *format.StoreEvidence) (int, string) {
	for _, k := range s.Keyspaces {
		switch {
		case k.Comparer == codec.ComparerName:
			return 95, fmt.Sprintf("%s is ordered by %s", s.Path, codec.ComparerName)
		case k.Comparer == "ARDBRocksDB" || k.Comparer == "ARDBLevelDB":
			return 0, fmt.Sprintf("%s is of Ardb 0.8, which has another layout", s.Path)
		case s.Kind == kindLMDB && k.Name == codec.LMDBNamespace:
			return 95, fmt.Sprintf("%s has the database %s", s.Path, codec.LMDBNamespace)
		}
	}
	return 0, ""
}
