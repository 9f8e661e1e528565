package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// row is an entry of a block; data blocks have internal keys.
type row struct{ key, value []byte }

// table is a disassembled table file, to be reassembled with a fault inside and valid checksums.
type table struct {
	levelDB bool
	blocks  [][]row
	ranges  []row // range tombstones
	props   []row // properties of RocksDB

	// Faults in the assembly of the file.
	index   func([]row) []row             // changes the entries of the index
	restart func(block int, off []uint32) // changes the restart points of a data block
	broken  func(index []byte)            // damages the index, under the checksum that it had
}

const (
	magicRocksDB = 0x88e241b785f4cff7
	magicLevelDB = 0xdb4775248b80fb57
	perBlock     = 6 // rows of a block: small tables have several
	propsBlock   = "rocksdb.properties"
	rangesBlock  = "rocksdb.range_del" // and 2, in newer tables
)

// errForm means that a table has an unsupported form.
var errForm = errors.New("another form of table")

// readTable disassembles a table that has one index, in any compression.
func readTable(b []byte) (*table, error) {
	if len(b) < 53 {
		return nil, errForm
	}
	t := new(table)
	foot := b[len(b)-53+1:]
	switch binary.LittleEndian.Uint64(b[len(b)-8:]) {
	case magicLevelDB:
		t.levelDB, foot = true, b[len(b)-48:]
	case magicRocksDB:
		if v := binary.LittleEndian.Uint32(b[len(b)-12:]); v > 5 {
			return nil, errForm
		}
	default:
		return nil, errForm
	}
	f := base.Fields{Buf: foot}
	meta, index := blocks.ReadHandle(&f, "metaindex"), blocks.ReadHandle(&f, "index")
	metas, err := readBlock(b, meta)
	if err != nil {
		return nil, err
	}
	for _, m := range metas {
		f := base.Fields{Buf: m.value}
		switch h := blocks.ReadHandle(&f, "block"); {
		case string(m.key) == propsBlock:
			if t.props, err = readBlock(b, h); err != nil {
				return nil, err
			}
		case bytes.HasPrefix(m.key, []byte(rangesBlock)):
			if t.ranges, err = readBlock(b, h); err != nil {
				return nil, err
			}
		case bytes.Contains(m.key, []byte("dict")):
			return nil, errForm
		}
	}
	handles, err := t.handles(b, index)
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, h := range handles {
		of, err := readBlock(b, h)
		if err != nil {
			return nil, err
		}
		rows = append(rows, of...)
	}
	if len(rows) == 0 {
		return nil, errForm
	}
	t.blocks = slices.Collect(slices.Chunk(rows, perBlock))
	return t, nil
}

// handles reads the handles of the data blocks.
func (t *table) handles(b []byte, index blocks.Handle) (out []blocks.Handle, err error) {
	if t.number("rocksdb.index.value.is.delta.encoded") == 1 {
		return deltas(b, index)
	}
	entries, err := readBlock(b, index)
	for _, e := range entries {
		f := base.Fields{Buf: e.value}
		out = append(out, blocks.ReadHandle(&f, "block"))
	}
	return out, err
}

// deltas reads an index whose values have no length: at a restart point the value is a handle, otherwise the difference
// of the sizes of this block and of the adjacent one before it.
func deltas(b []byte, index blocks.Handle) (out []blocks.Handle, err error) {
	data, err := plain(b, index)
	if err != nil {
		return nil, err
	}
	block, err := blocks.Parse(data)
	if err != nil {
		return nil, err
	}
	f := base.Fields{Buf: block.Entries}
	for f.More() {
		shared := f.Uvarint("shared")
		unshared := f.Uvarint("unshared")
		f.Bytes("key", int(min(unshared, uint64(len(block.Entries)))))
		if shared == 0 {
			out = append(out, blocks.ReadHandle(&f, "block"))
			continue
		}
		less := f.Uvarint("size")
		if len(out) == 0 {
			return nil, errForm
		}
		last := out[len(out)-1]
		out = append(out, blocks.Handle{Off: last.Off + last.Size + blocks.TrailerLen,
			Size: uint64(int64(last.Size) + (int64(less>>1) ^ -int64(less&1)))})
	}
	return out, f.Err
}

// plain returns the uncompressed content of a block. LZ4 and Zstandard data start with its size.
func plain(b []byte, h blocks.Handle) ([]byte, error) {
	if h.Check(int64(len(b))) != nil {
		return nil, errForm
	}
	data := b[h.Off : h.Off+h.Size]
	size, n := binary.Uvarint(data)
	switch codec := b[h.Off+h.Size]; {
	case codec == 0:
		return data, nil
	case codec == 1:
		return s2.Decode(nil, data)
	case n <= 0 || size > 1<<20:
	case codec == 4:
		out := make([]byte, size)
		got, err := lz4.UncompressBlock(data[n:], out)
		return out[:max(got, 0)], err
	case codec == 7:
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, err
		}
		defer d.Close()
		return d.DecodeAll(data[n:], nil)
	}
	return nil, errForm
}

