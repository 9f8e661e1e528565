package versioned

import (
	"slices"
	"time"

	"kvferry/format"
	"kvferry/internal/shared/keylanes"
	"kvferry/record"
	"kvferry/store"
)

// Meta is the decoded meta row of a record, in any format. Slices are views of the row unless the codec says otherwise.
type Meta struct {
	Key      []byte // user key
	Count    int64
	Version  int64
	ExpireMS int64 // 0: never
	// BadExpiry is an expiry that the engine treats as never; 0: no such expiry.
	BadExpiry int64
	// Gone is true if the collection was deleted or emptied.
	Gone bool
	// Left and Right are exclusive bounds of a list's indexes; Next is the next index to use, in formats that store it.
	Left, Right, Next uint64
	// Value is the value of a string, which has no other row, or data private to the format.
	Value []byte
	// Bare is true if the record has no other rows, in types that can have some.
	Bare bool
	// Unsorted is true if this record's rows are not ordered by name, in types whose rows usually are.
	Unsorted bool
	// Reused is true if earlier lives of a list had the same version: rows outside the bounds belong to them.
	Reused bool
	// Boundless is true if the bounds of a list are lost, so it has no elements: its rows count as orphans.
	Boundless bool
	// Rounded is true if the last element's score differs from Exact; Roundings counts such scores.
	Rounded   bool
	Exact     int64
	Roundings int64
	// Kind is the format's own number of the type, in formats that have more types.
	Kind uint8
	// Native is the source's own name of the type, if it has a finer one.
	Native string
	// ModifiedMS is the modification time of a written meta row.
	ModifiedMS int64
	Stream     StreamMeta
	// Tail is the number of extra bytes at the end of the record's row keys, if it differs between records.
	Tail int
	// Ambiguous is true if meta rows of other raw keys may have the same user key.
	Ambiguous bool
	// Fields sums up the expiries of a hash's fields; Element fills it.
	Fields FieldSums
	// Arena holds the unpacked bytes of elements; it is emptied before each batch.
	Arena []byte
}

// FieldSums sums up the expiries of a hash's fields: Lower is the earliest, Upper the latest.
type FieldSums struct {
	Persist, Expiring int64 // fields without and with an expiry
	Lower, Upper      int64
}

// Add counts the expiry of a field; 0 is never.
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

// StreamMeta is the part of a meta row that only streams have.
type StreamMeta struct {
	First, Last, MaxDeleted ID
	Added                   uint64
}

// ID is a stream entry id: milliseconds and sequence number, both BE64, so that ids ascend bytewise.
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
	// AppendMetaPrefix appends the prefix of that raw key that is unique to its user key; nil is AppendMetaKey.
	AppendMetaPrefix func(dst, key []byte) []byte
	// OpenMetas opens the meta rows of a span in the order of the data rows; nil: a span is one range in that order.
	OpenMetas func(metas store.Keyspace, span format.Span, e *format.Env, memory int64) (store.Iterator, error)
	// DecodeMetaKey sets the user key of a meta row, Tail and Ambiguous.
	DecodeMetaKey func(m *Meta, raw []byte) error
	// Own reports whether a row among the meta rows, or outside of the lanes of data rows, is the engine's own and belongs
	// to no record. nil: the engine has no such rows.
	Own func(raw, value []byte) (own bool, err error)
	// OwnRecord reports whether all rows of a user key are the engine's own: they are checked like a record's. nil: never.
	OwnRecord func(key []byte) bool
	// Sampled returns the user key of a meta row's raw key; both may be truncated.
	Sampled func(raw []byte) []byte
	// TypeOf reads the type from the value of a meta row; nil if a store holds one type.
	TypeOf func(value []byte) (record.Type, error)
	// Codecs are the codecs of the store's types, in dump order.
	Codecs []*Codec
	// Clock converts the time at which expiry is evaluated to the resolution of ExpireMS: a record with a lower ExpireMS
	// has expired. nil: Unix milliseconds.
	Clock func(time.Time) int64
	// Newer is the treatment of data rows whose version is newer than the meta row's.
	Newer Newer
	// Orphans is the severity of rows without a meta row.
	Orphans record.Severity
	// LenField is the name of the user key's length in errors.
	LenField string
	// Unlisted is true if data rows (in lanes) form a record even without a meta row.
	Unlisted bool
	// Rest counts the rows of the store outside all ranges of the layout; nil if no such row can exist.
	Rest func(p *Pass) error
	// DeadNote describes deleted records of formats that delete rows one by one; "" if the format has versions.
	DeadNote string
}

