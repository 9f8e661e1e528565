package versioned

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"

	"kvferry/internal/sys/extsort"
	"kvferry/record"
)

// keepLones makes the members found by compareScores the next elements.
func (r *Reader) keepLones(sorter *extsort.Sorter) (err error) {
	if sorter == nil || sorter.Len() == 0 {
		if sorter != nil {
			err = sorter.Close()
		}
		return err
	}
	l := &lones{sorter: sorter}
	if l.it, err = sorter.Sort(); err == nil {
		err = l.advance()
	}
	if err != nil {
		return errors.Join(err, sorter.Close())
	}
	r.lone, r.drained = l, false
	return nil
}

// advance looks ahead to the next index row.
func (l *lones) advance() error {
	_, member, bits, err := l.it.Next()
	if err == io.EOF {
		l.next.Name = nil
		return nil
	}
	if err == nil {
		l.next.Name = append(make([]byte, 0, len(member)+1), member...)
		l.next.Score = math.Float64frombits(binary.LittleEndian.Uint64(bits))
	}
	return err
}

// readLone returns some of these members, each once and with its greatest score, which comes last.
func (r *Reader) readLone(dst []record.Element) (n int, err error) {
	l := r.lone
	for n < len(dst) && l.next.Name != nil {
		e := &dst[n]
		for *e = l.next; l.next.Name != nil && bytes.Equal(l.next.Name, e.Name); {
			e.Score = l.next.Score
			if err := l.advance(); err != nil {
				return 0, err
			}
		}
		r.alive++
		r.tallies[r.cur.index].Rows[record.Orphan]--
		if r.cur.Taken != nil {
			r.cur.Taken(r, e, -1)
		}
		n++
	}
	if n > 0 {
		return n, nil
	}
	r.lone, r.drained = nil, true
	r.checkCount()
	if err := l.sorter.Close(); err != nil {
		return 0, err
	}
	return 0, io.EOF
}
