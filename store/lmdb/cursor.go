package lmdb

import (
	"bytes"
	"cmp"
	"io"
	"sort"

	"kvferry/internal/sys/bufpool"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
)

// cursor walks a tree from left to right. It holds one page per level. Views are valid until the next call.
type cursor struct {
	k      *keyspace
	levels []level
	pages  uint64 // pages read; more than the file has means a cycle
	big    []byte // the current value if it is in overflow pages
	primed bool
	// salvage skips unreadable pages and nodes; lost is set once it did.
	salvage, lost bool
	// bound, if not nil, is called with the key of each branch node that the walk enters: earlier rows must be below
	// this key, later rows must not.
	bound func(key []byte) error
}

type level struct {
	page page
	num  uint64
	next int // next node
	buf  []byte
}

func newCursor(k *keyspace) *cursor {
	return &cursor{k: k, levels: make([]level, k.tree.depth)}
}

// next returns the next leaf node, io.EOF after the last. The value is not loaded: see value.
func (c *cursor) next() (node, error) {
	if len(c.levels) == 0 || c.k.tree.root == noPage {
		return node{}, io.EOF
	}
	if !c.primed {
		c.primed = true
		if err := c.descend(0, c.k.tree.root); err != nil {
			return node{}, err
		}
	}
	leaf := &c.levels[len(c.levels)-1]
	for {
		if leaf.next >= leaf.page.n {
			if err := c.advance(); err != nil {
				return node{}, err
			}
			continue
		}
		n, err := leaf.page.leaf(leaf.next)
		if err == nil {
			leaf.next++
			return n, nil
		}
		if err := c.pass(err, leaf.num); err != nil {
			return node{}, err
		}
		leaf.next++
	}
}

// advance moves to the first node of the next leaf, which may be empty if it was skipped.
func (c *cursor) advance() error {
	for i := len(c.levels) - 2; i >= 0; i-- {
		if num, ok, err := c.child(i); ok || err != nil {
			if err == nil {
				err = c.descend(i+1, num)
			}
			return err
		}
	}
	return io.EOF
}

// child returns the next child of the branch at level i.
func (c *cursor) child(i int) (num uint64, ok bool, err error) {
	for l := &c.levels[i]; l.next < l.page.n; {
		n, err := l.page.branch(l.next)
		if err != nil {
			err = c.pass(err, l.num)
		} else {
			num, ok = n.child, true
			if l.next > 0 && c.bound != nil { // the first key of a branch is not stored
				err = c.bound(n.key)
			}
		}
		if err != nil {
			return 0, false, err
		}
		l.next++
		if ok {
			break
		}
	}
	return num, ok, nil
}

// descend loads page num into level i and then the leftmost pages below it.
func (c *cursor) descend(i int, num uint64) error {
	for ; ; i++ {
		if err := c.load(i, num); err != nil {
			return err
		}
		if i == len(c.levels)-1 {
			return nil
		}
		var ok bool
		var err error
		if num, ok, err = c.child(i); !ok || err != nil {
			c.empty(i + 1)
			return err
		}
	}
}

// empty removes all nodes from the levels from i on.
func (c *cursor) empty(i int) {
	for ; i < len(c.levels); i++ {
		c.levels[i].next, c.levels[i].page.n = 0, 0
	}
}

// load reads a page into a level. All leaves of a tree have the same depth, so the level determines the page's kind.
func (c *cursor) load(i int, num uint64) error {
	if c.pages++; c.pages > c.k.env.meta.lastPage {
		return c.damage(corrupt(0, "page", "the tree has more pages than the file: a cycle"), num)
	}
	l := &c.levels[i]
	if l.buf == nil {
		l.buf = make([]byte, c.k.env.meta.psize)
	}
	c.empty(i)
	l.num = num
	if err := c.k.env.read(l.buf, num); err != nil {
		return c.pass(err, num)
	}
	kind := uint16(pageBranch)
	if i == len(c.levels)-1 {
		kind = pageLeaf
	}
	p, err := parsePage(l.buf, num, kind)
	if err != nil {
		return c.pass(err, num)
	}
	l.page = p
	return nil
}

// seek makes next return the first node at or after key, in the order of compare.
func (c *cursor) seek(key []byte, compare func(a, b []byte) int) error {
	if len(c.levels) == 0 || c.k.tree.root == noPage {
		return nil
	}
	c.primed = true
	num := c.k.tree.root
	for i := range c.levels {
		if err := c.load(i, num); err != nil {
			return err
		}
		l := &c.levels[i]
		leaf := i == len(c.levels)-1
		at, err := l.search(key, compare, leaf)
		if err != nil {
			if err = c.pass(err, num); err == nil {
				at = l.scan(key, compare, leaf)
			}
		}
		if err != nil {
			return err
		}
		l.next = at
		if leaf || l.page.n == 0 {
			return nil
		}
		child, ok, err := c.child(i)
		if !ok || err != nil {
			return err
		}
		num = child
	}
	return nil
}

// scan is search for a page with unreadable nodes: it uses the readable ones.
func (l *level) scan(key []byte, compare func(a, b []byte) int, leaf bool) int {
	last := 0
	for i := range l.page.n {
		k, err := l.key(i, leaf)
		switch {
		case err != nil || !leaf && i == 0:
		case leaf && compare(k, key) >= 0:
			return i
		case !leaf && compare(k, key) > 0:
			return last
		default:
			last = i
		}
	}
	if leaf {
		return l.page.n
	}
	return last
}

