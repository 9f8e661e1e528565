package commands

import (
	"bytes"
	"encoding/binary"

	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/redis/state"
)

// parseID reads ms-seq, or ms alone, whose sequence number is then seq.
func parseID(b []byte, seq uint64) (state.StreamID, error) {
	ms, seq, err := argument.ParseID(b, seq)
	return state.StreamID{MS: ms, Seq: seq}, err
}

// limit is how XADD and XTRIM trim a stream.
type limit struct {
	on, byID bool
	about    bool // ~: a server may leave more
	limited  bool // LIMIT was given
	decided  bool // a policy was
	length   int64
	id       state.StreamID
	policy   policy
}

// option parses MAXLEN, MINID, LIMIT or a policy at a[i] and returns the index of the next argument; i for
// other arguments.
func (t *limit) option(a [][]byte, i int) (int, error) {
	more := len(a) - i - 1
	switch {
	case (argument.Is(a[i], "MAXLEN") || argument.Is(a[i], "MINID")) && more > 0:
		return t.read(a, i)
	case argument.Is(a[i], "LIMIT") && more > 0: // a server that loads a log does not obey it
		n, err := argument.ParseInt(a[i+1])
		if err == nil && n < 0 {
			err = argument.Refuse("ERR The LIMIT argument must be >= 0.")
		}
		t.limited = true
		return i + 2, err
	case !t.decided && t.policy.read(a[i]):
		t.decided = true
		return i + 1, nil
	}
	return i, nil
}

// read reads MAXLEN or MINID at a[i].
func (t *limit) read(a [][]byte, i int) (int, error) {
	if t.on {
		return 0, argument.ErrSyntax
	}
	t.on, t.byID = true, argument.Is(a[i], "MINID")
	i++
	if sign := string(a[i]); i+1 < len(a) && (sign == "~" || sign == "=") {
		t.about = sign == "~"
		i++
	}
	var err error
	if t.byID {
		t.id, err = parseID(a[i], 0)
	} else if t.length, err = argument.ParseInt(a[i]); err == nil && t.length < 0 {
		err = argument.Refuse("ERR The MAXLEN argument must be >= 0.")
	}
	return i + 1, err
}

// keeps reports whether an entry stays, and with it all that follow.
func (t *limit) keeps(v *state.Value, id state.StreamID) bool {
	return t.byID && !t.id.After(id) || !t.byID && v.Len() <= t.length
}

// cut removes the entries beyond the limit.
func (t *limit) cut(v *state.Value) {
	if !t.on || !t.byID && v.Len() <= t.length {
		return
	}
	r := referrers(v, t.policy)
	v.Entries(false, func(id state.StreamID) bool {
		if t.keeps(v, id) {
			return false
		}
		r.remove(v, id)
		return true
	})
}

// unsure returns an error if the number of entries that ~ lets a server remove is unknown.
func (t *limit) unsure(v *state.Value, more int64) (err error) {
	if !t.on || !t.about || !t.byID && v.Len()+more <= t.length {
		return nil
	}
	v.Entries(false, func(id state.StreamID) bool {
		if !t.byID || t.id.After(id) {
			err = state.Unsupported("XTRIM ~", "how much a server trims for ~ is unknown; it writes = to its log")
		}
		return false
	})
	return err
}

// cmdXadd is XADD.
func cmdXadd(s *state.Server, a [][]byte) error {
	var t limit
	create, once := true, false
	i := 2
	for i < len(a) {
		switch next, err := t.option(a, i); {
		case err != nil:
			return err
		case next > i:
			i = next
			continue
		case argument.Is(a[i], "NOMKSTREAM"):
			create = false
			i++
			continue
		case argument.Is(a[i], "IDMP") && i+2 < len(a) && !once:
			once = true
			i += 3
			continue
		case argument.Is(a[i], "IDMPAUTO") && i+1 < len(a) && !once:
			once = true
			i += 2
			continue
		}
		break
	}
	if t.limited && !t.on {
		return argument.ErrSyntax
	}
	if len(a)-i < 3 || (len(a)-i)%2 == 0 {
		return argument.ErrArgs
	}
	if bytes.IndexByte(a[i], '*') >= 0 {
		if once {
			return nil // a repetition: the first one has its id in the log
		}
		return state.Unsupported("XADD *", "the id that a server chose is unknown; it writes the id to its log")
	}
	id, err := parseID(a[i], 0)
	if err != nil {
		return badOption(s, "XADD", a[i])
	}
	if id == (state.StreamID{}) {
		return argument.Refuse("ERR The ID specified in XADD must be greater than 0-0")
	}
	return addEntry(s, a[1], id, a[i+1:], &t, create)
}

