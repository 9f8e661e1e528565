package lsm

import (
	"testing"

	"kvferry/store/rocks/base"
)

// TestKindOf: LevelDB has puts and tombstones alone; an entry that RocksDB would take for a deletion is damage there.
func TestKindOf(t *testing.T) {
	for _, kind := range []byte{base.KindDelete, base.KindPut, base.KindMerge, base.KindSingleDelete, base.KindBlobIndex,
		base.KindRangeDelete} {
		_, levelDB := (&Env{LevelDB: true}).KindOf(base.Trailer(1, kind))
		_, rocksDB := new(Env).KindOf(base.Trailer(1, kind))
		if (levelDB == nil) != (kind <= base.KindPut) || rocksDB != nil {
			t.Errorf("kind %#x: LevelDB %v, RocksDB %v", kind, levelDB, rocksDB)
		}
	}
}
