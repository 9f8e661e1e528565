// Package record is the logical model that every format shares: a record is one Redis key with its
// type, its expiry and its elements. Records are streamed, never held: a reader hands out a header
// and then the elements in batches, a writer takes them the same way.
//
// The package also holds what is said about records: findings and corruption errors, the ledger
// that accounts for every source row, and the fingerprint that proves two datasets equal.
package record

import (
	"fmt"
	"strings"
)

// Type is the Redis type of a record. The values are the type bytes of the fingerprint.
type Type uint8

// The types, in dump order.
const (
	String Type = 1 + iota
	Hash
	List
	Set
	ZSet
	Stream
	// Other is a value that only its own server understands: a module's, a library of functions.
	Other

	// NumTypes is one more than the largest Type, for arrays indexed by type.
	NumTypes = int(Other) + 1
)

var typeNames = [NumTypes]string{"invalid", "string", "hash", "list", "set", "zset", "stream", "other"}

// String returns the name as it stands on the command line and in dumps.
func (t Type) String() string {
	if int(t) < NumTypes {
		return typeNames[t]
	}
	return fmt.Sprintf("type(%d)", uint8(t))
}

// ParseType reads the name of a type.
func ParseType(s string) (Type, error) {
	for t := String; int(t) < NumTypes; t++ {
		if typeNames[t] == s {
			return t, nil
		}
	}
	return 0, fmt.Errorf("unknown type %q: want one of %s", s, strings.Join(typeNames[1:], ", "))
}

// TypeSet is a set of types, one bit each.
type TypeSet uint8

// AllTypes holds every type, RedisTypes those that every Redis has.
const (
	AllTypes   TypeSet = 1<<NumTypes - 2
	RedisTypes         = AllTypes &^ (1 << Other)
)

// Of returns the set of the given types.
func Of(types ...Type) TypeSet {
	var s TypeSet
	for _, t := range types {
		s |= 1 << t
	}
	return s
}

// Has reports whether t is in the set.
func (s TypeSet) Has(t Type) bool { return s&(1<<t) != 0 }

// Types returns the members in dump order.
func (s TypeSet) Types() []Type {
	var out []Type
	for t := String; int(t) < NumTypes; t++ {
		if s.Has(t) {
			out = append(out, t)
		}
	}
	return out
}

// String returns the names joined by commas.
func (s TypeSet) String() string {
	var names []string
	for _, t := range s.Types() {
		names = append(names, t.String())
	}
	return strings.Join(names, ",")
}

// Header describes a record before its elements.
type Header struct {
	DB   string
	Type Type
	Key  []byte
	// ExpireMS is the moment the key expires in Unix milliseconds; 0 means never.
	ExpireMS int64
	// Len is the number of elements as the source's own meta claims it, -1 when unknown. It is a
	// hint for sizing and for findings: writers count what they are given.
	Len int64
	// Expired is set by the source when the key had expired at Env.Now by the rule of its format.
	Expired bool
	// ByName says that the elements come in strictly ascending bytewise order of Name. A writer
	// that needs that order sorts within the record when it is false. Meaningless for strings and
	// lists, which always come in their own order.
	ByName bool
	// Last is the last generated id of a stream as 16 bytes (ms BE64, seq BE64); nil otherwise.
	Last []byte
	// Added counts the entries that were ever added to a stream; 0 when unknown. MaxDeleted is the
	// largest id that was deleted from it, as Last; nil when there is none or it is unknown.
	Added      uint64
	MaxDeleted []byte
	// Native is the source's own name of the type, when it has a finer one: "hyperloglog" of a string that is marked as
	// one, "bitmap" and "sortedint" of Kvrocks. Targets that have it too write it so. It is not hashed.
	Native string
}

// Kind says what an element of a stream is. Elements of other types are entries.
type Kind uint8

// The kinds. After the entries of a stream come its groups in ascending order of their names: each a
// Group, its Consumers in ascending order of their names, its Pending entries in that of their ids.
const (
	Entry Kind = iota
	Group
	Consumer
	Pending
)

// Element is one element of a record.
//
//	string  one element: Value
//	hash    Name = field, Value
//	list    Value, in list order
//	set     Name = member
//	zset    Name = member, Score
//	stream  Name = id (ms BE64, seq BE64), Value = pairs packed by AppendPair
//	        of kind Group, Consumer and Pending: Name = group, Value = state packed by AppendGroup,
//	        AppendConsumer and AppendPending
//	other   one element: Name = the server's name of the type, Value = its bytes
type Element struct {
	Name, Value []byte
	Score       float64
	// ExpireMS is the moment a field of a hash expires in Unix milliseconds; 0 means never.
	ExpireMS int64
	Kind     Kind
}

// Bytes is the logical size of an element of a record of type t: its name and value, and 8 bytes for
// a score.
func (e *Element) Bytes(t Type) int64 {
	n := int64(len(e.Name) + len(e.Value))
	if t == ZSet {
		n += 8
	}
	return n
}

// BatchBytes is how many bytes of names and values a batch holds.
func BatchBytes(batch []Element) (n int64) {
	for i := range batch {
		n += int64(len(batch[i].Name) + len(batch[i].Value))
	}
	return n
}

// Reader yields records in ascending (Key, Type) order, keys compared bytewise.
//
// The header and everything it points to live until the next call of Next; element views live until
// the next call of Read or Next.
type Reader interface {
	// Next moves to the next record, draining an unread one. It returns io.EOF after the last.
	// A record may turn out to have no live elements: consumers treat it as absent.
	Next() (*Header, error)
	// Read fills dst from the front with the next elements and returns how many it set. It
	// returns 0, io.EOF after the last element, and never 0, nil.
	Read(dst []Element) (int, error)
	// Settle sets the ledger class of the current record's rows; the default is Copied. It is
	// called between Next and the following Next. Rows that already have a class of their own
	// (stale, malformed, …) keep it; index rows become Index only when the record is Copied.
	Settle(Class)
	// Close releases the reader and hands its counts to the ledger. It is called exactly once.
	Close() error
}

// Writer takes records in ascending (Key, Type) order.
type Writer interface {
	// Begin starts a record. The header is not kept.
	Begin(*Header) error
	// Write appends elements; they are not kept after the call.
	Write([]Element) error
	// End finishes the record. One without elements leaves nothing behind.
	End() error
	// Close flushes and finishes everything written; a writer that is not closed is aborted by
	// Abort. Exactly one of Close and Abort is called.
	Close() error
	// Abort drops what was written and releases all resources.
	Abort()
}

// Class says what became of a visible source row. The first class that fits counts.
type Class uint8

// The classes of the ledger, first fit first.
const (
	Malformed    Class = iota // cannot be decoded
	Housekeeping              // separators, TTL indexes, directories of namespaces
	Orphan                    // a data row without a meta row
	Stale                     // of an older version of its collection
	Deleted                   // a meta row of count 0 and what hangs on it
	Expired                   // expired at Now
	Filtered                  // left out by the user's filters
	Lost                      // cannot be held by the target, and the loss was allowed
	Index                     // duplicates what another row says (nemo y, score_cf, ardb sort rows)
	Copied

	NumClasses = int(Copied) + 1
)

var classNames = [NumClasses]string{"malformed", "housekeeping", "orphan", "stale", "deleted",
	"expired", "filtered", "lost", "index", "copied"}

// String returns the name of the class as the report shows it.
func (c Class) String() string {
	if int(c) < NumClasses {
		return classNames[c]
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}
