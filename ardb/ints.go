package ardb

import (
	"errors"
	"io"

	"kvferry/ardb/codec"
	"kvferry/format"
)

// maxLooked limits the collections that a namespace remembers to have looked at.
const maxLooked = 1 << 14

// SeeksInts reports whether seeks find the integers among the elements of a kind. They do not if the comparator orders
// them in a circle. Servers before 0.9.7 compared them by 32 bits: reading all of them returns what is out of order as an
// error. The first call for a collection does so. The rows of all other names are in the order of every server.
func (sp *space) SeeksInts(user []byte, kind codec.Kind) (bool, error) {
	of := string(codec.AppendKey(nil, sp.NS, user, kind))
	sp.mu.Lock()
	ok, known := sp.looked[of]
	sp.mu.Unlock()
	if known {
		return ok, nil
	}
	ints, err := sp.ints(user, kind)
	if err != nil {
		return false, err
	}
	sp.mu.Lock()
	defer sp.mu.Unlock()
	if sp.looked == nil || len(sp.looked) >= maxLooked {
		sp.looked = map[string]bool{}
	}
	sp.looked[of] = ints.Span() < 1<<63
	return sp.looked[of], nil
}

// ints reads the integers among the elements of a kind.
func (sp *space) ints(user []byte, kind codec.Kind) (ints codec.IntRange, err error) {
	lo, _ := sp.Bounds(format.KeySpan(user))
	it, err := sp.Keyspace.Rows(lo, codec.AppendKey(nil, sp.NS, user, kind, codec.TextData(nil)))
	if err != nil {
		return ints, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for at := len(codec.AppendKey(nil, sp.NS, user, kind)); ; {
		key, _, err := it.Next()
		if err == io.EOF {
			return ints, nil
		}
		if err != nil {
			return ints, err
		}
		if len(key) > at {
			d, _ := codec.SplitData(key[at:])
			ints.Take(&d)
		}
	}
}
