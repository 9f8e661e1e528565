// Package store defines the interfaces of row storage: ordered sets of rows (keyspaces) in a
// directory, without the meaning of the rows. The implementations are in the packages below.
package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"kvferry/internal/sys/disk"
	"kvferry/record"
)

// Comparer orders the keys of a keyspace. RocksDB and LevelDB store its Name in the database.
type Comparer struct {
	Name    string
	Compare func(a, b []byte) int
	// CompareFrom is Compare of keys that have their first shared bytes in common; nil where knowing that does not help.
	CompareFrom func(a, b []byte, shared int) int
	// Wrapping describes where Compare is not an order; nil if it always is.
	Wrapping *Wrapping
}

// Wrapping describes a Compare that uses the sign of the 64-bit difference of two numbers. The difference
// overflows if they are 2^63 or more apart, so that such keys are ordered in a circle. Which of them an
// engine finds depends on where its memtable put them.
type Wrapping struct {
	// Number returns the number in a key; false for keys without one.
	Number func(key []byte) (n int64, ok bool)
	// Bounds returns the range [lo, hi) of the keys whose numbers are compared with the number in key. Callers keep the
	// bounds, so they share no bytes with key. Compare is an order among the bounds and all keys outside the range.
	Bounds func(key []byte) (lo, hi []byte)
}

// Bytewise is the default order of RocksDB and LevelDB.
var Bytewise = Comparer{Name: "leveldb.BytewiseComparator", Compare: bytes.Compare}

// IsBytewise reports whether c orders keys like bytes.Compare, for which stores have faster code.
func (c *Comparer) IsBytewise() bool { return c.Name == Bytewise.Name }

// From compares keys that have their first shared bytes in common.
func (c *Comparer) From(a, b []byte, shared int) int {
	if c.CompareFrom != nil {
		return c.CompareFrom(a, b, shared)
	}
	return c.Compare(a, b)
}

// Merger folds the merge operands of a key, oldest first, onto base (nil: no base) and appends the resulting value to
// dst. If keep is false, the key does not exist.
type Merger struct {
	Name string
	Fold func(dst, key, base []byte, operands [][]byte) (value []byte, keep bool, err error)
}

// Opener opens the store in a directory, read-only.
type Opener func(ctx context.Context, dir string, o *Options) (Store, error)

// Options control how a store is opened.
type Options struct {
	// Comparers are the comparers of the format, looked up by the name in the database. Bytewise is
	// always known. A keyspace with another comparer is an error.
	Comparers []Comparer
	// Order returns the comparer of a keyspace for stores without comparer names (LMDB); nil means
	// bytewise. If Order is nil, every keyspace has the first of Comparers.
	Order func(keyspace string) *Comparer
	// Merger folds merge operands; nil makes them an error.
	Merger *Merger
	// WALDir is the directory of the write-ahead logs, if they are not next to the tables.
	WALDir string
	// WALFlag is what messages call WALDir; "": --wal-dir.
	WALFlag string
	// AllowLive permits opening a database that another process has open. All files are opened at
	// once.
	AllowLive bool
	// Resort sorts tables whose rows are out of order into temporary files before reading them. See
	// OrderError.
	Resort bool
	// Salvage skips unreadable tables, blocks, pages and records of logs, which are a BlockError otherwise. Each is reported
	// once. Its rows are missing, and older versions of them may show. Without CURRENT or MANIFEST all tables and logs of the
	// directory are read. RocksDB itself ignores this option.
	Salvage bool
	// OpenDamaged opens a store although it is damaged: reads of keys that an unreadable table may hold fail with a
	// BlockError, and all reads if the MANIFEST is damaged. The others succeed.
	OpenDamaged bool
	// Own is true for a target that is read back: it must be what the format and its stores write, also where others may
	// differ. What readers do without must be intact, too.
	Own bool
	// HalfImported also reads keys of slots that a server was importing. It deletes them when it starts.
	HalfImported bool
	// Now is the time of the command, for data that depends on when it is read; zero means the system's clock.
	Now time.Time
	// Memory limits the buffers of the store, in bytes; 0 means 64 MiB.
	Memory int64
	// Hot keeps blocks that lookups have read; may be nil.
	Hot *Hot
	// MaxBlock limits the size of a decompressed block; 0 means the size that the longest value of a Redis server
	// needs.
	MaxBlock int64
	// TempDir is the directory for temporary files; "" means os.TempDir.
	TempDir string
	// Report is called for findings about the store itself, such as a torn log; may be nil.
	Report func(record.Finding)
	// Sources watches the files that are read, so that changes during the run are noticed; may be nil. With AllowLive,
	// stores do not use it.
	Sources *disk.Sources
	// Copied is called with the progress of copying, replaying or scanning a source that must be prepared first; may be
	// nil.
	Copied Copied
}

