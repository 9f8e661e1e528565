package sst

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"sort"

	"kvferry/record"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// indexBlock walks one index block. Keys are prefix-compressed as in any block; values are
//
//	handle                      two varints
//	delta (format_version 4+)   at shared = 0 the handle, else the signed varint by which the size
//	                            differs from the one before, at whose end the block starts; the
//	                            entry header has no value length then
//	[first internal key]        length-prefixed, with index type 3 only
type indexBlock struct {
	blocks.Block
	delta    bool
	userKeys bool
	firstKey bool
	pos      int
	at       int    // offset of the current entry
	faulty   bool   // entries do not follow block after block, or a restart point is not at an entry
	key      []byte // a view of the block, or buf
	buf      []byte // buffer for assembled keys
	handle   blocks.Handle
	started  bool
}

// open starts walking index block b.
func (x *indexBlock) open(b []byte, p *Properties) error {
	bl, err := blocks.Parse(b)
	if err != nil {
		return err
	}
	*x = indexBlock{Block: bl, buf: x.buf[:0], delta: p.IndexDelta, userKeys: p.IndexUser, firstKey: p.IndexType == indexFirstKey}
	return nil
}

// next moves to the next entry; false without an error is the end.
func (x *indexBlock) next() (bool, error) {
	if x.pos >= len(x.Entries) {
		return false, nil
	}
	x.at = x.pos
	f := &base.Fields{Buf: x.Entries, Off: x.pos}
	shared, unshared, size := x.lengths(f)
	rest := f.Bytes("key", unshared)
	if f.Err == nil && shared > len(x.key) {
		f.Fail("shared", fmt.Errorf("%s bytes of a key of %s", record.Number(shared), record.Number(len(x.key))))
	}
	if f.Err != nil {
		return false, f.Err
	}
	if shared == 0 {
		x.key = rest
	} else {
		x.buf = append(append(x.buf[:0], x.key[:shared]...), rest...)
		x.key = x.buf
	}
	if !x.userKeys && len(x.key) < base.TrailerLen {
		return false, fmt.Errorf("index key of %s bytes: %w", record.Number(len(x.key)), record.ErrShort)
	}
	x.value(f, shared, size)
	x.pos, x.started = f.Off, true
	return f.Err == nil, f.Err
}

// lengths decodes the header of an entry, mostly one byte per field; size is -1 if the header omits it.
func (x *indexBlock) lengths(f *base.Fields) (shared, unshared, size int) {
	if b := f.Buf[f.Off:]; len(b) >= 3 && b[0]|b[1]|b[2] < 0x80 {
		if x.delta {
			f.Off += 2
			return int(b[0]), int(b[1]), -1
		}
		f.Off += 3
		return int(b[0]), int(b[1]), int(b[2])
	}
	shared, unshared, size = int(f.Uvarint32("shared")), int(f.Uvarint32("unshared")), -1
	if !x.delta {
		size = int(f.Uvarint32("value length"))
	}
	return shared, unshared, size
}

// value decodes an entry's value; size is -1 if the header omits it.
func (x *indexBlock) value(f *base.Fields, shared, size int) {
	end := f.Off + size
	if x.delta && shared > 0 && x.started {
		d, n := binary.Varint(f.Buf[f.Off:])
		if n <= 0 {
			f.Fail("handle", base.ErrVarint)
			return
		}
		f.Off += n
		x.handle = blocks.Handle{Off: x.handle.Off + x.handle.Size + blocks.TrailerLen, Size: x.handle.Size + uint64(d)}
	} else {
		x.handle = blocks.ReadHandle(f, "handle")
	}
	if x.firstKey {
		f.Prefixed("first key")
	}
	if size >= 0 && f.Err == nil && f.Off != end {
		f.Fail("handle", fmt.Errorf("value of %s bytes", record.Number(size)))
	}
}

// sep returns the current entry's user key.
func (x *indexBlock) sep() []byte {
	if x.userKeys {
		return x.key
	}
	return x.key[:len(x.key)-base.TrailerLen]
}

