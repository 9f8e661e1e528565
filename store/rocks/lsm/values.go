package lsm

import (
	"errors"

	"kvferry/record"
	"kvferry/store/rocks/base"
)

// ValueSource has the values that stand outside of tables: an entry of kind blob index leads to one. They are read when
// the entry is shown.
//
// With Env.Salvage a value that cannot be read is lost, and so is its row: Rows leaves it out and counts it nowhere,
// Entries and Unordered hand it out as store.Lost. Older rows of its key stay hidden: it is known that they are no more.
type ValueSource interface {
	// NewReader starts reading for one goroutine.
	NewReader() ValueReader
	// Size is about how many bytes a reader takes.
	Size() int64
}

// ValueReader reads values.
type ValueReader interface {
	// Value returns the value that the blob index of a key leads to, until the next call; at is the entry's place. The
	// error is ErrLostValue after a loss was reported that a salvage goes on after.
	Value(key, index []byte, at record.Place) ([]byte, error)
	// GiveBack lets go of the memory of the last value.
	GiveBack()
	// At says where a blob index leads to.
	At(index []byte) record.Place
}

// ErrLostValue says that a value cannot be read, that this was reported, and that a salvage goes on.
var ErrLostValue = errors.New("the value is lost")

// outside reads values outside of tables for one iterator.
type outside struct{ rd ValueReader }

// value reads the value of the current entry of a cursor.
func (o *outside) value(c *Cursor) ([]byte, error) { return o.at(c.ks, c.User(), c.Val, c.Place()) }

// at reads the value that the blob index of a key leads to.
func (o *outside) at(ks *Keyspace, key, index []byte, p record.Place) ([]byte, error) {
	if ks.Values == nil {
		return nil, base.Unsupported("%s: blob index", p.File)
	}
	if o.rd == nil {
		o.rd = ks.Values.NewReader()
	}
	return o.rd.Value(key, index, p)
}