// Copied is called with the progress of a copy of all data: bytes done, approximate total (0: unknown), keys done and
// total (0: unknown).
type Copied func(done, total, keys, of int64)

// Store is an open store. It is safe for concurrent use.
type Store interface {
	// Keyspaces returns the column families (or named databases) by id.
	Keyspaces() []Keyspace
	// Files returns the files of the store, for sizes and reports.
	Files() []File
	Close() error
}

// BlockChecker is a Store with blocks that reading rows does not touch, such as filters.
type BlockChecker interface {
	// CheckBlocks verifies these blocks and reports damage.
	CheckBlocks(context.Context) error
}

// File is one file of a store.
type File struct {
	Path     string // relative to the store's directory
	Kind     string // "table", "blobs", "log", "manifest", "current", "data"
	Keyspace string // of tables and blobs; "" otherwise
	Level    int    // of tables
	Size     int64
	Lacks    int64 // bytes that were cut off, by the MANIFEST
	Garbage  int64 // unused bytes of blobs
	Entries  int64 // from the properties of the file, or the MANIFEST for blobs; -1: unknown
	Deletes  int64 // number of tombstones; -1: unknown
	Codec    string
	Smallest []byte // raw keys, of tables
	Largest  []byte
	MinSeq   uint64
	MaxSeq   uint64
}

// Keyspace is an ordered set of rows.
type Keyspace interface {
	// Name returns the name of the column family; the first one of RocksDB is "default".
	Name() string
	Comparer() *Comparer
	// Rows iterates over the newest visible row of each key in [lo, hi); nil: open.
	Rows(lo, hi []byte) (Iterator, error)
	// Entries iterates over every physical entry in [lo, hi): all versions, newest first within a
	// key, with tombstones and merge operands. Range tombstones come before the first key they
	// cover.
	Entries(lo, hi []byte) (EntryIterator, error)
	// Unordered calls f for every entry in physical order. It relies on no order, and reports
	// damaged blocks and skips them. The entry is valid until f returns.
	Unordered(f func(*Entry) error) error
	// Sample returns about n raw keys, unordered, each with the bytes on disk it represents. They
	// come from the indexes of tables, and from logs.
	Sample(n int) ([]Weighted, error)
	// Size returns the bytes on disk of the keyspace: its tables and its share of the logs.
	Size() int64
}

// Getter is a Keyspace that looks up single rows.
type Getter interface {
	// Get returns the value of the newest visible row of a key, which never changes. ok is false if only Rows can tell.
	Get(key []byte) (value []byte, found, ok bool)
}

// Weigher is a Keyspace that knows the memory of its iterators.
type Weigher interface {
	// IteratorSize returns the approximate memory of an open iterator, in bytes.
	IteratorSize() int64
}

// Iterator iterates over rows in ascending order. It is not safe for concurrent use.
type Iterator interface {
	// Next returns the next row, io.EOF after the last. Views are valid until the next call of Next
	// or SeekGE. After any other error, only Close may be called.
	Next() (key, value []byte, err error)
	// SeekGE makes Next return the first row at or after key. It only moves forward. Tally does not
	// count skipped rows.
	SeekGE(key []byte) error
	// Place returns the place of the last row.
	Place() record.Place
	// Tally adds the entries consumed so far to t and resets the counts.
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
	Lost        // a put whose value cannot be read (Options.Salvage): not a visible row, but hides older ones
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
	// ValueAt is the place of a value in another file, such as a blob file; otherwise its File is "".
	ValueAt record.Place
	// Covered is true if a newer range tombstone hides the entry.
	Covered bool
}

// EntryIterator iterates over entries. Views are valid until the next call of Next.
type EntryIterator interface {
	Next() (*Entry, error) // io.EOF after the last
	Close() error
}

// Weighted is a sampled raw key and the bytes it represents.
type Weighted struct {
	Key   []byte
	Bytes int64
}

// Builder writes a store into a new directory. Call Keyspace for all keyspaces first; after that it
// is safe for concurrent use.
type Builder interface {
	// Keyspace declares a column family. "default" always exists.
	Keyspace(name string, c Comparer) error
	// Run starts a sorted run of a keyspace. The runs of a keyspace must be disjoint. (shard, lane)
	// identifies the run, which is split into tables as it grows.
	Run(keyspace string, shard int, lane uint64) (Run, error)
	// Tables returns the finished tables of a shard, for a journal, once they are durable. It returns an error if one
	// could not be written: then the shard is incomplete.
	Tables(shard int) ([]Table, error)
	// Adopt takes over the tables of a shard finished by an earlier process, after checking their
	// existence and size.
	Adopt(tables []Table) error
	// Finish sorts the tables, checks that they are disjoint, numbers them in key order, and writes
	// the MANIFEST and other files of the database, synced to disk.
	Finish() error
	// Abort removes all written files.
	Abort()
}

