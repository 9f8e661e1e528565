package nemo_test

import (
	"path/filepath"
	"testing"

	"kvferry/internal/testkit/formattest"
	"kvferry/nemo"
	"kvferry/record"
)

// written are the classes of the rows that a target writes.
var written = []record.Class{record.Copied, record.Index, record.Housekeeping}

func TestRoundTrip(t *testing.T) {
	formattest.RoundTrips(t, nemo.New(), randomOptions(), written...)
}

// TestRoundTripOnDisk uses RocksDB directories and all key lengths that nemo has, several times the number of
// lanes that may be open.
func TestRoundTripOnDisk(t *testing.T) {
	var lengths []int
	for n := range nemo.MaxKey {
		lengths = append(lengths, 1+n)
	}
	read := func(types record.TypeSet) record.Reader { return formattest.NewLengths(lengths, types, true) }
	dst := formattest.CreateRocksDB(t, nemo.New(), filepath.Join(t.TempDir(), "new"))
	src := formattest.Fill(t, dst, 1<<20, read)
	formattest.CheckClean(t, src, 0, read, written...)
	if src.Size("0", record.AllTypes) == 0 {
		t.Error("size 0")
	}
}
