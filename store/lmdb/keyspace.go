package lmdb

import (
	"fmt"
	"io"
	"sync"

	"kvferry/record"
	"kvferry/store"
)

// keyspace is a named database.
type keyspace struct {
	env     *env
	name    string
	tree    tree
	cmp     store.Comparer
	skipSub bool // main database: named databases are not its rows

	once  sync.Once
	order error

	unknown error // reason why the database is unsupported
}

// Name returns the name of the database.
func (k *keyspace) Name() string { return k.name }

// Comparer returns the expected order of the database.
func (k *keyspace) Comparer() *store.Comparer { return &k.cmp }

// Size returns the bytes of the database's pages.
func (k *keyspace) Size() int64 {
	pages := min(k.tree.branch, k.env.meta.lastPage) + min(k.tree.leaf, k.env.meta.lastPage) +
		min(k.tree.overflow, k.env.meta.lastPage)
	return min(int64(min(pages, uint64(k.env.size)))*int64(k.env.meta.psize), k.env.size)
}

func (k *keyspace) compare(a, b []byte) int { return k.cmp.Compare(a, b) }

func (k *keyspace) label() string {
	if k.name == "" {
		return "main database"
	}
	return k.name
}

// usable returns an error if the walker does not support the database.
func (k *keyspace) usable() error {
	if k.tree.flags&treeDupSort != 0 {
		return fmt.Errorf("%s: database %q has several values a key (MDB_DUPSORT), which this build does not read",
			k.env.path, k.name)
	}
	return k.unknown
}

// checkTreeFlags checks that a tree has no unknown flag or key size.
func (k *keyspace) checkTreeFlags() error {
	switch t := &k.tree; {
	case t.flags&^treeKnown != 0:
		return record.Unknown(record.NoOffset, "database flags", fmt.Sprintf("have %#x", t.flags))
	case t.pad != 0 && t.flags&treeDupSort == 0 && k.name != "":
		return record.Unknown(record.NoOffset, "database pad", fmt.Sprintf("have %d", t.pad))
	}
	return nil
}

// leaveOut marks an unknown database: a salvage sees no rows in it, other readers get the error.
func (k *keyspace) leaveOut(err error) {
	err = shift(err, k.env.path, k.label(), 0)
	if !k.env.opts.Salvage {
		k.unknown = &store.BlockError{Err: err}
		return
	}
	k.lost(k.tree.root, err)
	k.tree.root, k.tree.entries = noPage, 0
}

// CheckOrder reads all keys once, including those of branch pages, and returns a *store.OrderError if they do not
// ascend. A tree in another order cannot be searched, so ranges require a successful check.
func (k *keyspace) CheckOrder() error {
	k.once.Do(func() { k.order = k.checkOrder() })
	return k.order
}

func (k *keyspace) checkOrder() error {
	if err := k.usable(); err != nil {
		return err
	}
	w := checked{c: k.rows()}
	w.c.bound = w.bound
	for {
		if _, err := w.next(); err == io.EOF {
			return w.count()
		} else if err != nil {
			return err
		}
	}
}

// Rows iterates over the rows of [lo, hi) in the comparer's order; it returns a *store.OrderError if the tree has
// another order. With Options.Resort the rows are sorted first.
func (k *keyspace) Rows(lo, hi []byte) (store.Iterator, error) {
	if err := k.usable(); err != nil {
		return nil, err
	}
	if k.env.opts.Resort {
		return k.sorted(lo, hi)
	}
	it := &iterator{w: checked{c: k.rows()}, hi: hi}
	if lo == nil && hi == nil {
		return it, nil
	}
	if err := k.CheckOrder(); err != nil {
		return nil, err
	}
	if lo == nil {
		return it, nil
	}
	return it, it.seek(lo)
}

// Entries iterates over the rows of [lo, hi): LMDB keeps one version.
func (k *keyspace) Entries(lo, hi []byte) (store.EntryIterator, error) {
	it, err := k.Rows(lo, hi)
	if err != nil {
		return nil, err
	}
	return &entries{it: it}, nil
}

