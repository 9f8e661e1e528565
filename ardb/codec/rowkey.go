package codec

import (
	"encoding/binary"
	"fmt"
	"math"

	"kvferry/record"
	"kvferry/store"
)

// Kind is the type byte of a row key, or of a value.
type Kind byte

// Kinds. Kinds without rows of their own occur in META values.
const (
	KindMeta      Kind = 1
	KindString    Kind = 2 // value
	KindHash      Kind = 3 // value
	KindField     Kind = 4
	KindList      Kind = 5 // value
	KindElement   Kind = 6
	KindSet       Kind = 7 // value
	KindMember    Kind = 8
	KindZSet      Kind = 9 // value
	KindSort      Kind = 10
	KindScore     Kind = 11
	KindStream    Kind = 12 // value
	KindEntry     Kind = 13
	KindPending   Kind = 14
	KindTTL       Kind = 29
	KindOperand   Kind = 30 // value: a merge operand
	KindEnd       Kind = 31 // seek bound
	maxElements        = math.MaxInt8
	IDSize             = 16
	TTLNamespace       = "__TTL_DB__"
	LMDBNamespace      = "__LMDB_META__"
	MaxNamespace       = 512
)

var kindNames = map[Kind]string{
	KindMeta: "meta", KindString: "string", KindHash: "hash", KindField: "hash field", KindList: "list",
	KindElement: "list element", KindSet: "set", KindMember: "set member", KindZSet: "zset", KindSort: "zset sort",
	KindScore: "zset score", KindStream: "stream", KindEntry: "stream entry", KindPending: "stream group",
	KindTTL: "ttl", KindOperand: "merge operand", KindEnd: "end",
}

// String returns the name of the kind.
func (k Kind) String() string {
	if s, ok := kindNames[k]; ok {
		return s
	}
	return fmt.Sprintf("kind(%d)", byte(k))
}

// Type returns the Redis type whose rows are of kind k, or 0.
func (k Kind) Type() record.Type {
	switch k {
	case KindString:
		return record.String
	case KindHash, KindField:
		return record.Hash
	case KindList, KindElement:
		return record.List
	case KindSet, KindMember:
		return record.Set
	case KindZSet, KindSort, KindScore:
		return record.ZSet
	case KindStream, KindEntry, KindPending:
		return record.Stream
	}
	return 0
}

// ElementKind returns the kind of the rows that have the elements of a collection.
func ElementKind(t record.Type) Kind {
	switch t {
	case record.Hash:
		return KindField
	case record.List:
		return KindElement
	case record.Set:
		return KindMember
	case record.ZSet:
		return KindScore
	}
	return KindEntry
}

// arity is the number of elements in a row key of a kind; -1 if no row has the kind.
func arity(k Kind) int {
	switch k {
	case KindMeta:
		return 0
	case KindField, KindElement, KindMember, KindScore, KindEntry:
		return 1
	case KindSort, KindPending:
		return 2
	case KindTTL:
		return 3
	}
	return -1
}

// Key is a decoded row key. Byte fields are views.
type Key struct {
	Namespace Data // LevelDB; else nil
	User      []byte
	Kind      Kind
	Elems     [3]Data // as many as the kind has
	prefix    int     // bytes up to and with the user key
}

// SplitUser finds the user key of a raw key: off is where it starts, end the offset of the type byte.
func SplitUser(b []byte, ns bool) (off, end int, ok bool) {
	if ns {
		_, n := SplitData(b)
		if n == 0 {
			return 0, 0, false
		}
		off = n
	}
	u, w := uvarint(b[off:])
	if w <= 0 || u >= uint64(len(b)-off-w) {
		return 0, 0, false
	}
	off += w
	return off, off + int(u), true
}

// DecodeKey decodes a whole row key; ns is true if it starts with the namespace.
func DecodeKey(b []byte, ns bool) (k Key, err error) {
	off := 0
	if ns {
		d, n, err := decodeData(b, 0, "namespace")
		if err != nil {
			return k, err
		}
		k.Namespace, off = d, n
	}
	u, w := uvarint(b[off:])
	if w <= 0 {
		return k, record.Short(off, "key length", 1, len(b)-off)
	}
	off += w
	if u > uint64(len(b)-off) {
		return k, &record.CorruptError{Off: int64(off), Field: "key",
			Err: fmt.Errorf("need %s bytes, have %s: %w", record.Number(u), record.Number(len(b)-off), record.ErrShort)}
	}
	end := off + int(u)
	k.User, k.prefix = b[off:end:end], end
	if len(b)-end < 2 {
		return k, record.Short(end, "type and count", 2, len(b)-end)
	}
	k.Kind = Kind(b[end])
	return k, k.elements(b[end+2:], int(int8(b[end+1])), end+1)
}

