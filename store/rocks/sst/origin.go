package sst

import (
	"strconv"

	"github.com/zeebo/xxh3"

	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// origin identifies where a table was created, from properties that RocksDB writes since 6.24.
type origin struct {
	database string // identity of the database
	session  string // identity of the session that wrote it: 13 to 24 base-36 digits
	number   uint64 // of the file when it was created
}

// Layout of a session identity: the last digits are the lower half.
const (
	minSession, maxSession = 13, 24
	lowSession             = 12
	digitBits              = 62 // bits of the lower half in the last digits
)

// UniqueID derives the table's globally unique id (table/unique_id.cc) from its origin:
//
//	+----------------------+------------------------------------------------------------------------------+
//	| lower half of the    | upper half of XXH3_128(identity of the database, seed: upper half of the      |
//	| session's identity   | session's identity), xor file number                                          |
//	+----------------------+------------------------------------------------------------------------------+
//
// The MANIFEST records it since RocksDB 7.4. ok is false if a property is missing.
func (o *origin) UniqueID() (id [2]uint64, ok bool) {
	n := len(o.session)
	if o.database == "" || o.number == 0 || n < minSession || n > maxSession {
		return id, false
	}
	high, err1 := strconv.ParseUint(o.session[:n-lowSession], 36, 64)
	low, err2 := strconv.ParseUint(o.session[n-lowSession:], 36, 64)
	if err1 != nil || err2 != nil {
		return id, false
	}
	sum := xxh3.HashString128Seed(o.database, high>>2)
	return [2]uint64{low&(1<<digitBits-1) | high<<digitBits, sum.Hi ^ o.number}, true
}

// Ends returns the first and last internal key of the table's data blocks. An end is nil if its block is larger than
// most; both are nil if the table has no rows.
func (r *Reader) Ends(most uint64) (first, last []byte, err error) {
	var x tableIndex
	defer x.close()
	if err := x.open(r); err != nil {
		return nil, nil, err
	}
	if m := r.mend(); m != nil && !m.whole {
		return nil, nil, m.err // the first or last rows may be missing
	}
	ok, err := x.next()
	if !ok || err != nil {
		return nil, nil, err
	}
	h := x.handle()
	if first, _, err = r.ends(h, most); err != nil {
		return nil, nil, err
	}
	if err := x.last(); err != nil {
		return nil, nil, err
	}
	h = x.handle()
	_, last, err = r.ends(h, most)
	return first, last, err
}

// last moves to the last entry of the index.
func (x *tableIndex) last() error {
	err := x.topDamage(x.top.last())
	if err != nil || !x.two {
		return err
	}
	x.linked = false
	if err := x.openPart(); err != nil {
		return err
	}
	return x.partDamage(x.part.last())
}

// last moves to the last entry of the block.
func (x *indexBlock) last() error {
	err := x.atRestart(x.NumRestarts() - 1)
	for ok := true; ok && err == nil; {
		ok, err = x.next()
	}
	return err
}

// ends returns the first and last internal key of a data block; nil if the block is larger than most.
func (r *Reader) ends(h blocks.Handle, most uint64) (first, last []byte, err error) {
	if h.Size > most {
		return nil, nil, nil
	}
	b, err := r.dataBlock(h)
	if err != nil {
		return nil, nil, err
	}
	err = blocks.Each(b, func(e *blocks.Entries) error {
		if len(e.Key) < base.TrailerLen {
			return blocks.ErrEntry
		}
		if first == nil {
			first = append([]byte{}, e.Key...)
		}
		last = e.Key
		return nil
	})
	if err != nil {
		return nil, nil, r.Fail(int64(h.Off), "block", err)
	}
	return first, last, nil
}