// near moves to the last restart whose key is before key, or to the first entry; false if the block is empty.
func (x *indexBlock) near(compare func(a, b []byte) int, key []byte) (bool, error) {
	if x.faulty { // its restart points may not be at entries
		x.pos, x.key, x.started = 0, nil, false
		return x.next()
	}
	if len(x.Entries) == 0 {
		return false, nil
	}
	var err error
	n := sort.Search(x.NumRestarts(), func(i int) bool {
		sep, e := x.sepAt(i)
		err = cmp.Or(err, e)
		return e != nil || compare(sep, key) >= 0
	})
	if err == nil {
		err = x.atRestart(max(n-1, 0))
	}
	return err == nil, err
}

// sepAt returns the user key at restart i. The entry is decoded as far as its key.
func (x *indexBlock) sepAt(i int) ([]byte, error) {
	f := &base.Fields{Buf: x.Entries, Off: x.Restart(i)}
	if f.Off < 0 {
		return nil, blocks.ErrRestart
	}
	shared, unshared, _ := x.lengths(f)
	key := f.Bytes("key", unshared)
	if !x.userKeys {
		if len(key) < base.TrailerLen {
			return nil, blocks.ErrRestart
		}
		key = key[:len(key)-base.TrailerLen]
	}
	if f.Err == nil && shared > 0 {
		f.Err = blocks.ErrRestart
	}
	return key, f.Err
}

// seek moves to the first entry whose key is not before key; false is the end.
func (x *indexBlock) seek(compare func(a, b []byte) int, key []byte) (bool, error) {
	ok, err := x.near(compare, key)
	for ok && compare(x.sep(), key) < 0 {
		ok, err = x.next()
	}
	return ok, err
}

// before returns the last key before key, or nil, and moves to the entry after it.
func (x *indexBlock) before(compare func(a, b []byte) int, key []byte) (last []byte) {
	ok, _ := x.near(compare, key)
	for ok && compare(x.sep(), key) < 0 {
		last = append(last[:0], x.sep()...)
		ok, _ = x.next()
	}
	return last
}

// scan is seek for a freshly opened block. It reads every earlier entry, so it finds none behind an unreadable one.
func (x *indexBlock) scan(compare func(a, b []byte) int, key []byte) (bool, error) {
	for {
		if ok, err := x.next(); !ok || err != nil || compare(x.sep(), key) >= 0 {
			return ok, err
		}
	}
}

// skipTo moves on by an entry or more, to the first whose block ends at or after off; false is the end.
func (x *indexBlock) skipTo(off uint64) (bool, error) {
	probe := *x
	probe.buf = nil
	ahead := sort.Search(x.NumRestarts(), func(i int) bool { return x.Restart(i) >= x.pos })
	var err error
	n := sort.Search(x.NumRestarts()-ahead, func(i int) bool {
		e := probe.atRestart(ahead + i)
		err = cmp.Or(err, e)
		return e != nil || probe.handle.Off >= off
	})
	if err != nil {
		return false, err
	}
	ok := n > 0
	if ok {
		err = x.atRestart(ahead + n - 1)
	} else {
		ok, err = x.next()
	}
	for ok && err == nil && x.handle.Off+x.handle.Size < off {
		ok, err = x.next()
	}
	return ok && err == nil, err
}

// atRestart moves to the entry at restart i.
func (x *indexBlock) atRestart(i int) error {
	if x.pos = x.Restart(i); x.pos < 0 {
		return blocks.ErrRestart
	}
	x.key, x.started = nil, false
	ok, err := x.next()
	if err == nil && !ok {
		err = blocks.ErrRestart
	}
	return err
}

// fieldPartition is the field name of errors in an index partition.
const fieldPartition = "index partition"

// tableIndex walks the index of a table, one or two levels deep.
type tableIndex struct {
	r    *Reader
	top  indexBlock
	part indexBlock // the current partition of a two-level index
	two  bool
	// The blocks of top and part, while in use.
	topBlock, partBlock *cachedBlock
	// pass reports whether the walk continues after a partition, whose entries end at sep, that is unreadable in whole
	// or in part; nil ends the walk.
	pass func(h blocks.Handle, sep []byte, err error) bool

	// tail is the end of the previous partition's data blocks; valid if linked.
	tail   uint64
	linked bool
}

// open positions the walk before the first entry. The caller must call close, also after an error.
func (x *tableIndex) open(r *Reader) error { return x.start(r, r.useMended) }

