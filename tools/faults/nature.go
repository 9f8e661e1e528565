package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// isLog reports whether a file has framed records: a log or a MANIFEST of RocksDB or LevelDB.
func isLog(file string) bool {
	return strings.HasSuffix(file, ".log") || strings.HasPrefix(filepath.Base(file), "MANIFEST-")
}

// eachFragment calls f with each whole fragment of a log and the offset of its end.
//
//	+---------------+-------------+-----------+---------+
//	| checksum (4B) | length (2B) | kind (1B) | payload |    in blocks of 32 KiB
//	+---------------+-------------+-----------+---------+
//
// Recycled logs have kinds 5 to 8 and four bytes more.
func eachFragment(log []byte, f func(kind byte, payload []byte, end int)) {
	const block = 32 << 10
	for at := 0; at+7 <= len(log); {
		if block-at%block < 7 {
			at += block - at%block
			continue
		}
		n, kind := int(binary.LittleEndian.Uint16(log[at+4:])), log[at+6]
		head := 7
		if kind >= 5 && kind <= 8 {
			head = 11
		}
		if at += head + n; kind == 0 || at > len(log) {
			return
		}
		f(kind, log[at-n:at], at)
	}
}

// recordEnds returns the end offsets of whole records: after a full or a last fragment.
func recordEnds(log []byte) (ends []int) {
	eachFragment(log, func(kind byte, _ []byte, end int) {
		if kind == 1 || kind == 4 || kind == 5 || kind == 8 {
			ends = append(ends, end)
		}
	})
	return ends
}

// writes returns the header of each write in a log: its sequence number and count of entries.
func writes(log []byte) (heads [][12]byte) {
	eachFragment(log, func(kind byte, payload []byte, _ int) {
		if first := kind == 1 || kind == 2 || kind == 5 || kind == 6; first && len(payload) >= 12 {
			heads = append(heads, [12]byte(payload))
		}
	})
	return heads
}

// Kinds of damage that leave valid files; docs/findings.md lists them.
const (
	byLMDB     = "LMDB file without checksums"
	byAOF      = "append-only file without checksums"
	byRDB      = "RDB file without a checksum"
	byLogEnd   = "last log cut between two records"
	byWhole    = "another whole RDB or LMDB file"
	byManifest = "MANIFEST cut between two records"
	byPiece    = "whole pieces of records in each other's place"
	byTwin     = "log of another dataset with the same sequence numbers"
)

// undetectable returns the reason why no program can detect an undetected damage, "" if one could.
func undetectable(p *patient, d damage) string {
	base := filepath.Base(filepath.Join(p.s.dir, d.file))
	before, err := os.ReadFile(filepath.Join(p.s.dir, d.file))
	if err != nil {
		return ""
	}
	after, err := os.ReadFile(filepath.Join(p.dir, d.file))
	foreign := d.kind == "foreign" || d.kind == "swap-files"
	switch {
	case err != nil:
		return ""
	case base == "data.mdb" && len(after) >= len(before):
		return byLMDB
	case strings.HasPrefix(p.s.name, "aof-") && !strings.HasSuffix(base, ".rdb"):
		return byAOF
	case strings.HasSuffix(base, ".rdb") && !hasChecksum(before):
		return byRDB
	case (strings.HasSuffix(base, ".rdb") || base == "data.mdb") && foreign:
		return byWhole
	case strings.HasSuffix(base, ".log") && foreign && slices.Equal(writes(before), writes(after)):
		return byTwin
	case strings.HasSuffix(base, ".log") && foreign && len(writes(after)) == 0 && lastLog(p.s, d.file): // as if truncated
		return byLogEnd
	case isLog(base) && bytes.HasPrefix(before, after) && isEnd(before, len(after)):
		if strings.HasPrefix(base, "MANIFEST") {
			return byManifest
		}
		if lastLog(p.s, d.file) {
			return byLogEnd
		}
	case isLog(base) && len(after) == len(before) && otherPieces(before, after):
		return byPiece
	}
	return ""
}

// isEnd reports whether a log of n bytes ends after a whole record.
func isEnd(log []byte, n int) bool { return n == 0 || slices.Contains(recordEnds(log), n) }

// otherPieces reports whether logs of equal length differ only in blocks that are middle fragments of a record: each
// has a valid checksum, but no position.
func otherPieces(a, b []byte) bool {
	const block = 32 << 10
	isMiddle := func(log []byte) bool {
		if len(log) < block {
			return false
		}
		n, kind := int(binary.LittleEndian.Uint16(log[4:])), log[6]
		return kind == 3 && n == block-7 || kind == 7 && n == block-11
	}
	for len(a) > 0 {
		n := min(block, len(a))
		if !bytes.Equal(a[:n], b[:n]) && !(isMiddle(a) && isMiddle(b)) {
			return false
		}
		a, b = a[n:], b[n:]
	}
	return true
}

// lastLog reports whether no log of the same directory has a larger number.
func lastLog(s *source, file string) bool {
	for _, f := range s.files {
		if filepath.Dir(f) == filepath.Dir(file) && strings.HasSuffix(f, ".log") && f > file {
			return false
		}
	}
	return true
}

// hasChecksum reports whether an RDB file ends in a checksum: from version 5 on, if it is not zero.
func hasChecksum(rdb []byte) bool {
	return len(rdb) > 17 && string(rdb[5:9]) >= "0005" && binary.LittleEndian.Uint64(rdb[len(rdb)-8:]) != 0
}
