package lmdb

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"

	"kvferry/record"
)

// A stock Ardb server writes its first tree in its own order; after a restart it searches that tree bytewise. A search
// then misses existing keys, and a write to such a key inserts a duplicate. From then on the server reads and updates
// the row that a bytewise search reaches. If the search reaches no row, for example because the tree changed since, the
// file has no trace of which row is newer: kvferry takes the first one in the tree and reports both.

// spot is the position of a row: leaf page, node index, and the number of rows before it in the tree.
//
//	+-----------+------------+------------+
//	| page (8B) | index (2B) | order (8B) |
//	+-----------+------------+------------+
type spot struct {
	page  uint64
	index int
	order uint64
}

const spotLen = 8 + 2 + 8

func (s spot) append(b []byte) []byte {
	b = le.AppendUint64(b, s.page)
	b = le.AppendUint16(b, uint16(s.index))
	return le.AppendUint64(b, s.order)
}

// cutSpot splits the spot off the end of a value.
func cutSpot(b []byte) (spot, []byte) {
	n := len(b) - spotLen
	return spot{le.Uint64(b[n:]), int(le.Uint16(b[n+8:])), le.Uint64(b[n+10:])}, b[:n]
}

// twin is one of several rows with the same key.
type twin struct {
	key, value []byte
	at         spot
}

func (t *twin) clone() twin { return twin{bytes.Clone(t.key), bytes.Clone(t.value), t.at} }

// answer picks one of the rows with the same key, and reports them.
func (k *keyspace) answer(twins []twin) (twin, error) {
	slices.SortFunc(twins, func(a, b twin) int { return cmp.Compare(a.at.order, b.at.order) })
	page, index, found, err := k.serverSearch(twins[0].key)
	if err != nil {
		return twin{}, err
	}
	if found {
		for _, t := range twins {
			if t.at.page == page && t.at.index == index {
				k.twice(twins, &t, "kvferry uses the row that the server finds")
				return t, nil
			}
		}
	}
	k.twice(twins, &twins[0], "the server cannot find any of them; kvferry uses the first in the tree")
	return twins[0], nil
}

// twice reports, once, a duplicate key in a tree.
func (k *keyspace) twice(twins []twin, taken *twin, why string) {
	if k.env.opts.Report == nil || !k.env.first(record.HashBytes(append(append([]byte(k.name), 0), taken.key...))) {
		return
	}
	var at []byte
	for i, t := range twins {
		if i > 0 {
			at = append(at, ", "...)
		}
		at = fmt.Appendf(at, "%d", k.env.offset(t.at.page))
	}
	k.env.opts.Report(record.Finding{Kind: record.FindKeyTwice, Severity: record.Warning, Keyspace: k.label(),
		Key: bytes.Clone(taken.key), Place: record.Place{File: dataFile, Off: k.env.offset(taken.at.page), Level: -1},
		Detail: fmt.Sprintf("the tree contains it %s times, in the pages at offsets %s; %s", record.Number(len(twins)), at, why)})
}

// serverSearch repeats LMDB's bytewise search for key step by step: in a tree of another order the steps decide the
// result.
func (k *keyspace) serverSearch(key []byte) (page uint64, index int, found bool, err error) {
	if len(k.rows().levels) == 0 || k.tree.root == noPage {
		return 0, 0, false, nil
	}
	c := k.rows()
	num := k.tree.root
	for i := range c.levels {
		if err := c.load(i, num); err != nil {
			return 0, 0, false, err
		}
		l := &c.levels[i]
		leaf := i == len(c.levels)-1
		at, exact, err := l.nodeSearch(key, leaf)
		if err != nil {
			return 0, 0, false, c.pass(err, num)
		}
		if leaf {
			return num, at, exact, nil
		}
		if l.page.n == 0 {
			return 0, 0, false, nil // skipped
		}
		n, err := l.page.branch(at)
		if err != nil {
			return 0, 0, false, c.pass(err, num)
		}
		num = n.child
	}
	return 0, 0, false, nil
}

// nodeSearch is mdb_node_search, followed for a branch by the adjustment of mdb_page_search.
func (l *level) nodeSearch(key []byte, leaf bool) (at int, exact bool, err error) {
	low, high := 0, l.page.n-1
	if !leaf {
		low = 1 // the first key of a branch is not stored
	}
	rc := 0
	for low <= high {
		at = (low + high) >> 1
		k, err := l.key(at, leaf)
		if err != nil {
			return 0, false, err
		}
		if rc = bytes.Compare(key, k); rc == 0 {
			return at, l.page.n > 0, nil
		}
		if rc > 0 {
			low = at + 1
		} else {
			high = at - 1
		}
	}
	if rc > 0 {
		at++
	}
	switch {
	case leaf:
		return at, false, nil
	case at >= l.page.n:
		return l.page.n - 1, false, nil
	}
	return max(at-1, 0), false, nil
}
