// Package format defines the interfaces of formats. A format stores Redis records as rows of a store. Format packages
// implement the interfaces; convert and inspect use them.
package format

import (
	"context"
	"io"
	"time"

	"kvferry/record"
	"kvferry/store"
)

// Format is a way to store records. Package catalog lists all formats.
type Format interface {
	// Name is the name used in locations: nemo, blackwidow, ardb.
	Name() string
	// Detect weighs the evidence of a directory.
	Detect(ev *Evidence) Verdict
	// Open opens a source: a directory, a file, - for standard input, or an address, depending on Limits.Place. If
	// the location holds no dataset of the format, the error gives the reason.
	Open(ctx context.Context, location string, o *OpenOptions) (Source, error)
	// Create starts a target at a location that does not exist.
	Create(ctx context.Context, location string, o *CreateOptions) (Target, error)
	// Limits returns the limits of the format.
	Limits() Limits
}

// Place is the kind of location of a format.
type Place uint8

// The kinds of places.
const (
	InDirectory Place = iota // a directory of stores
	InFile                   // a file; - is standard input
	InFiles                  // a file, or a directory of files
	OnServer                 // an address
	InTables                 // a directory of files with columns
)

// IsRedis reports whether servers of Redis's kind write such data.
func (p Place) IsRedis() bool { return p == InFile || p == InFiles || p == OnServer }

// Preparation is the name of the progress step that makes a source readable when it is opened; "" if no preparation
// is needed.
func (p Place) Preparation() string {
	switch p {
	case InFile:
		return "scan"
	case InFiles:
		return "replay"
	case OnServer:
		return "copy"
	}
	return ""
}

// Limits describes the limits of a format, for planning, documentation and kvferry formats.
type Limits struct {
	Place       Place
	Types       record.TypeSet
	Seconds     bool  // expiry in seconds, else milliseconds
	MaxExpireMS int64 // 0: no limit
	MaxKey      int   // bytes of a collection's key; 0: no limit
	EmptyKey    bool  // collections may have the empty key
	// NoInnerNUL: a key with NULs must end with one. NoStreamExpiry: streams do not expire.
	NoInnerNUL, NoStreamExpiry bool
	// NoBlankStream: a stream without entries and without a last id counts as deleted.
	NoBlankStream bool
	// EveryKey: MaxKey holds for strings, too, and only lists may have the empty key. OnlyStrings: nothing else
	// expires. MinExpireMS is the earliest expiry.
	EveryKey, OnlyStrings bool
	// FirstMS replaces an expiry before 1970; 0: it is kept. Signed are the types that keep whole seconds of 32 bits.
	MinExpireMS, FirstMS int64
	Signed               record.TypeSet
	MaxName              int // bytes of a field or member, which has at least one; 0: no limit
	MaxScore             float64
	WholeScores          bool           // scores are 64-bit integers
	MaxElements          int64          // 0: no limit
	Unbounded            record.TypeSet // types without MaxElements
	SameName             bool           // one name may exist under several types
	// FieldExpiry: fields of hashes can have an expiry. StreamGroups: streams can have consumer
	// groups. A target never receives what it cannot hold of these.
	FieldExpiry, StreamGroups bool
	// FieldsRead: a source may have field expiries although not every target of the format can hold them.
	FieldsRead bool
	// MembersExpire: members of sets and sorted sets in a source may have an expiry, for which records have no place.
	MembersExpire bool
	// NamedGroups: consumer groups need a name. Unowned: a source may have pending entries that belong to no
	// consumer. No target holds those.
	// NoProgress: a target does not keep what streams and groups counted.
	NamedGroups, Unowned, NoProgress bool
	// LargeValue is the length of the shortest value on which the tools of the engine fail; 0: they read all values.
	LargeValue int
	// Opaque names the kinds of record.Other values that a source may have. A target holds all of them except those
	// in Unheld, which some or all targets cannot hold.
	Opaque, Unheld []string
	// AnyOrder: a target accepts records in any order.
	AnyOrder bool
	// NoTarget is the reason why this build does not write the format; "" if it does.
	NoTarget string

	Databases string
	Numbered  bool   // database names are numbers: "0", "1", …
	MaxDBs    int    // maximum number of databases of its servers, numbered from 0; 0: no limit
	DefaultDB string // the database that clients start in; "" means "0"
	DBPrefix  string // if names are not numbers: prefix of the name of database n > 0 on servers
	Cluster   bool   // the format uses CreateOptions.Cluster, and its sources may be Shape.Cluster
	SST       bool   // the format uses CreateOptions.SST
	// Layouts: the format uses CreateOptions.Layout.
	Layouts bool
	// Layout is the default directory layout of a target; LayoutAuto keeps the source's layout.
	Layout Layout
	// Instances and Slots are the defaults of a format that spreads the keys of a database over several stores; 0 for
	// other formats.
	Instances, Slots int
	Stores           []StoreSupport
	Detail           string // one line: versions and servers
	ScoreDetail      string
	OtherDetails     []string
	// Losses lists kinds of losses that only this format has as a target.
	Losses []record.LossInfo
	// Start lists the settings with which a server finds a target, as sentences. {path}, {dir} and {file} stand for its
	// path and the parts of it, {databases}, {instances} and {slots} for numbers. StartDB is the sentence for each
	// database other than DefaultDB, with {db}.
	Start   []string
	StartDB string
	// Beside names the directories next to the data in which servers keep backups and logs.
	Beside []string
}

