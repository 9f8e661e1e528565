package format

import (
	"context"
	"errors"

	"kvferry/record"
	"kvferry/store"
)

// Wrapper is a Source that passes on another one.
type Wrapper interface {
	Unwrap() Source
}

// As returns what a source, or the source that it wraps, can do beyond the contract: one of the interfaces below. It is
// the only way to ask, so that a wrapper loses no ability. What a Reader can do beyond the contract stands in its
// batches.
func As[Ability any](src Source) (can Ability, ok bool) {
	for src != nil {
		if can, ok = src.(Ability); ok {
			return can, true
		}
		w, wraps := src.(Wrapper)
		if !wraps {
			break
		}
		src = w.Unwrap()
	}
	return can, false
}

// Versioned is a Source whose data rows carry the version of the incarnation they belong to.
type Versioned interface {
	// LiveVersion reports whether a data row with version row is live if the meta row has version
	// meta. For other sources the two must be equal.
	LiveVersion(meta, row int64) bool
}

// Undead is a Source that can read deleted records whose rows are still on disk.
type Undead interface {
	// DeadDatabases returns the names of the databases that may have deleted records, including databases without
	// live ones.
	DeadDatabases() ([]string, error)
	// DeadRecords yields, in (key, type) order, the newest deleted incarnation of each key of a span, with the
	// elements that are still on disk. It leaves out keys that exist again. tell is called for unknown details of the
	// next or last record, such as a lost expiry or missing elements.
	DeadRecords(ctx context.Context, db string, t record.TypeSet, s Span, e *Env,
		tell func(key []byte, t record.Type, what string)) (record.Reader, error)
}

// Shape is what a conversion must be told to make a target that is like a dataset of the same format.
type Shape struct {
	Server           string // whose rows the dataset has; "": as its Format says
	Layout           Layout
	Cluster          bool   // CreateOptions.Cluster
	Instances, Slots int    // CreateOptions; 0: the defaults
	RDBVersion       string // "": the default
}

// Shaped is a Source that knows more of its Shape than the layout. Some of it is known only after records were read.
type Shaped interface {
	Shape() Shape
}

// ShapeOf returns the shape of a source; the zero value if it could not be opened.
func ShapeOf(src Source) (s Shape) {
	if src == nil {
		return s
	}
	if shaped, ok := As[Shaped](src); ok {
		s = shaped.Shape()
	}
	s.Layout = src.Layout()
	return s
}

// Sectioned is a Source that must sort records to read spans of keys, but not to read sections.
type Sectioned interface {
	// Sections is like Split, but proposes up to n spans that are sections and cover all records.
	Sections(db string, t record.TypeSet, n int) ([]Span, error)
}

// Scanned is a Source that reads its whole file when it is opened.
type Scanned interface {
	// Scan returns what that has found out, for OpenOptions.Scan; nil if each process must scan the file.
	Scan() []byte
}

// Seeker is a Source that seeks elements of a record: a lookup with Env.Start need not read those before.
type Seeker interface {
	// Seeks returns the types of which it does so for most records.
	Seeks() record.TypeSet
}

// Getter is a Source that looks up strings and elements by single rows, without a pass.
type Getter interface {
	// Get answers a lookup. It returns false if only a pass can: for deleted and expired keys, keys of several or of other
	// types, and anything damaged or unusual.
	Get(l *record.Lookup) bool
}

// Weighed is a Source that can sample the distribution of its bytes over user keys.
type Weighed interface {
	// Weigh returns about n sampled user keys of some types, in any order, each with the bytes it represents.
	Weigh(db string, t record.TypeSet, n int) ([]store.Weighted, error)
}

// SplitAny splits a source for a caller that needs no order.
func SplitAny(src Source, db string, t record.TypeSet, n int) ([]Span, error) {
	if s, ok := As[Sectioned](src); ok {
		return s.Sections(db, t, n)
	}
	return src.Split(db, t, n)
}

// Filed is a Source that knows the files it reads.
type Filed interface {
	// Files returns the number and size of the files of the open stores. Other files in their directories (LOCK,
	// LOG, OPTIONS) hold no data.
	Files() (n int, bytes int64)
}