func readBlock(b []byte, h blocks.Handle) (out []row, err error) {
	data, err := plain(b, h)
	if err != nil {
		return nil, err
	}
	block, err := blocks.Parse(data)
	e := blocks.Entries{Data: block.Entries}
	for ok := true; err == nil; {
		if ok, err = e.Next(); !ok {
			break
		}
		out = append(out, row{bytes.Clone(e.Key), bytes.Clone(e.Val)})
	}
	return out, err
}

// number returns a property.
func (t *table) number(name string) uint64 {
	for _, p := range t.props {
		if string(p.key) == name {
			n, _ := binary.Uvarint(p.value)
			return n
		}
	}
	return 0
}

// set changes a property that the table has.
func (t *table) set(name string, n uint64) {
	for i, p := range t.props {
		if string(p.key) == name {
			t.props[i].value = binary.AppendUvarint(nil, n)
		}
	}
}

// count sets all counts in the properties to those in the rows.
func (t *table) count() {
	var entries, deletes, merges, keys, values uint64
	for _, b := range t.blocks {
		for _, r := range b {
			entries++
			keys += uint64(len(r.key))
			values += uint64(len(r.value))
			switch _, trailer := base.SplitKey(r.key); byte(trailer) {
			case base.KindDelete, base.KindSingleDelete:
				deletes++
			case base.KindMerge:
				merges++
			}
		}
	}
	n := uint64(len(t.ranges)) // the engine adds them to entries and deletions
	for _, r := range t.ranges {
		keys += uint64(len(r.key))
		values += uint64(len(r.value))
	}
	entries, deletes = entries+n, deletes+n
	t.set("rocksdb.num.range-deletions", n)
	t.set("rocksdb.num.entries", entries)
	t.set("rocksdb.deleted.keys", deletes)
	t.set("rocksdb.merge.operands", merges)
	t.set("rocksdb.raw.key.size", keys)
	t.set("rocksdb.raw.value.size", values)
	t.set("rocksdb.num.data.blocks", uint64(len(t.blocks)))
}

// write assembles the file.
func (t *table) write() []byte {
	var file []byte
	put := func(b []byte) []byte {
		h := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(len(file))), uint64(len(b)))
		at := len(file)
		file = append(append(file, b...), 0)
		file = binary.LittleEndian.AppendUint32(file, base.MaskCRC(crc32.Checksum(file[at:], base.Castagnoli)))
		return h
	}
	var index []row
	for i, b := range t.blocks {
		var last []byte
		if len(b) > 0 {
			last = b[len(b)-1].key
		} else if i+1 < len(t.blocks) { // no rows: use the next block's first key
			last = t.blocks[i+1][0].key
		}
		index = append(index, row{last, put(block(b, 3, func(off []uint32) {
			if t.restart != nil {
				t.restart(i, off)
			}
		}))})
	}
	data := uint64(len(file))
	if t.index != nil {
		index = t.index(index)
	}
	t.set("rocksdb.data.size", data)
	for _, name := range []string{"rocksdb.index.key.is.user.key", "rocksdb.index.value.is.delta.encoded", "rocksdb.filter.size"} {
		t.set(name, 0)
	}
	raw := block(index, 1, nil)
	t.set("rocksdb.index.size", uint64(len(raw)+blocks.TrailerLen))
	var metas []row
	if len(t.props) > 0 {
		metas = append(metas, row{[]byte(propsBlock), put(block(t.props, 1, nil))})
	}
	if len(t.ranges) > 0 {
		metas = append(metas, row{[]byte(rangesBlock), put(block(t.ranges, 1, nil))})
	}
	handles := put(block(metas, 1, nil))
	handles = append(handles, put(raw)...)
	if t.broken != nil {
		t.broken(file[len(file)-len(raw)-blocks.TrailerLen:])
	}
	handles = append(handles, make([]byte, 40-len(handles))...)
	if t.levelDB {
		return binary.LittleEndian.AppendUint64(append(file, handles...), magicLevelDB)
	}
	file = binary.LittleEndian.AppendUint32(append(append(file, 1), handles...), 2)
	return binary.LittleEndian.AppendUint64(file, magicRocksDB)
}

// block encodes rows, with a restart point at every n-th row; damage changes the restart points.
func block(rows []row, every int, damage func([]uint32)) (out []byte) {
	restarts := []uint32{0}
	var last []byte
	for i, r := range rows {
		shared := 0
		if i%every != 0 {
			shared = base.CommonPrefix(last, r.key, 0)
		} else if i > 0 {
			restarts = append(restarts, uint32(len(out)))
		}
		for _, n := range []int{shared, len(r.key) - shared, len(r.value)} {
			out = binary.AppendUvarint(out, uint64(n))
		}
		out = append(append(out, r.key[shared:]...), r.value...)
		last = r.key
	}
	if damage != nil {
		damage(restarts)
	}
	for _, off := range restarts {
		out = binary.LittleEndian.AppendUint32(out, off)
	}
	return binary.LittleEndian.AppendUint32(out, uint32(len(restarts)))
}
