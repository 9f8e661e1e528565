package server

import (
	"fmt"

	"kvferry/internal/text/resp"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// part is the role of a piece within its record.
type part uint8

const (
	adding  part = iota // a whole record, or elements under a temporary name; can be resent
	counted             // counts the elements of the temporary name
	last                // renames it; sent only after a correct count
)

// Piece is a group of commands that is acknowledged as a whole.
type Piece struct {
	end      int // offset in the batch
	Commands int
	part     part
	Name     []byte       // temporary name, unless the piece is a whole record
	ending   *PieceEnding // for counted and last
}

// batch is the unit of writing.
type batch struct {
	data   []byte
	pieces []Piece
}

// piece returns the bytes of a piece.
func (b *batch) piece(i int) []byte {
	from := 0
	if i > 0 {
		from = b.pieces[i-1].end
	}
	return b.data[from:b.pieces[i].end]
}

// subject names what a piece with these commands writes: a key, or the library of a FUNCTION LOAD REPLACE.
func (x *Piece) subject(data []byte) string {
	if key := x.key(data); key != nil {
		return "key " + record.Quote(key)
	}
	return "function library " + record.Quote([]byte(rdb.LibraryName(argument(data, 3))))
}

// key returns the name that a piece with these commands writes; nil: it loads a library.
func (x *Piece) key(data []byte) []byte {
	switch {
	case x.Name != nil:
		return x.Name
	case string(argument(data, 0)) == "FUNCTION":
		return nil
	}
	return argument(data, 1) // of SET, RESTORE and other commands with a key in front
}

// PieceEnding is the last step of a record sent in pieces to a temporary name. If that name is deleted between two pieces,
// the next one recreates it without the earlier elements, so conclude counts them before RENAME.
type PieceEnding struct {
	Name, Key   []byte
	Size        string // the command that returns the number of elements
	Least, Most int64  // bounds of that number: elements that expire soon may be gone
	Lapses      bool   // the whole record may have expired
}

// count returns the command that counts the elements of name.
func (e *PieceEnding) count(name []byte) []byte { return resp.AppendCommand(nil, e.Size, string(name)) }

// Holds reports whether the reply to count is within the bounds.
func (e *PieceEnding) Holds(reply any) bool {
	n, ok := reply.(int64)
	return ok && (n >= e.Least && n <= e.Most || n == 0 && e.Lapses)
}

// altered returns the error for a temporary name with a wrong number of elements.
func (e *PieceEnding) altered(count any) error {
	n, _ := count.(int64)
	return fmt.Errorf("key %s: its temporary name %s holds %s of the %s elements sent: another client or an eviction deleted it during the run "+
		"(FLUSHALL, FLUSHDB, DEL, maxmemory); the key itself was not changed; stop the deletion of keys, then convert again",
		record.Quote(e.Key), e.Name, record.Number(n), record.Number(e.Most))
}
