// Package format says what a format is: a way to lay Redis records out in rows. It holds the
// interfaces that formats satisfy and that convert and inspect are written against.
package format

import (
	"context"
	"io"
	"time"

	"kvferry/record"
	"kvferry/store"
)

// Format is one way to lay out records, as registered in cmd.
type Format interface {
	// Name is what locations call it: nemo, blackwidow, ardb.
	Name() string
	// Detect weighs the evidence of a directory.
	Detect(ev *Evidence) Verdict
	// Open opens a source: a directory, a file, - for standard input or an address, as Limits.Place says. It fails
	// with a sentence for people when there is none of the format.
	Open(ctx context.Context, location string, o *OpenOptions) (Source, error)
	// Create starts a target at a location, where nothing is yet.
	Create(ctx context.Context, location string, o *CreateOptions) (Target, error)
	// Limits says what the format can hold.
	Limits() Limits
}

// Place says what a location of a format is.
type Place uint8

// Places.
const (
	InDirectory Place = iota // a directory of stores
	InFile                   // a file; - is standard input
	InFiles                  // a file, or a directory of files that are no stores
	OnServer                 // an address
)

// Limits is what a format can hold, for the plan, the docs and `kvferry formats`.
type Limits struct {
	Place       Place
	Types       record.TypeSet
	Seconds     bool  // expiry in seconds, else milliseconds
	MaxExpireMS int64 // 0: no limit
	MaxKey      int   // bytes of a collection's key; 0: no limit
	EmptyKey    bool  // collections may have the empty key
	// NoInnerNUL says that a key with NULs has to end with one, NoStreamExpiry that streams do not expire.
	NoInnerNUL, NoStreamExpiry bool
	// NoBlankStream says that a stream without entries and without a last id is one that was deleted.
	NoBlankStream bool
	MaxScore      float64
	MaxElements   int64          // 0: no limit
	Unbounded     record.TypeSet // types that MaxElements does not bound
	SameName      bool           // one name may exist under several types
	// FieldExpiry and StreamGroups say that fields of hashes can have an expiry, and streams consumer
	// groups. What a target cannot hold of these is left out before it sees it.
	FieldExpiry, StreamGroups bool
	// Whole says that a record is one row, whatever it holds; otherwise each element has a row.
	Whole bool
	// AnyOrder says that a target takes records in any order.
	AnyOrder bool
	// NoSource and NoTarget say why this build does not read or write the format; "" when it does.
	NoSource, NoTarget string

	Databases string
	Numbered  bool   // databases have numbers for names: "0", "1", …
	DefaultDB string // the database of clients that select none; "" means "0"
	Cluster   bool   // CreateOptions.Cluster makes a difference
	SST       bool   // CreateOptions.SST does
	// Layout is how databases lie in a target when nothing else is asked for; LayoutAuto is as in the source.
	Layout Layout
	// Instances and Slots are the defaults of a format that spreads the keys of a database over several stores; 0 where
	// none does.
	Instances, Slots int
	Stores           []StoreSupport
	Detail           string // one line for people: versions and servers
	ScoreDetail      string
	OtherDetails     []string
	// Losses are the kinds that only this format has as a target.
	Losses []record.LossInfo
}

// StoreSupport says which stores a format is read from and written to in this build.
type StoreSupport struct {
	Store       string
	Read, Write bool
	Why         string // why not, when not
}

// Evidence is what detection sees of a directory, gathered once without opening anything for
// writing. Paths are relative to Dir, with forward slashes.
type Evidence struct {
	Dir string
	// Head is how a file begins that Dir is the path of, unpacked when it is compressed; nil of a directory.
	Head []byte
	// Stores are the directories at or below Dir (at most four levels) that hold a CURRENT file or
	// a data.mdb, with what could be read from them.
	Stores []StoreEvidence
}

// StoreEvidence is one directory that looks like a store.
type StoreEvidence struct {
	Path      string // "." for Dir itself
	Kind      string // "rocksdb", "leveldb", "lmdb"
	Keyspaces []KeyspaceEvidence
	Err       error // why it could not be read further; nil when it was
}

// KeyspaceEvidence is a column family or a named database.
type KeyspaceEvidence struct {
	Name, Comparer string
}

// Verdict is the result of detection.
type Verdict struct {
	// Score is 0 for "not this format" and 100 for "cannot be anything else".
	Score int
	// Why are the reasons for the score, one a line, shown with -v.
	Why []string
}

// OpenOptions says how to open a source.
type OpenOptions struct {
	Store   store.Opener // opens one store directory
	Kind    string       // of what Store opens: rocksdb, leveldb, lmdb; "" when not known
	Options store.Options
	// WALDir holds the logs when they are not beside the tables. Where a dataset has several stores, each has a
	// directory of its own in it, at its relative path.
	WALDir string
	// Stdin is what the location - reads.
	Stdin io.Reader
	// Pass is asked whether a store that is there, in directory dir, is passed over: it is not opened then, and no part
	// of the source. nil: none is.
	Pass func(db string, t record.TypeSet, dir string) bool
	// MaxBitmap is the length in bytes up to which a bitmap that is kept in pieces is read as a string; 0 means the
	// format's default.
	MaxBitmap int64
}

// CreateOptions says how to write a target.
type CreateOptions struct {
	Create  store.CreateFunc
	Kind    string // of what Create writes: rocksdb, leveldb; "" means the format's first
	Build   store.BuildOptions
	Layout  Layout
	DBs     []string // names of the databases that will be written, in order
	Version int32    // of all new rows; 0 means 1
	// Instances and Slots say how a format spreads keys whose databases are several stores; 0 means its default.
	Instances, Slots int
	// Cluster asks for the rows of a node of a cluster, where they have such of their own.
	Cluster bool
	// SST asks for tables that a running server takes in, beside the database.
	SST     bool
	Memory  int64  // bytes that all shards together may buffer
	TempDir string // takes spools
	Now     time.Time
	// Earlier is what Loaded.Earlier returned to the process that began; "" when this one does.
	Earlier string
	// Reopen opens the finished target for the proof.
	Reopen *OpenOptions
}

