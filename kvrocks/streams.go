package kvrocks

import (
	"bytes"
	"encoding/binary"
	"io"

	"kvferry/internal/extsort"
	"kvferry/kvrocks/codec"
	"kvferry/record"
	"kvferry/store"
)

// streamState is what is known of the current stream.
type streamState struct {
	codec.StreamState
	entries     uint64
	first, last []byte // ids of entries
	old         bool   // there are rows of consumer groups as before 2.10

	// groups are the rows of consumer groups, which lie by kind and come by group.
	groups *extsort.Sorter
	it     *extsort.Iterator
	group  groupCount
}

// groupCount compares what a consumer group's row counts with its other rows.
type groupCount struct {
	name               []byte
	open               bool
	consumers, pending uint64            // as the row has them
	have               map[string]uint64 // consumers, and how many entries they say are pending
	counted            map[string]uint64 // pending entries by consumer
	entries            uint64
}

// begin decodes the extras of a stream.
func (s *streamState) begin(extras []byte) (err error) {
	n := codec.StreamExtras
	if len(extras) < n {
		n = codec.OldStreamExtras
	}
	s.StreamState, err = codec.DecodeStreamState(extras[:n])
	s.first, s.last, s.entries, s.old, s.it = s.first[:0], s.last[:0], 0, false, nil
	if s.groups != nil {
		s.groups.Reset()
	}
	return err
}

func (s *streamState) close() error {
	if s.groups == nil {
		return nil
	}
	return s.groups.Close()
}

// header fills what only streams have.
func (s *streamState) header(h *record.Header) {
	h.Last, h.Added = s.LastGenerated[:], s.Added
	if s.MaxDeleted != (codec.StreamID{}) {
		h.MaxDeleted = s.MaxDeleted[:]
	}
}

// readStream reads the entries of a stream, and then its consumer groups.
func (r *reader) readStream(dst []record.Element) (int, error) {
	set := r.sets[roleStream]
	for r.stream.it == nil {
		rows, skip, err := set.Batch(min(len(dst), batchLen))
		if err != nil {
			return 0, err
		}
		if len(rows) == 0 {
			if err := r.completeEntries(); err != nil {
				return 0, err
			}
			break
		}
		n, err := r.takeEntries(dst, rows, skip)
		if n > 0 || err != nil {
			return n, err
		}
	}
	return r.readGroups(dst)
}

// takeEntries sets the entries among some rows, as views, and puts the rows of consumer groups by.
func (r *reader) takeEntries(dst []record.Element, rows []store.Row, skip int) (n int, err error) {
	s := &r.stream
	for i, row := range rows {
		rest := row.Key[skip:]
		if codec.Version(binary.BigEndian.Uint64(rest)) != r.m.Version {
			r.tally[roleStream].Rows[record.Stale]++
			continue
		}
		sub := rest[codec.VersionLen:]
		if !codec.IsEntry(sub) {
			if err := r.groupRow(row, sub, r.sets[roleStream].PlaceAt(i)); err != nil {
				return 0, err
			}
			continue
		}
		if err := codec.CheckPairs(row.Value); err != nil {
			r.badRow(roleStream, row.Key, r.sets[roleStream].PlaceAt(i), err)
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
	r.rows[roleStream] += int64(n)
	return n, nil
}

// groupRow puts a row of a consumer group by, as the element that it is.
func (r *reader) groupRow(row store.Row, sub []byte, place record.Place) error {
	k, err := codec.DecodeGroupKey(sub)
	if err != nil {
		r.badRow(roleStream, row.Key, place, keyError{err})
		return nil
	}
	order := groupOrder(nil, &k)
	value, err := groupElement(&k, row.Value)
	if err != nil {
		r.badRow(roleStream, row.Key, place, err)
		return nil
	}
	s := &r.stream
	if s.old = s.old || k.Old; s.groups == nil {
		s.groups = extsort.New(extsort.Options{Compare: compareGroups, Memory: r.memory / 8, TempDir: r.env.TempDir})
	}
	r.rows[roleStream]++
	return s.groups.Add(0, order, value)
}

// groupOrder appends what rows of consumer groups are sorted by: group, kind, and consumer or id.
//
//	+-----------+-------+-----------+----------------+
//	| glen (8B) | group | kind (1B) | consumer or id |
//	+-----------+-------+-----------+----------------+
func groupOrder(dst []byte, k *codec.GroupKey) []byte {
	dst = append(codec.AppendSized(dst, k.Group), byte(k.Kind))
	if k.Kind == codec.KindPending {
		return append(dst, k.ID[:]...)
	}
	return append(dst, k.Consumer...)
}

// splitOrder splits what groupOrder made.
func splitOrder(b []byte) (group []byte, rest []byte) {
	n := binary.BigEndian.Uint64(b)
	return b[8 : 8+n], b[8+n:]
}

func compareGroups(a, b []byte) int {
	ga, ra := splitOrder(a)
	gb, rb := splitOrder(b)
	if c := bytes.Compare(ga, gb); c != 0 {
		return c
	}
	return bytes.Compare(ra, rb)
}

// groupElement makes the value of an element of a row's value, after the two counts of the row.
func groupElement(k *codec.GroupKey, value []byte) ([]byte, error) {
	counts := func(a, b uint64) []byte {
		return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, a), b)
	}
	switch k.Kind {
	case codec.KindGroup:
		g, err := codec.DecodeGroup(value)
		return record.AppendGroup(counts(g.Consumers, g.Pending), &record.GroupState{Last: g.LastDelivered[:], Read: g.EntriesRead}), err
	case codec.KindConsumer:
		c, err := codec.DecodeConsumer(value)
		return record.AppendConsumer(counts(c.Pending, 0), &record.ConsumerState{Name: k.Consumer,
			SeenMS: int64(c.LastAttempt), ActiveMS: int64(c.LastSuccess)}), err
	}
	p, err := codec.DecodePending(value)
	return record.AppendPending(counts(0, 0), &record.PendingEntry{ID: k.ID[:], Consumer: p.Consumer,
		DeliveredMS: int64(p.Delivered), Count: int64(p.Count)}), err
}

