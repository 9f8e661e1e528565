package lmdb

import (
	"fmt"

	"kvferry/record"
	"kvferry/store"
)

// Unordered calls f with every row in the order of the tree. Damaged pages and values are reported and
// passed over; no page is read twice.
func (k *keyspace) Unordered(f func(*store.Entry) error) error {
	if err := k.usable(); err != nil {
		return err
	}
	if k.tree.root == noPage || k.tree.depth == 0 {
		return nil
	}
	s := salvage{c: newCursor(k), f: f, seen: make(map[uint64]uint64)}
	return s.page(0, k.tree.root)
}

type salvage struct {
	c    *cursor
	f    func(*store.Entry) error
	seen map[uint64]uint64 // 64 pages a word
}

// visit reports whether a page is new.
func (s *salvage) visit(num uint64) bool {
	word, bit := num/64, uint64(1)<<(num%64)
	if s.seen[word]&bit != 0 {
		return false
	}
	s.seen[word] |= bit
	return true
}

// page walks what is below a page. Only f's errors end the walk.
func (s *salvage) page(i int, num uint64) error {
	if !s.visit(num) {
		s.report(s.c.damage(corrupt(0, "page", "page %d is in the tree twice", num), num))
		return nil
	}
	s.c.pages = 0 // seen bounds the walk
	if err := s.c.load(i, num); err != nil {
		s.report(err)
		return nil
	}
	if i == len(s.c.levels)-1 {
		return s.leaf(&s.c.levels[i])
	}
	l := &s.c.levels[i]
	for j := range l.page.n {
		n, err := l.page.branch(j)
		if err != nil {
			s.report(s.c.damage(err, num))
			continue
		}
		if err := s.page(i+1, n.child); err != nil {
			return err
		}
	}
	return nil
}

func (s *salvage) leaf(l *level) error {
	for j := range l.page.n {
		n, err := l.page.leaf(j)
		if err != nil {
			s.report(s.c.damage(err, l.num))
			continue
		}
		if n.flags == nodeSub {
			continue
		}
		value, err := s.c.value(&n)
		if err != nil {
			s.report(err)
			continue
		}
		if err := s.f(&store.Entry{Key: n.key, Value: value, Place: s.c.place()}); err != nil {
			return err
		}
	}
	return nil
}

func (s *salvage) report(err error) {
	k := s.c.k
	if k.env.opts.Report == nil {
		return
	}
	k.env.opts.Report(record.Finding{Kind: record.FindDamagedPage, Severity: record.Error, Keyspace: k.label(),
		Place: record.Place{File: dataFile, Level: -1}, Detail: fmt.Sprintf("passed over: %v", err)})
}