// Remote is a Format whose locations are servers.
type Remote interface {
	// With returns the format with options for connecting and writing to servers.
	With(*ServerOptions) Format
	// Work returns the name that stands in for a location in file names, such as the journal's.
	Work(location string) (string, error)
	// Same reports whether a location leads to the servers of an earlier process with this result of Loaded.Earlier.
	// A cluster has one address per server.
	Same(location, earlier string) bool
}

// ServerOptions control connections to servers and writing to them.
type ServerOptions struct {
	Password      string
	CA, Cert, Key string // files, for TLS
	Insecure      bool   // do not verify certificates
	// Existing is the policy for existing keys.
	Existing Existing
	// Rate limits the bytes sent per second; 0: no limit.
	Rate int64
	// Scan reads with SCAN and DUMP, even if the server accepts replicas.
	Scan bool
	// Notice is called with messages that the user should see at once, such as a server that has been silent for
	// long; may be nil.
	Notice func(text string)
}

// ExistingError reports that a server has keys that the conversion may not write. No key was written.
type ExistingError struct{ Err error }

// Error returns the cause.
func (e *ExistingError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ExistingError) Unwrap() error { return e.Err }

// LostError reports that the target server became unreachable or unreliable. The state for resuming is kept.
type LostError struct{ Err error }

// Error returns the cause.
func (e *LostError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Err }

// Existing is the policy for keys that exist in a target.
type Existing uint8

// Policies for existing keys.
const (
	FailExisting Existing = iota // stop with an error
	SkipExisting                 // leave them alone
	Replace
)

// String returns the name of the flag.
func (e Existing) String() string {
	return [...]string{"fail-existing", "skip-existing", "replace"}[e]
}

// Loaded is a Target on a server. Written data is visible immediately; it has no publishing step.
type Loaded interface {
	// Earlier returns the state that a later process needs to continue, see CreateOptions.Earlier.
	Earlier() string
	// Before returns the number of keys that the databases of the server had before the first write.
	Before() map[string]int64
	// Run identifies the run of the server, or of all servers of a cluster. After a restart, written data may be
	// lost.
	Run() string
	// Look returns a writer that writes no data but asks the server which keys of its records exist; nil if that does
	// not matter. dry is true if no write will follow: the writer then also reports the records that would be left
	// out.
	Look(db string, dry bool) (record.Writer, error)
	// Conflicts returns an error that names some of the existing keys that must not be written, found by the writers
	// of Look.
	Conflicts() error
	// Check compares the key counts of the server with those written, and describes the comparison in one line.
	// given is the number of keys written to each database, expired the number that may have expired since.
	Check(ctx context.Context, given, expired map[string]int64) (string, error)
	// Undo describes in one line the data that a run leaves behind if it ends early; "" if it leaves no data.
	Undo() string
}

// Sparing is a record.Writer of a Loaded target that leaves out records whose keys exist. It may learn that only
// after it has received more records.
type Sparing interface {
	record.Writer
	// OnDecided registers f, which is called once for each record, in Close at the latest, when it is known whether
	// the record was left out. n is the number of the record, from 0 in the order of Begin. OnDecided must be called
	// before the first record. It returns false if no record will be left out; f is not called then.
	OnDecided(f func(n int64, skipped bool)) bool
}

// ErrGone is the error of Target.Adopt for a shard that may be lost and must be written again.
var ErrGone = errors.New("what was written may be gone")

// Commanded is a Target that writes large streams by commands, which cannot create pending entries of deleted
// messages.
type Commanded interface {
	// Orphans returns the size in bytes of a stream's entries up to which such pending entries are kept; -1: any
	// size.
	Orphans() int64
}

// Changer is a record.Writer of a Loaded target that can change existing keys.
type Changer interface {
	record.Writer
	record.Sink
	// Delete deletes the key of a record, or a function library. A missing key is not an error.
	Delete(h *record.Header) error
	// Expire changes the expiry of a key; 0 removes it. A missing key is ignored.
	Expire(key []byte, ms int64) error
}
