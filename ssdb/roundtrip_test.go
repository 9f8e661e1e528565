package ssdb_test

import (
	"math"
	"path/filepath"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/ssdb"
	"kvferry/store/rocks"
	"kvferry/store/rocks/build"
)

// written lists the classes of rows that a target writes.
var written = []record.Class{record.Copied, record.Index, record.Housekeeping}

func TestRoundTrip(t *testing.T) {
	formattest.RoundTrips(t, ssdb.New(), fixtures.Options{DB: "0", Limits: ssdb.New().Limits()}, written...)
}

// TestRoundTripOnDisk round-trips through LevelDB directories with all lengths of names, several times the number of
// open lanes.
func TestRoundTripOnDisk(t *testing.T) {
	var lengths []int
	for n := range ssdb.MaxName {
		lengths = append(lengths, 1+n)
	}
	read := func(types record.TypeSet) record.Reader {
		return wholeScores{formattest.NewLengths(lengths, types&ssdb.New().Limits().Types, true)}
	}
	o := &format.OpenOptions{Store: rocks.Open, Kind: "leveldb"}
	dst := formattest.Create(t, ssdb.New(), filepath.Join(t.TempDir(), "new"),
		&format.CreateOptions{Create: build.CreateLevelDB, DBs: []string{"0"}, Reopen: o})
	src := formattest.Fill(t, dst, 1<<20, read)
	formattest.CheckClean(t, src, 0, read, written...)
	if src.Size("0", record.AllTypes) == 0 {
		t.Error("size 0")
	}
}

// wholeScores truncates scores to integers.
type wholeScores struct{ record.Reader }

func (w wholeScores) Next() (*record.Batch, error) {
	b, err := w.Reader.Next()
	if err != nil {
		return nil, err
	}
	for i := range b.Elems {
		b.Elems[i].Score = math.Trunc(b.Elems[i].Score) + 0
	}
	return b, nil
}

func TestLimits(t *testing.T) {
	formattest.Limits(t, ssdb.New(), "Types=string,hash,list,zset MaxKey=255 EmptyKey EveryKey OnlyStrings MinExpireMS=2000000000 MaxName=255 MaxScore=9.223372036854776e+18 WholeScores SameName LargeValue=134217728 Numbered MaxDBs=1 leveldb:rw")
}
