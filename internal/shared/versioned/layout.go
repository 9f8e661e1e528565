package versioned

import (
	"slices"
	"time"

	"kvferry/format"
	"kvferry/internal/shared/keylanes"
	"kvferry/record"
	"kvferry/store"
)

// Meta is what the meta row of a record says, in any format. Slices are views of the row unless the codec says otherwise.
type Meta struct {
	Key      []byte // user key
	Count    int64
	Version  int64
	ExpireMS int64 // 0: never
	// BadExpiry is an expiry of the row that the engine takes for never; 0: it has none.
	BadExpiry int64
	// Gone says that the row stands for nothing: the collection was deleted or emptied.
	Gone bool
	// Left and Right are exclusive bounds of a list's indexes; Next is the one to hand out next, where the row says so.
	Left, Right, Next uint64
	// Value is that of a string, which has no other row, or what only the format knows of the row.
	Value []byte
	// Bare says that the record has no other rows, where some of its type have.
	Bare bool
	// Unsorted says that rows of the record do not come in the order of names, where those of its type do.
	Unsorted bool
	// Reused says that earlier lives of a list had the same version: rows outside of the bounds are theirs.
	Reused bool
	// Boundless says that a list without its bounds has no elements: its rows count as orphans.
	Boundless bool
	// Rounded says that the score of the last element is not Exact; Roundings is how many were not.
	Rounded   bool
	Exact     int64
	Roundings int64
	// Kind is the format's own number of the type, where it has more of them.
	Kind uint8
	// Native is the source's own name of the type, when it has a finer one.
	Native string
	// ModifiedMS is when a meta row that is written was changed last.
	ModifiedMS int64
	Stream     StreamMeta
	// Tail is how many bytes more than usual end the keys of the record's rows, where this differs from record to record.
	Tail int
	// Ambiguous says that meta rows of other raw keys may have the same user key.
	Ambiguous bool
	// Fields is what Element adds up of a hash's rows.
	Fields FieldSums
	// Arena takes what elements are unpacked into; it is emptied before each batch.
	Arena []byte
}

// FieldSums is what the expiries of a hash's fields add up to: Lower and Upper are the first and the last of them.
type FieldSums struct {
	Persist, Expiring int64 // fields without and with an expiry
	Lower, Upper      int64
}

// Add takes the expiry of a field; 0 is never.
func (s *FieldSums) Add(ms int64) {
	if ms == 0 {
		s.Persist++
		return
	}
	if s.Expiring++; s.Expiring == 1 {
		s.Lower = ms
	}
	s.Lower, s.Upper = min(s.Lower, ms), max(s.Upper, ms)
}

// StreamMeta is what a meta row says of a stream.
type StreamMeta struct {
	First, Last, MaxDeleted ID
	Added                   uint64
}

// ID is that of a stream entry: milliseconds and sequence number, both BE64, so that ids ascend bytewise.
type ID [16]byte

// Layout is how a format lays out the rows of a store.
type Layout struct {
	Format string // for messages
	Metas  string // keyspace of meta rows
	KeyAt  int    // where the user key starts in the raw key of a string, in a store of strings
	// From and To bound the raw keys of meta rows, From <= k < To; nil is open.
	From, To []byte
	// AppendMetaKey appends the raw key of the meta row of a user key.
	AppendMetaKey func(dst, key []byte) []byte
	// AppendMetaPrefix appends what this raw key starts with and that of no other user key does; nil is AppendMetaKey.
	AppendMetaPrefix func(dst, key []byte) []byte
	// OpenMetas opens the meta rows of a span in the order of the data rows; nil: they lie in it, in one range.
	OpenMetas func(metas store.Keyspace, span format.Span, e *format.Env, memory int64) (store.Iterator, error)
	// DecodeMetaKey sets the user key of a meta row, Tail and Ambiguous.
	DecodeMetaKey func(m *Meta, raw []byte) error
	// Own judges a row among the meta rows that may be the engine's own; it returns true for one that is none of a record. nil:
	// there are none.
	Own func(raw, value []byte) (own bool, err error)
	// Sampled returns the user key of a meta row's key, which may be cut short, as far as it is there.
	Sampled func(raw []byte) []byte
	// TypeOf reads the type from the value of a meta row; nil where a store holds one type.
	TypeOf func(value []byte) (record.Type, error)
	// Codecs are those of the types that the store holds, in dump order.
	Codecs []*Codec
	// Clock turns the time that expiry is evaluated at into the unit that ExpireMS was made from: a record whose
	// ExpireMS is less has expired. nil: Unix milliseconds.
	Clock func(time.Time) int64
	// Newer says what becomes of data rows whose version is newer than the meta row's.
	Newer Newer
	// Orphans is the severity of rows without a meta row.
	Orphans record.Severity
	// LenField is what errors call the length of the user key.
	LenField string
	// Unlisted says that data rows, which are in lanes, make a record without a meta row, too.
	Unlisted bool
	// Internal reports whether a record is the engine's own: its rows are checked, and are housekeeping. nil: none is.
	Internal func(key []byte) bool
	// Rest counts the rows of the store that are in no range of the layout; nil where there can be none.
	Rest func(p *Pass) error
	// NotRow judges a raw key in the range of data rows that is none: it returns true for a row of the engine's own.
	NotRow func(raw, value []byte) (housekeeping bool, keyErr, valueErr error)
}

