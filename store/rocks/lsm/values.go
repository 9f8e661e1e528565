package lsm

import (
	"errors"

	"kvferry/record"
	"kvferry/store/rocks/base"
)

// ValueSource provides blob values: values outside of tables, to which entries of kind blob index point. A value is
// read when its entry is returned.
//
// With Env.Salvage an unreadable value is lost together with its row: Rows leaves the row out and does not count it,
// Entries and ScanTables return it as store.Lost. Older rows of its key stay hidden, because they are known to be
// superseded.
type ValueSource interface {
	// NewReader starts reading for one goroutine.
	NewReader() ValueReader
	// Size estimates the memory of a reader.
	Size() int64
}

// ValueReader reads values.
type ValueReader interface {
	// Value returns the value that the blob index of a key points to, valid until the next call; at is the entry's
	// place. The error is ErrLostValue if the loss was reported and a salvage continues.
	Value(key, index []byte, at record.Place) ([]byte, error)
	// GiveBack frees the memory of the last value.
	GiveBack()
	// At returns the place that a blob index points to.
	At(index []byte) record.Place
}

// ErrLostValue is the error of an unreadable value that was reported; a salvage continues after it.
var ErrLostValue = errors.New("the value is lost")

// outside reads blob values for one iterator.
type outside struct{ rd ValueReader }

// value reads the blob value of a cursor's current entry.
func (o *outside) value(c *Cursor) ([]byte, error) { return o.at(c.ks, c.User(), c.Val, c.Place()) }

// at reads the value that the blob index of a key points to.
func (o *outside) at(ks *Keyspace, key, index []byte, p record.Place) ([]byte, error) {
	if ks.Values == nil {
		return nil, base.Unsupported("%s: blob index", p.File)
	}
	if o.rd == nil {
		o.rd = ks.Values.NewReader()
	}
	return o.rd.Value(key, index, p)
}