// StoreSupport describes whether this build reads and writes a format in a store.
type StoreSupport struct {
	Store       string
	Read, Write bool
	Why         string // the reason if not supported
}

// Evidence is the input of detection, gathered once without opening anything for writing. Paths are
// relative to Dir, with forward slashes.
type Evidence struct {
	Dir string
	// Head is the beginning of the file at Dir, decompressed if necessary; nil for a directory.
	Head []byte
	// Stores lists the directories at or up to four levels below Dir that contain a CURRENT file or
	// a data.mdb.
	Stores []StoreEvidence
	// Closed lists directories that may not be read, so their content is unknown.
	Closed []ClosedDir
}

// ClosedDir is a directory that may not be read.
type ClosedDir struct {
	Path string
	Err  error
}

// StoreEvidence is one directory that looks like a store.
type StoreEvidence struct {
	Path      string // "." for Dir itself
	Kind      string // "rocksdb", "leveldb", "lmdb"
	Keyspaces []KeyspaceEvidence
	Err       error // why it could not be read completely; nil if it could
}

// KeyspaceEvidence is a column family or a named database.
type KeyspaceEvidence struct {
	Name, Comparer string
	// Ends are the first and last keys of some tables.
	Ends [][]byte
}

// Verdict is the result of detection.
type Verdict struct {
	// Score ranges from 0, not this format, to 100, certainly this format.
	Score int
	// Why lists the reasons for the score, shown with -v.
	Why []string
}

// OpenOptions control how a source is opened.
type OpenOptions struct {
	Store   store.Opener // opens one store directory
	Kind    string       // of the stores that Store opens: rocksdb, leveldb, lmdb; "" if unknown
	Options store.Options
	// WALDir is the directory of the write-ahead logs, if they are not next to the tables. If a dataset has
	// several stores, each has a subdirectory at its relative path.
	WALDir string
	// Stdin is the input of the location -.
	Stdin io.Reader
	// Pass reports whether to skip the store in directory dir. A skipped store is not part of the source, and its
	// absence is not reported. nil skips no store.
	Pass func(db string, t record.TypeSet, dir string) bool
	// MaxBitmap is the length in bytes up to which a bitmap stored in pieces is read as a string; 0 means the
	// default of the format.
	MaxBitmap int64
	// Scan is what Scanned.Scan returned for the same file, so that it is not scanned again. Damaged data has no
	// effect. With that of another file, Open or a reader of its spans fails.
	Scan []byte
	// Lookups announces many passes over single keys. A file sorts its keys while it is opened.
	Lookups bool
}

