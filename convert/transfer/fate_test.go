package transfer

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"kvferry/convert/result"
	"kvferry/format"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

// sparingTarget is a target on a server that has some keys already.
type sparingTarget struct {
	*fake.Target
	has  func(key []byte) bool
	late int // records that the server is asked about at once
}

func (s *sparingTarget) Shard(n int, db string, g record.TypeSet, memory int64) (record.Writer, error) {
	w, err := s.Target.Shard(n, db, g, memory)
	return &sparing{Writer: w, of: s}, err
}

// sparing writes a record once the server has replied that its key does not exist.
type sparing struct {
	record.Writer
	feed   record.Feeder
	of     *sparingTarget
	number int64
	held   []heldBack
	tell   func(int64, bool)
}

type heldBack struct {
	n     int64
	h     record.Header
	elems []record.Element
}

func (w *sparing) OnDecided(f func(int64, bool)) bool {
	w.tell = f
	return true
}

func (w *sparing) Begin(h *record.Header) error {
	b := heldBack{n: w.number, h: *h}
	b.h.Key = bytes.Clone(h.Key)
	w.number++
	w.held = append(w.held, b)
	return nil
}

func (w *sparing) Write(b *record.Batch) error { return w.feed.Feed(b, w, nil) }

func (w *sparing) Elements(elems []record.Element) error {
	b := &w.held[len(w.held)-1]
	for _, e := range elems {
		e.Name, e.Value = bytes.Clone(e.Name), bytes.Clone(e.Value)
		b.elems = append(b.elems, e)
	}
	return nil
}

func (w *sparing) End() error {
	if len(w.held) < w.of.late {
		return nil
	}
	return w.release()
}

func (w *sparing) release() error {
	slices.Reverse(w.held) // in any order
	for _, b := range w.held {
		skipped := w.of.has(b.h.Key)
		w.tell(b.n, skipped)
		if skipped {
			continue
		}
		one := record.Record{Header: b.h, N: len(b.elems), Class: record.Copied}
		if err := w.Writer.Write(&record.Batch{Records: []record.Record{one}, Elems: b.elems}); err != nil {
			return err
		}
	}
	w.held = nil
	return nil
}

func (w *sparing) Close() error {
	if err := w.release(); err != nil {
		return err
	}
	return w.Writer.Close()
}

// TestSkipped checks that a record that the writer skips because its key exists is counted as skipped, with all rows
// and elements, no matter how late the reply comes. Every row read is in exactly one class.
func TestSkipped(t *testing.T) {
	soon := testNow.Add(time.Minute).UnixMilli()
	list := fake.Dataset(2)
	for i := range list {
		r := &list[i]
		switch {
		case r.Type == record.ZSet && len(r.Elems) > 1:
			r.Elems[1].Score = 2e13 // it is lost
		case i%7 == 0:
			r.ExpireMS = soon
		case i%11 == 0:
			r.Key = append([]byte("lost"), r.Key...)
		case r.Type == record.Set && i%5 == 0:
			r.Elems = nil
		}
	}
	total := func(has func([]byte) bool, late int) *result.Totals {
		x := newRoom(t, list)
		x.to.Bounds.FieldExpiry, x.src.Ranges = true, []format.Range{{Keyspace: "rows"}}
		x.allowed = []string{"key-too-long", "score-range"}
		x.begin()
		x.rules.Lapse, x.rules.Gone = NewLapse(testNow), 0
		if late > 0 {
			x.target = &sparingTarget{x.target.(*fake.Target), has, late}
		}
		tot, _ := x.proved()
		return tot
	}
	all := total(nil, 0)
	for name, has := range map[string]func([]byte) bool{
		"none": func([]byte) bool { return false }, "all": func([]byte) bool { return true },
		"some": func(key []byte) bool { return key[len(key)-1]%3 == 0 },
	} {
		for _, late := range []int{1, 2, 7, 1000} {
			got := total(has, late)
			var both record.Fingerprint
			both.Merge(&got.Skipped)
			both.Merge(&got.Fingerprint)
			gone := got.Expiring
			if diff := both.Diff(&all.Fingerprint, false); len(diff) > 0 {
				t.Errorf("%s, %d at once: written and skipped differ in %v", name, late, diff)
			}
			ledger, want := got.Ledger.Snapshot(), all.Ledger.Snapshot()
			rows := int64(0)
			for k, w := range want {
				g := ledger[k]
				rows += g.Rows[record.Skipped]
				left := g.Rows[record.Copied] + g.Rows[record.Skipped]
				if left != w.Rows[record.Copied] || g.Rows[record.Lost] != w.Rows[record.Lost] {
					t.Errorf("%s, %d at once: %s: %v, want %v", name, late, k, g, w)
				}
			}
			if n := rowsOf(list, has); rows != n {
				t.Errorf("%s, %d at once: %d rows are skipped, want %d", name, late, rows, n)
			}
			if name == "all" && len(gone) > 0 || name == "none" && fmt.Sprint(gone) != fmt.Sprint(all.Expiring) {
				t.Errorf("%s: %v expire", name, gone)
			}
		}
	}
}

// rowsOf counts the rows of the skipped records, except those of elements that are lost.
func rowsOf(list []fake.Record, has func([]byte) bool) (n int64) {
	for i := range list {
		r := &list[i]
		if bytes.HasPrefix(r.Key, []byte("lost")) || !has(r.Key) {
			continue
		}
		n += r.Rows()
		if r.Type == record.ZSet && len(r.Elems) > 1 {
			n--
		}
	}
	return n
}
