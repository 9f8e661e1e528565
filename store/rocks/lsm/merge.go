package lsm

import (
	"cmp"

	"kvferry/store"
	"kvferry/store/rocks/base"
)

// merged merges the entries of several sorted runs within [lo, hi) in internal key order.
type merged struct {
	ks      *Keyspace
	lo      []byte
	cursors []*Cursor
	single  *Cursor // set if there is only one cursor
	tree    loserTree
	started bool

	// top is the current entry's cursor; same is true if its user key equals the previous one.
	top  *Cursor
	same bool
}

// newMerged prepares a walk; files are opened by the first move.
func newMerged(ks *Keyspace, runs []*Run, lo, hi []byte) *merged {
	m := &merged{ks: ks, lo: lo}
	for _, r := range runs {
		if tables := r.Between(ks.cmp, lo, hi); len(tables) > 0 {
			m.cursors = append(m.cursors, NewCursor(ks, tables, hi))
		}
	}
	if len(m.cursors) == 1 {
		m.single = m.cursors[0]
	}
	m.tree = loserTree{cursors: m.cursors, bytewise: ks.cmp.IsBytewise(), compare: ks.cmp.Compare}
	return m
}

// next moves to the next entry; false without an error is the end.
func (m *merged) next() (bool, error) {
	if c := m.single; c != nil && m.started {
		ok := c.Next()
		m.same = c.same
		if !ok {
			m.top = nil
		}
		return ok, c.Err
	}
	if !m.started {
		return m.start()
	}
	if m.top == nil {
		return false, nil
	}
	ok, err := m.tree.advance()
	if !ok {
		m.top = nil
		return false, err
	}
	was := m.top
	if m.top, m.same = m.tree.winner(); m.top != was {
		was.release()
		return m.reload()
	}
	return true, nil
}

// start moves all cursors to their first entries.
func (m *merged) start() (bool, error) {
	m.started = true
	for _, c := range m.cursors {
		if m.lo == nil {
			c.Next()
		} else {
			c.Seek(m.lo)
		}
		if c.Err != nil {
			return false, c.Err
		}
		m.wait(c)
	}
	return m.restart()
}

// large reports whether the current entry's block is large.
func (m *merged) large() bool { return m.top != nil && m.top.large() }

// wait lets a cursor release a large block until its turn.
func (m *merged) wait(c *Cursor) {
	if m.single == nil {
		c.release()
	}
}

// restart finds the smallest of the cursors' entries.
func (m *merged) restart() (bool, error) {
	m.top, m.same = nil, false
	switch {
	case len(m.cursors) == 0:
		return false, nil
	case m.single != nil:
		m.top = m.single
	default:
		m.tree.rebuild()
		m.top, _ = m.tree.winner()
	}
	if m.top.Done {
		m.top = nil
		return false, nil
	}
	return m.reload()
}

// reload reads the current entry's block again if it was freed.
func (m *merged) reload() (bool, error) {
	err := m.top.reload()
	if err != nil {
		m.top = nil
	}
	return err == nil, err
}

// seek moves forward to the first entry at or after key.
func (m *merged) seek(key []byte) (bool, error) {
	if !m.started {
		if m.lo == nil || m.ks.cmp.Compare(key, m.lo) > 0 {
			m.lo = key
		}
		return m.start()
	}
	for _, c := range m.cursors {
		if c.Done || m.ks.cmp.Compare(c.User(), key) >= 0 {
			continue
		}
		if c.reload() == nil {
			c.Seek(key)
		}
		if c.Err != nil {
			return false, c.Err
		}
		m.wait(c)
	}
	return m.restart()
}

// close releases the cursors.
func (m *merged) close() {
	for _, c := range m.cursors {
		c.Close()
	}
}

// KindOf is the function KindOf, restricted to LevelDB's kinds for LevelDB.
func (e *Env) KindOf(tr uint64) (store.Kind, error) {
	if k := byte(tr); e.LevelDB && k > base.KindPut {
		return 0, base.Unsupported("entry of kind %#x in a LevelDB database", k)
	}
	return KindOf(tr)
}

// KindOf translates the kind of an internal key.
func KindOf(tr uint64) (store.Kind, error) {
	switch k := byte(tr); k {
	case base.KindPut, base.KindBlobIndex:
		return store.Put, nil
	case base.KindDelete:
		return store.Delete, nil
	case base.KindSingleDelete:
		return store.SingleDelete, nil
	case base.KindMerge:
		return store.Merge, nil
	case base.KindRangeDelete:
		return store.RangeDelete, nil
	default:
		return 0, base.Unsupported("%s (kind %#x)", cmp.Or(base.RefusedKind(k), "entry"), k)
	}
}