// Sample returns keys of the branch pages, or of the only leaf, with equal shares of the size. With Options.Resort it
// returns no samples, because every span would cost a full sort.
func (k *keyspace) Sample(n int) ([]store.Weighted, error) {
	if err := k.usable(); err != nil || k.env.opts.Resort || k.tree.root == noPage || n <= 0 {
		return nil, err
	}
	level := []uint64{k.tree.root}
	for depth := 1; ; depth++ {
		var keys [][]byte
		var children []uint64
		leaf := depth == int(k.tree.depth)
		for _, num := range level {
			ks, cs, err := k.index(num, leaf)
			if err != nil && !(k.env.opts.Salvage && isDamage(err)) {
				return nil, err
			}
			keys, children = append(keys, ks...), append(children, cs...)
		}
		if leaf || len(keys) >= n || depth+1 == int(k.tree.depth) {
			return k.weigh(keys), nil
		}
		level = children
	}
}

// index returns the keys and the children of one page.
func (k *keyspace) index(num uint64, leaf bool) (keys [][]byte, children []uint64, err error) {
	c := &cursor{k: k, levels: make([]level, 1)}
	if !leaf {
		c.levels = make([]level, 2)
	}
	if err := c.load(0, num); err != nil {
		return nil, nil, err
	}
	p := &c.levels[0].page
	for i := range p.n {
		n, err := p.node(i, leaf)
		if err != nil {
			return nil, nil, c.damage(err, num)
		}
		if leaf || i > 0 { // the first key of a branch is empty
			keys = append(keys, n.key)
		}
		children = append(children, n.child)
	}
	return keys, children, nil
}

func (k *keyspace) weigh(keys [][]byte) []store.Weighted {
	out := make([]store.Weighted, len(keys))
	for i, key := range keys {
		out[i] = store.Weighted{Key: key, Bytes: max(1, k.Size()/int64(len(keys)))}
	}
	return out
}

// iterator iterates over rows in tree order and checks it against the comparer.
type iterator struct {
	w       checked
	hi      []byte
	count   int64
	partial bool // a seek skipped rows
	done    bool
}

// Next returns the next row.
func (it *iterator) Next() (key, value []byte, err error) {
	for !it.done {
		n, err := it.w.next()
		if err == io.EOF {
			return nil, nil, it.end()
		}
		if err != nil {
			return nil, nil, err
		}
		if it.hi != nil && it.w.c.k.compare(n.key, it.hi) >= 0 {
			break
		}
		value, err := it.w.c.value(&n)
		if err == nil {
			it.count++
			return n.key, value, nil
		}
		if err := it.w.c.pass(err, n.child); err != nil {
			return nil, nil, err
		}
	}
	it.done = true
	return nil, nil, io.EOF
}

// end ends the walk after the last row of the tree.
func (it *iterator) end() error {
	it.done = true
	if !it.partial {
		if err := it.w.count(); err != nil {
			return err
		}
	}
	return io.EOF
}

// SeekGE moves forward to the first row at or after key.
func (it *iterator) SeekGE(key []byte) error {
	if it.done || (it.w.rows > 0 && it.w.c.k.compare(key, it.w.prev) <= 0) {
		return nil
	}
	if err := it.w.c.k.CheckOrder(); err != nil {
		return err
	}
	return it.seek(key)
}

func (it *iterator) seek(key []byte) error {
	it.partial = true
	it.w.c.pages = 0
	return it.w.c.seek(key, it.w.c.k.cmp.Compare)
}

// Place returns the leaf page.
func (it *iterator) Place() record.Place { return it.w.c.place() }

func (c *cursor) place() record.Place {
	p := record.InFile(dataFile)
	if len(c.levels) > 0 {
		p.Off = c.k.env.offset(c.leafPage())
	}
	return p
}

// Tally adds the counts: LMDB keeps one version, so each row is an entry.
func (it *iterator) Tally(t *record.Tally) {
	t.Entries += it.count
	t.Visible += it.count
	it.count = 0
}

// Close does not close the file, which belongs to the store.
func (it *iterator) Close() error { return nil }

// entries returns rows as puts.
type entries struct {
	it store.Iterator
	e  store.Entry
}

// Next returns the next row as an entry.
func (s *entries) Next() (*store.Entry, error) {
	key, value, err := s.it.Next()
	if err != nil {
		return nil, err
	}
	s.e = store.Entry{Key: key, Value: value, Place: s.it.Place()}
	return &s.e, nil
}

// Close closes the rows.
func (s *entries) Close() error { return s.it.Close() }
