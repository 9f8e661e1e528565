// Package record is the logical model shared by all formats: a record is one Redis key with its type, expiry and
// elements. Records are streamed: a Reader returns them in batches, many small ones at once and a large one in pieces;
// a Writer receives them the same way.
//
// The package also defines findings and corruption errors, the ledger that accounts for every source row, and the
// fingerprint that proves two datasets equal.
package record

import (
	"cmp"
	"fmt"
	"math"
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
	// Other is a value that only its own server understands, such as a module's value or a function library.
	Other

	// NumTypes is one more than the largest Type, for arrays indexed by type.
	NumTypes = int(Other) + 1
)

var typeNames = [NumTypes]string{"invalid", "string", "hash", "list", "set", "zset", "stream", "other"}

// String returns the name used on the command line and in dumps.
func (t Type) String() string {
	if int(t) < NumTypes {
		return typeNames[t]
	}
	return fmt.Sprintf("type(%d)", uint8(t))
}

// ParseType parses the name of a type.
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

// AllTypes contains every type. RedisTypes contains the types that every Redis server has.
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

// Header is the part of a record that precedes its elements.
type Header struct {
	DB   string
	Key  []byte
	Type Type
	// Keyless distinguishes keyless records from keys. The fingerprint ignores it: elements name their type.
	Keyless Keyless
	// Expired is true if the key had expired at Env.Now by the rules of its format.
	Expired bool
	// ByName is true if the elements come in strictly ascending bytewise order of Name. If it is
	// false, a writer that needs this order sorts the elements of the record. It has no meaning for
	// strings and lists.
	ByName bool
	// Sought is true if the first elements are those at the Start of a lookup.
	Sought bool
	// ExpireMS is the time at which the key expires, in Unix milliseconds; 0 means never.
	ExpireMS int64
	// Len is the number of elements according to the metadata of the source, or -1 if unknown. It
	// is a hint for sizing and findings; writers count the elements they receive.
	Len int64
	// Last is the last generated id of a stream, 16 bytes (ms BE64, seq BE64); nil for other types.
	Last []byte
	// Added is the number of entries ever added to a stream; 0 if unknown. MaxDeleted is the largest id deleted from
	// it, in the form of Last; nil if unknown or if no entry was deleted.
	Added      uint64
	MaxDeleted []byte
	// Native is the name of a more specific type of the source, such as "hyperloglog" for a string marked as one, or
	// "bitmap" and "sortedint" of Kvrocks. Targets that know the type keep it. The fingerprint ignores it.
	Native string
}

// Kind is the kind of a stream's element. Elements of all other types have kind Entry.
type Kind uint8

// The kinds of elements. The groups of a stream follow its entries, by name. Each is a Group, then
// its Consumers by name, then its Pending entries by id.
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
//	zset    Name = member, Score; Value = the exact score in decimal, only if it was requested and differs
//	stream  Name = id (ms BE64, seq BE64), Value = pairs packed by AppendPair
//	        of kind Group, Consumer and Pending: Name = group, Value = state packed by AppendGroup,
//	        AppendConsumer and AppendPending
//	other   one element: Name = the server's name of the type, Value = its bytes
type Element struct {
	Name, Value []byte
	Score       float64
	// ExpireMS is the time at which the field of a hash expires, in Unix milliseconds; 0 means
	// never.
	ExpireMS int64
	Kind     Kind
}

// ScoreBytes is the logical size of a score.
const ScoreBytes = 8

// Measure returns the number of elements of a record of type t and their logical size: names, values and scores. The
// size of a record is this and its key. Consumer groups of streams count as neither.
func Measure(t Type, elems []Element) (n, bytes int64) {
	for i := range elems {
		if e := &elems[i]; e.Kind == Entry {
			n++
			bytes += int64(len(e.Name) + len(e.Value))
		}
	}
	if t == ZSet {
		bytes += ScoreBytes * n
	}
	return n, bytes
}

// Class is the outcome of a visible source row. If several apply, the first in this order counts.
type Class uint8

// The classes of the ledger, by precedence.
const (
	Malformed    Class = iota // cannot be decoded
	Housekeeping              // separators, TTL indexes, directories of namespaces
	Orphan                    // a data row without a meta row
	Stale                     // belongs to an older version of its collection
	Deleted                   // a meta row of count 0, or a row of such a collection
	HalfImported              // in a slot that the server was importing: it deletes the key when it starts
	Expired                   // expired at Now
	Filtered                  // left out by the user's filters
	Lost                      // the target cannot hold it, and the loss was allowed
	Skipped                   // its key exists on the server and was left alone
	Index                     // duplicates another row (nemo y, score_cf, ardb sort rows)
	Copied

	NumClasses = int(Copied) + 1
)

var classNames = [NumClasses]string{"malformed", "housekeeping", "orphan", "stale", "deleted",
	"half-imported", "expired", "filtered", "lost", "skipped", "index", "copied"}

// ofIndex returns the class of the index rows of a record whose data rows have class c.
func (c Class) ofIndex() Class {
	if c == Copied {
		return Index
	}
	return c
}

// String returns the name used in reports.
func (c Class) String() string {
	if int(c) < NumClasses {
		return classNames[c]
	}
	return fmt.Sprintf("class(%d)", uint8(c))
}

// RankScore maps scores to integers of the same order. 0.0 and -0.0 are equal; all other scores keep their bits.
func RankScore(score float64) uint64 {
	if score == 0 {
		score = 0
	}
	b := math.Float64bits(score)
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
}

// CompareNames orders names of databases and keyspaces naturally: numbers in them are compared by value, so that 10
// follows 2.
func CompareNames(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		m, n := digits(x), digits(y)
		if m == 0 || n == 0 {
			if c := cmp.Compare(x[0], y[0]); c != 0 {
				return c
			}
			x, y = x[1:], y[1:]
			continue
		}
		p, q := strings.TrimLeft(x[:m], "0"), strings.TrimLeft(y[:n], "0")
		if c := cmp.Or(cmp.Compare(len(p), len(q)), cmp.Compare(p, q)); c != 0 {
			return c
		}
		x, y = x[m:], y[n:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

// digits returns the number of leading digits.
func digits(s string) int {
	return len(s) - len(strings.TrimLeft(s, "0123456789"))
}
