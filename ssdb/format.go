package ssdb

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"path/filepath"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/hll"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
)

// ssdbFormat is the Format.
type ssdbFormat struct{}

// New returns the format.
func New() format.Format { return ssdbFormat{} }

// Name returns "ssdb".
func (ssdbFormat) Name() string { return "ssdb" }

// Limits returns the limits of SSDB.
func (ssdbFormat) Limits() format.Limits {
	return format.Limits{
		Types:       types,
		MaxKey:      MaxName,
		EmptyKey:    true, // of queues
		EveryKey:    true,
		OnlyStrings: true,
		MinExpireMS: secondsBelow,
		LargeValue:  maxPacket,
		MaxName:     MaxName,
		MaxScore:    maxScore,
		WholeScores: true,
		SameName:    true,
		Databases:   "one",
		Numbered:    true,
		MaxDBs:      1,
		Stores:      []format.StoreSupport{{Store: "leveldb", Read: true, Write: true}},
		Detail:      "SSDB 1.6.8 to 1.9.9, on LevelDB 1.8 to 1.20",
		ScoreDetail: "int64; read as float64, which holds integers up to 2^53",
		OtherDetails: []string{
			"names, fields and members have 1 to 255 bytes; names of queues may be empty",
			"only strings expire; no sets",
		},
		Losses: lossInfos,
		Start:  []string{"Set `work_dir` in ssdb.conf to `{path}`, the directory that has `data` and `meta`."},
	}
}

// Detect looks for a LevelDB directory named data, or for keys that start like SSDB's.
func (ssdbFormat) Detect(ev *format.Evidence) (v format.Verdict) {
	has := map[string]bool{}
	for i := range ev.Stores {
		has[ev.Stores[i].Path] = true
	}
	for i := range ev.Stores {
		s := &ev.Stores[i]
		home, name := path.Split(s.Path)
		if s.Path != "." && (name != dataDir || home != "" && home != "var/") {
			continue
		}
		score, why := weigh(s)
		beside := disk.Join(ev.Dir, home, metaDir)
		if s.Path == "." {
			beside = disk.Join(disk.Dir(ev.Dir), metaDir)
			name = filepath.Base(ev.Dir)
		}
		if _, err := disk.Stat(beside); score > 0 && err == nil && name == dataDir {
			score, why = score+scoreMeta, why+", and "+metaDir+" is beside it"
		}
		if s.Path == "." && score < scoreOrder+scoreMeta {
			score = 0 // LevelDB directories are common
		}
		v.Score = max(v.Score, score)
		v.Why = append(v.Why, s.Path+": "+why)
	}
	return v
}

// Scores of a directory: for the right engine and order, for the right keys, for a meta directory beside it.
const (
	scoreOrder = 40
	scoreKeys  = 75
	scoreMeta  = 20
)

// weigh scores how much a store resembles an SSDB database.
func weigh(s *format.StoreEvidence) (int, string) {
	if s.Kind != "leveldb" || len(s.Keyspaces) != 1 || s.Keyspaces[0].Comparer != store.Bytewise.Name {
		return 0, "not a LevelDB database in byte order"
	}
	ends := s.Keyspaces[0].Ends
	for _, key := range ends {
		if len(key) == 0 || bytes.IndexByte([]byte(kinds), key[0]) < 0 {
			return 0, fmt.Sprintf("key %s starts with no kind of SSDB's rows", record.Quote(key))
		}
	}
	if len(ends) == 0 {
		return scoreOrder, "a LevelDB database in byte order, without tables"
	}
	return scoreKeys, "a LevelDB database in byte order, whose keys start as SSDB's do"
}

// Open opens a source.
func (f ssdbFormat) Open(ctx context.Context, dir string, o *format.OpenOptions) (format.Source, error) {
	return open(ctx, f, dir, o)
}

// Create starts a target.
func (f ssdbFormat) Create(_ context.Context, dir string, o *format.CreateOptions) (format.Target, error) {
	return create(f, dir, o)
}

// maxPacket is the largest packet that SSDB's clients accept, ssdb-dump and replicas among them.
const maxPacket = 128 << 20

var lossInfos = []record.LossInfo{
	{Kind: record.Set.String(), Types: record.Of(record.Set), Text: "SSDB has no sets; they are left out."},
	{Kind: dataset.LossCollectionExpiry, Types: record.Of(record.Hash, record.List, record.ZSet), Text: "A hash, list or sorted set has an expiry, but in SSDB only strings expire; it is kept forever."},
	{Kind: dataset.LossNameLength, Types: record.Of(record.Hash, record.ZSet), Text: "A field of a hash or a member of a sorted set is empty or longer than 255 bytes; it is left out."},
	{Kind: dataset.LossLargeValue, Types: record.Of(record.String, record.Hash, record.List), Note: true, Text: "A value has 128 MiB or more: SSDB serves it, but `ssdb-dump` fails on it and replicas stop before it."},
}

// adapter returns the limits of a target; own means that the source is SSDB as well.
func adapter(own bool) *dataset.Adapter {
	return &dataset.Adapter{Limits: ssdbFormat{}.Limits(), Engine: "SSDB", Counts: hll.Raw, Own: own, OddRecord: reserved}
}

// reserved returns the loss of a sorted set with the name in which SSDB keeps expiries.
func reserved(h *record.Header) []record.Loss {
	if h.Type != record.ZSet || string(h.Key) != ExpireList {
		return nil
	}
	return []record.Loss{{Kind: record.LossKeyTooLong, Drops: true, Detail: "SSDB keeps this name for the expiries of strings"}}
}

// types are the types of records that SSDB has.
const types = record.TypeSet(1<<record.String | 1<<record.Hash | 1<<record.List | 1<<record.ZSet)
