package state

import (
	"bytes"
	"strconv"

	"kvferry/record"
)

// entryKey is the row of a stream's entry.
func entryKey(m *meta, id streamID) []byte { return id.append(dataKey(m.id, []byte{'e'})) }

// parseID reads ms-seq, or ms alone, whose sequence number is then seq.
func parseID(b []byte, seq uint64) (streamID, error) {
	ms, rest, two := bytes.Cut(b, []byte("-"))
	id := streamID{seq: seq}
	var err error
	if id.ms, err = strconv.ParseUint(string(ms), 10, 64); err == nil && two {
		id.seq, err = strconv.ParseUint(string(rest), 10, 64)
	}
	if err != nil {
		return streamID{}, errID
	}
	return id, nil
}

// trim says how XADD and XTRIM cut a stream.
type trim struct {
	on     bool
	byID   bool
	length int64
	id     streamID
}

// read reads MAXLEN or MINID at a[i] and returns where the next argument is.
func (t *trim) read(a [][]byte, i int) (int, error) {
	t.on, t.byID = true, is(a[i], "MINID")
	if i++; i < len(a) && string(a[i]) == "~" {
		return 0, unsupported("XTRIM ~", "how much a server trims for ~ is unknown; it writes = to its log")
	}
	if i < len(a) && string(a[i]) == "=" {
		i++
	}
	if i >= len(a) {
		return 0, errSyntax
	}
	var err error
	if t.byID {
		t.id, err = parseID(a[i], 0)
	} else if t.length, err = parseInt(a[i]); err == nil && t.length < 0 {
		err = &ReplyError{"ERR The MAXLEN argument must be >= 0."}
	}
	return i + 1, err
}

// cut removes the entries that are to go.
func (s *State) cut(m *meta, t *trim) {
	if !t.on || !t.byID && m.count <= uint64(t.length) {
		return
	}
	s.scan(dataKey(m.id, []byte{'e'}), func(key, _ []byte) bool {
		id := decodeID(key)
		if t.byID && !t.id.after(id) || !t.byID && m.count <= uint64(t.length) {
			return false
		}
		s.del(entryKey(m, id))
		m.count--
		return true
	})
}

func cmdXadd(s *State, a [][]byte) error {
	var t trim
	create := true
	i := 2
	var err error
options:
	for i < len(a) {
		switch {
		case is(a[i], "NOMKSTREAM"):
			create = false
			i++
		case is(a[i], "MAXLEN"), is(a[i], "MINID"):
			if i, err = t.read(a, i); err != nil {
				return err
			}
		case is(a[i], "KEEPREF"):
			i++
		case is(a[i], "DELREF"), is(a[i], "ACKED"), is(a[i], "IDMP"), is(a[i], "IDMPAUTO"):
			return unsupported("XADD "+string(s.upper(a[i])), "kvferry does not know this option")
		default:
			break options
		}
	}
	if i >= len(a) || len(a)-i < 3 || (len(a)-i)%2 == 0 {
		return errArgs
	}
	if bytes.IndexByte(a[i], '*') >= 0 {
		return unsupported("XADD *", "the id that a server chose is unknown; it writes the id to its log")
	}
	id, err := parseID(a[i], 0)
	if err != nil {
		return err
	}
	m, err := s.findOrMake(a[1], record.Stream)
	if err != nil {
		return err
	}
	if !create && m.last == (streamID{}) && m.count == 0 && s.find(a[1]) == nil {
		return nil
	}
	if !id.after(m.last) {
		return &ReplyError{"ERR The ID specified in XADD is equal or smaller than the target stream top item"}
	}
	var packed []byte
	for j := i + 1; j < len(a); j += 2 {
		packed = record.AppendPair(packed, a[j], a[j+1])
	}
	s.set(entryKey(m, id), packed)
	m.last = id
	m.count++
	m.added++
	s.cut(m, &t)
	s.put(a[1], m)
	return nil
}

func cmdXtrim(s *State, a [][]byte) error {
	var t trim
	if !is(a[2], "MAXLEN") && !is(a[2], "MINID") {
		return errSyntax
	}
	i, err := t.read(a, 2)
	if err != nil {
		return err
	}
	if i < len(a) && !is(a[i], "KEEPREF") {
		return unsupported("XTRIM "+string(s.upper(a[i])), "kvferry does not know this option")
	}
	m, err := s.findType(a[1], record.Stream)
	if err != nil || m == nil {
		return err
	}
	s.cut(m, &t)
	s.put(a[1], m)
	return nil
}

// ids parses ids.
func ids(a [][]byte) ([]streamID, error) {
	out := make([]streamID, len(a))
	for i := range a {
		var err error
		if out[i], err = parseID(a[i], 0); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func cmdXdel(s *State, a [][]byte) error {
	list, err := ids(a[2:])
	if err != nil {
		return err
	}
	m, err := s.findType(a[1], record.Stream)
	if err != nil || m == nil {
		return err
	}
	for _, id := range list {
		key := entryKey(m, id)
		if !s.has(key) {
			continue
		}
		s.del(key)
		m.count--
		if id.after(m.deleted) {
			m.deleted = id
		}
	}
	s.put(a[1], m)
	return nil
}

func cmdXsetid(s *State, a [][]byte) error {
	id, err := parseID(a[2], 0)
	if err != nil {
		return err
	}
	added, deleted := int64(-1), streamID{}
	for i := 3; i < len(a); i += 2 {
		switch {
		case i+1 >= len(a):
			return errSyntax
		case is(a[i], "ENTRIESADDED"):
			if added, err = parseInt(a[i+1]); err != nil || added < 0 {
				return errInteger
			}
		case is(a[i], "MAXDELETEDID"):
			if deleted, err = parseID(a[i+1], 0); err != nil || deleted.after(id) {
				return errID
			}
		default:
			return errSyntax
		}
	}
	m, err := s.findType(a[1], record.Stream)
	if err != nil {
		return err
	}
	if m == nil {
		return errNoKey
	}
	if m.count > 0 && (s.top(m).after(id) || added >= 0 && m.count > uint64(added)) {
		return &ReplyError{"ERR The ID specified in XSETID is smaller than the target stream top item"}
	}
	m.last = id
	if added >= 0 {
		m.added = uint64(added)
	}
	if deleted != (streamID{}) {
		m.deleted = deleted
	}
	s.put(a[1], m)
	return nil
}

// top returns the greatest id of a stream's entries.
func (s *State) top(m *meta) (id streamID) {
	s.walk(dataKey(m.id, []byte{'e'}), nil, true, func(key, _ []byte) bool {
		id = decodeID(key)
		return false
	})
	return id
}

// entriesRead reads the number of ENTRIESREAD at a[i:], -1 when it is not given.
func entriesRead(a [][]byte) (int64, error) {
	switch {
	case len(a) == 0:
		return -1, nil
	case len(a) != 2 || !is(a[0], "ENTRIESREAD"):
		return 0, errSyntax
	}
	n, err := parseInt(a[1])
	if err != nil || n < -1 {
		return 0, &ReplyError{"ERR value for ENTRIESREAD must be positive or -1"}
	}
	return n, nil
}
