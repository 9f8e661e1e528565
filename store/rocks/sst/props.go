package sst

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"kvferry/record"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// Names of the properties (table/table_properties.cc, table/block_based).
const (
	propEntries       = "rocksdb.num.entries"
	propDeletes       = "rocksdb.deleted.keys"
	propMerges        = "rocksdb.merge.operands"
	propRangeDeletes  = "rocksdb.num.range-deletions"
	propKeyBytes      = "rocksdb.raw.key.size"
	propValueBytes    = "rocksdb.raw.value.size"
	propDataSize      = "rocksdb.data.size"
	propComparator    = "rocksdb.comparator"
	propCompression   = "rocksdb.compression"
	propIndexType     = "rocksdb.block.based.table.index.type"
	propIndexUserKeys = "rocksdb.index.key.is.user.key"
	propIndexDelta    = "rocksdb.index.value.is.delta.encoded"
	propExternal      = "rocksdb.external_sst_file.version"
	propGlobalSeq     = "rocksdb.external_sst_file.global_seqno"
	propWholeKeys     = "rocksdb.block.based.table.whole.key.filtering"
	propTimestamps    = "rocksdb.timestamp_min"
	propFamily        = "rocksdb.column.family.id"
	propFamilyName    = "rocksdb.column.family.name"
	propDBID          = "rocksdb.creating.db.identity"
	propSession       = "rocksdb.creating.session.identity"
	propFileNumber    = "rocksdb.original.file.number"
)

// unknownFamily is the id in a table created for no column family (TablePropertiesCollectorFactory::Context).
const unknownFamily = 1<<31 - 1

// Index types.
const (
	indexBinary   = 0
	indexHash     = 1 // a binary index plus a hash
	indexTwoLevel = 2
	indexFirstKey = 3 // entries hold the first key of their block
)

// Properties are the decoded properties of a table. Missing counts are -1.
type Properties struct {
	Entries      int64
	Deletes      int64
	Merges       int64
	RangeDeletes int64
	KeyBytes     int64 // of internal keys, before prefix sharing and compression
	ValueBytes   int64
	DataSize     int64 // end of the data blocks
	Comparator   string
	Compression  string
	IndexType    uint32
	IndexUser    bool // index keys are user keys
	IndexDelta   bool // index values are deltas
	External     bool // ingested: all keys share one sequence number
	GlobalSeq    uint64
	GlobalSeqAt  int // offset of GlobalSeq's bytes in the block, 0 if missing
	HasFamily    bool
	PrefixFilter bool   // filters hold prefixes of keys alone
	Family       uint64 // id of the table's column family
	FamilyName   string
	origin
}

// unknownProperties are the properties of a table that has no such block.
var unknownProperties = Properties{Entries: -1, Deletes: -1, Merges: -1, RangeDeletes: -1, KeyBytes: -1, ValueBytes: -1}

// builtinManager is the compression manager with the codecs that every RocksDB has. From format_version 7 on, the
// compression property is the manager's name followed by the codec ids in hex:
//
//	BuiltinV2;0407;
const builtinManager = "BuiltinV2"

// decodeProperties decodes a properties block.
func decodeProperties(b []byte) (Properties, error) {
	p := unknownProperties
	err := blocks.Each(b, func(e *blocks.Entries) error {
		if err := p.set(string(e.Key), e.Val); err != nil {
			return fmt.Errorf("property %s: %w", e.Key, err)
		}
		if string(e.Key) == propGlobalSeq {
			p.GlobalSeqAt = e.Pos - len(e.Val)
		}
		return nil
	})
	return p, err
}

// set decodes one property. Reading rows needs no unknown property.
func (p *Properties) set(name string, v []byte) error {
	f := &base.Fields{Buf: v}
	switch name {
	case propEntries:
		p.Entries = count(f)
	case propDeletes:
		p.Deletes = count(f)
	case propMerges:
		p.Merges = count(f)
	case propRangeDeletes:
		p.RangeDeletes = count(f)
	case propKeyBytes:
		p.KeyBytes = count(f)
	case propValueBytes:
		p.ValueBytes = count(f)
	case propDataSize:
		p.DataSize = count(f)
	case propComparator:
		p.Comparator, f.Off = string(v), len(v)
	case propCompression:
		p.Compression, f.Off = string(v), len(v)
		if manager, _, ok := strings.Cut(p.Compression, ";"); ok && manager != "" && manager != builtinManager {
			return base.Unsupported("compression manager %q", manager)
		}
	case propIndexType:
		p.IndexType = f.Uint32("value")
		if p.IndexType > indexFirstKey {
			return base.Unsupported("index type %d", p.IndexType)
		}
	case propIndexUserKeys:
		p.IndexUser = f.Uvarint("value") != 0
	case propIndexDelta:
		p.IndexDelta = f.Uvarint("value") != 0
	case propExternal:
		p.External = f.Uint32("value") >= 2
	case propGlobalSeq:
		p.GlobalSeq = f.Uint64("value")
	case propWholeKeys:
		p.PrefixFilter, f.Off = string(v) == "0", len(v)
	case propFamily:
		p.Family = f.Uvarint("value")
		p.HasFamily = p.Family != unknownFamily
	case propFamilyName:
		p.FamilyName, f.Off = string(v), len(v)
	case propDBID:
		p.database, f.Off = string(v), len(v)
	case propSession:
		p.session, f.Off = string(v), len(v)
	case propFileNumber:
		p.number = f.Uvarint("value")
	case propTimestamps:
		return base.Unsupported("user-defined timestamps")
	default:
		return nil
	}
	if f.Err == nil && f.Left() > 0 {
		return fmt.Errorf("%s bytes left over", record.Number(f.Left()))
	}
	return f.Err
}

// count decodes a count.
func count(f *base.Fields) int64 {
	n := f.Uvarint("value")
	if n > 1<<62 {
		f.Fail("value", fmt.Errorf("%s entries", record.Number(n)))
	}
	return int64(n)
}

// checkProperties verifies the checksum of a properties block. When RocksDB ingests a table, it patches the global
// sequence number in place and keeps the checksum computed with the number 0.
func checkProperties(kind byte, b []byte, stored uint32) error {
	err := checkBlock(kind, b, stored)
	if !errors.Is(err, base.ErrChecksum) {
		return err
	}
	p, perr := decodeProperties(b[:len(b)-1])
	if perr != nil || p.GlobalSeqAt == 0 {
		return err
	}
	z := append([]byte(nil), b...)
	binary.LittleEndian.PutUint64(z[p.GlobalSeqAt:], 0)
	return checkBlock(kind, z, stored)
}
