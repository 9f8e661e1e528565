package versioned

import (
	"context"
	"io"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/keylanes"
	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/store"
)

// Writer writes the records of one shard into a store.
//
// Rows that come in order go directly to the lane of their key length. Otherwise they are sorted by name within the
// record; index rows are always sorted by score. The meta row follows once the elements are counted.
type Writer struct {
	layout *Layout
	o      WriterOptions
	runs   map[string]*keylanes.Runs
	types  [record.NumTypes]*TypeWriter

	sorted  *extsort.Sorter // data rows that did not come in order, sorted by name
	byScore *extsort.Sorter // members by score
	cur     *TypeWriter
}

// TypeWriter writes the records of a type.
type TypeWriter struct {
	*Codec
	w                   *Writer
	metas, data, scores *keylanes.Runs

	metaLane  *keylanes.Lane
	dataLane  *keylanes.Lane
	scoreLane *keylanes.Lane

	m       Meta   // of the record
	keyRoom []byte // for its key
	metaKey []byte // raw
	key     []byte // of a data row; its first base bytes stay the same within a record
	base    int
	index   []byte // prefix of the record's index row keys
	value   []byte
	count   uint64
	inOrder bool
	group   store.Group   // a batch of data rows
	arena   []byte        // holds keys or values of group
	alone   bool          // the record is only its meta row, already written
	own     ElementWriter // writes the rows, if an element is not exactly one row
}

// Pass is one reading of a span of one store. It keeps the ledger and the findings.
type Pass struct {
	ctx    context.Context
	store  *Store
	types  record.TypeSet
	span   format.Span
	env    *format.Env
	now    int64 // in the unit of Layout.Clock
	memory int64

	metas   *store.Buffer  // nil in a store of strings
	meta    record.Tally   // of the meta rows
	tallies []record.Tally // of the data rows, as Store.data

	m      Meta // of the current record
	h      record.Header
	places [record.NumTypes]*record.Places
	open   int64 // meta rows of the current record: 0 or 1
	alive  int64 // its live data rows
	bounds int64 // data rows that hold a bound of the list, not an element
	index  int64 // its index rows
	// unplaced is true if the current record has no meta row.
	unplaced bool

	limit  dataset.Limit // of findings about the current record
	accept Judge         // nil: all records are accepted
}

// orphans groups consecutive rows without a meta row, so that a lost record is one finding.
type orphans struct {
	key   []byte
	rows  int
	place record.Place
}

// Reader walks the meta rows of a store and keeps cursors of data rows in step with them.
type Reader struct {
	*Pass
	sets []RowSet  // as Store.data; nil if no type of the pass has rows there
	lost []orphans // as sets

	cur     *typeRows // of the current record
	rows    RowSet    // its data rows; nil if it has none
	byScore RowSet    // its index rows; nil if it has none or they are not wanted
	special Elements  // reads its elements, if an element is not exactly one row
	begun   Elements  // special of the last started record
	own     [record.NumTypes]Elements

	scored  int  // number of index rows to read next, by which members are read; 0: they are not
	drained bool // all rows of the current record were read
	ended   bool

	want       uint64 // the next expected list index
	outside    int64  // rows of a list outside of bounds that are rows
	marks      uint64 // sum over members and scores, see mark
	last       []byte // the last entry id of a stream
	newer      int64  // rows of a newer version than the meta row's
	newerPlace record.Place
	twice      []byte // user key of the last meta row whose raw key has more than one form

	listed   *store.Row // the next meta row, not judged yet
	metasEnd bool
	loose    []byte // user key of a record without a meta row
	lone     *lones // members that only have an index row

	books record.Books     // of the engine's own records
	rest  []record.Element // receives elements that are read for the checks only
}

// Store is an open store, or the part of one that holds a database.
type Store struct {
	Layout  *Layout
	DB      string // name of the database
	Dir     string // of the store in the dataset: "db0/hashes"
	Metas   Keyspace
	data    []*rows // keyspaces of data rows, each once, in the order of the codecs
	codecs  [record.NumTypes]*typeRows
	closer  io.Closer
	judge   func() Judge
	wrap    Wrap
	strings *Codec // set when the only type is strings
}

// rows is a keyspace of data rows.
type rows struct {
	Keyspace
	Rows
	index bool // the rows are an index
	lanes *keylanes.Directory
	types record.TypeSet // with rows in the keyspace
}

// typeRows are the rows of a type.
type typeRows struct {
	*Codec
	data, index int // in Store.data; -1: no keyspace
}

// Judge checks the current record of a pass for format-specific findings. If it returns false the rows are orphans.
type Judge func(p *Pass) (ok bool, err error)

// Wrap completes a reader of strings, which it owns: parts of them are in other rows.
type Wrap func(r record.Reader, p *Pass) (record.Reader, error)

// Shard writes one span of a database into its stores.
type Shard struct {
	o       ShardOptions
	writers []*Writer // by part; nil until its first record
	cur     *Writer
	feed    record.Feeder
	strings [][]*record.Record // by part, while they are written
}

// lones are members of a zset that only have index rows.
type lones struct {
	sorter *extsort.Sorter
	it     *extsort.Iterator
	next   record.Element // the next member; without a name: no more
}

// WriterOptions configures a Writer.
type WriterOptions struct {
	Builder store.Builder
	Shard   int
	Memory  int64 // buffer limit
	TempDir string
	Version int64  // of all new rows
	Unique  bool   // each record has its own version, counting down from Version
	NowMS   int64  // when it is written
	Suffix  []byte // ends the values of data and index rows
}

// ShardOptions configures a shard.
type ShardOptions struct {
	N       int    // of the shard
	DB      string // to write to
	Version int64  // of all new rows
	NowMS   int64  // when it is written
	Suffix  []byte // ends the values of data and index rows
	Memory  int64  // buffer limit; 0 means record.DefaultMemory
	Writers int    // number of stores that share Memory
	// Layout returns the layout of a part of the target: of a store, or of some rows of a store.
	Layout func(part int) *Layout
	// PartOf returns the part that a record belongs to, -1 if the format has no such type; nil: the store of its type.
	PartOf func(t record.Type, key []byte) int
	// ByKey is true if strings are not all in one part.
	ByKey bool
	// Parts is the number of parts, and Builder returns the builder of a part; 0 and nil: those of a dataset.Target.
	Parts   int
	Builder func(part int) store.Builder
	TempDir string
}

// Types returns the types whose records the store holds.
func (s *Store) Types() (t record.TypeSet) {
	for _, c := range s.Layout.Codecs {
		t |= record.Of(c.Type)
	}
	return t
}
