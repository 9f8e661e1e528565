package ssdb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"kvferry/record"
)

// Kinds of rows, the first byte of their keys.
const (
	kindBinlog    = 0x01
	kindHashSize  = 'H'
	kindQueueSize = 'Q'
	kindZSetSize  = 'Z'
	kindField     = 'h'
	kindString    = 'k'
	kindItem      = 'q'
	kindScore     = 's'
	kindRank      = 'z'
)

// kinds lists all kinds, ascending.
const kinds = "\x01HQZhkqsz"

// ExpireList is the name of the sorted set of expiries.
const ExpireList = "\xff\xff\xff\xff\xff|EXPIRE_LIST|KV"

// MaxName is the length of the longest name, field or member.
const MaxName = math.MaxUint8

// Numbers of a queue's rows. The first item gets FirstItem; items are numbered from MinItem on.
const (
	seqFront  = 2
	seqBack   = 3
	MinItem   = 10000
	FirstItem = math.MaxInt64 / 2
)

// Widths in bytes, and the separators before fields and members.
const (
	int64Len  = 8
	prefixLen = 2 // kind and length of the name
	rankLen   = 1 + int64Len + 1
	equals    = '='
	negative  = '-'
)

// nameLen is the field name of a name's length in errors.
const nameLen = "name length"

var (
	errEmptyName = errors.New("no bytes; the server refuses empty names")
	errEquals    = errors.New("want '='")
	errSign      = errors.New("does not match the sign of the score")
)

// AppendSizeKey appends the key of a size row, or of a string.
//
//	+-----------+------+
//	| kind (1B) | name |
//	+-----------+------+
func AppendSizeKey(dst []byte, kind byte, name []byte) []byte {
	return append(append(dst, kind), name...)
}

// DecodeSizeKey returns the name. Only names of queues and strings may be empty.
func DecodeSizeKey(kind byte, raw []byte) ([]byte, error) {
	if len(raw) == 0 || raw[0] != kind {
		return nil, fmt.Errorf("kind: want %q", kind)
	}
	if len(raw) == 1 && (kind == kindHashSize || kind == kindZSetSize) {
		return nil, &record.CorruptError{Off: 1, Field: "name", Err: errEmptyName}
	}
	return raw[1:], nil
}

// AppendSize appends the value of a size row, an int64.
func AppendSize(dst []byte, n int64) []byte {
	return binary.LittleEndian.AppendUint64(dst, uint64(n))
}

// DecodeSize decodes the value of a size row, or of a bound of a queue.
func DecodeSize(b []byte) (int64, error) {
	if err := record.Exact(b, 0, "size", int64Len); err != nil {
		return 0, err
	}
	return int64(binary.LittleEndian.Uint64(b)), nil
}

// appendPrefix appends the key prefix of a collection's data rows.
//
//	+-----------+----------+------+------
//	| kind (1B) | len (1B) | name | …
//	+-----------+----------+------+------
func appendPrefix(dst []byte, kind byte, name []byte) []byte {
	return append(append(dst, kind, byte(len(name))), name...)
}

// Key is the key of a data row.
type Key struct {
	Name []byte
	Rest []byte // field or member, if any
	Num  int64  // score of a rank row, number of an item
}

// AppendFieldKey appends the key of a field of a hash.
//
//	+-----+----------+------+-----+-------+
//	| 'h' | len (1B) | name | '=' | field |
//	+-----+----------+------+-----+-------+
func AppendFieldKey(dst, name, field []byte) []byte {
	return append(append(appendPrefix(dst, kindField, name), equals), field...)
}

// AppendScoreKey appends the key of a member of a sorted set.
//
//	+-----+----------+------+----------+--------+
//	| 's' | len (1B) | name | len (1B) | member |
//	+-----+----------+------+----------+--------+
func AppendScoreKey(dst, name, member []byte) []byte {
	return appendMember(appendPrefix(dst, kindScore, name), member)
}

func appendMember(dst, member []byte) []byte {
	return append(append(dst, byte(len(member))), member...)
}

// AppendRankKey appends the key of a member by its score.
//
//	+-----+----------+------+-----------+------------+-----+--------+
//	| 'z' | len (1B) | name | sign (1B) | score (8B) | '=' | member |
//	+-----+----------+------+-----------+------------+-----+--------+
//
// sign is '-' below 0 and '=' from 0 on; score is the int64 in two's complement.
func AppendRankKey(dst, name []byte, score int64, member []byte) []byte {
	return append(appendRank(appendPrefix(dst, kindRank, name), score), member...)
}

func appendRank(dst []byte, score int64) []byte {
	sign := byte(equals)
	if score < 0 {
		sign = negative
	}
	return append(binary.BigEndian.AppendUint64(append(dst, sign), uint64(score)), equals)
}

// AppendItemKey appends the key of an item of a queue, or of a bound.
//
//	+-----+----------+------+----------+
//	| 'q' | len (1B) | name | seq (8B) |
//	+-----+----------+------+----------+
func AppendItemKey(dst, name []byte, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(appendPrefix(dst, kindItem, name), seq)
}