// CreateOptions control how a target is written.
type CreateOptions struct {
	Create  store.CreateFunc
	Kind    string // of the stores that Create writes: rocksdb, leveldb; "" means the format's first
	Build   store.BuildOptions
	Layout  Layout
	DBs     []string // names of the databases to write, in order
	Version int32    // version of all new rows; 0 means 1
	// Instances and Slots control how a format spreads the keys of a database over several stores; 0 means its
	// default.
	Instances, Slots int
	// Cluster writes rows for a node of a cluster, if the format has them.
	Cluster bool
	// SST also writes tables that a running server can load.
	SST bool
	// Own is true if the source has the same format: the target takes names that only earlier servers made.
	Own     bool
	Memory  int64  // limit of the bytes buffered by all shards
	TempDir string // directory for temporary files
	Now     time.Time
	// Earlier is the value that Loaded.Earlier returned in the process that began the run; "" if
	// this one begins it.
	Earlier string
	// Copied is called with the progress of Finish where it copies what the shards wrote; may be nil.
	Copied store.Copied
	// Reopen reopens the finished target for the proof.
	Reopen *OpenOptions
}

// Layout is the directory layout of databases.
type Layout uint8

// The layouts.
const (
	LayoutAuto Layout = iota // as in the source
	LayoutFlat               // the directories of the format in the root
	LayoutDB                 // one directory per database: db0, db1, …
)

// String returns the name of the layout on command lines.
func (l Layout) String() string { return [...]string{"auto", "flat", "db"}[l] }

// Span is a range of user keys, Lo <= k < Hi, where nil is open; or a section of a file, whose records are unordered.
type Span struct {
	Lo, Hi []byte
	// From and To are the offsets of a section; To is 0 for a range of keys.
	From int64 `json:",omitempty"`
	To   int64 `json:",omitempty"`
}

// IsSection reports whether the span is a section of a file.
func (s *Span) IsSection() bool { return s.To != 0 }

// Env holds the parameters of one pass over a source.
type Env struct {
	Now     time.Time
	Memory  int64  // limit of buffered bytes; 0 means 64 MiB
	TempDir string // directory for temporary files; "" means os.TempDir
	Ledger  *record.Ledger
	// Report is called for each finding, possibly by several passes at once; may be nil.
	Report func(record.Finding)
	// Deep requests checks that read a record twice, to report findings by element.
	Deep bool
	// RecordsOnly permits skipping redundant rows, such as the index of a zset. They are then
	// neither checked nor counted.
	RecordsOnly bool
	// AnyOrder permits records in any order, so that several stores can be read in turn.
	AnyOrder bool
	// RedisStrings requests strings in Redis's form if the format has its own, as for HyperLogLogs.
	RedisStrings bool
	// ExactScores requests, as the Value of members, the decimal text of integer scores that a float64 cannot represent.
	// Both sides have WholeScores, so such a score is no finding.
	ExactScores bool
	// Wanted reports whether the elements of a record may be wanted; nil if all are. Readers may heed it to save work: the
	// class of a record is set by others.
	Wanted func(*record.Header) bool
	// Start is where a lookup begins to read its record; nil: at the first element. Only a Seeker heeds it. Rows that
	// are not read are neither checked nor counted.
	Start *record.Start
	// Lookups permits passing the rest of a collection without looking at its rows.
	Lookups bool
}

