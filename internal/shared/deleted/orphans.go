package deleted

import (
	"bytes"
	"context"
	"errors"
	"io"

	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/store"
)

// Orphans finds the user keys of data rows whose meta row is gone, as left by a compaction that has not
// reached the data rows. It reads all records of a span, since their order differs from the order of the data
// rows.
type Orphans struct {
	// Kind is the kind of findings about such keys.
	Kind string
	// Open returns a reader that reports them.
	Open func(report func(record.Finding)) (record.Reader, error)
	// Memory is the number of bytes of keys to hold in memory; the rest goes to TempDir.
	Memory  int64
	TempDir string
}

// keys are user keys in ascending order.
type keys struct {
	sorter *extsort.Sorter
	it     *extsort.Iterator
	last   []byte
	any    bool
}

// find reads the records and returns the keys.
func (o *Orphans) find(ctx context.Context) (*keys, error) {
	k := &keys{sorter: extsort.New(extsort.Options{Compare: bytes.Compare, Memory: o.Memory, TempDir: o.TempDir})}
	var failed error
	r, err := o.Open(func(f record.Finding) {
		if f.Kind == o.Kind && failed == nil {
			failed = k.sorter.Add(0, f.Key, nil)
		}
	})
	if err != nil {
		return nil, errors.Join(err, k.sorter.Close())
	}
	for n := 1; err == nil && failed == nil; n++ {
		if err = record.Stopped(ctx, n); err == nil {
			_, err = r.Next()
		}
	}
	if err == io.EOF {
		err = nil
	}
	if err = errors.Join(err, failed, r.Close()); err == nil {
		k.it, err = k.sorter.Sort()
	}
	if err != nil {
		return nil, errors.Join(err, k.sorter.Close())
	}
	return k, nil
}

// next returns the next key; it is valid until the next call.
func (k *keys) next() ([]byte, error) {
	for {
		_, key, _, err := k.it.Next()
		if err != nil {
			return nil, err
		}
		if !k.any || !bytes.Equal(key, k.last) {
			k.any, k.last = true, append(k.last[:0], key...)
			return key, nil
		}
	}
}

func (k *keys) close() error { return k.sorter.Close() }

// orphaned is a keyspace of the revived meta rows and the meta rows made for orphans.
type orphaned struct {
	store.Keyspace
	metas   store.Keyspace // the stored ones
	ctx     context.Context
	f       Family
	tell    func(key []byte, what string)
	orphans *Orphans
}

// Rows yields the meta rows of [lo, hi).
func (o *orphaned) Rows(lo, hi []byte) (store.Iterator, error) {
	it, err := o.Keyspace.Rows(lo, hi)
	if err != nil {
		return nil, err
	}
	k, err := o.orphans.find(o.ctx)
	if err != nil {
		return nil, errors.Join(err, it.Close())
	}
	return &merged{Iterator: it, keys: k, metas: o.metas, grave: grave{f: o.f, tell: o.tell}, lo: bytes.Clone(lo),
		hi: bytes.Clone(hi)}, nil
}

// merged merges revived meta rows with meta rows made for orphans.
type merged struct {
	store.Iterator // of the revived rows
	keys           *keys
	metas          store.Keyspace
	grave          grave
	lo, hi         []byte

	key, value []byte // the next revived row
	have, done bool   // whether key and value are set, whether no revived rows are left
	raw        []byte // the key of the next orphan's meta row, nil if unknown
	user       []byte
	made       bool // the row last returned was made
}

// Next returns the next row.
func (m *merged) Next() (key, value []byte, err error) {
	for {
		if err := m.fill(); err != nil {
			return nil, nil, err
		}
		switch {
		case m.raw == nil && m.done:
			return nil, nil, io.EOF
		case m.raw == nil || !m.done && bytes.Compare(m.key, m.raw) <= 0:
			if bytes.Equal(m.key, m.raw) { // entries of its meta row are left
				m.raw = nil
			}
			m.have, m.made = false, false
			return m.key, m.value, nil
		}
		key := m.raw
		m.raw = nil
		alive, err := m.alive(key)
		if err != nil {
			return nil, nil, err
		}
		if alive { // a record without rows has replaced one with rows
			continue
		}
		ok, err := m.grave.orphan(m.user)
		if err != nil {
			return nil, nil, err
		}
		if ok {
			m.made = true
			return key, m.grave.buf, nil
		}
	}
}

// alive reports whether a meta row exists and its record is alive.
func (m *merged) alive(raw []byte) (bool, error) {
	it, err := m.metas.Rows(raw, nil)
	if err != nil {
		return false, err
	}
	key, value, err := it.Next()
	alive := false
	if err == nil && bytes.Equal(key, raw) {
		meta, ok := m.grave.f.Meta(value)
		alive = ok && meta.Alive
	} else if err == io.EOF {
		err = nil
	}
	return alive, errors.Join(err, it.Close())
}

// fill looks ahead to the next rows of both kinds.
func (m *merged) fill() (err error) {
	if !m.have && !m.done {
		m.key, m.value, err = m.Iterator.Next()
		m.have, m.done = err == nil, err == io.EOF
		if err != nil && err != io.EOF {
			return err
		}
	}
	for m.raw == nil && m.keys != nil {
		user, err := m.keys.next()
		if err == io.EOF {
			err = m.keys.close()
			m.keys = nil
		}
		if err != nil || m.keys == nil {
			return err
		}
		m.user = append(m.user[:0], user...)
		raw := m.grave.f.MetaKey([]byte{}, user) // not nil, though it may be empty
		if bytes.Compare(raw, m.lo) >= 0 && (m.hi == nil || bytes.Compare(raw, m.hi) < 0) {
			m.raw = raw
		}
	}
	return nil
}

// SeekGE skips rows before a key.
func (m *merged) SeekGE(key []byte) error {
	m.lo = bytes.Clone(key)
	if m.raw != nil && bytes.Compare(m.raw, key) < 0 {
		m.raw = nil
	}
	if m.done || m.have && bytes.Compare(m.key, key) >= 0 {
		return nil
	}
	m.have = false
	return m.Iterator.SeekGE(key)
}

// Place is the place of the row; a row made for an orphan has no place.
func (m *merged) Place() record.Place {
	if m.made {
		return record.Place{Level: -1}
	}
	return m.Iterator.Place()
}

// Close closes both.
func (m *merged) Close() error {
	err := m.Iterator.Close()
	if m.keys != nil {
		err = errors.Join(err, m.keys.close())
	}
	return err
}
