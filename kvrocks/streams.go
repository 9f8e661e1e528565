package kvrocks

import (
	"bytes"
	"encoding/binary"
	"io"

	"kvferry/record"
	"kvferry/store"
)

// streamState is what is known of the current stream.
type streamState struct {
	StreamState
	first, last []byte // ids of entries
	groups      int64  // rows of consumer groups
}

// begin decodes the extras of a stream.
func (s *streamState) begin(extras []byte) (err error) {
	n := streamExtras
	if len(extras) < n {
		n = oldStreamExtras
	}
	s.StreamState, err = DecodeStreamState(extras[:n])
	s.first, s.last, s.groups = s.first[:0], s.last[:0], 0
	return err
}

func (s *streamState) close() error { return nil }

// readStream reads the entries of a stream.
func (r *reader) readStream(dst []record.Element) (int, error) {
	set := r.sets[roleStream]
	for {
		rows, skip, err := set.Batch(min(len(dst), batchLen))
		if err != nil {
			return 0, err
		}
		if len(rows) == 0 {
			return 0, r.completeStream()
		}
		if n := r.takeEntries(dst, rows, skip); n > 0 {
			return n, nil
		}
	}
}

// takeEntries sets the entries among some rows, as views, and puts the rows of consumer groups by.
func (r *reader) takeEntries(dst []record.Element, rows []store.Row, skip int) int {
	n := 0
	for i, row := range rows {
		rest := row.Key[skip:]
		if Version(binary.BigEndian.Uint64(rest)) != r.m.Version {
			r.tally[roleStream].Rows[record.Stale]++
			continue
		}
		sub := rest[versionLen:]
		if !IsEntry(sub) {
			r.groupRow(row, sub, i)
			continue
		}
		if err := checkPairs(row.Value); err != nil {
			r.badRow(roleStream, row.Key, r.sets[roleStream].PlaceAt(i), err)
			continue
		}
		if len(r.stream.first) == 0 {
			r.stream.first = append(r.stream.first[:0], sub...)
		}
		e := &dst[n]
		e.Name, e.Value, e.Score = sub, row.Value, 0
		n++
	}
	if n > 0 {
		r.stream.last = append(r.stream.last[:0], dst[n-1].Name...)
	}
	r.rows[roleStream] += int64(n)
	return n
}

// groupRow counts a row of a consumer group.
func (r *reader) groupRow(row store.Row, sub []byte, i int) {
	if _, err := DecodeGroupKey(sub); err != nil {
		r.badRow(roleStream, row.Key, r.sets[roleStream].PlaceAt(i), keyError{err})
		return
	}
	r.tally[roleStream].Rows[record.Lost]++
	r.stream.groups++
}

// completeStream checks the stream whose rows have all been read, and returns io.EOF.
func (r *reader) completeStream() error {
	r.drained = true
	if r.h.Expired {
		return io.EOF
	}
	s := &r.stream
	if s.groups > 0 {
		r.remark(roleStream, "stream-groups", record.Warning, r.place, "%d rows of consumer groups and pending entries are left out", s.groups)
	}
	if r.m.Size != uint64(r.rows[roleStream]) {
		r.damage(roleMeta, FindCountMismatch, r.place, "size is %d, entries there: %d", r.m.Size, r.rows[roleStream])
	}
	if len(s.last) == 0 {
		return io.EOF
	}
	if bytes.Compare(s.last, s.LastGenerated[:]) > 0 {
		r.damage(roleMeta, FindStreamBounds, r.place, "the last entry is %s, beyond the last generated id %s", idText(s.last), idText(s.LastGenerated[:]))
	}
	if !bytes.Equal(s.first, s.First[:]) || !bytes.Equal(s.last, s.Last[:]) {
		r.remark(roleMeta, FindStreamBounds, record.Warning, r.place, "the entries go from %s to %s, metadata says from %s to %s",
			idText(s.first), idText(s.last), idText(s.First[:]), idText(s.Last[:]))
	}
	return io.EOF
}