// Layout says how databases lie in a directory.
type Layout uint8

// Layouts.
const (
	LayoutAuto Layout = iota // as the source has it
	LayoutFlat               // the format's directories right in the root
	LayoutDB                 // one directory a database: db0, db1, …
)

// Span is a range of user keys, Lo <= k < Hi, nil open; or a section of a file, whose records come in no order.
type Span struct {
	Lo, Hi []byte
	// From and To are the offsets of a section; To is 0 for a range of keys.
	From int64 `json:",omitempty"`
	To   int64 `json:",omitempty"`
}

// Env is what one pass over a source works with.
type Env struct {
	Now     time.Time
	Memory  int64  // bytes this pass may buffer; 0 means 64 MiB
	TempDir string // takes spools; "" means os.TempDir
	Ledger  *record.Ledger
	// Report takes findings; it may be called from several passes at once. nil drops them.
	Report func(record.Finding)
	// Deep asks for checks that cost a second look at a record: every finding named to the element.
	Deep bool
	// RecordsOnly spares the rows that repeat what others say, the index of a zset: they may be left
	// unread, and so unchecked and out of the ledger.
	RecordsOnly bool
	// AnyOrder says that records may come in any order, so that several stores are read one after the other.
	AnyOrder bool
}

// Source is an open dataset.
type Source interface {
	// Format names the format; Layout says how its databases lie.
	Format() Format
	Layout() Layout
	// Databases are named as dumps name them: "0", "1", …
	Databases() []string
	// Sorted reports whether Records yields ascending order for every span. When false, records
	// come in the order they have and the caller sorts.
	Sorted() bool
	// Types are those that the database can hold rows of.
	Types(db string) record.TypeSet
	// Size is the bytes on disk that records of these types take, for planning and progress.
	Size(db string, t record.TypeSet) int64
	// Split proposes up to n spans of about equal size that cover all keys, in order. The result
	// depends on the source alone.
	Split(db string, t record.TypeSet, n int) ([]Span, error)
	// Records yields the records of a span, all types merged in (key, type) order. The rows of
	// raw keys that belong to no record (housekeeping, malformed, orphans) are counted by exactly one
	// of the spans that cover all keys.
	Records(ctx context.Context, db string, t record.TypeSet, s Span, e *Env) (record.Reader, error)
	// Where lists the raw ranges that can hold rows of a user key.
	Where(db string, key []byte) []Range
	// Describe decodes one raw row field by field, whatever state it is in.
	Describe(db, keyspace string, key, value []byte) Row
	// Keyspaces are the raw keyspaces of all databases, for dump --raw and verify.
	Keyspaces() []Keyspace
	// Extra lists files beside the stores that belong to the dataset (Pika's info), relative paths.
	Extra() []string
	Close() error
}

// Keyspace is a store's keyspace with its place in the dataset.
type Keyspace struct {
	DB   string
	Name string // "hashes/data_cf": unique within the database
	store.Keyspace
}

// Range is a raw range of a keyspace, Lo <= k < Hi in the keyspace's own order, nil open.
type Range struct {
	Keyspace string
	Type     record.Type
	Lo, Hi   []byte
}

// Row is one raw row decoded for people.
type Row struct {
	Kind    string      // "hash field", "list meta", "separator", …
	Type    record.Type // 0 when unknown
	UserKey []byte
	Fields  []Field
	Meta    bool  // the row is a record's meta row (or the whole record, for strings)
	Version int64 // of the incarnation, -1 when the row has none
	Count   int64 // of a meta row, -1 when it has none
	// ExpireMS is the expiry that counts for the record; 0 never. Only in meta rows.
	ExpireMS int64
	Err      error // what is wrong with the bytes; Fields hold what could be decoded
}

// Field is one decoded part of a row.
type Field struct {
	Name string
	// Value is string, []byte, int64, uint64, float64 or time.Time.
	Value any
	// Bytes are those that Value was decoded from; Where is "key" or "value", Off the offset in it.
	Where string
	Off   int
	Len   int
}

// Target takes records.
type Target interface {
	// Losses lists what the target cannot hold of a record, as far as its header shows, and changes
	// the header where it will be held changed (an expiry beyond what the target can count to).
	Losses(h *record.Header) []record.Loss
	// ElementLosses does the same for a batch of its elements; dropped elements are removed from
	// the batch, whose rest is returned.
	ElementLosses(h *record.Header, batch []record.Element, report func(record.Loss)) []record.Element
	// Groups partitions the types: each group is written by shards of its own. Formats that keep
	// all types in one order have a single group.
	Groups() []record.TypeSet
	// Shard returns the writer of one span of one or several groups of one database, whose records
	// come in one order. n is unique and ascends with (database, group, span). Shards are written concurrently, each by one goroutine, which
	// may use memory bytes.
	Shard(n int, db string, t record.TypeSet, memory int64) (record.Writer, error)
	// Tables and Adopt carry finished shards across processes, for --resume.
	Tables(n int) ([]store.Table, error)
	Adopt(n int, db string, tables []store.Table) error
	// Finish makes the target complete and returns it reopened for the proof; nil when it cannot
	// be read back.
	Finish(ctx context.Context) (Source, error)
	// Abort removes what was written.
	Abort()
}
