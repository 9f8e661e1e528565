package keylanes

import (
	"bytes"
	"cmp"
	"io"
	"sync"

	"kvferry/record"
	"kvferry/store"
)

// Directory lists the lanes of a keyspace. It finds them with one seek per lane, once for all sets that walk
// them. It is safe for concurrent use.
type Directory struct {
	// MaxOpen limits the lanes that each set keeps open; 0 means the constant MaxOpen. It is set
	// before the first Open.
	MaxOpen int

	keyspace store.Keyspace
	layout   Layout

	once  sync.Once
	err   error
	lanes []laneInfo
	byLen map[int]int // key length to index in lanes
	gaps  []rawRange  // ranges between lanes that hold entries
}

type laneInfo struct {
	klen   int
	prefix []byte
}

type rawRange struct{ from, to []byte }

// NewDirectory returns the directory of a keyspace. It reads the keyspace on first use.
func NewDirectory(ks store.Keyspace, l Layout) *Directory {
	return &Directory{keyspace: ks, layout: l}
}

// Layout returns the layout of the rows.
func (d *Directory) Layout() *Layout { return &d.layout }

// Lens returns the key lengths that have a lane, in raw order.
func (d *Directory) Lens() ([]int, error) {
	if err := d.find(); err != nil {
		return nil, err
	}
	out := make([]int, len(d.lanes))
	for i, l := range d.lanes {
		out[i] = l.klen
	}
	return out, nil
}

func (d *Directory) find() error {
	d.once.Do(func() { d.err = d.discover() })
	return d.err
}

// discover jumps from lane to lane. Malformed rows do not make lanes, or a damaged keyspace could have as many
// lanes as rows; nor do entries that are no rows, such as tombstones. Both turn the range between two lanes
// into a gap, which is read.
func (d *Directory) discover() (err error) {
	it, err := d.keyspace.Rows(d.layout.From, d.layout.To)
	if err != nil {
		return err
	}
	defer func() {
		err = cmp.Or(err, it.Close())
	}()
	d.byLen = make(map[int]int)
	end, dirty := d.layout.From, false
	for {
		key, _, err := it.Next()
		var passed record.Tally
		it.Tally(&passed)
		dirty = dirty || passed.Entries > passed.Visible
		if err == io.EOF {
			d.gap(dirty, end, d.layout.To)
			return nil
		}
		if err != nil {
			return err
		}
		l, ok := d.lane(key)
		if !ok {
			dirty = true
			continue
		}
		d.gap(dirty, end, l.prefix)
		d.byLen[l.klen] = len(d.lanes)
		d.lanes = append(d.lanes, l)
		if end, ok = store.Successor(l.prefix); !ok {
			return nil
		}
		dirty = false
		if err := it.SeekGE(end); err != nil {
			return err
		}
	}
}

// lane returns the lane of a raw key.
func (d *Directory) lane(key []byte) (laneInfo, bool) {
	klen, ok := d.layout.klen(key)
	if !ok {
		return laneInfo{}, false
	}
	l := laneInfo{klen: klen, prefix: d.layout.AppendPrefix(nil, klen)}
	_, twice := d.byLen[klen]
	return l, !twice && bytes.HasPrefix(key, l.prefix)
}

func (d *Directory) gap(dirty bool, from, to []byte) {
	if dirty {
		d.gaps = append(d.gaps, rawRange{from, to})
	}
}

// Open returns the set of lanes cut to a span of user keys, lo <= k < hi; nil is open. Rows in no lane go to
// the set whose lo is nil. A span of one key needs one lane, and no search for the others. memory is the number of bytes
// of rows that the set may buffer from closed lanes, and the limit of its iterators as far as possible; 0 means 8 MiB.
func (d *Directory) Open(lo, hi []byte, memory int64, stray Stray) (*Set, error) {
	if key, ok := store.OnlyKey(lo, hi); ok {
		return d.open(d.lanesOf(key), map[int]int{len(key): 0}, lo, hi, memory, stray), nil
	}
	if err := d.find(); err != nil {
		return nil, err
	}
	return d.open(d.lanes, d.byLen, lo, hi, memory, stray), nil
}

// lanesOf returns the lane that a user key can have rows in.
func (d *Directory) lanesOf(key []byte) []laneInfo {
	if !d.layout.Holds(len(key)) {
		return nil
	}
	return []laneInfo{{klen: len(key), prefix: d.layout.AppendPrefix(nil, len(key))}}
}

func (d *Directory) open(lanes []laneInfo, byLen map[int]int, lo, hi []byte, memory int64, stray Stray) *Set {
	if memory <= 0 {
		memory = defaultMemory
	}
	if len(lanes) == 0 {
		byLen = nil
	}
	s := &Set{dir: d, byLen: byLen, first: lo == nil, stray: stray, maxOpen: d.maxOpen(memory),
		chunk: chunkSize(memory, len(lanes))}
	s.cursors = make([]cursor, len(lanes))
	for i := range s.cursors {
		s.cursors[i].cut(&lanes[i], &d.layout, lo, hi)
	}
	return s
}

// maxOpen is the number of lanes that a set with the given memory keeps open.
func (d *Directory) maxOpen(memory int64) int {
	if d.MaxOpen > 0 {
		return d.MaxOpen
	}
	w, ok := d.keyspace.(store.Weigher)
	if !ok {
		return MaxOpen
	}
	return int(min(max(memory/max(w.IteratorSize(), 1), minOpen), MaxOpen))
}
