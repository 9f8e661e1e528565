package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/bloom"
	"github.com/cockroachdb/pebble/vfs"

	"kvferry/internal/disk"
	"kvferry/internal/scratch"
	"kvferry/record"
)

// Options says how to keep a state.
type Options struct {
	Memory  int64  // bytes for caches and what is not yet on disk; 0 means 64 MiB
	TempDir string // where it lies; "" means the system's
	// Now is the moment that relative expiries count from and that deliveries cannot lie behind.
	Now time.Time
	// Restore decodes the payload of RESTORE: begin takes its header and returns what takes its elements. nil: the command
	// is not supported.
	Restore func(payload []byte, begin func(*record.Header) *Put) error

	fs vfs.FS // nil: the system's
}

// State is what commands have made. It is used by one goroutine until Seal, by any number afterwards.
type State struct {
	opts Options
	db   *pebble.DB
	dir  string
	err  error // the first of the store: nothing is done after it

	failure *failure // of its background work
	large   large

	current   int            // the database that is selected
	spaces    map[int]uint32 // number of a database's rows
	nextSpace uint32
	nextID    uint64
	now       int64

	functions map[string][]byte // source of libraries by name
	name      []byte            // of a command, in upper case
	sizes     map[int]*Sizes    // by database, made by Seal
}

// ReplyError is the error that a server answers a command with. The command has changed nothing.
type ReplyError struct{ Text string }

func (e *ReplyError) Error() string { return e.Text }

// UnsupportedError means that a command's effect is not known, or not exactly.
type UnsupportedError struct {
	Command string
	Why     string
	// Near says that the command was applied anyway, with a result that may differ in the last bits of a number.
	Near bool
}

func (e *UnsupportedError) Error() string { return e.Command + ": " + e.Why }

func unsupported(command, why string) error { return &UnsupportedError{Command: command, Why: why} }

// The answers of servers.
var (
	errWrongType = &ReplyError{"WRONGTYPE Operation against a key holding the wrong kind of value"}
	errSyntax    = &ReplyError{"ERR syntax error"}
	errInteger   = &ReplyError{"ERR value is not an integer or out of range"}
	errFloat     = &ReplyError{"ERR value is not a valid float"}
	errRange     = &ReplyError{"ERR index out of range"}
	errNoKey     = &ReplyError{"ERR no such key"}
	errTooLong   = &ReplyError{"ERR string exceeds maximum allowed size"}
	errArgs      = &ReplyError{"ERR wrong number of arguments"}
	errID        = &ReplyError{"ERR Invalid stream ID specified as stream command argument"}
	errNoGroup   = &ReplyError{"NOGROUP No such consumer group"}
	errExpire    = &ReplyError{"ERR invalid expire time"}
)

// maxMemTables is how many memtables there are at most; beyond, writes wait.
const maxMemTables = 3

// New makes an empty state in a directory of its own.
func New(o Options) (*State, error) {
	dir, err := disk.MkdirTemp(o.TempDir, "kvferry-state-")
	if err != nil {
		return nil, err
	}
	memory := o.Memory
	if memory <= 0 {
		memory = 64 << 20
	}
	memTable := min(max(memory/8, 1<<20), 32<<20)
	cache := pebble.NewCache(memory/4 + maxMemTables*memTable) // the memory of memtables is taken out of it
	defer cache.Unref()
	levels := make([]pebble.LevelOptions, 7)
	for i := range levels {
		levels[i] = pebble.LevelOptions{BlockSize: 8 << 10, FilterPolicy: bloom.FilterPolicy(10), TargetFileSize: 8 << 20}
	}
	base := o.fs
	if base == nil {
		base = vfs.Default
	}
	failed := new(failure)
	db, err := pebble.Open(dir, &pebble.Options{
		FS:                          failing{base, failed},
		EventListener:               failed.listener(),
		L0StopWritesThreshold:       1000, // a compaction that fails again and again holds nobody up
		Cache:                       cache,
		DisableWAL:                  true,
		MemTableSize:                uint64(memTable),
		MemTableStopWritesThreshold: maxMemTables,
		L0CompactionThreshold:       4,
		MaxOpenFiles:                500,
		Levels:                      levels,
		Logger:                      silent{},
	})
	if failed.get() != nil && err == nil {
		err = errors.Join(failed.get(), db.Close())
	}
	if err != nil {
		return nil, errors.Join(err, disk.RemoveAll(dir))
	}
	now := o.Now
	if now.IsZero() {
		now = time.Now()
	}
	return &State{opts: o, db: db, dir: dir, failure: failed, large: newLarge(), spaces: map[int]uint32{}, nextID: 1, now: now.UnixMilli(),
		functions: map[string][]byte{}}, nil
}

// silent drops what the store has to say.
type silent struct{}

func (silent) Infof(string, ...interface{})      {}
func (silent) Errorf(string, ...interface{})     {}
func (silent) Fatalf(f string, a ...interface{}) { panic(fmt.Sprintf(f, a...)) }

