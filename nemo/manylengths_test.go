package nemo_test

import (
	"bytes"
	"fmt"
	"io"

	"kvferry/record"
)

// manyLengths reads records of every type and key length that nemo has, three of each, in order: the keys
// are n times 'a', 'b' and 'c'.
type manyLengths struct {
	types record.TypeSet
	at    int
	left  int
	h     record.Header
	value []byte
}

const lengths = 254

func (m *manyLengths) Next() (*record.Header, error) {
	types := m.types.Types()
	if m.at == 3*lengths*len(types) {
		return nil, io.EOF
	}
	n := m.at / len(types)
	m.h = record.Header{DB: "0", Type: types[m.at%len(types)], Len: 3, ByName: true,
		Key: bytes.Repeat([]byte{"abc"[n/lengths]}, 1+n%lengths)}
	m.at++
	m.left = 3
	if m.h.Type == record.String {
		m.left = 1
	}
	return &m.h, nil
}

func (m *manyLengths) Read(dst []record.Element) (int, error) {
	if m.left == 0 {
		return 0, io.EOF
	}
	e := record.Element{}
	text := fmt.Appendf(m.value[:0], "%d of %s", 9-m.left, m.h.Key)
	m.value = text
	switch m.h.Type {
	case record.String, record.List:
		e.Value = text
	case record.Hash:
		e.Name, e.Value = text, text[:2]
	case record.Set:
		e.Name = text
	case record.ZSet:
		e.Name, e.Score = text, float64(m.left*len(m.h.Key))/7
	}
	dst[0] = e
	m.left--
	return 1, nil
}

func (m *manyLengths) Settle(record.Class) {}

func (m *manyLengths) Close() error { return nil }
