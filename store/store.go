// Package store says what row storage is: ordered sets of rows (keyspaces) in a directory, read and
// written without knowing what the rows mean. The implementations are below it.
package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"kvferry/record"
)

// Comparer orders the keys of a keyspace. Name is what RocksDB and LevelDB keep in the database.
type Comparer struct {
	Name    string
	Compare func(a, b []byte) int
	// Wrapping says where Compare is no order; nil when it always is one.
	Wrapping *Wrapping
}

// Wrapping describes a Compare that takes the sign of the 64-bit difference of two numbers. The difference
// overflows when they are 2^63 or more apart, so that such keys are ordered in a circle: each after another.
// What an engine shows of them depends on where its memtable put them.
type Wrapping struct {
	// Number returns the number in a key that is so compared; false for keys without one.
	Number func(key []byte) (n int64, ok bool)
	// Bounds returns, for a key with a number, the range [lo, hi) of the keys whose numbers are compared with
	// it; both are kept, so they share no bytes with the key, which does not live on. Compare is an order among
	// the bounds and all keys outside.
	Bounds func(key []byte) (lo, hi []byte)
}

// Bytewise is the default order of RocksDB and LevelDB.
var Bytewise = Comparer{Name: "leveldb.BytewiseComparator", Compare: bytes.Compare}

// IsBytewise reports whether c orders keys as bytes.Compare does; stores have faster paths then.
func (c *Comparer) IsBytewise() bool { return c.Name == Bytewise.Name }

// Merger folds the merge operands of one key, oldest first, onto base (nil when there is none) and
// returns the row's value appended to dst. keep false means that the key does not exist.
type Merger struct {
	Name string
	Fold func(dst, key, base []byte, operands [][]byte) (value []byte, keep bool, err error)
}

// Opener opens a directory that holds a store, read only.
type Opener func(ctx context.Context, dir string, o *Options) (Store, error)

// Options says how to open a store.
type Options struct {
	// Comparers are those that the format knows, found by the name in the database. Bytewise is
	// always known. A keyspace of any other name is refused.
	Comparers []Comparer
	// Order says which order a keyspace is expected to be in, for stores that keep no name of it (LMDB);
	// nil means bytewise. A nil Order means the first of Comparers for every keyspace.
	Order func(keyspace string) *Comparer
	// Merger folds merge operands; nil refuses them.
	Merger *Merger
	// WALDir holds the logs when they are not beside the tables.
	WALDir string
	// AllowLive opens a database that another process holds: all files up front.
	AllowLive bool
	// Resort distrusts the order of tables: each that is not in its comparer's order is sorted
	// into a spool before it is read. See OrderError.
	Resort bool
	// Salvage reads past tables, blocks of tables and pages of files that cannot be read, which are an error otherwise
	// (BlockError): their rows are missing, and each is reported once. Older versions of these rows may come back.
	// RocksDB itself ignores it.
	Salvage bool
	// Memory is how many bytes of buffers the store may plan for; 0 means 64 MiB.
	Memory int64
	// MaxBlock bounds what a block of a table may unpack to; 0 means what the longest value of a Redis server needs.
	MaxBlock int64
	// TempDir takes spools; "" means os.TempDir.
	TempDir string
	// Report takes findings about the store itself (a torn WAL tail, an orphaned file); may be nil.
	Report func(record.Finding)
	// Copied is told how far the copying of a source is that cannot be read before: so many bytes, about how many in all (0: not
	// known) and so many keys; may be nil.
	Copied func(done, total, keys int64)
}

// Store is an open directory of rows. It is safe for concurrent use.
type Store interface {
	// Keyspaces lists the column families (or named databases) in the order of their ids.
	Keyspaces() []Keyspace
	// Files lists every file the store is made of, for sizes and for the report.
	Files() []File
	Close() error
}

// BlockChecker is a Store with blocks that reading rows does not touch, as filters of tables are.
type BlockChecker interface {
	// CheckBlocks verifies these blocks and reports what is damaged.
	CheckBlocks(context.Context) error
}