// groupCounts is how many bytes of counts groupElement puts before the value.
const groupCounts = 16

// maxArena is about how many bytes of names and values a batch copies.
const maxArena = 64 << 10

// readGroups reads the elements of consumer groups, as copies.
func (r *reader) readGroups(dst []record.Element) (n int, err error) {
	r.arena = r.arena[:0]
	for n < len(dst) && len(r.arena) < maxArena {
		_, order, value, err := r.stream.it.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return 0, err
		}
		group, rest := splitOrder(order)
		if !r.countGroup(codec.GroupKind(rest[0]), group, rest[1:], value) {
			continue
		}
		at := len(r.arena)
		r.arena = append(append(r.arena, group...), value[groupCounts:]...)
		e := r.arena[at:]
		dst[n] = record.Element{Kind: record.Kind(rest[0]), Name: e[:len(group):len(group)], Value: e[len(group):]}
		n++
	}
	if n == 0 {
		r.closeGroup()
		r.drained = true
		return 0, io.EOF
	}
	return n, nil
}

// countGroup takes note of a row of a consumer group; false when its group is not there.
func (r *reader) countGroup(kind codec.GroupKind, group, name, value []byte) bool {
	g := &r.stream.group
	if kind == codec.KindGroup {
		r.closeGroup()
		*g = groupCount{name: append(g.name[:0], group...), open: true, consumers: binary.BigEndian.Uint64(value),
			pending: binary.BigEndian.Uint64(value[8:]), have: map[string]uint64{}, counted: map[string]uint64{}}
		return true
	}
	if !g.open || !bytes.Equal(g.name, group) {
		r.rows[roleStream]--
		r.tally[roleStream].Rows[record.Orphan]++
		r.damage(roleStream, FindStreamGroup, r.place, "a row of group %s, which is not there", record.Quote(group))
		return false
	}
	if kind == codec.KindConsumer {
		g.have[string(name)] = binary.BigEndian.Uint64(value)
		return true
	}
	if p, err := record.DecodePending(value[groupCounts:]); err == nil {
		g.counted[string(p.Consumer)]++
		g.entries++
	}
	return true
}

// closeGroup compares what the rows of a consumer group count.
func (r *reader) closeGroup() {
	g := &r.stream.group
	if !g.open {
		return
	}
	g.open = false
	if r.h.Expired {
		return
	}
	if g.consumers != uint64(len(g.have)) || g.pending != g.entries {
		r.remark(roleStream, FindStreamGroup, record.Warning, r.place, "group %s counts %d consumers and %d pending entries, there are %d and %d",
			record.Quote(g.name), g.consumers, g.pending, len(g.have), g.entries)
	}
	for name, n := range g.counted {
		if claimed, ok := g.have[name]; !ok || claimed != n {
			r.remark(roleStream, FindStreamGroup, record.Warning, r.place, "group %s: consumer %s counts %d pending entries, there are %d",
				record.Quote(g.name), record.Quote([]byte(name)), claimed, n)
			break // one says it
		}
	}
}

// completeEntries checks the entries, which have all been read, and sorts the rows of consumer groups.
func (r *reader) completeEntries() (err error) {
	s := &r.stream
	s.group = groupCount{name: s.group.name[:0]}
	if s.groups == nil {
		s.groups = extsort.New(extsort.Options{Compare: compareGroups, Memory: r.memory / 8, TempDir: r.env.TempDir})
	}
	if s.it, err = s.groups.Sort(); err != nil || r.h.Expired {
		return err
	}
	if s.old {
		r.remark(roleStream, FindOldGroups, record.Note, r.place, "consumer groups are as servers before 2.10 keep them; later ones do not know them")
	}
	if r.m.Size != s.entries {
		r.damage(roleMeta, FindCountMismatch, r.place, "size is %d, entries there: %d", r.m.Size, s.entries)
	}
	if len(s.last) == 0 {
		return nil
	}
	if bytes.Compare(s.last, s.LastGenerated[:]) > 0 {
		r.damage(roleMeta, FindStreamBounds, r.place, "the last entry is %s, beyond the last generated id %s", codec.IDText(s.last), codec.IDText(s.LastGenerated[:]))
	}
	if !bytes.Equal(s.first, s.First[:]) || !bytes.Equal(s.last, s.Last[:]) {
		r.remark(roleMeta, FindStreamBounds, record.Warning, r.place, "the entries go from %s to %s, metadata says from %s to %s",
			codec.IDText(s.first), codec.IDText(s.last), codec.IDText(s.First[:]), codec.IDText(s.Last[:]))
	}
	return nil
}