// Newer says what becomes of data rows whose version is newer than the meta row's.
type Newer uint8

// What becomes of newer rows.
const (
	NewerOrphan Newer = iota // they are no part of the record, and a finding
	NewerAlive               // they are part of it
	NewerStale               // versions are equal or not; none is newer
)

// Codec is how a format lays out the rows of one type.
type Codec struct {
	Type record.Type
	// Data and Index name the keyspaces of data rows and of the index of a zset; "" is none.
	Data, Index         string
	DataRows, IndexRows Rows

	// DecodeMeta decodes the value of a meta row into m, whose Key and Tail are set.
	DecodeMeta func(m *Meta, value []byte) error
	// Plain decodes the value of a string that is as nearly all are; where ok is false, DecodeMeta and Remark see to it. nil: to all.
	Plain func(value []byte) (v []byte, expireMS int64, ok bool)
	// Element sets the element of a data row, as views, from what follows the user key in the raw key and from the value.
	// ok is false for a row that Check says is wrong. It is called for each row: fields are to be set one by one, for a
	// struct would be built elsewhere and copied.
	Element func(m *Meta, e *record.Element, rest, value []byte) (version int64, ok bool)
	// Position returns the index of a list's row.
	Position func(rest []byte) uint64
	// Entry decodes an index row. bits is the score as ScoreBits makes it.
	Entry func(m *Meta, rest, value []byte) (version int64, member []byte, bits uint64, ok bool)
	// ScoreBits maps the score of a member to what its index row should have; nil: the bits, those of -0.0 being those of 0.0.
	ScoreBits func(score float64) uint64
	// ShowBits writes a score from an index row for people; nil: as ScoreBits's nil.
	ShowBits func(bits uint64) string
	// BadScore says what is wrong with a score, "" when nothing is; nil: it is not a number.
	BadScore func(score float64) string
	// Check says what is wrong with a data or index row, and what its user key is as far as it can be told.
	Check func(index bool, raw, value []byte) (user []byte, keyErr, valueErr error)
	// Wrong says what is wrong with a row that Element refuses and Check does not, nil when nothing is; nil: nothing.
	Wrong func(m *Meta, value []byte) error
	// Start completes the Meta of a record, which has no meta row where records may lack it; nil: it is complete.
	Start func(m *Meta)
	// Bound takes a data row that is no element but has a bound of the list, before the elements, into m; nil: there are none.
	Bound func(m *Meta, rest, value []byte) bool
	// Taken looks at the element of row i of the last batch, or of an index row without a member where i is below 0; nil: nothing does.
	Taken func(r *Reader, e *record.Element, i int)
	// CompareNames is the order of the data rows' names; nil: bytewise.
	CompareNames func(a, b []byte) int
	// Lone says that the engine serves a member which has an index row only: it is an element, after the others.
	Lone bool
	// Count compares the meta row with how many rows are alive; nil: they are as many as it counts.
	Count func(r *Reader, rows int64)
	// Remark says what is notable about a record that is alive; kind "" is nothing.
	Remark func(m *Meta) (kind, detail string)
	// Elements reads the elements of a type that are not its rows one by one; nil: they are.
	Elements func(r *Reader) Elements
	// Revived returns what makes the meta rows of deleted records; nil: their bounds and ids are those of their rows.
	Revived func() Reviver

	Encoding
}

