package format

import (
	"context"
	"errors"

	"kvferry/record"
	"kvferry/store"
)

// Versioned is a Source whose data rows carry the version of the incarnation they belong to.
type Versioned interface {
	// LiveVersion reports whether a data row of a version counts when its meta row has another. A
	// source that is not Versioned wants them equal.
	LiveVersion(meta, row int64) bool
}

// Undead is a Source that can show records that were deleted while their rows stayed on disk.
type Undead interface {
	// DeadDatabases names the databases that deleted records may be in: those of Databases, and those that
	// have nothing else left.
	DeadDatabases() ([]string, error)
	// DeadRecords yields, in (key, type) order, the newest dead incarnation of each key of a span: one
	// whose delete wrote tombstones or moved the version on, with whatever elements are still
	// on disk. Keys that are alive again are left out. tell takes what cannot be known about a record that is about
	// to be yielded, or was the last: an expiry that no row holds any more, elements that are gone.
	DeadRecords(ctx context.Context, db string, t record.TypeSet, s Span, e *Env, tell func(key []byte, t record.Type, what string)) (record.Reader, error)
}

// Sectioned is a Source that puts records in order when it is asked for spans of keys, and is spared that by whoever takes
// sections.
type Sectioned interface {
	// Sections proposes up to n spans that are sections and cover all records, as Split does.
	Sections(db string, t record.TypeSet, n int) ([]Span, error)
}

// Weighed is a Source that knows at which user keys its bytes lie.
type Weighed interface {
	// Weigh returns about n sampled user keys of some types, in any order, each with the bytes that it stands for.
	Weigh(db string, t record.TypeSet, n int) ([]store.Weighted, error)
}

// SplitAny splits a source for somebody who needs no order.
func SplitAny(src Source, db string, t record.TypeSet, n int) ([]Span, error) {
	if s, ok := src.(Sectioned); ok {
		return s.Sections(db, t, n)
	}
	return src.Split(db, t, n)
}

// Fielded is a Source that knows whether fields of its hashes expire. Of others the limits of the format say whether they can.
type Fielded interface {
	FieldExpiry() bool
}

// FieldsExpire reports whether fields of a source's hashes may have an expiry.
func FieldsExpire(src Source) bool {
	if f, ok := src.(Fielded); ok {
		return f.FieldExpiry()
	}
	limits := src.Format().Limits() // of what is written, which for files and servers may be less than what is read
	return limits.FieldExpiry || limits.Place != InDirectory
}

// Filed is a Source that knows the files it reads.
type Filed interface {
	// Files counts the files of the stores that the source opened, as the stores list them, and their bytes. What
	// else is in their directories (LOCK, LOG, OPTIONS) holds nothing of the dataset.
	Files() (n int, bytes int64)
}

// RedisStrings is a Source some of whose strings Redis would take for something else.
type RedisStrings interface {
	// RedisString returns a string as Redis has it: the value itself, or a changed copy appended to
	// dst[:0].
	RedisString(dst, value []byte) []byte
}

// Remote is a Format whose locations are servers.
type Remote interface {
	// With returns the format with what servers are reached and written with.
	With(*ServerOptions) Format
	// Work names what stands for a location in names of files, such as that of its journal.
	Work(location string) (string, error)
}

// ServerOptions says how servers are reached and written.
type ServerOptions struct {
	Password      string
	CA, Cert, Key string // files, for TLS
	Insecure      bool   // certificates are not checked
	// Existing says what to do about keys that are there.
	Existing Existing
	// Rate is how many bytes a second are sent at most; 0: no limit.
	Rate int64
	// Scan reads by SCAN and DUMP, even where a server lets replicas be.
	Scan bool
}

// Existing says what to do about keys of a target that are there.
type Existing uint8

// What to do about keys that are there.
const (
	FailExisting Existing = iota // stop
	SkipExisting                 // leave them
	Replace
)

// String returns the name of the flag that says it.
func (e Existing) String() string {
	return [...]string{"fail-existing", "skip-existing", "replace"}[e]
}

// Loaded is a Target on a server. What is written is there at once: nothing is published.
type Loaded interface {
	// Earlier is what a later process has to know to go on, see CreateOptions.Earlier.
	Earlier() string
	// Run names the run of the server, or of those of a cluster: another one may have lost what was written.
	Run() string
	// Check compares what the server says that it holds with what was written, and returns in what way, in one line.
	// given is how many keys each database was to get, and expired how many of them may have expired since.
	Check(ctx context.Context, given, expired map[string]int64) (string, error)
	// Undo says what a run that ends early leaves behind, in one line; "" when that is nothing.
	Undo() string
}

// ErrGone is the error of Target.Adopt for a shard that may be gone: it has to be written again.
var ErrGone = errors.New("what was written may be gone")

// Changer is a record.Writer of a Loaded target that can change keys which are there.
type Changer interface {
	record.Writer
	// Delete deletes a key; one that is not there is no error.
	Delete(key []byte) error
	// Expire gives a key another expiry, 0 none; a key that is not there stays so.
	Expire(key []byte, ms int64) error
}