// start is open with the index that use returns.
func (x *tableIndex) start(r *Reader, use func() (*cachedBlock, error)) error {
	b, err := use()
	if err != nil {
		return err
	}
	x.r, x.topBlock = r, b
	x.two = b.props.IndexType == indexTwoLevel
	x.part = indexBlock{buf: x.part.buf}
	x.tail, x.linked = 0, true
	if err := x.top.open(b.b, b.props); err != nil {
		return x.topDamage(err)
	}
	return x.reportFaults(b.faults, &x.top, x.topDamage)
}

// close releases the index blocks.
func (x *tableIndex) close() {
	x.closePart()
	if x.topBlock != nil {
		x.topBlock.drop()
		x.topBlock = nil
	}
	x.r = nil
}

// closePart releases the current partition.
func (x *tableIndex) closePart() {
	if x.partBlock != nil {
		x.partBlock.drop()
		x.partBlock = nil
	}
}

// next moves to the next entry, skipping entries that point to a wrong block; false without an error is the end.
func (x *tableIndex) next() (bool, error) {
	for {
		if ok, err := x.step(); !ok || err != nil || !x.skips() {
			return ok, err
		}
	}
}

// step is next without the skipping.
func (x *tableIndex) step() (bool, error) {
	for x.two {
		ok, err := x.part.next()
		if ok {
			return true, nil
		}
		if err = x.partDamage(err); err != nil && !x.passes(err) {
			return false, base.BlockError(err)
		}
		if ok, err := x.top.next(); !ok || err != nil {
			return false, x.topDamage(err)
		}
		if err := x.openPart(); err != nil && !x.passes(err) {
			return false, base.BlockError(err)
		}
	}
	ok, err := x.top.next()
	return ok, x.topDamage(err)
}

// seek moves to the first entry whose key is not before key; false is the end.
func (x *tableIndex) seek(key []byte) (bool, error) {
	ok, err := x.find(key)
	if ok && err == nil && x.skips() {
		return x.next()
	}
	return ok, err
}

// find is seek without the skipping.
func (x *tableIndex) find(key []byte) (bool, error) {
	ok, err := x.top.seek(x.r.opts.Comparer.Compare, key)
	if !ok || err != nil || !x.two {
		return ok, x.topDamage(err)
	}
	x.tail, x.linked = 0, x.top.at == 0
	if err = x.openPart(); err == nil {
		find := x.part.seek
		if x.pass != nil {
			find = x.part.scan
		}
		if ok, err = find(x.r.opts.Comparer.Compare, key); ok {
			return true, nil
		}
		err = x.partDamage(err)
	}
	if err != nil && !x.passes(err) {
		return false, base.BlockError(err)
	}
	return x.next()
}

// skipTo moves on by an entry or more, to the first whose block ends at or after off; false is the end.
func (x *tableIndex) skipTo(off uint64) (bool, error) {
	if !x.two && !x.top.faulty {
		ok, err := x.top.skipTo(off)
		return ok, x.topDamage(err)
	}
	for {
		ok, err := x.next()
		if h := x.handle(); !ok || err != nil || h.Off+h.Size >= off {
			return ok, err
		}
	}
}

// passes reports whether the walk continues after the current partition; the rest of the partition is then skipped.
func (x *tableIndex) passes(err error) bool {
	if x.pass == nil || !x.pass(x.top.handle, x.top.sep(), err) {
		return false
	}
	x.part = indexBlock{buf: x.part.buf}
	x.linked = false
	return true
}

// openPart opens the partition at the top index's current entry.
func (x *tableIndex) openPart() error {
	x.closePart()
	x.part = indexBlock{buf: x.part.buf}
	b, err := x.r.useBlock(x.top.handle, fieldPartition)
	if err != nil {
		return err
	}
	x.partBlock = b
	if err := x.part.open(b.b, b.props); err != nil {
		return x.partDamage(err)
	}
	if err := x.chain(b); err != nil {
		return err
	}
	return x.reportFaults(b.faults, &x.part, x.partDamage)
}

// sep returns the current entry's user key, valid until the next move. No key of its block is greater.
func (x *tableIndex) sep() []byte {
	if x.two {
		return x.part.sep()
	}
	return x.top.sep()
}

// handle returns the block of the current entry, or of the last one passed.
func (x *tableIndex) handle() blocks.Handle {
	if x.two {
		return x.part.handle
	}
	return x.top.handle
}