// File is one file of a store.
type File struct {
	Path     string // relative to the store's directory
	Kind     string // "table", "blobs", "log", "manifest", "current", "data"
	Keyspace string // of tables and blobs; "" otherwise
	Level    int    // of tables
	Size     int64
	Garbage  int64 // bytes of blobs that no table needs any more
	Entries  int64 // as the file's own properties say, of blobs as the MANIFEST says; -1 unknown
	Deletes  int64 // tombstones among them; -1 unknown
	Codec    string
	Smallest []byte // raw keys, of tables
	Largest  []byte
	MinSeq   uint64
	MaxSeq   uint64
}

// Keyspace is one ordered set of rows.
type Keyspace interface {
	// Name is the column family's name; "default" is RocksDB's first.
	Name() string
	Comparer() *Comparer
	// Rows yields the newest visible row of each key in [lo, hi); nil is open.
	Rows(lo, hi []byte) (Iterator, error)
	// Entries yields every physical entry in [lo, hi): all versions, newest first within a key,
	// tombstones and merge operands too; range tombstones come before the first key they cover.
	Entries(lo, hi []byte) (EntryIterator, error)
	// Unordered calls f with every entry in physical order, trusting no order and going on after
	// damaged blocks, which it reports. f's entry lives until f returns.
	Unordered(f func(*Entry) error) error
	// Sample returns about n raw keys (unordered) with the bytes of disk each stands for, taken from
	// the tables' indexes; logs count too.
	Sample(n int) ([]Weighted, error)
	// Size is the bytes on disk of this keyspace's tables plus its share of the logs.
	Size() int64
}

// Weigher is a Keyspace that knows what its iterators take.
type Weigher interface {
	// IteratorSize is about how many bytes an open iterator takes.
	IteratorSize() int64
}

// Iterator walks rows in ascending order. It is used by one goroutine.
type Iterator interface {
	// Next returns the next row, io.EOF after the last. Views live until the next call of Next or
	// SeekGE. After an error other than io.EOF the iterator only closes.
	Next() (key, value []byte, err error)
	// SeekGE makes Next return the first row at or after key; only forward of what was returned.
	// Rows passed over are not counted by Tally.
	SeekGE(key []byte) error
	// Place says where the row last returned stands.
	Place() record.Place
	// Tally adds the entries consumed so far to t and forgets them.
	Tally(t *record.Tally)
	Close() error
}

// Kind is the kind of an entry.
type Kind uint8

// The kinds of entries.
const (
	Put Kind = iota
	Delete
	SingleDelete
	Merge
	RangeDelete // Key is the start, Value the exclusive end
	Lost        // a put whose value cannot be read (Options.Salvage): it shows no row and hides older ones
)

var kindNames = [...]string{"put", "delete", "single delete", "merge", "range delete", "lost put"}

// String returns the name of the kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Entry is a physical row.
type Entry struct {
	Key, Value []byte
	Seq        uint64
	Kind       Kind
	Place      record.Place
	// ValueAt is where the value is when it is in a file of its own, as in a blob file; its File is "" otherwise.
	ValueAt record.Place
	// Covered says that a range tombstone newer than the entry hides it.
	Covered bool
	// Circular says that the comparer is no order among the keys around the entry (see Wrapping), so that the
	// entries before it do not tell whether a scan shows it; Shown does.
	Circular, Shown bool
}

// EntryIterator walks entries. Views live until the next call of Next.
type EntryIterator interface {
	Next() (*Entry, error) // io.EOF after the last
	Close() error
}

// Weighted is a sampled raw key and the bytes it stands for.
type Weighted struct {
	Key   []byte
	Bytes int64
}

// Builder writes a store into a directory that does not exist yet. Keyspace is called first for
// each; after that it is safe for concurrent use.
type Builder interface {
	// Keyspace declares a column family. "default" exists in any case.
	Keyspace(name string, c Comparer) error
	// Run starts a sorted run of a keyspace. Runs of one keyspace must turn out disjoint. (shard,
	// lane) names the run; a run is split into tables as it grows.
	Run(keyspace string, shard int, lane uint64) (Run, error)
	// Tables returns the finished tables of a shard, for a journal, once they are durable. One that the disk refused is
	// an error: without it the shard is not done.
	Tables(shard int) ([]Table, error)
	// Adopt takes tables of a shard finished by an earlier process, checking that each is there
	// with its size.
	Adopt(tables []Table) error
	// Finish orders the tables, proves them disjoint, numbers them in the order of their keys,
	// and writes what makes the directory a database, synced to disk.
	Finish() error
	// Abort removes what was written.
	Abort()
}

