package sst

import (
	"bytes"
	"math"

	"kvferry/internal/sys/disk"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// Bounds returns internal keys that enclose the readable part of a table without bounds from a MANIFEST, or nil if no
// part is readable. The first key comes from the first readable block. The last key comes from the last block or, if
// that is damaged, from its separator, which is never below the block's keys. Range tombstones extend the bounds.
func (r *Reader) Bounds() (first, last []byte, err error) {
	info, err := r.Open()
	if err != nil {
		return nil, nil, err
	}
	if first, err = r.firstReadable(); err != nil {
		return nil, nil, err
	}
	if first != nil {
		if last, err = r.lastReadable(); err != nil {
			return nil, nil, err
		}
	}
	for _, d := range info.Tombstones {
		start := base.AppendKey(nil, d.Start, base.Trailer(d.Seq, base.KindRangeDelete))
		end := base.AppendKey(nil, d.End, base.Trailer(base.MaxSequence, base.KindRangeDelete))
		if first == nil || base.CompareKeys(r.opts.Comparer.Compare, start, first) < 0 {
			first = start
		}
		if last == nil || base.CompareKeys(r.opts.Comparer.Compare, end, last) > 0 {
			last = end
		}
	}
	return first, last, nil
}

// firstReadable returns the first key of the first readable block, or nil.
func (r *Reader) firstReadable() ([]byte, error) {
	var x tableIndex
	defer x.close()
	x.pass = func(blocks.Handle, []byte, error) bool { return true }
	if err := x.open(r); err != nil {
		return nil, err
	}
	for {
		ok, err := x.next()
		if !ok || err != nil {
			return nil, ignoreDamage(err)
		}
		first, _, err := r.ends(x.handle(), math.MaxUint64)
		if err := ignoreDamage(err); err != nil {
			return nil, err
		}
		if err == nil && first != nil {
			return first, nil
		}
	}
}

// lastReadable returns the last key, or an upper bound of all keys.
func (r *Reader) lastReadable() ([]byte, error) {
	var x tableIndex
	defer x.close()
	if err := x.open(r); err != nil {
		return nil, err
	}
	if err := x.last(); err == nil {
		_, last, err := r.ends(x.handle(), math.MaxUint64)
		if err == nil && last != nil {
			return bytes.Clone(last), nil
		}
		if err := ignoreDamage(err); err != nil {
			return nil, err
		}
	}
	if err := x.topDamage(x.top.last()); err != nil {
		return nil, err
	}
	return base.AppendKey(nil, x.top.sep(), 0), nil // the lowest trailer sorts last
}

// ignoreDamage drops all errors except errors of access.
func ignoreDamage(err error) error {
	if disk.IsAccess(err) {
		return err
	}
	return nil
}
