package sst

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"kvferry/store/rocks/blocks"
)

// Properties of a table, as in table/table_properties.cc and table/block_based. RocksDB skips unknown ones.

// properties returns the properties in any order. dataSize is the size of the data, where the filter starts.
func (w *Writer) properties(dataSize uint64) *propertyList {
	p := new(propertyList)
	p.identity(w)
	p.counts(w, dataSize)
	p.options(w)
	if w.o.External {
		p.external()
	}
	return p
}

// propertyList collects properties.
type propertyList []property

type property struct {
	name  string
	value []byte
}

func (p *propertyList) bytes(name string, v []byte) { *p = append(*p, property{"rocksdb." + name, v}) }
func (p *propertyList) text(name, v string)         { p.bytes(name, []byte(v)) }
func (p *propertyList) uint(name string, v uint64)  { p.bytes(name, binary.AppendUvarint(nil, v)) }

// identity adds the origin of the table. RepairDB sorts tables by column family, block caches identify a table by
// database, session and file number, and time-based compactions use the times.
func (p *propertyList) identity(w *Writer) {
	p.uint("column.family.id", uint64(w.o.FamilyID))
	p.text("column.family.name", w.o.FamilyName)
	p.uint("creation.time", uint64(w.o.Created))
	p.uint("oldest.key.time", uint64(w.o.Created))
	p.uint("newest.key.time", uint64(w.o.Created))
	if w.o.Created > 0 {
		p.uint("file.creation.time", uint64(w.o.Created))
	}
	if w.o.Identity != "" {
		p.text("creating.db.identity", w.o.Identity)
		p.text("creating.session.identity", w.session())
		p.uint("original.file.number", onlyFile)
	}
}

func (p *propertyList) counts(w *Writer, dataSize uint64) {
	p.uint("num.entries", uint64(w.entries))
	p.uint("num.filter_entries", uint64(w.filter.Count()))
	p.uint("deleted.keys", 0)
	p.uint("merge.operands", 0)
	p.uint("num.range-deletions", 0)
	p.uint("num.data.blocks", uint64(w.blocks))
	p.uint("raw.key.size", w.keyBytes)
	p.uint("raw.value.size", w.valueBytes)
	p.uint("data.size", dataSize)
	p.uint("index.size", uint64(w.index.size()+blocks.TrailerLen))
	p.uint("filter.size", w.filterSize)
	p.uint("tail.start.offset", dataSize)
}

func (p *propertyList) options(w *Writer) {
	p.text("comparator", w.o.Comparer.Name)
	p.text("merge.operator", cmp.Or(w.o.Merger, noName))
	p.text("filter.policy", formats[w.o.Format].filterPolicy)
	p.text("prefix.extractor.name", noName)
	p.text("property.collectors", "[]")
	p.text("compression", "Snappy")
	p.uint("format.version", 0) // "reserved" until RocksDB 10, which ignores it, too
	p.uint("fixed.key.length", 0)
	p.uint("index.key.is.user.key", flag(w.o.Format.deltaIndex()))
	p.uint("index.value.is.delta.encoded", flag(w.o.Format.deltaIndex()))
	p.bytes("block.based.table.index.type", make([]byte, 4)) // binary search
	p.text("block.based.table.whole.key.filtering", "1")
	p.text("block.based.table.prefix.filtering", "0")
}

// externalVersion marks tables with a field for their sequence number.
const externalVersion = 2

// external marks a table for ingestion by a running engine. The MANIFEST gets the sequence number of its rows; with old
// settings the engine also writes it into the second property.
func (p *propertyList) external() {
	p.bytes("external_sst_file.version", binary.LittleEndian.AppendUint32(nil, externalVersion))
	p.bytes("external_sst_file.global_seqno", make([]byte, 8))
}

// noName is RocksDB's placeholder for an unset name.
const noName = "nullptr"

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// block returns the properties block.
func (p *propertyList) block() []byte {
	slices.SortFunc(*p, func(a, b property) int { return strings.Compare(a.name, b.name) })
	var b blockWriter
	for _, e := range *p {
		b.entry([]byte(e.name), e.value, true)
	}
	return b.finish()
}

// onlyFile is the file number of a session's only file.
const onlyFile = 1

// session returns the identity of the writing session in RocksDB's form: 20 base-36 digits. Together with the file
// number it identifies the table globally; block caches rely on it. The final file number is not yet known, and runs of
// kvferry must be reproducible, so each table has its own session, derived from its contents. Tables with the same
// identity have the same blocks at the same offsets.
func (w *Writer) session() string {
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	w.ident.WriteString(w.o.Identity)
	w.ident.Write(binary.AppendUvarint(nil, uint64(w.o.FamilyID)))
	sum := w.ident.Sum128()
	// sum.Lo is the lower half: 62 bits in the last 12 digits, 2 in the first 8, with 39 bits of the upper half.
	high, low := sum.Hi&(1<<39-1)<<2|sum.Lo>>62, sum.Lo&(1<<62-1)
	var out [20]byte
	for i := 19; i >= 8; i-- {
		out[i], low = digits[low%36], low/36
	}
	for i := 7; i >= 0; i-- {
		out[i], high = digits[high%36], high/36
	}
	return string(out[:])
}
