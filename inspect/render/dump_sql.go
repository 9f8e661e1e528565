package render

import (
	"bytes"
	"encoding/hex"
	"math"
	"strconv"
	"unicode/utf8"

	"kvferry/internal/sys/bufpool"
	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// sqlHead begins the statements. A shell that does not read them to their end leaves no table behind.
const sqlHead = `.bail on
PRAGMA encoding = 'UTF-8';
BEGIN;
CREATE TABLE string (db TEXT, key, expire_at TEXT, value);
CREATE TABLE hash (db TEXT, key, expire_at TEXT, field, value, field_expire_at TEXT);
CREATE TABLE list (db TEXT, key, expire_at TEXT, idx INTEGER, value);
CREATE TABLE "set" (db TEXT, key, expire_at TEXT, member);
CREATE TABLE zset (db TEXT, key, expire_at TEXT, member, score REAL);
CREATE TABLE stream (db TEXT, key, expire_at TEXT, id TEXT, field, value);
CREATE TABLE other (db TEXT, key, expire_at TEXT, native TEXT, value);
`

// sqlTail ends the statements. Indexes are faster made at the end.
const sqlTail = `CREATE INDEX string_key ON string (key);
CREATE INDEX hash_key ON hash (key, field);
CREATE INDEX list_key ON list (key, idx);
CREATE INDEX set_key ON "set" (key, member);
CREATE INDEX zset_key ON zset (key, score);
CREATE INDEX stream_key ON stream (key, id);
CREATE INDEX other_key ON other (key);
CREATE VIEW keys AS
SELECT 'string' AS type, db, key, expire_at, 1 AS elements FROM string
UNION ALL SELECT 'hash', db, key, expire_at, count(*) FROM hash GROUP BY db, key
UNION ALL SELECT 'list', db, key, expire_at, count(*) FROM list GROUP BY db, key
UNION ALL SELECT 'set', db, key, expire_at, count(*) FROM "set" GROUP BY db, key
UNION ALL SELECT 'zset', db, key, expire_at, count(*) FROM zset GROUP BY db, key
UNION ALL SELECT 'stream', db, key, expire_at, count(DISTINCT id) FROM stream GROUP BY db, key
UNION ALL SELECT 'other', db, key, expire_at, 1 FROM other;
COMMIT;
`

// SQL encodes records as statements for the shell sqlite3: a table per type, a row per element. Bytes are TEXT if they
// are UTF-8 without the byte 0, else BLOB.
type SQL struct {
	spill bufpool.Spill
	typ   record.Type
	start []byte // of each row of the record
	n     int64
}

// SpillTo makes the encoder write large values in pieces.
func (e *SQL) SpillTo(s bufpool.Spill) { e.spill = s }

// AppendHead appends the statements that make the tables.
func (e *SQL) AppendHead(dst []byte) []byte { return append(dst, sqlHead...) }

// AppendBegin starts a record.
func (e *SQL) AppendBegin(dst []byte, h *record.Header) ([]byte, error) {
	e.typ, e.n = h.Type, 0
	spill := e.spill
	e.spill = nil // keep the key in start: every row of the record repeats it
	e.start = append(append(e.start[:0], `INSERT INTO "`...), h.Type.String()...)
	e.start = append(e.value(append(e.start, `" VALUES (`...), []byte(h.DB)), ',')
	e.start = append(e.value(e.start, h.Key), ',')
	e.start = sqlTime(e.start, h.ExpireMS)
	e.spill = spill
	return dst, nil
}

// AppendElement appends the row of an element. Consumer groups of streams have no table.
func (e *SQL) AppendElement(dst []byte, el *record.Element) ([]byte, error) {
	switch {
	case el.Kind != record.Entry:
		return dst, nil
	case e.typ == record.Stream:
		return e.entry(dst, el)
	}
	dst = append(append(dst, e.start...), ',')
	switch e.typ {
	case record.Hash, record.Other:
		dst = e.value(append(e.value(dst, el.Name), ','), el.Value)
	case record.List:
		dst = e.value(append(strconv.AppendInt(dst, e.n, 10), ','), el.Value)
	case record.Set, record.ZSet:
		dst = e.value(dst, el.Name)
	default:
		dst = e.value(dst, el.Value)
	}
	switch e.typ {
	case record.Hash:
		dst = sqlTime(append(dst, ','), el.ExpireMS)
	case record.ZSet:
		dst = sqlScore(append(dst, ','), el.Score)
	}
	e.n++
	return append(dst, ");\n"...), nil
}

// entry appends a row for each pair of a stream entry.
func (e *SQL) entry(dst []byte, el *record.Element) ([]byte, error) {
	e.n++
	for packed := el.Value; ; {
		var err error
		if dst, err = jsonl.AppendID(append(append(dst, e.start...), ",'"...), el.Name); err != nil {
			return dst, err
		}
		if len(packed) == 0 {
			return append(dst, "',NULL,NULL);\n"...), nil
		}
		field, value, rest, err := record.DecodePair(packed)
		if err != nil {
			return dst, err
		}
		dst = append(e.value(append(dst, "',"...), field), ',')
		dst = append(e.value(dst, value), ");\n"...)
		if packed = rest; len(packed) == 0 {
			return dst, nil
		}
	}
}

// AppendEnd ends a record. A stream without entries has a row, too.
func (e *SQL) AppendEnd(dst []byte) ([]byte, error) {
	if e.typ == record.Stream && e.n == 0 {
		dst = append(append(dst, e.start...), ",NULL,NULL,NULL);\n"...)
	}
	return dst, nil
}

// AppendTail appends the statements that make the indexes.
func (e *SQL) AppendTail(dst []byte) []byte { return append(dst, sqlTail...) }

// value appends a literal. The shell drops the byte before the end of a line if that is CR, even in a literal.
func (e *SQL) value(dst, b []byte) []byte {
	text := utf8.Valid(b) && bytes.IndexByte(b, 0) < 0
	if text && bytes.IndexByte(b, '\r') < 0 {
		dst = append(dst, '\'')
		for e.spill.Long(b) {
			dst, b = e.spill(appendDoubled(dst, b[:bufpool.Piece])), b[bufpool.Piece:]
		}
		return append(appendDoubled(dst, b), '\'')
	}
	if text {
		dst = append(dst, "CAST("...)
	}
	dst = append(dst, "X'"...)
	for e.spill.Long(b) {
		dst, b = e.spill(hex.AppendEncode(dst, b[:bufpool.Piece])), b[bufpool.Piece:]
	}
	dst = append(hex.AppendEncode(dst, b), '\'')
	if text {
		dst = append(dst, " AS TEXT)"...)
	}
	return dst
}

func appendDoubled(dst, b []byte) []byte {
	for _, c := range b {
		if c == '\'' {
			dst = append(dst, c)
		}
		dst = append(dst, c)
	}
	return dst
}

func sqlTime(dst []byte, ms int64) []byte {
	if ms == 0 {
		return append(dst, "NULL"...)
	}
	return append(jsonl.AppendTime(append(dst, '\''), ms), '\'')
}

// sqlScore appends a score. SQL has no literals of infinities, but a number beyond the range is one. NaN is NULL.
func sqlScore(dst []byte, f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(dst, "9e999"...)
	case math.IsInf(f, -1):
		return append(dst, "-9e999"...)
	case math.IsNaN(f):
		return append(dst, "NULL"...)
	}
	return jsonl.AppendScore(dst, f)
}
