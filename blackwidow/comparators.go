package blackwidow

import (
	"bytes"
	"cmp"
	"encoding/binary"

	"kvferry/internal/shared/versioned"
	"kvferry/store"
)

// ListsDataKeyComparator orders lists/data_cf by user key, bytewise and regardless of its length, then by
// version as a signed number, then by index as an unsigned one. A truncated key sorts first. A key whose klen
// exceeds it, which crashes the engine, sorts before all others.
var ListsDataKeyComparator = store.Comparer{Name: "blackwidow.ListsDataKeyComparator", Compare: compareListKeys}

// ZSetsScoreKeyComparator orders zsets/score_cf: by the bytes of klen, user key and version, then by score as
// a number, then by member bytewise. It treats 0.0 and -0.0 as equal. NaN, for which the engine has no order,
// sorts last. A truncated key sorts first.
var ZSetsScoreKeyComparator = store.Comparer{Name: "blackwidow.ZSetsScoreKeyComparator", Compare: compareScoreKeys}

func compareListKeys(a, b []byte) int {
	akey, arest, aok := splitListKey(a)
	bkey, brest, bok := splitListKey(b)
	if !aok || !bok {
		return versioned.CompareBroken(a, b, aok, bok)
	}
	if c := bytes.Compare(akey, bkey); c != 0 {
		return c
	}
	if len(arest) == versionLen+indexLen && len(brest) == versionLen+indexLen {
		if c := cmp.Compare(version(arest), version(brest)); c != 0 {
			return c
		}
		return cmp.Compare(binary.LittleEndian.Uint64(arest[versionLen:]), binary.LittleEndian.Uint64(brest[versionLen:]))
	}
	return compareListRests(arest, brest)
}

// compareListRests compares the bytes after the user key if at least one key is truncated.
func compareListRests(a, b []byte) int {
	if len(a) < versionLen || len(b) < versionLen {
		return versioned.CompareShort(a, b, versionLen)
	}
	if c := cmp.Compare(version(a), version(b)); c != 0 {
		return c
	}
	a, b = a[versionLen:], b[versionLen:]
	if len(a) < indexLen || len(b) < indexLen {
		return versioned.CompareShort(a, b, indexLen)
	}
	if c := cmp.Compare(binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(b)); c != 0 {
		return c
	}
	return bytes.Compare(a[indexLen:], b[indexLen:])
}

func splitListKey(b []byte) (key, rest []byte, ok bool) {
	if len(b) < klenLen {
		return nil, nil, false
	}
	klen := binary.LittleEndian.Uint32(b)
	b = b[klenLen:]
	if uint64(klen) > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:klen], b[klen:], true
}

func version(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) }

// compareScoreKeys compares the bytes before the scores first. If these are equal, klen is too, so the scores
// start at the same offset; a key without a score is compared bytewise.
func compareScoreKeys(a, b []byte) int {
	if len(a) < klenLen || len(b) < klenLen {
		return bytes.Compare(a, b)
	}
	ah, bh := binary.BigEndian.Uint32(a), binary.BigEndian.Uint32(b)
	if ah != bh {
		return cmp.Compare(ah, bh)
	}
	n := int64(binary.LittleEndian.Uint32(a)) + klenLen + versionLen
	if int64(len(a)) < n || int64(len(b)) < n {
		return bytes.Compare(a, b)
	}
	if c := bytes.Compare(a[klenLen:n], b[klenLen:n]); c != 0 {
		return c
	}
	return versioned.CompareScored(a[n:], b[n:])
}
