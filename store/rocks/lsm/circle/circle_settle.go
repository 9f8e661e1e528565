package circle

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/lsm"
)

// spool is the spool of the entries of all circles. Its user keys are
//
//	+-----------------------+-------------------------+-----+
//	| index of circle (4B)  | number, sign turned (8B)| key |
//	+-----------------------+-------------------------+-----+
//
// big endian, in bytewise order. The kind in a trailer has shownMark for what a scan shows.
type spool struct {
	ks     *lsm.Keyspace // of the spool: bytewise
	tables []*lsm.Table  // one
}

const (
	circleHeadLen = 4 + 8
	shownMark     = 0x80
)

// key appends the key that stands in the spool for a key of circle i. Keys without a number come first.
func (ks *Set) key(dst []byte, i int, key []byte) []byte {
	n, ok := ks.wrapping.Number(key)
	if !ok {
		n = -1 << 63
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(i))
	dst = binary.BigEndian.AppendUint64(dst, uint64(n)^1<<63)
	return append(dst, key...)
}

// settler finds out which entries of the circles a scan shows.
type settler struct {
	ks      *Set
	sorter  *lsm.Sorter
	lists   []*skipList   // by log
	nodes   [][]*skipNode // by log, in the order of the log
	bytes   int64         // of the nodes
	origins []string
	levels  []int
	key     []byte
}

// prepare settles the circles, once.
func (ks *Set) prepare() error {
	if err := ks.ks.Prepare(); err != nil {
		return err
	}
	ks.once.Do(func() { ks.err = ks.settle() })
	return ks.err
}

// settle fills the spool of the circles.
func (ks *Set) settle() error {
	shadow := lsm.New(ks.ks.Env, ks.ks.Name(), &store.Bytewise)
	s := &settler{ks: ks, sorter: lsm.NewSorter(shadow, ks.ks.Env.Memory/4)}
	defer s.sorter.Close()
	for _, name := range ks.logs {
		s.lists = append(s.lists, newSkipList(ks.ks.Comparer().Compare))
		s.origins, s.levels = append(s.origins, name), append(s.levels, -1)
	}
	s.nodes = make([][]*skipNode, len(s.lists))
	if err := ks.replay(context.Background(), s.insert); err != nil {
		return err
	}
	if err := s.merge(); err != nil {
		return err
	}
	if err := ks.replay(context.Background(), s.spoolLog); err != nil {
		return err
	}
	t, err := s.sorter.Spool(-1, s.origins, ks.ks.Env.Memory/16)
	var c *record.CorruptError
	if errors.As(err, &c) && len(c.Key) >= circleHeadLen {
		c.Key = c.Key[circleHeadLen:]
	}
	if err != nil {
		return err
	}
	ks.circled = &spool{ks: shadow}
	if t != nil {
		t.Levels = s.levels
		ks.circled.tables = []*lsm.Table{t}
	}
	ks.report("the server may show rows that were deleted and miss others; what its iterator shows is read")
	return nil
}

// insert puts an entry of a log where its memtable had it.
func (s *settler) insert(log uint32, _ int64, e Entry) error {
	if e.Kind != base.KindPut && e.Kind != base.KindDelete {
		return base.Unsupported("entry of kind %#x in a LevelDB database", e.Kind)
	}
	if s.ks.of(e.Key) == nil {
		s.lists[log].skip()
		return nil
	}
	n := s.lists[log].insert(bytes.Clone(e.Key), base.Trailer(e.Seq, e.Kind))
	s.nodes[log] = append(s.nodes[log], n)
	s.bytes += int64(len(e.Key)) + skipNodeSize
	return s.ks.room(s.bytes)
}

// spoolLog spools an entry of a log that insert put in a list.
func (s *settler) spoolLog(log uint32, off int64, e Entry) error {
	i := s.ks.from(e.Key)
	if s.ks.of(e.Key) == nil {
		return nil
	}
	n := s.nodes[log][0]
	s.nodes[log] = s.nodes[log][1:]
	value, err := e.Whole()
	if err != nil {
		return err
	}
	return s.add(i, e.Key, n.tr, value, n.shown, lsm.Origin{File: log, Off: uint64(off)})
}

// add spools an entry of circle i.
func (s *settler) add(i int, key []byte, tr uint64, value []byte, shown bool, o lsm.Origin) error {
	if shown {
		tr |= shownMark
	}
	s.key = s.ks.key(s.key[:0], i, key)
	return s.sorter.Add(s.key, tr, value, o)
}