// elements decodes the elements of a key; off is the offset of their count.
func (k *Key) elements(b []byte, count, off int) error {
	want := arity(k.Kind)
	if want < 0 {
		return record.Unknown(off-1, "type", fmt.Sprintf("type %d", byte(k.Kind)))
	}
	if count != want {
		err := fmt.Errorf("have %s, a %s row has %s", record.Number(count), k.Kind, record.Number(want))
		if count > want {
			err = fmt.Errorf("%w: %w", err, record.ErrTrailing)
		}
		return &record.CorruptError{Off: int64(off), Field: "count", Err: err}
	}
	off++
	for i := range want {
		d, n := SplitData(b)
		if n == 0 {
			_, _, err := decodeData(b, off, elementName(k.Kind, i))
			return err
		}
		k.Elems[i], b, off = d, b[n:], off+n
	}
	if len(b) > 0 {
		return &record.CorruptError{Off: int64(off), Field: "key",
			Err: fmt.Errorf("%s bytes after the last element: %w", record.Number(len(b)), record.ErrTrailing)}
	}
	return nil
}

var elementNames = map[Kind][]string{
	KindField: {"field"}, KindElement: {"index"}, KindMember: {"member"}, KindScore: {"member"}, KindEntry: {"id"},
	KindSort: {"score", "member"}, KindPending: {"group", "id"}, KindTTL: {"expiry", "namespace", "key"},
}

func elementName(k Kind, i int) string { return elementNames[k][i] }

// IsMeta reports whether b, the row key after the user key, is a META row's.
func IsMeta(b []byte) bool { return len(b) == 2 && Kind(b[0]) == KindMeta && b[1] == 0 }

// SplitSort decodes the bytes after the type of a sort row; false unless they are a number and another
// element.
func SplitSort(b []byte) (score float64, member Data, ok bool) {
	if len(b) < 2 || b[0] != 2 {
		return 0, member, false
	}
	d, n := SplitData(b[1:])
	if n == 0 || !d.IsNumber() {
		return 0, member, false
	}
	member, m := SplitData(b[1+n:])
	return d.Number(), member, m > 0 && 1+n+m == len(b)
}

// AppendTTLKey appends a row key of the TTL index. index is the index's encoded namespace on LevelDB, else
// nil; ns is the key's namespace.
func AppendTTLKey(dst, index []byte, ms int64, ns Data, user []byte) []byte {
	return AppendKey(dst, index, nil, KindTTL, IntData(ms), ns, TextData(user))
}

// AppendPrefix appends the prefix of all row keys of a user key. ns is the encoded namespace on LevelDB, else
// nil.
func AppendPrefix(dst, ns, user []byte) []byte {
	dst = append(dst, ns...)
	return append(binary.AppendUvarint(dst, uint64(len(user))), user...)
}

// AppendKey appends a row key.
func AppendKey(dst, ns, user []byte, k Kind, elems ...Data) []byte {
	dst = append(AppendPrefix(dst, ns, user), byte(k), byte(len(elems)))
	for _, d := range elems {
		dst = AppendData(dst, d)
	}
	return dst
}

// Bound returns a key before all rows of a user key and after all rows of smaller user keys.
func Bound(ns, user []byte) []byte { return append(AppendPrefix(nil, ns, user), 0, 0) }

// After returns the smallest user key that is larger than user.
func After(user []byte) []byte {
	_, after := store.KeyRange(user)
	return after
}

// AfterNamespace returns a key after all rows of a namespace; only strings and integers are namespaces.
func AfterNamespace(d Data) ([]byte, bool) {
	switch d.Tag {
	case TagText, TagCStr:
		return Bound(AppendText(nil, After(d.Text)), nil), true
	case TagInt:
		return Bound(AppendInt(nil, d.Int+1), nil), d.Int+1 > d.Int
	}
	return nil, false
}