// search returns the first node of a leaf at or after key, or the child of a branch that can hold it. The first key of
// a branch is not stored.
func (l *level) search(key []byte, compare func(a, b []byte) int, leaf bool) (at int, err error) {
	first := 1
	if leaf {
		first = 0
	}
	at = first + sort.Search(max(0, l.page.n-first), func(i int) bool {
		k, e := l.key(first+i, leaf)
		err = cmp.Or(err, e)
		c := compare(k, key)
		return e != nil || c > 0 || leaf && c == 0
	})
	if !leaf {
		at--
	}
	return at, err
}

func (l *level) key(i int, leaf bool) ([]byte, error) {
	n, err := l.page.node(i, leaf)
	return n.key, err
}

// value returns the value of a node that next returned.
func (c *cursor) value(n *node) ([]byte, error) {
	if n.flags != nodeBig {
		c.big = bufpool.Reset(c.big)
		return n.data, nil
	}
	if err := c.overflow(n); err != nil {
		return nil, c.damage(err, n.child)
	}
	return c.big, nil
}

// overflow reads a value from overflow pages.
func (c *cursor) overflow(n *node) error {
	e := c.k.env
	var head [pageHeader]byte
	if err := e.read(head[:], n.child); err != nil {
		return err
	}
	if p := le.Uint64(head[:]); p != n.child {
		return corrupt(0, "page number", "have %d, want %d", p, n.child)
	}
	if err := checkFlags(head[:], pageOverflow); err != nil {
		return err
	}
	pages := uint64(le.Uint32(head[12:]))
	if need := (pageHeader-1+n.size)/uint64(e.meta.psize) + 1; pages < need {
		return corrupt(12, "pages", "have %s for %s bytes, want %s", record.Number(pages), record.Number(n.size),
			record.Number(need))
	}
	if pages-1 > e.meta.lastPage-n.child {
		return corrupt(12, "pages", "have %d from page %d on, the last page is %d", pages, n.child, e.meta.lastPage)
	}
	off := e.offset(n.child) + pageHeader
	if uint64(e.size-off) < n.size {
		return corrupt(pageHeader, "value", "need %s bytes, the file has %s: %w", record.Number(n.size),
			record.Number(e.size-off), record.ErrShort)
	}
	err := c.fill(int(n.size), off)
	e.refuse(n.child, err)
	return err
}

// bigStep is the first read size of a large value. Later reads double it, so that memory grows only with existing
// bytes.
const bigStep = 16 << 20

func (c *cursor) fill(size int, off int64) error {
	c.big = bufpool.Room(c.big, min(size, bigStep))
	for len(c.big) < size {
		at := len(c.big)
		step := min(size-at, max(at, bigStep))
		c.big = bufpool.Grow(c.big, step)[:at+step]
		if _, _, err := disk.ReadAt(c.k.env.f, c.big[at:], off+int64(at)); err != nil {
			return err
		}
	}
	return nil
}

// leafPage is the page number of the last node.
func (c *cursor) leafPage() uint64 { return c.levels[len(c.levels)-1].num }

// damage adds the file, keyspace and offset to the error of a page.
func (c *cursor) damage(err error, num uint64) error {
	return shift(err, c.k.env.path, c.k.label(), c.k.env.offset(num))
}

// checked iterates over the nodes of a keyspace and refuses nested databases and rows out of order.
type checked struct {
	c    *cursor
	prev []byte
	rows uint64
	any  bool   // do not check the order
	low  []byte // the last bound: no later row may be below it
}

func (w *checked) next() (node, error) {
	for {
		n, err := w.c.next()
		if err != nil {
			return n, err
		}
		if n.flags == nodeSub {
			if w.c.k.skipSub {
				continue
			}
			return n, w.c.damage(corrupt(0, "node flags", "a database within a database"), w.c.leafPage())
		}
		return n, w.ascends(n.key)
	}
}

func (w *checked) ascends(key []byte) error {
	if !w.any {
		if err := w.after(key); err != nil {
			return err
		}
	}
	w.rows++
	w.prev = append(w.prev[:0], key...)
	return nil
}

// bound checks a branch key: a wrong one would make searches miss rows.
func (w *checked) bound(key []byte) error {
	if err := w.after(key); err != nil {
		return err
	}
	w.low = append(w.low[:0], key...)
	return nil
}

// after checks that key is above the earlier rows and not below the last bound.
func (w *checked) after(key []byte) error {
	k := w.c.k
	switch {
	case w.rows > 0 && k.compare(w.prev, key) >= 0:
		return w.disorder(w.prev, key)
	case w.low != nil && k.compare(w.low, key) > 0:
		return w.disorder(w.low, key)
	}
	return nil
}

func (w *checked) disorder(prev, next []byte) error {
	k := w.c.k
	return &store.OrderError{File: k.env.path, Off: k.env.offset(w.c.leafPage()), Keyspace: k.label(), Comparer: k.cmp.Name,
		Prev: bytes.Clone(prev), Next: bytes.Clone(next)}
}

// count returns an error if the number of rows differs from the tree's. After skips it may be lower.
func (w *checked) count() error {
	if w.c.k.skipSub || w.rows == w.c.k.tree.entries || w.c.lost && w.rows < w.c.k.tree.entries {
		return nil
	}
	return w.c.damage(corrupt(0, "entries", "found %s rows, but the database counts %s", record.Number(w.rows),
		record.Number(w.c.k.tree.entries)), w.c.k.tree.root)
}
