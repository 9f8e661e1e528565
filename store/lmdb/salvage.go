package lmdb

import (
	"errors"
	"syscall"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
)

// With Options.Salvage iterators skip unreadable pages and nodes. LMDB has no checksums: damage only shows if a page
// has a wrong number or impossible contents. So the remaining rows may still be wrong, and damage that leads to rows
// out of order or duplicate rows is always an error.

// isDamage reports whether an error means damaged bytes or a read failure of the medium.
func isDamage(err error) bool {
	var c *record.CorruptError
	return !disk.IsAccess(err) && (errors.As(err, &c) || errors.Is(err, syscall.EIO))
}

// pass returns nil if a salvage continues after the error of a page.
func (c *cursor) pass(err error, num uint64) error {
	err = c.damage(err, num)
	if !isDamage(err) {
		return err
	}
	if !c.salvage {
		return &store.BlockError{Err: err}
	}
	c.lost = true
	c.k.lost(num, err)
	return nil
}

// rows returns a cursor before the first row, for readers that may skip damage.
func (k *keyspace) rows() *cursor {
	c := newCursor(k)
	c.salvage = k.env.opts.Salvage
	return c
}

// lost reports, once, a page with missing rows.
func (k *keyspace) lost(num uint64, err error) {
	if k.env.opts.Report == nil || !k.env.first(num) {
		return
	}
	what := err.Error()
	var c *record.CorruptError
	if errors.As(err, &c) { // the finding has the place
		what = c.Reason()
	}
	f := record.Finding{Kind: record.FindDamagedPage, Severity: record.Error, Keyspace: k.label(),
		Unread: k.env.offset(1) - k.env.offset(0), Place: record.Place{File: dataFile, Off: k.env.offset(num), Level: -1},
		Detail: what + "; its rows are missing"}
	if record.IsNewer(err) {
		f.Kind = record.FindNewer
	}
	k.env.opts.Report(f)
}

// first records what a finding is about and reports whether it is new.
func (e *env) first(what any) bool {
	_, known := e.reported.LoadOrStore(what, true)
	return !known
}

// Unordered calls f with every row in tree order. Damaged pages and values are reported and skipped; no page is read
// twice.
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
	seen map[uint64]uint64 // bitmap, 64 pages per word
}

// visit records a page and reports whether it is new.
func (s *salvage) visit(num uint64) bool {
	word, bit := num/64, uint64(1)<<(num%64)
	if s.seen[word]&bit != 0 {
		return false
	}
	s.seen[word] |= bit
	return true
}

// page walks the subtree of a page. Only errors of f and of access end the walk.
func (s *salvage) page(i int, num uint64) error {
	if !s.visit(num) {
		s.c.k.lost(num, s.c.damage(corrupt(0, "page", "page %d is in the tree twice", num), num))
		return nil
	}
	s.c.pages = 0 // seen bounds the walk
	if err := s.c.load(i, num); disk.IsAccess(err) {
		return err
	} else if err != nil {
		s.c.k.lost(num, err)
		return nil
	}
	if i == len(s.c.levels)-1 {
		return s.leaf(&s.c.levels[i])
	}
	l := &s.c.levels[i]
	for j := range l.page.n {
		n, err := l.page.branch(j)
		if err != nil {
			s.c.k.lost(num, s.c.damage(err, num))
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
			s.c.k.lost(l.num, s.c.damage(err, l.num))
			continue
		}
		if n.flags == nodeSub {
			continue
		}
		value, err := s.c.value(&n)
		if disk.IsAccess(err) {
			return err
		}
		if err != nil {
			s.c.k.lost(n.child, err)
			continue
		}
		if err := s.f(&store.Entry{Key: n.key, Value: value, Place: s.c.place()}); err != nil {
			return err
		}
	}
	return nil
}
