package testsst

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"slices"

	"kvferry/store/rocks/base"
)

// The framing of logs, defined independently of the code under test.
const (
	blockSize   = 32 << 10
	headerLen   = 7
	reuseHeader = 11
	full        = 1
	first       = 2
	middle      = 3
	last        = 4
	reused      = 4 // added to the type of a reused log
)

// Log frames records like RocksDB's log writer. With reuse, the fragments carry the log number.
func Log(number uint64, reuse bool, records ...[]byte) []byte {
	return LogAfter(nil, number, reuse, records...)
}

// LogAfter is Log for a log that already starts with start.
func LogAfter(start []byte, number uint64, reuse bool, records ...[]byte) []byte {
	var out bytes.Buffer
	out.Write(start)
	head := headerLen
	if reuse {
		head = reuseHeader
	}
	for _, rec := range records {
		for begins := true; begins || len(rec) > 0; begins = false {
			left := blockSize - out.Len()%blockSize
			if left < head {
				out.Write(make([]byte, left))
				left = blockSize
			}
			n := min(len(rec), left-head)
			typ := byte(middle)
			switch ends := n == len(rec); {
			case begins && ends:
				typ = full
			case begins:
				typ = first
			case ends:
				typ = last
			}
			out.Write(Frame(typ, number, reuse, rec[:n]))
			rec = rec[n:]
		}
	}
	return out.Bytes()
}

// Frame frames one fragment.
func Frame(typ byte, number uint64, reuse bool, payload []byte) []byte {
	body := []byte{typ}
	if reuse {
		body = binary.LittleEndian.AppendUint32([]byte{typ + reused}, uint32(number))
	}
	body = append(body, payload...)
	b := binary.LittleEndian.AppendUint32(nil, base.MaskCRC(crc32.Checksum(body, base.Castagnoli)))
	b = binary.LittleEndian.AppendUint16(b, uint16(len(payload)))
	return append(b, body...)
}

// Batch encodes a write batch of operations made by Op and OpCF.
func Batch(seq uint64, ops ...[]byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, seq)
	n := 0
	for _, o := range ops {
		if o[0] != base.KindLogData && o[0] != base.KindNoop {
			n++
		}
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	return append(b, slices.Concat(ops...)...)
}

// Op encodes an operation of a write batch with length-prefixed parts.
func Op(tag byte, parts ...string) []byte {
	b := []byte{tag}
	for _, p := range parts {
		b = append(binary.AppendUvarint(b, uint64(len(p))), p...)
	}
	return b
}

// OpCF is Op for a column family.
func OpCF(tag byte, family uint64, parts ...string) []byte {
	o := Op(tag, parts...)
	return append(binary.AppendUvarint([]byte{tag}, family), o[1:]...)
}
