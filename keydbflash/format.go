package keydbflash

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"
	"strings"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// Name is the name of the format in locations.
const Name = "keydbflash"

// flash is the Format.
type flash struct{}

// New returns the format.
func New() format.Format { return flash{} }

// Name returns "keydbflash".
func (flash) Name() string { return Name }

// noTarget is the reason why the format is a source only.
const noTarget = "KeyDB has had no release since 2023, and its strings are images of its memory: convert to a maintained server"

// Limits returns the limits of the format.
func (flash) Limits() format.Limits {
	return format.Limits{
		Types: record.AllTypes, EmptyKey: true, FieldsRead: true, MembersExpire: true, StreamGroups: true,
		MaxScore: math.Inf(1), Opaque: []string{"module", rdb.NativeCron}, NoTarget: noTarget,
		Databases: "numbers from 0, as column families", Numbered: true,
		Stores:       []format.StoreSupport{{Store: "rocksdb", Read: true, Why: "no maintained server reads it"}},
		Detail:       "KeyDB 6.3 with storage-provider flash",
		ScoreDetail:  "any float64 but NaN",
		OtherDetails: []string{"members of sets, sorted sets and hashes may expire", "cron jobs are copied unchanged, and only RDB files of KeyDB can hold them"},
		Beside:       []string{tempDir},
	}
}

// storeDir is where the store may be, below the given directory; tempDir has the tables that the server ingests.
const (
	storeDir = "flash"
	tempDir  = "keydb_tmp"
)

// The families of the server itself.
const (
	familyDefault = "default"
	expires       = "_expires"
)

// Detect looks for column families named by numbers.
func (flash) Detect(ev *format.Evidence) (v format.Verdict) {
	for i := range ev.Stores {
		s := &ev.Stores[i]
		if s.Path != "." && s.Path != storeDir {
			continue
		}
		score, why := weigh(s)
		v.Score = max(v.Score, score)
		if why != "" {
			v.Why = append(v.Why, why)
		}
	}
	return v
}

// weigh scores how much a store resembles KeyDB's. Before 6.3.4 the families are only numbers.
func weigh(s *format.StoreEvidence) (score int, why string) {
	if s.Kind != "rocksdb" {
		return 0, ""
	}
	there := map[string]bool{}
	for _, k := range s.Keyspaces {
		name, _ := strings.CutSuffix(k.Name, expires)
		if k.Comparer != "" && k.Comparer != bytewise || name != familyDefault && !dataset.IsNumber(name) {
			return 0, ""
		}
		there[k.Name] = true
	}
	switch {
	case !there["0"]:
		return 0, ""
	case there["0"+expires]:
		return 98, path.Clean(s.Path) + " has the column families of KeyDB FLASH: 0, 0_expires, …"
	}
	return 60, path.Clean(s.Path) + " has column families with numbers for names, as KeyDB FLASH before 6.3.4"
}

const bytewise = "leveldb.BytewiseComparator"

// Open opens a source.
func (f flash) Open(ctx context.Context, dir string, o *format.OpenOptions) (format.Source, error) {
	s, err := open(ctx, f, dir, o)
	if err != nil {
		return nil, err // not a nil *source in an interface
	}
	return s, nil
}

// Create refuses: the format is a source.
func (flash) Create(_ context.Context, location string, _ *format.CreateOptions) (format.Target, error) {
	return nil, fmt.Errorf("%s: %w", location, errors.New(noTarget))
}
