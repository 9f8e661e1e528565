package sst

import (
	"github.com/zeebo/xxh3"

	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// origin is where a table was made, as it says itself since RocksDB 6.24.
type origin struct {
	database string // identity of the database
	session  string // identity of the process that had it open: 13 to 24 digits of base 36
	number   uint64 // of the file, then
}

// Digits of a session's identity: the last ones are the lower half.
const (
	minSession, maxSession = 13, 24
	lowSession             = 12
	digitBits              = 62 // of the lower half are in the last digits
)

// UniqueID names the table among all tables everywhere (table/unique_id.cc), from where it was made:
//
//	+----------------------+------------------------------------------------------------------------------+
//	| lower half of the    | upper half of XXH3_128(identity of the database, seed: upper half of the      |
//	| session's identity   | session's identity), xor file number                                          |
//	+----------------------+------------------------------------------------------------------------------+
//
// The MANIFEST has it since RocksDB 7.4. False: the table does not say enough.
func (o *origin) UniqueID() (id [2]uint64, ok bool) {
	n := len(o.session)
	if o.database == "" || o.number == 0 || n < minSession || n > maxSession {
		return id, false
	}
	high, ok1 := parseBase36(o.session[:n-lowSession])
	low, ok2 := parseBase36(o.session[n-lowSession:])
	if !ok1 || !ok2 {
		return id, false
	}
	sum := xxh3.HashString128Seed(o.database, high>>2)
	return [2]uint64{low&(1<<digitBits-1) | high<<digitBits, sum.Hi ^ o.number}, true
}

// parseBase36 reads a number of base 36, which wraps around like RocksDB's.
func parseBase36(s string) (n uint64, ok bool) {
	for _, c := range []byte(s) {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'A' <= c && c <= 'Z':
			c -= 'A' - 10
		case 'a' <= c && c <= 'z':
			c -= 'a' - 10
		default:
			return 0, false
		}
		n = n*36 + uint64(c)
	}
	return n, true
}

// Ends returns the first and the last internal key of the table as they stand in its data blocks. An end whose block is
// larger than most is nil, and so are both of a table without rows.
func (r *Reader) Ends(most uint64) (first, last []byte, err error) {
	var x tableIndex
	defer x.close()
	if err := x.open(r); err != nil {
		return nil, nil, err
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

// ends returns the first and the last internal key of a data block that is not larger than most.
func (r *Reader) ends(h blocks.Handle, most uint64) (first, last []byte, err error) {
	if h.Size > most {
		return nil, nil, nil
	}
	b, err := r.dataBlock(h)
	if err != nil {
		return nil, nil, err
	}
	bl, err := blocks.Parse(b)
	if err != nil {
		return nil, nil, r.Fail(int64(h.Off), "block", err)
	}
	e := blocks.Entries{Data: bl.Entries}
	for {
		ok, err := e.Next()
		if ok && len(e.Key) < base.TrailerLen {
			err = blocks.ErrEntry
		}
		if err != nil {
			return nil, nil, r.Fail(int64(h.Off), "block", err)
		}
		if !ok {
			return first, e.Key, nil
		}
		if first == nil {
			first = append([]byte{}, e.Key...)
		}
	}
}