// merge walks all circles as LevelDB's iterator does: newer logs first, then the tables of level 0 in the
// order of their smallest keys, then the deeper levels.
func (s *settler) merge() error {
	at := make([]*skipNode, len(s.lists))
	for i, l := range s.lists {
		at[i] = l.first()
	}
	runs := tableRuns(s.ks.ks)
	for i := range s.ks.all {
		w := &circleWalk{s: s, circle: i}
		c := &s.ks.all[i]
		for l := len(at) - 1; l >= 0; l-- {
			w.sides = append(w.sides, &circleSide{node: at[l]})
		}
		for _, r := range runs {
			if in := r.Between(s.ks.ks.Comparer(), c.lo, c.hi); len(in) > 0 {
				w.sides = append(w.sides, &circleSide{cur: lsm.NewCursor(s.ks.ks, in, c.hi)})
			}
		}
		err := w.run(c)
		for l := range at {
			at[l] = w.sides[len(at)-1-l].node
		}
		for _, d := range w.sides[len(at):] {
			d.cur.Close()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tableRuns returns the runs of the tables in the order in which LevelDB merges them.
func tableRuns(ks *lsm.Keyspace) []*lsm.Run {
	runs := slices.DeleteFunc(slices.Clone(ks.All), func(r *lsm.Run) bool { return r.Level < 0 })
	slices.SortStableFunc(runs, func(a, b *lsm.Run) int {
		if a.Level != 0 || b.Level != 0 {
			return a.Level - b.Level
		}
		x, y := a.Tables[0], b.Tables[0]
		return cmp.Or(base.CompareKeys(ks.Comparer().Compare, x.Smallest, y.Smallest), cmp.Compare(x.Number, y.Number))
	})
	return runs
}

// circleSide is one of the sequences that are merged: a log's list or a run of tables.
type circleSide struct {
	node *skipNode // the current entry of a list, which ends outside the circle
	cur  *lsm.Cursor
	key  []byte // of the current entry; nil at the end
	tr   uint64
}

// read takes the current entry.
func (d *circleSide) read(ok bool) error {
	d.key = nil
	if !ok {
		if d.cur != nil {
			return d.cur.Err
		}
		return nil
	}
	if d.cur == nil {
		d.key, d.tr = d.node.key, d.node.tr
		return nil
	}
	d.key, d.tr = d.cur.User(), d.cur.Tr
	if k := byte(d.tr); k != base.KindPut && k != base.KindDelete {
		return d.cur.T.Fail(d.cur.Place().Off, "kind", base.Unsupported("entry of kind %#x in a LevelDB database", k))
	}
	return nil
}

// circleWalk is a scan of one circle.
type circleWalk struct {
	s      *settler
	circle int
	sides  []*circleSide
	// skip is the key that was shown or deleted last, if skipping: the engine takes all that is not after it
	// for older entries of it.
	skip     []byte
	skipping bool
}

// run walks the circle, marks the nodes that are shown and spools the entries of tables.
func (w *circleWalk) run(c *circle) error {
	compare := w.s.ks.ks.Comparer().Compare
	inside := func(n *skipNode) bool { return n != nil && compare(n.key, c.hi) < 0 }
	for _, d := range w.sides {
		if err := d.read(d.cur == nil && inside(d.node) || d.cur != nil && d.cur.Seek(c.lo)); err != nil {
			return err
		}
	}
	for {
		d := w.first()
		if d == nil {
			return nil
		}
		shown := w.judge(d)
		var err error
		if d.cur == nil {
			d.node.shown = shown
			d.node = d.node.next[0]
			err = d.read(inside(d.node))
		} else if err = w.spool(d, shown); err == nil {
			err = d.read(d.cur.Next())
		}
		if err != nil {
			return err
		}
	}
}

// first returns the side whose entry is before those of the sides after it and not after those before it.
func (w *circleWalk) first() (least *circleSide) {
	compare := w.s.ks.ks.Comparer().Compare
	for _, d := range w.sides {
		if d.key == nil {
			continue
		}
		if least != nil {
			if c := compare(d.key, least.key); c > 0 || c == 0 && d.tr <= least.tr {
				continue
			}
		}
		least = d
	}
	return least
}

// judge says whether the engine's iterator shows an entry.
func (w *circleWalk) judge(d *circleSide) bool {
	shown := byte(d.tr) == base.KindPut && !(w.skipping && w.s.ks.ks.Comparer().Compare(d.key, w.skip) <= 0)
	if shown || byte(d.tr) == base.KindDelete {
		w.skip, w.skipping = append(w.skip[:0], d.key...), true
	}
	return shown
}

// spool spools an entry of a table.
func (w *circleWalk) spool(d *circleSide, shown bool) error {
	p := d.cur.Place()
	return w.s.add(w.circle, d.key, d.tr, d.cur.Val, shown, lsm.Origin{File: w.s.originOf(p), Off: uint64(p.Off)})
}

// originOf returns the index of a file among the origins.
func (s *settler) originOf(p record.Place) uint32 {
	i := len(s.origins) - 1
	for ; i >= 0; i-- {
		if s.origins[i] == p.File && s.levels[i] == p.Level {
			return uint32(i)
		}
	}
	s.origins, s.levels = append(s.origins, p.File), append(s.levels, p.Level)
	return uint32(len(s.origins) - 1)
}
