package kvrocks

import (
	"context"
	"fmt"
	"math"
	"path"
	"slices"

	"kvferry/format"
	"kvferry/kvrocks/codec"
	"kvferry/record"
)

// Servers, as locations name them.
const (
	serverOld = "kvrocks2.3"
	serverMid = "kvrocks2.9"
	serverDBs = "kvrocks2.15"
	serverNew = "kvrocks2.17"
)

// kvrocksFormat is the Format, in the dialect of a server, "" meaning the newest.
type kvrocksFormat struct{ server string }

// New returns the format.
func New() format.Format { return kvrocksFormat{} }

// Name returns "kvrocks".
func (kvrocksFormat) Name() string { return "kvrocks" }

// Servers lists the servers whose rows differ from the newest servers'.
func (kvrocksFormat) Servers() []format.Server {
	return []format.Server{
		{Name: serverOld, First: "2.0", Last: "2.3", Detail: "Kvrocks 2.0 to 2.3: expiry in seconds, no consumer groups, JSON or Bloom filters"},
		{Name: serverMid, First: "2.4", Last: "2.9", Detail: "Kvrocks 2.4 to 2.9: consumer groups as before 2.10, HyperLogLogs as strings, no t-digests or time series"},
		{Name: serverDBs, First: "2.15", Last: "2.16", Detail: "Kvrocks 2.15 and 2.16: database N > 0 is namespace dbN, for redis-databases"},
		{Name: serverNew, First: "2.17", Last: "2", Detail: "Kvrocks 2.17 and later: databases as 2.15; hash fields that expire, cuckoo filters"},
	}
}

// For returns the format in the dialect of a server.
func (kvrocksFormat) For(server string) format.Format { return kvrocksFormat{server} }

// Server returns the name given to For.
func (f kvrocksFormat) Server() string { return f.server }

// Limits returns the limits of Kvrocks.
func (f kvrocksFormat) Limits() format.Limits {
	l := format.Limits{
		Types:        record.AllTypes,
		EmptyKey:     true,
		StreamGroups: f.server != serverOld,
		FieldExpiry:  f.expiresFields(),
		FieldsRead:   true,
		FirstMS:      1,
		MaxScore:     math.Inf(1),
		DefaultDB:    DefaultNamespace,
		Cluster:      true,
		SST:          !f.before10(),
		Databases:    "namespaces of 1 to 255 bytes, all in one store",
		Stores:       []format.StoreSupport{{Store: "rocksdb", Read: true, Write: true}},
		Detail:       f.detail(),
		ScoreDetail:  "any float64 but NaN",
		OtherDetails: f.details(),
		NamedGroups:  f.before10(),
		Opaque:       codec.Modules(codec.Kind.Known),
		Unheld:       codec.Modules(func(k codec.Kind) bool { return !f.has(k) }),
		Losses:       lossInfos,
		Start:        []string{"Set `dir` in kvrocks.conf to `{path}`, the directory that has `db`."},
		StartDB:      "Database `{db}` is a namespace: add `namespace.{db} TOKEN` and `requirepass`. Clients reach it with its token.",
		Beside:       []string{"backup", "backup.tmp", "backup_for_sync", "checkpoint", "sync_checkpoint", "db.tmp"},
	}
	if f.server == serverDBs || f.server == serverNew {
		l.DBPrefix = "db"
	}
	if f.server == serverOld {
		l.Seconds = true
		l.Losses = append([]record.LossInfo{expiry2106}, lossInfos...)
		l.FirstMS, l.MaxExpireMS = 1000, maxOldExpiry
		l.MaxElements = math.MaxUint32
	}
	return l
}

// detail names the servers.
func (f kvrocksFormat) detail() string {
	switch f.server {
	case serverOld:
		return "Kvrocks 2.0 to 2.3"
	case serverMid:
		return "Kvrocks 2.4 to 2.9"
	case serverDBs:
		return "Kvrocks 2.15 and 2.16"
	case serverNew:
		return "Kvrocks 2.17 and later"
	}
	return "Kvrocks 2.0 and later"
}

// details lists limits that Limits has no field for.
func (f kvrocksFormat) details() []string {
	out := []string{
		"a key has only one type",
		"bitmaps are read as strings, up to --max-bitmap",
		"--cluster writes keys with slots, for a node with cluster-enabled yes",
	}
	if !f.before10() {
		out = append(out, "--sst writes tables for SST LOAD into a running server newer than 2.10")
	}
	return out
}

// Detect looks for the column families.
func (kvrocksFormat) Detect(ev *format.Evidence) format.Verdict {
	var v format.Verdict
	for i := range ev.Stores {
		s := &ev.Stores[i]
		if s.Path != "." && s.Path != storeDir {
			continue
		}
		score, why := weigh(s)
		if score > 0 && path.Base(s.Path) == storeDir {
			score++
		}
		v.Score = max(v.Score, score)
		if why != "" {
			v.Why = append(v.Why, why)
		}
	}
	return v
}

// weigh scores how much a store resembles a Kvrocks database.
func weigh(s *format.StoreEvidence) (int, string) {
	if s.Kind != "rocksdb" {
		return 0, ""
	}
	known := 0
	for _, k := range s.Keyspaces {
		if k.Comparer != "" && k.Comparer != bytewiseName {
			return 0, ""
		}
		if k.Name != codec.FamilyDefault && slices.Contains(codec.Families[:], k.Name) {
			known++
		}
	}
	if known < 2 {
		return 0, ""
	}
	return min(80+4*known, 98), fmt.Sprintf("%s has %s column families of Kvrocks", s.Path, record.Number(known))
}

const bytewiseName = "leveldb.BytewiseComparator"

// Open opens a source.
func (f kvrocksFormat) Open(ctx context.Context, dir string, o *format.OpenOptions) (format.Source, error) {
	s, err := open(ctx, f, dir, o)
	if err != nil {
		return nil, err // not a nil *source in an interface
	}
	return s, nil
}

// wide reports whether metadata is written in the new form.
func (f kvrocksFormat) wide() bool { return f.server != serverOld }

// before10 reports whether the server is older than 2.10: consumer groups have other rows, and HyperLogLogs are strings.
func (f kvrocksFormat) before10() bool { return f.server == serverOld || f.server == serverMid }

// expiresFields reports whether fields of hashes can have an expiry. Earlier servers read the expiry as part of the value.
func (f kvrocksFormat) expiresFields() bool { return f.server == serverNew }

// has reports whether the server has a kind: Bloom filters came with 2.6, JSON with 2.7, others after 2.9, and cuckoo
// filters after 2.16.
func (f kvrocksFormat) has(kind codec.Kind) bool {
	switch f.server {
	case serverOld:
		return kind > 0 && kind < codec.KindBloom
	case serverMid:
		return kind > 0 && kind <= codec.KindJSON
	case serverNew:
		return kind > 0
	}
	return kind > 0 && kind < codec.KindCuckoo
}