// Newer is the treatment of data rows whose version is newer than the meta row's.
type Newer uint8

// Treatments of newer rows.
const (
	NewerOrphan Newer = iota // they are not part of the record, and a finding
	NewerAlive               // they are part of it
	NewerStale               // versions are only equal or different, never newer
)

// Codec describes how a format lays out the rows of one type.
type Codec struct {
	Type record.Type
	// Data and Index name the keyspaces of data rows and of the index of a zset; "" means no keyspace.
	Data, Index         string
	DataRows, IndexRows Rows

	// DecodeMeta decodes the value of a meta row into m, whose Key and Tail are set.
	DecodeMeta func(m *Meta, value []byte) error
	// Plain decodes the value of an ordinary string; if ok is false, DecodeMeta and Remark handle it. nil: always.
	Plain func(value []byte) (v []byte, expireMS int64, ok bool)
	// Element sets the element of a data row, as views of the raw key after the user key and of the value. ok is false for
	// a row that fails Check. It runs once per row: set fields one by one, since a struct would be built elsewhere and
	// copied.
	Element func(m *Meta, e *record.Element, rest, value []byte) (version int64, ok bool)
	// Position returns the index of a list's row.
	Position func(rest []byte) uint64
	// Entry decodes an index row. bits is the score in ScoreBits's form.
	Entry func(m *Meta, rest, value []byte) (version int64, member []byte, bits uint64, ok bool)
	// ScoreBits maps the score of a member to the bits of its index row; nil: the float's bits, with -0.0 as 0.0.
	ScoreBits func(score float64) uint64
	// ShowBits formats a score from an index row; nil: as a float64.
	ShowBits func(bits uint64) string
	// BadScore describes the fault of a score, or returns ""; nil: only NaN is a fault.
	BadScore func(score float64) string
	// Check returns the user key of a data or index row, as far as known, and the errors in its key and value.
	Check func(index bool, raw, value []byte) (user []byte, keyErr, valueErr error)
	// Wrong returns the error of a row that Element rejects but Check accepts, if any; nil: it has no error.
	Wrong func(m *Meta, value []byte) error
	// Start completes the Meta of a record, which may have no meta row (see Unlisted); nil: it is complete.
	Start func(m *Meta)
	// Bound reads a list bound into m from a data row that precedes the elements and is not one; nil: no such rows.
	Bound func(m *Meta, rest, value []byte) bool
	// Taken inspects the element of row i of the last batch, or of an index row without a member if i < 0; nil: no-op.
	Taken func(r *Reader, e *record.Element, i int)
	// CompareNames is the order of the data rows' names; nil: bytewise.
	CompareNames func(a, b []byte) int
	// Lone is true if the engine serves members that only have an index row: they are elements, after the others.
	Lone bool
	// Count compares the meta row with the number of live rows; nil: its count must equal that number.
	Count func(r *Reader, rows int64)
	// Remark returns a finding about a live record; kind "" means no finding.
	Remark func(m *Meta) (kind, detail string)
	// Elements reads the elements of a type in which an element is not exactly one row; nil: each row is an element.
	Elements func(r *Reader) Elements
	// Revived returns a Reviver of deleted records; nil: bounds and last ids come from the rows.
	Revived func() Reviver
	// Loosen makes a copy of the codec accept deleted rows that its bounds exclude; nil: it does.
	Loosen func(c *Codec)

	Encoding
}