// DecodeKey decodes the key of a data row of a kind. Name is set if only the rest of the key is wrong.
func DecodeKey(kind byte, raw []byte) (k Key, err error) {
	if len(raw) < prefixLen {
		return k, record.Short(1, nameLen, 1, 0)
	}
	at := prefixLen + int(raw[1])
	if raw[0] != kind {
		return k, fmt.Errorf("kind: want %q", kind)
	}
	if at > len(raw) {
		return k, record.Short(1, nameLen, at-prefixLen, len(raw)-prefixLen)
	}
	if k.Name = raw[prefixLen:at]; len(k.Name) == 0 && kind != kindItem {
		return k, &record.CorruptError{Off: 1, Field: nameLen, Err: errEmptyName}
	}
	err = k.rest(kind, raw[at:], at)
	return k, err
}

// rest decodes the part of the key after the name, at off.
func (k *Key) rest(kind byte, b []byte, off int) error {
	switch kind {
	case kindField:
		if len(b) == 0 || b[0] != equals {
			return &record.CorruptError{Off: int64(off), Field: "separator", Err: errEquals}
		}
		k.Rest = b[1:]
	case kindScore:
		if len(b) == 0 {
			return record.Short(off, "member length", 1, 0)
		}
		if err := record.Exact(b[1:], off+1, "member", int(b[0])); err != nil {
			return err
		}
		k.Rest = b[1:]
	case kindRank:
		return k.rank(b, off)
	case kindItem:
		if err := record.Exact(b, off, "seq", int64Len); err != nil {
			return err
		}
		k.Num = int64(binary.BigEndian.Uint64(b))
		if !isSeq(uint64(k.Num)) {
			return record.Unknown(off, "seq", strconv.FormatUint(uint64(k.Num), 10))
		}
	}
	return nil
}

func (k *Key) rank(b []byte, off int) error {
	if len(b) < rankLen {
		return record.Short(off, "score", rankLen, len(b))
	}
	k.Num, k.Rest = int64(binary.BigEndian.Uint64(b[1:])), b[rankLen:]
	switch {
	case b[rankLen-1] != equals:
		return &record.CorruptError{Off: int64(off + rankLen - 1), Field: "separator", Err: errEquals}
	case (k.Num < 0) != (b[0] == negative) || b[0] != negative && b[0] != equals:
		return &record.CorruptError{Off: int64(off), Field: "sign", Err: errSign}
	}
	return nil
}

// isSeq reports whether a queue can have a row with number seq.
func isSeq(seq uint64) bool {
	return seq == seqFront || seq == seqBack || seq >= MinItem && seq < math.MaxInt64
}

// AppendScore appends the value of a member's row: the score in decimal.
func AppendScore(dst []byte, score int64) []byte { return strconv.AppendInt(dst, score, 10) }

// DecodeScore decodes the value of a member's row. Like the server, it accepts leading zeros.
func DecodeScore(b []byte) (int64, error) {
	digits := bytes.TrimPrefix(b, []byte{negative})
	var n uint64
	for i, c := range digits {
		if c < '0' || c > '9' {
			return 0, &record.CorruptError{Off: int64(len(b) - len(digits) + i), Field: "score", Err: errors.New("not a decimal integer")}
		}
		if n > math.MaxInt64/10 || n*10+uint64(c-'0') > 1<<63 {
			return 0, &record.CorruptError{Field: "score", Err: strconv.ErrRange}
		}
		n = n*10 + uint64(c-'0')
	}
	switch {
	case len(digits) == 0:
		return 0, record.Short(len(b), "score", 1, 0)
	case len(digits) < len(b):
		return -int64(n), nil
	case n == 1<<63:
		return 0, &record.CorruptError{Field: "score", Err: strconv.ErrRange}
	}
	return int64(n), nil
}

// Log is the value of a row of the binlog.
type Log struct {
	Seq       uint64
	Type, Cmd byte
	Key       []byte // raw key of the changed row; a queue's name for pops
}

// AppendLogKey appends the key of a row of the binlog.
//
//	+----+----------+
//	| 01 | seq (8B) |
//	+----+----------+
func AppendLogKey(dst []byte, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, kindBinlog), seq)
}

// AppendLog appends the value of a row of the binlog.
//
//	+----------+-----------+----------+-----+
//	| seq (8B) | type (1B) | cmd (1B) | key |
//	+----------+-----------+----------+-----+
//
// seq is little-endian, that of the key big-endian.
func AppendLog(dst []byte, l *Log) []byte {
	return append(append(binary.LittleEndian.AppendUint64(dst, l.Seq), l.Type, l.Cmd), l.Key...)
}

// Limits of the binlog's fields. Command 9 is unused.
const (
	maxLogType = 4
	maxLogCmd  = 14
)

// DecodeLog decodes a row of the binlog.
func DecodeLog(raw, value []byte) (l Log, err error) {
	if len(raw) == 0 || raw[0] != kindBinlog {
		return l, fmt.Errorf("kind: want %#x", kindBinlog)
	}
	if err := record.Exact(raw[1:], 1, "seq", int64Len); err != nil {
		return l, err
	}
	if len(value) < int64Len+2 {
		return l, record.Short(0, "binlog", int64Len+2, len(value))
	}
	l = Log{binary.LittleEndian.Uint64(value), value[8], value[9], value[10:]}
	switch {
	case l.Seq != binary.BigEndian.Uint64(raw[1:]):
		return l, &record.CorruptError{Field: "seq", Err: errors.New("is not that of the key")}
	case l.Type > maxLogType:
		return l, record.Unknown(8, "type", strconv.Itoa(int(l.Type)))
	case l.Cmd > maxLogCmd || l.Cmd == 9:
		return l, record.Unknown(9, "cmd", strconv.Itoa(int(l.Cmd)))
	}
	return l, nil
}