// Run takes rows in strictly ascending order; another order is an error.
type Run interface {
	// Append adds a row; key and value are not kept.
	Append(key, value []byte) error
	// AppendGroup adds the rows of a group, which is not kept.
	AppendGroup(g *Group) error
	// Close finishes the run's last table.
	Close() error
	// Abort removes the run's tables.
	Abort()
}

// Table is a finished table of a Builder, as the journal keeps it.
type Table struct {
	File     string `json:"file"` // relative to the builder's directory
	Keyspace string `json:"keyspace"`
	Shard    int    `json:"shard"`
	Lane     uint64 `json:"lane"`
	First    []byte `json:"first"`
	Last     []byte `json:"last"`
	Entries  int64  `json:"entries"`
	Bytes    int64  `json:"bytes"`
}

// BuildOptions says how a Builder writes.
type BuildOptions struct {
	// TableSize is the size in bytes at which a table ends; 0 means 64 MiB.
	TableSize int64
	// Buffer bounds a table's write buffer in bytes; 0 leaves its size to the store.
	Buffer int
	// Sync makes finished tables durable before Tables returns them, as a journal needs.
	Sync bool
	// Now is the time that tables say they were made at; the zero time is none.
	Now time.Time
	// Identity names the database: no other one has it. Tables name it, each with a session of its own; "": they do not.
	Identity string
	// Merger is the name of the merge operator that the engine opens the database with; "" none.
	Merger string
	// TableVersion is the version of RocksDB's tables: 0 is the one that all its releases read, 5 has XXH3 checksums
	// and is read since 6.27.
	TableVersion int
	// External makes tables that a running engine takes in (IngestExternalFile): all rows have sequence number 0, and the
	// properties name the place where the engine puts another.
	External bool
	// Spare runs f beside the caller if a core has nothing else to do, and reports whether it does; nil: none ever has.
	// What is written does not depend on it.
	Spare func(f func()) bool
}

// CreateFunc makes a Builder in dir.
type CreateFunc func(dir string, o BuildOptions) (Builder, error)

// Errors that callers test for.
var (
	// ErrNotStore says that a directory holds no store of this kind.
	ErrNotStore = errors.New("not a database directory")
)

// MissingError says that a file is not there that the store needs. It is an fs.ErrNotExist.
type MissingError struct {
	File string // the path at which it was looked for
	By   string // what says that it must be there
}

// Error names the file and what needs it.
func (e *MissingError) Error() string { return e.File + ": " + e.Why() }

// Why says it without the file.
func (e *MissingError) Why() string { return e.By + " lists this file, but it does not exist" }

// Unwrap makes it an fs.ErrNotExist.
func (e *MissingError) Unwrap() error { return fs.ErrNotExist }

// BlockError marks the error of a table, block or page that Options.Salvage reads past.
type BlockError struct{ Err error }

func (e *BlockError) Error() string { return e.Err.Error() }
func (e *BlockError) Unwrap() error { return e.Err }

// OrderError says that two rows of a file are not in the order of their comparer. The rows
// already read may be wrong: start over with Options.Resort.
type OrderError struct {
	File       string
	Off        int64 // of the block; record.NoOffset when the rows are of several files
	Keyspace   string
	Comparer   string
	Prev, Next []byte
}

// Error names the file, the order and the keys.
func (e *OrderError) Error() string {
	at := e.File
	if e.Off >= 0 {
		at += fmt.Sprintf(": offset %d", e.Off)
	}
	return fmt.Sprintf("%s: %s: key %s after %s is not in the order of %s",
		at, e.Keyspace, record.Quote(e.Next), record.Quote(e.Prev), e.Comparer)
}

// LiveError says that a running process holds the database.
type LiveError struct {
	Dir string
	PID int
	// Instead says what to do; "" means what RocksDB's servers offer.
	Instead string
}

// Error says who holds the database and what to do.
func (e *LiveError) Error() string {
	instead := cmp.Or(e.Instead, "take a snapshot (BGSAVE, or stop the server and copy the directory) and read that, or pass --allow-live")
	return fmt.Sprintf("%s: held by process %d; %s", e.Dir, e.PID, instead)
}
