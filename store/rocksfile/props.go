package rocksfile

import (
	"encoding/binary"
	"errors"
	"fmt"

	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// Names of properties (table/table_properties.cc, table/block_based).
const (
	propEntries       = "rocksdb.num.entries"
	propDeletes       = "rocksdb.deleted.keys"
	propMerges        = "rocksdb.merge.operands"
	propRangeDeletes  = "rocksdb.num.range-deletions"
	propComparator    = "rocksdb.comparator"
	propCompression   = "rocksdb.compression"
	propIndexType     = "rocksdb.block.based.table.index.type"
	propIndexUserKeys = "rocksdb.index.key.is.user.key"
	propIndexDelta    = "rocksdb.index.value.is.delta.encoded"
	propExternal      = "rocksdb.external_sst_file.version"
	propGlobalSeq     = "rocksdb.external_sst_file.global_seqno"
	propTimestamps    = "rocksdb.timestamp_min"
	propFamily        = "rocksdb.column.family.id"
)

// unknownFamily is the id in a table that was made for no column family (TablePropertiesCollectorFactory::Context).
const unknownFamily = 1<<31 - 1

// Index types.
const (
	indexBinary   = 0
	indexHash     = 1 // a binary index with a hash beside it
	indexTwoLevel = 2
	indexFirstKey = 3 // entries carry the first key of their block
)

// properties is what a table says about itself. Counts are -1 when it does not.
type properties struct {
	entries      int64
	deletes      int64
	merges       int64
	rangeDeletes int64
	comparator   string
	compression  string
	indexType    uint32
	indexUser    bool // index keys are user keys
	indexDelta   bool // index values are deltas
	external     bool // ingested: all keys have one sequence number
	globalSeq    uint64
	globalSeqAt  int // offset of globalSeq's bytes in the block, 0 when there is none
	hasFamily    bool
	family       uint64 // id of the column family that the table was made for
}

// unknownProperties are those of a table without any.
var unknownProperties = properties{entries: -1, deletes: -1, merges: -1, rangeDeletes: -1}

// decodeProperties decodes a properties block.
func decodeProperties(b []byte) (properties, error) {
	p := unknownProperties
	bl, err := blocks.Parse(b)
	if err != nil {
		return p, err
	}
	e := blocks.Entries{Data: bl.Entries}
	for {
		ok, err := e.Next()
		if err != nil || !ok {
			return p, err
		}
		if err := p.set(string(e.Key), e.Val); err != nil {
			return p, fmt.Errorf("property %s: %w", e.Key, err)
		}
		if string(e.Key) == propGlobalSeq {
			p.globalSeqAt = e.Pos - len(e.Val)
		}
	}
}

// set takes one property. Unknown ones say nothing that reading needs.
func (p *properties) set(name string, v []byte) error {
	f := &base.Fields{Buf: v}
	switch name {
	case propEntries:
		p.entries = count(f)
	case propDeletes:
		p.deletes = count(f)
	case propMerges:
		p.merges = count(f)
	case propRangeDeletes:
		p.rangeDeletes = count(f)
	case propComparator:
		p.comparator, f.Off = string(v), len(v)
	case propCompression:
		p.compression, f.Off = string(v), len(v)
	case propIndexType:
		p.indexType = f.Uint32("value")
		if p.indexType > indexFirstKey {
			return base.Unsupported("index type %d", p.indexType)
		}
	case propIndexUserKeys:
		p.indexUser = f.Uvarint("value") != 0
	case propIndexDelta:
		p.indexDelta = f.Uvarint("value") != 0
	case propExternal:
		p.external = f.Uint32("value") >= 2
	case propGlobalSeq:
		p.globalSeq = f.Uint64("value")
	case propFamily:
		p.family = f.Uvarint("value")
		p.hasFamily = p.family != unknownFamily
	case propTimestamps:
		return base.Unsupported("user-defined timestamps")
	default:
		return nil
	}
	if f.Err == nil && f.Left() > 0 {
		return fmt.Errorf("%d bytes left over", f.Left())
	}
	return f.Err
}

// count decodes a number of entries.
func count(f *base.Fields) int64 {
	n := f.Uvarint("value")
	if n > 1<<62 {
		f.Fail("value", fmt.Errorf("%d entries", n))
	}
	return int64(n)
}

// checkProperties verifies the checksum of a properties block. RocksDB patches the global sequence
// number in place when it ingests a table, and leaves the checksum of the number's being 0.
func checkProperties(kind byte, b []byte, stored uint32) error {
	err := checkBlock(kind, b, stored)
	if !errors.Is(err, base.ErrChecksum) {
		return err
	}
	p, perr := decodeProperties(b[:len(b)-1])
	if perr != nil || p.globalSeqAt == 0 {
		return err
	}
	z := append([]byte(nil), b...)
	binary.LittleEndian.PutUint64(z[p.globalSeqAt:], 0)
	return checkBlock(kind, z, stored)
}