// Run takes rows in strictly ascending order; another order is an error.
type Run interface {
	// Append adds a row. It does not retain key and value.
	Append(key, value []byte) error
	// AppendGroup adds the rows of a group. It does not retain the group.
	AppendGroup(g *Group) error
	// Close finishes the run's last table.
	Close() error
	// Abort removes the run's tables.
	Abort()
}

// Table is a finished table of a Builder, as stored in the journal.
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

// BuildOptions control a Builder.
type BuildOptions struct {
	// TableSize is the target size of a table in bytes; 0 means 64 MiB.
	TableSize int64
	// Buffer limits the write buffer of a table in bytes; 0 means the default of the store.
	Buffer int
	// Sync makes finished tables durable before Tables returns them, as a journal needs.
	Sync bool
	// Now is the creation time in the properties of tables; zero means no time.
	Now time.Time
	// Identity is the unique id of the database. Tables contain it, each with its own session; "" means no id.
	Identity string
	// Merger is the name of the engine's merge operator; "": no operator.
	Merger string
	// TableVersion is the format version of RocksDB tables: all releases read 0; 5 has XXH3 checksums and needs 6.27
	// or later.
	TableVersion int
	// External writes tables for IngestExternalFile: all rows have sequence number 0, and a property reserves space for
	// the number that the engine assigns.
	External bool
	// Spare runs f concurrently if a core is idle, and reports whether it does; nil: never. The output does not depend
	// on it.
	Spare func(f func()) bool
}

// CreateFunc creates a Builder in dir.
type CreateFunc func(dir string, o BuildOptions) (Builder, error)

// Errors that callers test for.
var (
	// ErrNotStore means that a directory does not contain a store of this kind.
	ErrNotStore = errors.New("not a database directory")
)

// MissingError means that a file of the store does not exist. It is an fs.ErrNotExist.
type MissingError struct {
	File string // path of the missing file
	By   string // the file that refers to it; "" for one that every store has
}

// Error names the file and the file that refers to it.
func (e *MissingError) Error() string { return e.File + ": " + e.Why() }

// Why describes the error without the file.
func (e *MissingError) Why() string {
	if e.By == "" {
		return "every database has this file, but it does not exist"
	}
	return e.By + " lists this file, but it does not exist"
}

// Unwrap returns fs.ErrNotExist.
func (e *MissingError) Unwrap() error { return fs.ErrNotExist }

// BlockError is the error of a table, block or page that Options.Salvage skips.
type BlockError struct{ Err error }

func (e *BlockError) Error() string { return e.Err.Error() }
func (e *BlockError) Unwrap() error { return e.Err }

// OrderError means that two rows of a file are out of order. Rows read before may be wrong: start
// over with Options.Resort.
type OrderError struct {
	File       string
	Off        int64 // of the block; record.NoOffset: the rows are in several files
	Keyspace   string
	Comparer   string
	Prev, Next []byte
}

// Place returns the place of the rows, whose file it names as seen from root.
func (e *OrderError) Place(root string) record.Place {
	file := e.File
	if rel, err := filepath.Rel(root, file); err == nil && filepath.IsLocal(rel) {
		file = filepath.ToSlash(rel)
	}
	return record.Place{File: file, Off: e.Off, Level: -1}
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

// LiveError means that a running process has the database open.
type LiveError struct {
	Dir string
	PID int // 0: not known
	// Instead is the advice; "" means that for servers on RocksDB.
	Instead string
}

// Advise replaces the advice in a LiveError; it returns other errors unchanged.
func Advise(err error, instead string) error {
	var live *LiveError
	if !errors.As(err, &live) {
		return err
	}
	live.Instead = instead
	return live
}

// Error names the process that has the database open, and what to do.
func (e *LiveError) Error() string {
	instead := cmp.Or(e.Instead, "take a snapshot (BGSAVE, or stop the server and copy the directory) and read that, or pass --allow-live")
	holder := "another process"
	if e.PID != 0 {
		holder = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("%s: held by %s; %s", e.Dir, holder, instead)
}

// Watched is an Iterator that reports hidden entries as it skips them: tombstones, and older entries of a key. It does
// not report range tombstones and the entries they hide.
type Watched interface {
	Iterator
	// Watch sets the function to call with the key of each. The key is valid until f returns.
	Watch(f func(key []byte))
}