// Encoding describes how rows are written.
type Encoding struct {
	AppendMeta func(dst []byte, m *Meta) []byte
	// ValueFirst is true if the raw key of a string is the user key itself, and its row is the value plus a suffix of
	// fixed length.
	ValueFirst bool
	// AppendRow appends the prefix of data row keys, up to the element's name.
	AppendRow func(dst, key []byte, version int64) []byte
	// AppendIndexRow does so for index rows; nil is AppendRow.
	AppendIndexRow func(dst, key []byte, version int64) []byte
	// Tail ends the keys of data and index rows.
	Tail []byte
	// AppendPosition appends the index of a list's row; First is the index of the first element.
	AppendPosition func(dst []byte, index uint64) []byte
	First          uint64
	// AppendScore appends the value of a member's row.
	AppendScore func(dst []byte, score float64) []byte
	// Rank maps scores to numbers that ascend as index rows do. mark distinguishes scores of equal rank.
	Rank func(score float64) (rank uint64, mark []byte)
	// ExactRank returns the rank of a score that the Value of a member holds, in the form of AppendScore; false if it holds
	// none. nil: no score does.
	ExactRank func(e *record.Element) (rank uint64, ok bool)
	// AppendRank appends a score to the key of an index row.
	AppendRank func(dst []byte, rank uint64, mark []byte) []byte
	// AppendBits appends a score in Entry's form to the key of an index row; nil: as LE64.
	AppendBits func(dst []byte, bits uint64) []byte
	// Sorts is true if data rows are not ordered by name.
	Sorts bool
	// AppendName appends the name of an element in the form of row keys; nil: unchanged.
	AppendName func(dst []byte, m *Meta, name []byte) ([]byte, error)
	// AppendEntry appends the value of a stream's entry.
	AppendEntry func(dst, pairs []byte) ([]byte, error)
	// Refuse returns the reason why a record cannot be written; nil: all records can.
	Refuse func(h *record.Header) error
	// Writer returns the writer of a type in which an element is not exactly one row; nil: each element is a row.
	Writer func(w *TypeWriter) ElementWriter
	// Expiry returns the expiry to write.
	Expiry func(h *record.Header) (ms int64, err error)
	// NoBlank is true if a stream without entries and without a last id is not written.
	NoBlank bool
	// MaxCount is the engine's limit of elements; 0: no limit.
	MaxCount                      uint64
	MetaLane, DataLane, IndexLane func(klen int) uint64 // nil: one lane
}

// Rows describes the prefixes and the order of raw keys of data rows: in lanes, or in the order of user keys.
type Rows struct {
	Lanes *keylanes.Layout
	Order *InOrder
	// Sampled returns the user key of a raw key; both may be truncated.
	Sampled func(raw []byte) []byte
	// Noun names a row in messages; "" is "row in" its keyspace.
	Noun string
	// User returns the user key of a raw key, for rows of any type; nil: Codec.Check does. If set, rows of other versions
	// may have other types.
	User func(raw []byte) ([]byte, error)
}

// holds reports whether a user key can have rows: a lane's length may be bounded.
func (l *Rows) holds(key []byte) bool { return l.Lanes == nil || l.Lanes.Holds(len(key)) }

// prefix appends the common prefix of the raw keys of a user key's rows.
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
		hi, _ = store.Successor(lo)
		return lo, hi
	}
	return l.Order.span(store.KeyRange(key))
}

// Keyspace is a keyspace of a store with its place in the dataset.
type Keyspace struct {
	Label  string // in the ledger and in findings: "db0/hashes/data_cf"
	Short  string // without the database: "hashes/data_cf"
	Listed bool   // it exists; an unlisted keyspace is empty
	store.Keyspace
}

// Spaces lists the names of the layout's keyspaces, the meta rows' first.
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

// Reviver makes the meta rows of deleted records.
type Reviver interface {
	// Row visits a data row of the newest dead version so far; first is true if the version is new. rest is the raw key
	// after the user key.
	Row(first bool, rest, value []byte)
	// Meta completes m for the visited rows. m was decoded from old, which is nil if no meta row of that version is left.
	// lost names the data that the rows cannot restore, or is "".
	Meta(m *Meta, old []byte) (lost string)
}

// Elements reads the elements of a type in which an element is not exactly one row. It reads the rows through the
// Reader and classifies all of them.
type Elements interface {
	// Begin starts the current record. After a dataset.KindError there is no record: it cannot be read.
	Begin() error
	// Read returns the next elements, like record.Reader.
	Read(dst []record.Element) (int, error)
	// End ends the current record and classifies its unread rows.
	End() error
	// Close frees all resources, also in the middle of a record.
	Close() error
}

// ElementWriter writes the rows of a type in which an element is not exactly one row.
type ElementWriter interface {
	// Begin starts a record; Meta has the data of its header.
	Begin()
	// Write adds elements.
	Write(elems []record.Element) error
	// End writes the rest of a record that has elements; the meta row follows.
	End() error
}

// metaSpan returns the raw range of the meta rows of a span of user keys.
func (l *Layout) metaSpan(s format.Span) (lo, hi []byte) {
	lo, hi = l.From, l.To
	if s.Lo != nil {
		lo = l.metaPrefix([]byte{}, s.Lo)
	}
	if s.Hi != nil {
		hi = l.metaPrefix([]byte{}, s.Hi)
	}
	return lo, hi
}

func (l *Layout) metaPrefix(dst, key []byte) []byte {
	if l.AppendMetaPrefix != nil {
		return l.AppendMetaPrefix(dst, key)
	}
	return l.AppendMetaKey(dst, key)
}