// Encoding is how rows are written.
type Encoding struct {
	AppendMeta func(dst []byte, m *Meta) []byte
	// ValueFirst says that the row of a string is under the user key itself and starts with the value, after which come
	// always as many bytes.
	ValueFirst bool
	// AppendRow appends what the keys of data rows start with, up to the element's name.
	AppendRow func(dst, key []byte, version int64) []byte
	// AppendIndexRow does so for index rows; nil is AppendRow.
	AppendIndexRow func(dst, key []byte, version int64) []byte
	// Tail ends the keys of data and index rows.
	Tail []byte
	// AppendPosition appends the index of a list's row; First is that of the first element.
	AppendPosition func(dst []byte, index uint64) []byte
	First          uint64
	// AppendScore appends the value of a member's row.
	AppendScore func(dst []byte, score float64) []byte
	// Rank maps scores to numbers that ascend as index rows do. mark tells scores of one rank apart.
	Rank func(score float64) (rank uint64, mark []byte)
	// AppendRank appends a score to the key of an index row.
	AppendRank func(dst []byte, rank uint64, mark []byte) []byte
	// AppendBits appends a score, as Entry has it, to the key of an index row; nil: as LE64.
	AppendBits func(dst []byte, bits uint64) []byte
	// Sorts says that data rows are not in the order of names.
	Sorts bool
	// AppendName appends the name of an element as keys of its rows have it; nil: as it is.
	AppendName func(dst []byte, m *Meta, name []byte) ([]byte, error)
	// AppendEntry appends the value of a stream's entry.
	AppendEntry func(dst, pairs []byte) ([]byte, error)
	// Refuse says why a record cannot be written; nil: every one can.
	Refuse func(h *record.Header) error
	// Writer returns what writes the rows of a type that are not its elements one by one; nil: they are.
	Writer func(w *TypeWriter) ElementWriter
	// Expiry returns the expiry as it is written.
	Expiry func(h *record.Header) (ms int64, err error)
	// NoBlank says that a stream without entries and without a last id is not written.
	NoBlank bool
	// MaxCount is how many elements the engine counts; 0: no limit.
	MaxCount                      uint64
	MetaLane, DataLane, IndexLane func(klen int) uint64 // nil: one lane
}

// Rows is how the raw keys of a keyspace of data rows begin and ascend: in lanes, or in the order of user keys.
type Rows struct {
	Lanes *keylanes.Layout
	Order *InOrder
	// Sampled returns the user key of a raw key that may be cut short, as far as it is there.
	Sampled func(raw []byte) []byte
	// Noun is what messages call a row; "" is "row in" its keyspace.
	Noun string
	// User returns the user key of a raw key, of whichever type the row is; nil: Codec.Check does. With it, rows of other
	// versions may be of other types.
	User func(raw []byte) ([]byte, error)
}

// holds reports whether a user key can have rows: a lane's length may be bounded.
func (l *Rows) holds(key []byte) bool { return l.Lanes == nil || l.Lanes.Holds(len(key)) }

// prefix appends what the raw keys of the rows of a user key begin with.
func (l *Rows) prefix(dst, key []byte) []byte {
	if l.Lanes != nil {
		return append(l.Lanes.AppendPrefix(dst, len(key)), key...)
	}
	return l.Order.AppendPrefix(dst, key)
}

// Range returns the raw range, in the keyspace's own order, that holds the rows of a user key.
func (l *Rows) Range(key []byte) (lo, hi []byte) {
	if l.Lanes != nil {
		return l.Lanes.Rows(key)
	}
	if l.Order.Open != nil {
		lo = l.Order.AppendPrefix(nil, key)
		hi, _ = keylanes.Successor(lo)
		return lo, hi
	}
	return l.Order.span(key, append(append([]byte{}, key...), 0)) // the next user key is the same with a zero behind it
}

// Keyspace is a keyspace of a store with its place in the dataset.
type Keyspace struct {
	Label  string // in the ledger and in findings: "db0/hashes/data_cf"
	Short  string // without the database: "hashes/data_cf"
	Listed bool   // it is there; one that is not is empty
	store.Keyspace
}

// Spaces names the keyspaces of the layout, that of the meta rows first.
func (l *Layout) Spaces() []string {
	out := []string{l.Metas}
	for _, c := range l.Codecs {
		for _, name := range []string{c.Data, c.Index} {
			if name != "" && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}
