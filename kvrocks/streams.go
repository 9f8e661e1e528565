package kvrocks

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"kvferry/internal/shared/versioned"
	"kvferry/internal/sys/extsort"
	"kvferry/kvrocks/codec"
	"kvferry/record"
	"kvferry/store"
)

// streamReader reads the entries of streams, and then their consumer groups.
type streamReader struct {
	r *versioned.Reader
	codec.StreamState
	entries, found uint64 // found counts consumer groups
	first, last    []byte // ids of entries
	old            bool   // it has rows of consumer groups as before 2.10
	saw            func(forms uint32)
	done           bool

	// groups sorts the rows of consumer groups, stored by kind, into the order of groups.
	groups *extsort.Sorter
	it     *extsort.Iterator // nil before all entries are read
	group  groupCount
	arena  []byte
}

// groupCount compares what a consumer group's row counts with its other rows.
type groupCount struct {
	name               []byte
	open               bool
	consumers, pending uint64            // counts in the row
	have               map[string]uint64 // pending counts in the consumers' rows
	counted            map[string]uint64 // pending entries by consumer
	entries            uint64
}

func (s *source) newStreamReader(r *versioned.Reader) versioned.Elements {
	return &streamReader{r: r, saw: s.saw,
		groups: extsort.New(extsort.Options{Compare: codec.CompareGroups, Memory: r.Memory() / 8, TempDir: r.TempDir()})}
}

// Begin starts a stream.
func (s *streamReader) Begin() (err error) {
	h, extras := s.r.Header(), s.r.Meta().Value
	if s.StreamState, err = codec.DecodeStreamState(extras); err != nil {
		return err
	}
	if !s.Old {
		s.saw(seenSince4)
	}
	s.first, s.last, s.entries, s.old, s.done, s.it = s.first[:0], s.last[:0], 0, false, false, nil
	s.group, s.found = groupCount{name: s.group.name[:0]}, 0
	s.groups.Reset()
	h.Last, h.Added = s.LastGenerated[:], s.Added
	if s.MaxDeleted != (codec.StreamID{}) {
		h.MaxDeleted = s.MaxDeleted[:]
	}
	return nil
}

// Read returns the next entries, and then elements of consumer groups.
func (s *streamReader) Read(dst []record.Element) (int, error) {
	if s.done {
		return 0, io.EOF
	}
	for s.it == nil {
		rows, skip, err := s.r.Batch(min(len(dst), record.BatchLen))
		if err != nil {
			return 0, err
		}
		if len(rows) == 0 {
			s.checkEntries()
			if s.it, err = s.groups.Sort(); err != nil {
				return 0, err
			}
			break
		}
		if n, err := s.takeEntries(dst, rows, skip); n > 0 || err != nil {
			return n, err
		}
	}
	if n, err := s.readGroups(dst); n > 0 || err != nil {
		return n, err
	}
	s.closeGroup()
	if s.found != s.Groups && !s.Old && !s.old && !s.r.Header().Expired {
		s.warn(FindStreamGroup, "consumer groups counted %d, found %d", s.Groups, s.found)
	}
	s.done = true
	return 0, io.EOF
}

// End classifies the unread rows of a stream.
func (s *streamReader) End() error { return versioned.Drain(s) }

// Close removes temporary files.
func (s *streamReader) Close() error { return s.groups.Close() }

// takeEntries sets the entries among some rows, as views, and buffers the rows of consumer groups.
func (s *streamReader) takeEntries(dst []record.Element, rows []store.Row, skip int) (n int, err error) {
	for i := range rows {
		row := &rows[i]
		version, sub, _ := versionOf(row.Key[skip:])
		if s.r.Stale(version, i) {
			continue
		}
		if keyErr, valueErr := codec.CheckStreamRow(sub, row.Value); keyErr != nil || valueErr != nil {
			s.r.Reject(row, i)
			continue
		}
		s.r.Keep(1)
		if !codec.IsEntry(sub) {
			if err := s.groupRow(sub, row.Value); err != nil {
				return 0, err
			}
			continue
		}
		if len(s.first) == 0 {
			s.first = append(s.first[:0], sub...)
		}
		dst[n] = record.Element{Name: sub, Value: row.Value}
		n++
	}
	if n > 0 {
		s.last = append(s.last[:0], dst[n-1].Name...)
	}
	s.entries += uint64(n)
	return n, nil
}

