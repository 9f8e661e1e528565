package nemo

import (
	"encoding/binary"
	"errors"
	"fmt"

	"kvferry/record"
)

const (
	// MaxKey is the length in bytes of the longest user key of a collection.
	MaxKey = 254

	prefixLen = 2 // leading byte and klen
	seqLen    = 8
	scoreLen  = 8
	equals    = '='
)

var (
	errKind    = errors.New("is of another kind of row")
	errKeyLen  = fmt.Errorf("the engine accepts keys of 1 to %s bytes", record.Number(MaxKey))
	errNoEqual = errors.New("no '=' after the user key")
	errSeq     = errors.New("sequence numbers start at 1")
)

// keyFieldLen names the field that holds or bounds the user key's length in errors.
const keyFieldLen = "klen"

// AppendMetaKey appends the key of a meta row, whose kind is 'H', 'L', 'S' or 'Z'.
//
//	+-----------+-----+
//	| kind (1B) | key |
//	+-----------+-----+
func AppendMetaKey(dst []byte, kind byte, key []byte) []byte {
	return append(append(dst, kind), key...)
}

// DecodeMetaKey returns the user key in the key of a meta row, as a view.
func DecodeMetaKey(kind byte, b []byte) ([]byte, error) {
	if len(b) == 0 {
		return nil, record.Short(0, "kind", 1, 0)
	}
	if b[0] != kind {
		return nil, &record.CorruptError{Field: "kind", Err: fmt.Errorf("%q %w", b[0], errKind)}
	}
	if n := len(b) - 1; n < 1 || n > MaxKey {
		return nil, &record.CorruptError{Off: 1, Field: keyFieldLen, Err: fmt.Errorf("%s bytes: %w", record.Number(n), errKeyLen)}
	}
	return b[1:], nil
}

// appendPrefix appends the prefix shared by all data rows.
//
//	+-----------+-----------+-----+
//	| kind (1B) | klen (1B) | key |
//	+-----------+-----------+-----+
func appendPrefix(dst []byte, kind byte, key []byte) []byte {
	dst = append(dst, kind, byte(len(key)))
	return append(dst, key...)
}

// decodePrefix splits a data row's key; at least need bytes must follow the user key.
func decodePrefix(kind byte, b []byte, field string, need int) (key, rest []byte, err error) {
	if len(b) < prefixLen {
		return nil, nil, record.Short(0, keyFieldLen, prefixLen, len(b))
	}
	if b[0] != kind {
		return nil, nil, &record.CorruptError{Field: "kind", Err: fmt.Errorf("%q %w", b[0], errKind)}
	}
	klen := int(b[1])
	if klen < 1 || klen > MaxKey {
		return nil, nil, &record.CorruptError{Off: 1, Field: keyFieldLen,
			Err: fmt.Errorf("%s bytes: %w", record.Number(klen), errKeyLen)}
	}
	if len(b) < prefixLen+klen {
		return nil, nil, record.Short(prefixLen, keyFieldLen, klen, len(b)-prefixLen)
	}
	key, rest = b[prefixLen:prefixLen+klen], b[prefixLen+klen:]
	if len(rest) < need {
		return nil, nil, record.Short(prefixLen+klen, field, need, len(rest))
	}
	return key, rest, nil
}

// HashKey is the key of a hash's field row.
//
//	+----------+-----------+-----+----------+-------+
//	| 'h' (1B) | klen (1B) | key | '=' (1B) | field |
//	+----------+-----------+-----+----------+-------+
//
// Key and field may contain '=': only klen determines where the key ends.
type HashKey struct{ Key, Field []byte }

// AppendHashKey appends the key of a field row.
func AppendHashKey(dst []byte, k HashKey) []byte {
	dst = append(appendPrefix(dst, kindHashField, k.Key), equals)
	return append(dst, k.Field...)
}

// DecodeHashKey decodes the key of a field row into views.
func DecodeHashKey(b []byte) (HashKey, error) {
	key, rest, err := decodePrefix(kindHashField, b, "'='", 1)
	if err != nil {
		return HashKey{}, err
	}
	if rest[0] != equals {
		return HashKey{}, &record.CorruptError{Off: int64(len(b) - len(rest)), Field: "'='", Err: errNoEqual}
	}
	return HashKey{key, rest[1:]}, nil
}