// Close removes the state.
func (s *State) Close() error {
	return errors.Join(s.db.Close(), disk.RemoveAll(s.dir))
}

// Select chooses the database that commands work on.
func (s *State) Select(db int) { s.current = db }

// command is what the state knows of a command.
type command struct {
	least int // arguments, the name among them
	run   func(*State, [][]byte) error
}

// Do applies a command, whose name comes first. A *ReplyError means that a server would have refused it, an
// *UnsupportedError that its effect is not known; both have changed nothing, unless the latter says Near. Other errors
// are of the store.
func (s *State) Do(args [][]byte) error {
	if err := s.check(); err != nil {
		return err
	}
	c, ok := commands[string(s.upper(args[0]))]
	if !ok {
		return unsupported(string(s.name), "kvferry does not know this command")
	}
	if len(args) < c.least {
		return errArgs
	}
	err := c.run(s, args)
	if serr := s.check(); serr != nil {
		return serr
	}
	return err
}

// upper returns a command's name in upper case.
func (s *State) upper(name []byte) []byte {
	s.name = s.name[:0]
	for _, b := range name {
		if 'a' <= b && b <= 'z' {
			b -= 'a' - 'A'
		}
		s.name = append(s.name, b)
	}
	return s.name
}

// get returns a copy of a row's value; false if there is none.
func (s *State) get(key []byte) ([]byte, bool) {
	v, closer, err := s.db.Get(key)
	if err != nil {
		if !errors.Is(err, pebble.ErrNotFound) {
			s.fail(err)
		}
		return nil, false
	}
	var out []byte
	if size, ok := s.large.sizeOf(v); ok {
		out, err = s.join(make([]byte, 0, size), key, size, nil)
		s.fail(err)
	} else {
		out = append(make([]byte, 0, len(v)), v...)
	}
	s.fail(closer.Close())
	return out, true
}

// has reports whether there is a row.
func (s *State) has(key []byte) bool {
	_, closer, err := s.db.Get(key)
	if err != nil {
		if !errors.Is(err, pebble.ErrNotFound) {
			s.fail(err)
		}
		return false
	}
	s.fail(closer.Close())
	return true
}

func (s *State) set(key, value []byte) {
	s.dropPieces(key)
	if len(value) > pieceBytes {
		s.setLarge(key, nil, value)
		return
	}
	s.write(key, value)
}

// write writes a row of the store.
func (s *State) write(key, value []byte) {
	if s.err == nil {
		s.fail(s.db.Set(key, value, pebble.NoSync))
	}
}

func (s *State) del(key []byte) {
	s.dropPieces(key)
	if s.err == nil {
		s.fail(s.db.Delete(key, pebble.NoSync))
	}
}

func (s *State) fail(err error) {
	if err != nil && s.check() == nil {
		s.err = err
	}
}

// scan calls f with the rows that begin with a prefix, in order, until it returns false. key is what follows the
// prefix; both are views.
func (s *State) scan(prefix []byte, f func(key, value []byte) bool) { s.walk(prefix, nil, false, f) }

// walk is scan from a place behind the prefix on, or, backwards, from the end of the rows.
func (s *State) walk(prefix, from []byte, back bool, f func(key, value []byte) bool) {
	if s.err != nil {
		return
	}
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: successor(prefix)})
	if err != nil {
		s.fail(err)
		return
	}
	step, ok := it.Next, false
	switch {
	case back:
		step, ok = it.Prev, it.Last()
	case from != nil:
		ok = it.SeekGE(append(prefix[:len(prefix):len(prefix)], from...))
	default:
		ok = it.First()
	}
	var joined []byte
	for ; ok; ok = step() {
		value := it.Value()
		if size, large := s.large.sizeOf(value); large {
			joined, err = s.join(scratch.Room(joined, int(size)), it.Key(), size, it)
			s.fail(err)
			value = joined
		}
		if !f(it.Key()[len(prefix):], value) {
			break
		}
	}
	s.fail(it.Error())
	s.fail(it.Close())
}

// successor is the least key behind all that begin with a prefix.
func successor(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// space returns the number of a database's rows.
func (s *State) space(db int) uint32 {
	n, ok := s.spaces[db]
	if !ok {
		s.nextSpace++
		n = s.nextSpace
		s.spaces[db] = n
	}
	return n
}

// metaKey returns the row of a key of a database.
func (s *State) metaKey(db int, key []byte) []byte {
	out := make([]byte, 0, 5+len(key))
	return append(binary.BigEndian.AppendUint32(append(out, 'm'), s.space(db)), key...)
}

// dataKey returns a row of an id; the parts follow each other.
func dataKey(id uint64, parts ...[]byte) []byte {
	n := 9
	for _, p := range parts {
		n += len(p)
	}
	out := binary.BigEndian.AppendUint64(append(make([]byte, 0, n), 'd'), id)
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}