// badOption returns the error for an argument that is neither an option nor an id.
func badOption(s *state.Server, command string, arg []byte) error {
	if err := s.Option(command, arg); err != argument.ErrSyntax {
		return err
	}
	return argument.ErrID
}

// addEntry adds an entry and trims the stream.
func addEntry(s *state.Server, key []byte, id state.StreamID, pairs [][]byte, t *limit, create bool) error {
	v, err := s.Find(key, record.Stream)
	if err != nil || v == nil && !create {
		return err
	}
	if v == nil {
		v = s.DB.Make(record.Stream)
	}
	if !id.After(v.Last) {
		return argument.Refuse("ERR The ID specified in XADD is equal or smaller than the target stream top item")
	}
	if err := t.unsure(v, 1); err != nil {
		return err
	}
	size := 0
	for _, b := range pairs {
		size += len(b) + binary.MaxVarintLen32
	}
	packed := make([]byte, 0, size)
	for j := 0; j < len(pairs); j += 2 {
		packed = record.AppendPair(packed, pairs[j], pairs[j+1])
	}
	v.AddEntry(id, packed)
	v.Last = id
	v.Added++
	t.cut(v)
	s.DB.Store(key, v)
	return nil
}

// cmdXtrim is XTRIM.
func cmdXtrim(s *state.Server, a [][]byte) error {
	var t limit
	for i := 2; i < len(a); {
		next, err := t.option(a, i)
		if err != nil {
			return err
		}
		if next == i {
			return s.Option("XTRIM", a[i])
		}
		i = next
	}
	if !t.on {
		return argument.ErrSyntax
	}
	v, err := s.Find(a[1], record.Stream)
	if err != nil || v == nil {
		return err
	}
	if err := t.unsure(v, 0); err != nil {
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

// cmdXdel is XDEL.
func cmdXdel(s *state.Server, a [][]byte) error {
	v, err := s.Find(a[1], record.Stream)
	if err != nil || v == nil {
		return err
	}
	list, err := ids(a[2:])
	if err != nil {
		return err
	}
	r := referrers(v, keepRefs)
	for _, id := range list {
		r.delete(v, id)
	}
	s.DB.Store(a[1], v)
	return nil
}

// cmdXsetid is XSETID.
func cmdXsetid(s *state.Server, a [][]byte) error {
	id, err := parseID(a[2], 0)
	if err != nil {
		return err
	}
	added, deleted := int64(-1), state.StreamID{}
	for i := 3; i < len(a); i += 2 {
		switch {
		case i+1 >= len(a):
			return argument.ErrSyntax
		case argument.Is(a[i], "ENTRIESADDED"):
			if added, err = argument.ParseInt(a[i+1]); err != nil || added < 0 {
				return argument.ErrInteger
			}
		case argument.Is(a[i], "MAXDELETEDID"):
			if deleted, err = parseID(a[i+1], 0); err != nil || deleted.After(id) {
				return argument.ErrID
			}
		default:
			return s.Option("XSETID", a[i])
		}
	}
	v, err := s.Find(a[1], record.Stream)
	if err != nil {
		return err
	}
	if v == nil {
		return argument.ErrNoKey
	}
	if v.Len() > 0 && (top(v).After(id) || added >= 0 && v.Len() > added) {
		return argument.Refuse("ERR The ID specified in XSETID is smaller than the target stream top item")
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