// Source is an open dataset.
type Source interface {
	// Format returns the format, Layout the layout of its databases.
	Format() Format
	Layout() Layout
	// Databases returns the names of the databases, as in dumps: "0", "1", …
	Databases() []string
	// Sorted reports whether Records yields ascending order for every span. If false, the caller
	// must sort.
	Sorted() bool
	// Types returns the types that may have rows in the database.
	Types(db string) record.TypeSet
	// Size returns the bytes on disk of records of these types, for planning and progress.
	Size(db string, t record.TypeSet) int64
	// Split proposes up to n spans of about equal size that cover all keys, in order. The result
	// depends only on the source.
	Split(db string, t record.TypeSet, n int) ([]Span, error)
	// Records yields the records of a span, all types merged in (key, type) order. Rows that belong
	// to no record (housekeeping, malformed, orphans) are counted by exactly one of the spans that
	// cover all keys.
	Records(ctx context.Context, db string, t record.TypeSet, s Span, e *Env) (record.Reader, error)
	// Where returns the raw ranges that may contain rows of a user key.
	Where(db string, key []byte) []Range
	// Describe decodes a raw row field by field, even if it is damaged.
	Describe(db, keyspace string, key, value []byte) Row
	// Keyspaces returns the raw keyspaces of all databases, for dump --raw and verify.
	Keyspaces() []Keyspace
	// Extra returns other files that belong to the dataset, such as Pika's info, as relative paths. Some may be no regular
	// files, which store.Inside tells.
	Extra() []string
	Close() error
}

// Keyspace is a keyspace of a store with its place in the dataset.
type Keyspace struct {
	DB   string
	Name string // "hashes/data_cf": unique within the database
	store.Keyspace
}

// Range is a raw range of a keyspace, Lo <= k < Hi in the order of the keyspace; nil: open.
type Range struct {
	Keyspace string
	Type     record.Type
	Lo, Hi   []byte
}

// Row is a decoded raw row.
type Row struct {
	Kind    string      // "hash field", "list meta", "separator", …
	Type    record.Type // 0 if unknown
	UserKey []byte
	Keyless record.Keyless // kind of record if UserKey is a name and not a key
	Fields  []Field
	Meta    bool  // the meta row of a record, or a string
	Version int64 // version of the incarnation; -1: no version
	Count   int64 // count in a meta row; -1: no count
	// ExpireMS is the expiry of the record in a meta row, or of the field in a row of a hash; 0 means never.
	ExpireMS int64
	Err      error // set if the row is damaged; Fields holds the decodable fields
}

// Field is one decoded part of a row.
type Field struct {
	Name string
	// Value is string, []byte, int64, uint64, float64 or time.Time.
	Value any
	// Bytes are the encoded Value; Where is "key" or "value", Off the offset in it.
	Where string
	Off   int
	Len   int
}

// Target receives records.
type Target interface {
	// Losses lists the losses of writing a record, by its header. It adjusts the header where the target stores
	// another value, such as the latest expiry in its range.
	Losses(h *record.Header) []record.Loss
	// ElementLosses does the same for a batch of elements. It returns the batch without dropped
	// elements.
	ElementLosses(h *record.Header, batch []record.Element, report func(record.Loss)) []record.Element
	// Unchanged returns the number of leading strings, each with its element in elems, that the target stores exactly as
	// they are: Losses and ElementLosses would neither change nor report them. dataset.Adapter implements all three.
	Unchanged(strings []record.Record, elems []record.Element) int
	// Groups partitions the types; each shard writes one or several groups. Formats that store all
	// types in one order have a single group.
	Groups() []record.TypeSet
	// Shard returns the writer for a span of one or several groups of a database, with records in one order. n is
	// unique and ascends with (database, group, span). Shards are written concurrently, each by one goroutine, which
	// may buffer memory bytes.
	Shard(n int, db string, t record.TypeSet, memory int64) (record.Writer, error)
	// Tables and Adopt carry finished shards across processes, for --resume.
	Tables(n int) ([]store.Table, error)
	Adopt(n int, db string, tables []store.Table) error
	// Finish completes the target and returns it reopened for the proof, or nil if it cannot be
	// read back.
	Finish(ctx context.Context) (Source, error)
	// Abort removes the written data.
	Abort()
}