// ListKey is the key of a list's node row.
//
//	+----------+-----------+-----+----------+
//	| 'l' (1B) | klen (1B) | key | seq (8B) |
//	+----------+-----------+-----+----------+
//
// seq is a little-endian int64 from 1 up: the byte order of nodes is neither numeric nor list order.
type ListKey struct {
	Key []byte
	Seq int64
}

// AppendListKey appends the key of a node row.
func AppendListKey(dst []byte, k ListKey) []byte {
	return binary.LittleEndian.AppendUint64(appendPrefix(dst, kindListNode, k.Key), uint64(k.Seq))
}

// DecodeListKey decodes the key of a node row; Key is a view.
func DecodeListKey(b []byte) (ListKey, error) {
	key, rest, err := decodePrefix(kindListNode, b, "seq", seqLen)
	if err != nil {
		return ListKey{}, err
	}
	seq, err := decodeSeq(rest)
	if err != nil {
		return ListKey{}, offset(err, len(b)-len(rest))
	}
	return ListKey{key, seq}, nil
}

// decodeSeq decodes the part of a node row's key after the user key.
func decodeSeq(rest []byte) (int64, error) {
	if len(rest) != seqLen {
		return 0, wrongLen("seq", seqLen, len(rest))
	}
	seq := int64(binary.LittleEndian.Uint64(rest))
	if seq < 1 {
		return 0, &record.CorruptError{Field: "seq", Err: fmt.Errorf("%d: %w", seq, errSeq)}
	}
	return seq, nil
}

// SetKey is the key of a set's member row.
//
//	+----------+-----------+-----+--------+
//	| 's' (1B) | klen (1B) | key | member |
//	+----------+-----------+-----+--------+
type SetKey struct{ Key, Member []byte }

// AppendSetKey appends the key of a member row.
func AppendSetKey(dst []byte, k SetKey) []byte {
	return append(appendPrefix(dst, kindSetMember, k.Key), k.Member...)
}

// DecodeSetKey decodes the key of a member row into views.
func DecodeSetKey(b []byte) (SetKey, error) {
	key, rest, err := decodePrefix(kindSetMember, b, "member", 0)
	return SetKey{key, rest}, err
}

// ScoreKey is the key of a zset's score row, which holds the exact score of a member.
//
//	+----------+-----------+-----+--------+
//	| 'z' (1B) | klen (1B) | key | member |
//	+----------+-----------+-----+--------+
type ScoreKey struct{ Key, Member []byte }

// AppendScoreKey appends the key of a score row.
func AppendScoreKey(dst []byte, k ScoreKey) []byte {
	return append(appendPrefix(dst, kindZSetScore, k.Key), k.Member...)
}

// DecodeScoreKey decodes the key of a score row into views.
func DecodeScoreKey(b []byte) (ScoreKey, error) {
	key, rest, err := decodePrefix(kindZSetScore, b, "member", 0)
	return ScoreKey{key, rest}, err
}

// IndexKey is the key of a zset's index row, which orders members by their rounded score.
//
//	+----------+-----------+-----+------------+--------+
//	| 'y' (1B) | klen (1B) | key | score (8B) | member |
//	+----------+-----------+-----+------------+--------+
//
// score is a big-endian uint64, see RoundScore.
type IndexKey struct {
	Key    []byte
	Score  uint64
	Member []byte
}

// AppendIndexKey appends the key of an index row.
func AppendIndexKey(dst []byte, k IndexKey) []byte {
	dst = binary.BigEndian.AppendUint64(appendPrefix(dst, kindZSetIndex, k.Key), k.Score)
	return append(dst, k.Member...)
}

// DecodeIndexKey decodes the key of an index row; Key and Member are views.
func DecodeIndexKey(b []byte) (IndexKey, error) {
	key, rest, err := decodePrefix(kindZSetIndex, b, "score", scoreLen)
	if err != nil {
		return IndexKey{}, err
	}
	return IndexKey{key, binary.BigEndian.Uint64(rest), rest[scoreLen:]}, nil
}

// wrongLen makes the error of a field that is not need bytes long, at offset 0.
func wrongLen(field string, need, have int) error {
	if have < need {
		return record.Short(0, field, need, have)
	}
	return &record.CorruptError{Off: int64(need), Field: field,
		Err: fmt.Errorf("%s bytes beyond the %s: %w", record.Number(have-need), record.Number(need), record.ErrTrailing)}
}

// offset moves the place of a codec's error by n bytes.
func offset(err error, n int) error {
	var c *record.CorruptError
	if errors.As(err, &c) {
		c.Shift(int64(n))
	}
	return err
}
