package sst

import (
	"encoding/binary"

	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// appendSeparator sets sep to the index key of a block that ends with the last key: at or after it, and before next. It
// is shortened only in bytewise order, where that is known to be sound.
func (w *Writer) appendSeparator(next []byte) {
	t := w.trailer
	key := w.last
	if w.bytes && next != nil {
		if n := base.CommonPrefix(key, next, 0); n+1 < len(key) && n < len(next) && key[n] < 0xff && key[n]+1 < next[n] {
			w.sep = append(w.sep[:0], key[:n+1]...)
			w.sep[n]++
			key, t = w.sep, base.Trailer(base.MaxSequence, base.KindPut)
		}
	}
	w.sep = append(w.sep[:0], key...)
	if !w.o.Format.deltaIndex() {
		w.sep = binary.LittleEndian.AppendUint64(w.sep, t)
	}
}

// deltaIndex reports whether index entries have user keys and values without a stored length (format_version 4).
func (f Format) deltaIndex() bool { return f == RocksDB5 }

// addIndex adds the index entry of a block.
func (w *Writer) addIndex(sep []byte, h blocks.Handle) {
	var v [2 * binary.MaxVarintLen64]byte
	w.index.entry(sep, appendHandle(v[:0], h), !w.o.Format.deltaIndex())
}

// appendHandle appends a handle's two varints.
func appendHandle(dst []byte, h blocks.Handle) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, h.Off), h.Size)
}

// tail appends everything after the data.
func (w *Writer) tail() {
	var meta blockWriter
	if w.o.Format != LevelDB {
		dataSize := w.off
		if w.entries > 0 {
			h := w.putFilter()
			w.filterSize = h.Size
			meta.entry([]byte("fullfilter."+filterName), appendHandle(nil, h), true)
		}
		meta.entry([]byte("rocksdb.properties"), appendHandle(nil, w.put(w.properties(dataSize).block(), false)), true)
	}
	metaindex := w.put(meta.finish(), false)
	w.putFooter(metaindex, w.put(w.index.finish(), true))
}

// filterName is the filter policy that all RocksDB versions look for.
const filterName = "rocksdb.BuiltinBloomFilter"

// put appends a block to the file.
func (w *Writer) put(raw []byte, compress bool) blocks.Handle {
	at := len(w.buf)
	w.buf = packBlock(w.buf, raw, w.o.Format, compress)
	h := blocks.Handle{Off: w.off, Size: uint64(len(w.buf) - at - blocks.TrailerLen)}
	w.off += uint64(len(w.buf) - at)
	return h
}

// putFilter builds the filter in place in the write buffer.
func (w *Writer) putFilter() blocks.Handle {
	at := len(w.buf)
	w.buf = w.filter.AppendTo(growExact(w.buf, w.filter.Size()))
	h := blocks.Handle{Off: w.off, Size: uint64(len(w.buf) - at)}
	w.buf = appendTrailer(w.buf, at, codecNone, w.o.Format)
	w.off += uint64(len(w.buf) - at)
	return h
}

// putFooter appends the footer.
func (w *Writer) putFooter(metaindex, index blocks.Handle) {
	at := len(w.buf)
	w.buf = w.o.Format.appendFooter(w.buf, metaindex, index)
	w.off += uint64(len(w.buf) - at)
}

// appendFooter appends the footer of a table; see Footer.
func (f Format) appendFooter(dst []byte, metaindex, index blocks.Handle) []byte {
	handles := appendHandle(appendHandle(nil, metaindex), index)
	handles = append(handles, make([]byte, legacyFooterLen-8-len(handles))...)
	if f == LevelDB {
		return binary.LittleEndian.AppendUint64(append(dst, handles...), magicLevelDB)
	}
	dst = append(append(dst, formats[f].checksum), handles...)
	dst = binary.LittleEndian.AppendUint32(dst, formats[f].version)
	return binary.LittleEndian.AppendUint64(dst, magicRocksDB)
}
