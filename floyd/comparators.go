package floyd

import (
	"bytes"
	"cmp"
	"encoding/binary"

	"kvferry/internal/shared/versioned"
	"kvferry/store"
)

// ListsDataKeyComparator orders list_data_cf: by user key, then by version and index as unsigned numbers. A
// truncated key sorts first; a key without a user key sorts before all others.
var ListsDataKeyComparator = store.Comparer{Name: "floyd.ListsDataKeyComparator", Compare: compareListKeys}

// ZSetsScoreKeyComparator orders zset_score_cf: by user key, then by version and score as numbers, then by the
// rest bytewise. It treats 0.0 and -0.0 as equal. NaN, for which the engine has no order, sorts last. A
// truncated key sorts first.
var ZSetsScoreKeyComparator = store.Comparer{Name: "floyd.ZSetsScoreKeyComparator", Compare: compareScoreKeys}

func compareListKeys(a, b []byte) int {
	a, b, c := compareVersions(a, b)
	if c != 0 || a == nil {
		return c
	}
	if len(a) < indexLen || len(b) < indexLen {
		return versioned.CompareShort(a, b, indexLen)
	}
	if c := cmp.Compare(binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(b)); c != 0 {
		return c
	}
	return bytes.Compare(a[indexLen:], b[indexLen:])
}

func compareScoreKeys(a, b []byte) int {
	a, b, c := compareVersions(a, b)
	if c != 0 || a == nil {
		return c
	}
	return versioned.CompareScored(a, b)
}

// compareVersions compares keys up to and including their versions, and returns the remaining bytes; nil if
// nothing is left to compare. Consecutive keys mostly belong to one record, so their common prefix is scanned
// once.
func compareVersions(a, b []byte) (arest, brest []byte, c int) {
	an, _ := scanUserKey(a)
	bn := an
	if an == 0 || !bytes.HasPrefix(b, a[:an]) {
		bn, _ = scanUserKey(b)
		if an == 0 || bn == 0 {
			return nil, nil, versioned.CompareBroken(a, b, an != 0, bn != 0)
		}
		if c := bytes.Compare(a[:an], b[:bn]); c != 0 {
			return nil, nil, c
		}
	}
	a, b = a[an:], b[bn:]
	if len(a) < versionLen || len(b) < versionLen {
		return nil, nil, versioned.CompareShort(a, b, versionLen)
	}
	return a[versionLen:], b[versionLen:], cmp.Compare(binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(b))
}
