package streams

import (
	"bytes"
	"strconv"

	"kvferry/record"
	"kvferry/redis/state"
	"kvferry/redis/state/server"
)

var errID = server.Refuse("ERR Invalid stream ID specified as stream command argument")

// parseID reads ms-seq, or ms alone, whose sequence number is then seq.
func parseID(b []byte, seq uint64) (state.StreamID, error) {
	ms, rest, two := bytes.Cut(b, []byte("-"))
	id := state.StreamID{Seq: seq}
	var err error
	if id.MS, err = strconv.ParseUint(string(ms), 10, 64); err == nil && two {
		id.Seq, err = strconv.ParseUint(string(rest), 10, 64)
	}
	if err != nil {
		return state.StreamID{}, errID
	}
	return id, nil
}

// trim says how XADD and XTRIM cut a stream.
type trim struct {
	on     bool
	byID   bool
	length int64
	id     state.StreamID
}

// read reads MAXLEN or MINID at a[i] and returns where the next argument is.
func (t *trim) read(a [][]byte, i int) (int, error) {
	t.on, t.byID = true, server.Is(a[i], "MINID")
	if i++; i < len(a) && string(a[i]) == "~" {
		return 0, server.Unsupported("XTRIM ~", "how much a server trims for ~ is unknown; it writes = to its log")
	}
	if i < len(a) && string(a[i]) == "=" {
		i++
	}
	if i >= len(a) {
		return 0, server.ErrSyntax
	}
	var err error
	if t.byID {
		t.id, err = parseID(a[i], 0)
	} else if t.length, err = server.ParseInt(a[i]); err == nil && t.length < 0 {
		err = server.Refuse("ERR The MAXLEN argument must be >= 0.")
	}
	return i + 1, err
}

// cut removes the entries that are to go.
func (t *trim) cut(v *state.Value) {
	if !t.on || !t.byID && v.Len() <= t.length {
		return
	}
	v.Entries(false, func(id state.StreamID) bool {
		if t.byID && !t.id.After(id) || !t.byID && v.Len() <= t.length {
			return false
		}
		v.RemoveEntry(id)
		return true
	})
}

// Add is XADD.
func Add(s *server.Server, a [][]byte) error {
	var t trim
	create := true
	i := 2
	var err error
options:
	for i < len(a) {
		switch {
		case server.Is(a[i], "NOMKSTREAM"):
			create = false
			i++
		case server.Is(a[i], "MAXLEN"), server.Is(a[i], "MINID"):
			if i, err = t.read(a, i); err != nil {
				return err
			}
		case server.Is(a[i], "KEEPREF"):
			i++
		case server.Is(a[i], "DELREF"), server.Is(a[i], "ACKED"), server.Is(a[i], "IDMP"), server.Is(a[i], "IDMPAUTO"):
			return server.Unsupported("XADD "+string(s.Upper(a[i])), "kvferry does not know this option")
		default:
			break options
		}
	}
	if i >= len(a) || len(a)-i < 3 || (len(a)-i)%2 == 0 {
		return server.ErrArgs
	}
	if bytes.IndexByte(a[i], '*') >= 0 {
		return server.Unsupported("XADD *", "the id that a server chose is unknown; it writes the id to its log")
	}
	id, err := parseID(a[i], 0)
	if err != nil {
		return err
	}
	v, err := s.FindOrMake(a[1], record.Stream)
	if err != nil {
		return err
	}
	if !create && v.Last == (state.StreamID{}) && v.Len() == 0 && s.DB.Find(a[1]) == nil {
		return nil
	}
	if !id.After(v.Last) {
		return server.Refuse("ERR The ID specified in XADD is equal or smaller than the target stream top item")
	}
	var packed []byte
	for j := i + 1; j < len(a); j += 2 {
		packed = record.AppendPair(packed, a[j], a[j+1])
	}
	v.AddEntry(id, packed)
	v.Last = id
	v.Added++
	t.cut(v)
	s.DB.Store(a[1], v)
	return nil
}

// Trim is XTRIM.
func Trim(s *server.Server, a [][]byte) error {
	var t trim
	if !server.Is(a[2], "MAXLEN") && !server.Is(a[2], "MINID") {
		return server.ErrSyntax
	}
	i, err := t.read(a, 2)
	if err != nil {
		return err
	}
	if i < len(a) && !server.Is(a[i], "KEEPREF") {
		return server.Unsupported("XTRIM "+string(s.Upper(a[i])), "kvferry does not know this option")
	}
	v, err := s.Find(a[1], record.Stream)
	if err != nil || v == nil {
		return err
	}
	t.cut(v)
	s.DB.Store(a[1], v)
	return nil
}

// ids parses ids.
func ids(a [][]byte) ([]state.StreamID, error) {
	out := make([]state.StreamID, len(a))
	for i := range a {
		var err error
		if out[i], err = parseID(a[i], 0); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Delete is XDEL.
func Delete(s *server.Server, a [][]byte) error {
	list, err := ids(a[2:])
	if err != nil {
		return err
	}
	v, err := s.Find(a[1], record.Stream)
	if err != nil || v == nil {
		return err
	}
	for _, id := range list {
		if !v.HasEntry(id) {
			continue
		}
		v.RemoveEntry(id)
		if id.After(v.Deleted) {
			v.Deleted = id
		}
	}
	s.DB.Store(a[1], v)
	return nil
}

// SetID is XSETID.
func SetID(s *server.Server, a [][]byte) error {
	id, err := parseID(a[2], 0)
	if err != nil {
		return err
	}
	added, deleted := int64(-1), state.StreamID{}
	for i := 3; i < len(a); i += 2 {
		switch {
		case i+1 >= len(a):
			return server.ErrSyntax
		case server.Is(a[i], "ENTRIESADDED"):
			if added, err = server.ParseInt(a[i+1]); err != nil || added < 0 {
				return server.ErrInteger
			}
		case server.Is(a[i], "MAXDELETEDID"):
			if deleted, err = parseID(a[i+1], 0); err != nil || deleted.After(id) {
				return errID
			}
		default:
			return server.ErrSyntax
		}
	}
	v, err := s.Find(a[1], record.Stream)
	if err != nil {
		return err
	}
	if v == nil {
		return server.ErrNoKey
	}
	if v.Len() > 0 && (top(v).After(id) || added >= 0 && v.Len() > added) {
		return server.Refuse("ERR The ID specified in XSETID is smaller than the target stream top item")
	}
	v.Last = id
	if added >= 0 {
		v.Added = uint64(added)
	}
	if deleted != (state.StreamID{}) {
		v.Deleted = deleted
	}
	s.DB.Store(a[1], v)
	return nil
}

// top returns the greatest id of a stream's entries.
func top(v *state.Value) (last state.StreamID) {
	v.Entries(true, func(id state.StreamID) bool {
		last = id
		return false
	})
	return last
}

// entriesRead reads the number of ENTRIESREAD at a[i:], -1 when it is not given.
func entriesRead(a [][]byte) (int64, error) {
	switch {
	case len(a) == 0:
		return -1, nil
	case len(a) != 2 || !server.Is(a[0], "ENTRIESREAD"):
		return 0, server.ErrSyntax
	}
	n, err := server.ParseInt(a[1])
	if err != nil || n < -1 {
		return 0, server.Refuse("ERR value for ENTRIESREAD must be positive or -1")
	}
	return n, nil
}
