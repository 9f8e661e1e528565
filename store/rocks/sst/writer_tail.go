package sst

import (
	"encoding/binary"
)

// appendSeparator sets sep to the key of the index entry of a block that ends with the last key: one that is not before
// it, and before next. It is shortened in the bytewise order alone, the only one where that is known to be sound.
func (w *Writer) appendSeparator(next []byte) {
	t := w.trailer
	key := w.last
	if w.bytes && next != nil {
		if n := sharedPrefix(key, next); n+1 < len(key) && n < len(next) && key[n] < 0xff && key[n]+1 < next[n] {
			w.sep = append(w.sep[:0], key[:n+1]...)
			w.sep[n]++
			key, t = w.sep, trailer(maxSequence, kindPut)
		}
	}
	w.sep = append(w.sep[:0], key...)
	if !w.o.Format.deltaIndex() {
		w.sep = binary.LittleEndian.AppendUint64(w.sep, t)
	}
}

// deltaIndex reports whether index entries have user keys, and values whose length is not stored (format_version 4).
func (f Format) deltaIndex() bool { return f == RocksDB5 }

// addIndex adds the entry of a block.
func (w *Writer) addIndex(sep []byte, h blockHandle) {
	var v [2 * binary.MaxVarintLen64]byte
	w.index.entry(sep, h.appendTo(v[:0]), !w.o.Format.deltaIndex())
}

// appendTo appends the handle's two varints.
func (h blockHandle) appendTo(dst []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, h.off), h.size)
}

// tail puts into the file what follows the data.
func (w *Writer) tail() {
	var meta blockWriter
	if w.o.Format != LevelDB {
		dataSize := w.off
		if w.entries > 0 {
			f := w.filter.appendTo(nil)
			w.filterSize = uint64(len(f))
			meta.entry([]byte("fullfilter."+filterName), w.put(f, false).appendTo(nil), true)
		}
		meta.entry([]byte("rocksdb.properties"), w.put(w.properties(dataSize).block(), false).appendTo(nil), true)
	}
	metaindex := w.put(meta.finish(), false)
	w.putFooter(metaindex, w.put(w.index.finish(), true))
}

// filterName is the name of the filter policy that all versions of RocksDB look for.
const filterName = "rocksdb.BuiltinBloomFilter"

// filterPolicy is how tables of the format's time name the policy in their properties.
func (f Format) filterPolicy() string {
	if f == RocksDB5 {
		return "bloomfilter"
	}
	return filterName
}

// put puts a block into the file.
func (w *Writer) put(raw []byte, compress bool) blockHandle {
	at := len(w.buf)
	w.buf = packBlock(w.buf, raw, w.o.Format, compress)
	h := blockHandle{w.off, uint64(len(w.buf) - at - blockTrailer)}
	w.off += uint64(len(w.buf) - at)
	return h
}

// putFooter puts the footer into the file, which footer draws.
func (w *Writer) putFooter(metaindex, index blockHandle) {
	at := len(w.buf)
	handles := index.appendTo(metaindex.appendTo(nil))
	handles = append(handles, make([]byte, legacyFooterLen-8-len(handles))...)
	switch w.o.Format {
	case LevelDB:
		w.buf = append(w.buf, handles...)
		w.buf = binary.LittleEndian.AppendUint64(w.buf, magicLevelDB)
	default:
		w.buf = append(append(w.buf, w.o.Format.checksumType()), handles...)
		w.buf = binary.LittleEndian.AppendUint32(w.buf, w.o.Format.version())
		w.buf = binary.LittleEndian.AppendUint64(w.buf, magicRocksDB)
	}
	w.off += uint64(len(w.buf) - at)
}

func (f Format) version() uint32 {
	if f == RocksDB5 {
		return 5
	}
	return 2
}

func (f Format) checksumType() byte {
	if f == RocksDB5 {
		return checksumXXH3
	}
	return checksumCRC32C
}