// groupRow buffers a row of a consumer group, as an element.
func (s *streamReader) groupRow(sub, value []byte) error {
	k, err := codec.DecodeGroupKey(sub)
	if err != nil {
		return err
	}
	element, err := codec.GroupElement(&k, value)
	if err != nil {
		return err
	}
	s.old = s.old || k.Old
	if k.Old {
		s.saw(seenSince4 | seenBefore10)
	} else {
		s.saw(seenSince10)
	}
	return s.groups.Add(0, codec.GroupOrder(nil, &k), element)
}

// maxArena is roughly the number of bytes of names and values that a batch copies.
const maxArena = 64 << 10

// readGroups reads the elements of consumer groups, as copies.
func (s *streamReader) readGroups(dst []record.Element) (n int, err error) {
	s.arena = s.arena[:0]
	for n < len(dst) && len(s.arena) < maxArena {
		_, order, value, err := s.it.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, err
		}
		group, rest := codec.SplitGroupOrder(order)
		if !s.countGroup(codec.GroupKind(rest[0]), group, rest[1:], value) {
			continue
		}
		at := len(s.arena)
		s.arena = append(append(s.arena, group...), value[codec.GroupCounts:]...)
		e := s.arena[at:]
		dst[n] = record.Element{Kind: record.Kind(rest[0]), Name: e[:len(group):len(group)], Value: e[len(group):]}
		n++
	}
	return n, nil
}

// countGroup records a row of a consumer group; it returns false if its group does not exist.
func (s *streamReader) countGroup(kind codec.GroupKind, group, name, value []byte) bool {
	g := &s.group
	if kind == codec.KindGroup {
		s.closeGroup()
		s.found++
		*g = groupCount{name: append(g.name[:0], group...), open: true, consumers: binary.BigEndian.Uint64(value),
			pending: binary.BigEndian.Uint64(value[8:]), have: map[string]uint64{}, counted: map[string]uint64{}}
		return true
	}
	if !g.open || !bytes.Equal(g.name, group) {
		s.r.Keep(-1)
		s.r.Lose(1)
		s.r.DamageAt(nil, FindStreamGroup, "a row of group %s, which does not exist", record.Quote(group))
		return false
	}
	if kind == codec.KindConsumer {
		g.have[string(name)] = binary.BigEndian.Uint64(value)
		return true
	}
	if p, err := record.DecodePending(value[codec.GroupCounts:]); err == nil {
		g.counted[string(p.Consumer)]++
		g.entries++
	}
	return true
}

// closeGroup compares the counts in the rows of a consumer group.
func (s *streamReader) closeGroup() {
	g := &s.group
	if !g.open {
		return
	}
	g.open = false
	if s.r.Header().Expired {
		return
	}
	if g.consumers != uint64(len(g.have)) || g.pending != g.entries {
		s.warn(FindStreamGroup, "group %s: consumers counted %d, found %d; pending entries counted %d, found %d",
			record.Quote(g.name), g.consumers, len(g.have), g.pending, g.entries)
	}
	for name, n := range g.counted {
		if claimed, ok := g.have[name]; !ok || claimed != n {
			s.warn(FindStreamGroup, "group %s: consumer %s: pending entries counted %d, found %d",
				record.Quote(g.name), record.Quote([]byte(name)), claimed, n)
			break // one report is enough
		}
	}
}

func (s *streamReader) warn(kind, detail string, args ...any) {
	s.r.Remark(kind, record.Warning, fmt.Sprintf(detail, args...))
}

// checkEntries checks the entries after all were read.
func (s *streamReader) checkEntries() {
	if s.r.Header().Expired {
		return
	}
	if s.old {
		s.r.Remark(FindOldGroups, record.Note, "consumer groups are in the layout of servers before 2.10; later ones do not see them")
	}
	s.r.CheckCount(int64(s.entries))
	if len(s.last) == 0 {
		return
	}
	if bytes.Compare(s.last, s.LastGenerated[:]) > 0 {
		s.r.DamageAt(nil, FindStreamBounds, "the last entry is %s, beyond the last generated id %s", codec.IDText(s.last),
			codec.IDText(s.LastGenerated[:]))
	}
	if !bytes.Equal(s.first, s.First[:]) || !bytes.Equal(s.last, s.Last[:]) {
		s.warn(FindStreamBounds, "the entries range from %s to %s, but from %s to %s in the metadata",
			codec.IDText(s.first), codec.IDText(s.last), codec.IDText(s.First[:]), codec.IDText(s.Last[:]))
	}
}
