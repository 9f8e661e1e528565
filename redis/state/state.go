package state

import (
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble"
	"github.com/cockroachdb/pebble/vfs"

	"kvferry/internal/sys/disk"
	"kvferry/record"
)

// Options configures a state.
type Options struct {
	Memory  int64  // bytes for caches and unwritten data once sealed; 0 means record.DefaultMemory
	TempDir string // directory of the store; "" means the system's

	fs vfs.FS // nil: the system's
}

// State holds the keys of a server. It is used by one goroutine until Seal, by any number afterwards.
//
// Methods that change it do not return errors of the store. Err returns the first; changes after it have no
// effect.
type State struct {
	db      *pebble.DB // nil: all rows are in memory, or it could not be opened
	options *pebble.Options
	dir     string
	fs      vfs.FS
	memory  int64
	err     error // the first of the store

	recent   *recent // nil: sealed
	kept     *recent // all rows, if it was sealed before any was stored
	ends     *ends   // nil: sealed
	storedID uint64  // the store has no rows of this id or later ones; 0: the store is empty

	failure *storeFailure // of its background work
	large   large
	others  keyFilter

	current   int            // the database that is selected
	spaces    map[int]uint32 // number of a database's rows
	nextSpace uint32
	nextID    uint64

	anyLost  bool // Lose was called
	half     func(key []byte) bool
	expiring bool           // a field of a hash got an expiry
	sizes    map[int]*Sizes // by database, made by Seal
}

// New makes an empty state in a new temporary directory.
func New(o Options) (*State, error) {
	dir, err := disk.MkdirTemp(o.TempDir, "kvferry-state-")
	if err != nil {
		return nil, err
	}
	s := &State{dir: dir, fs: o.fs, memory: o.Memory, failure: new(storeFailure), large: newLarge(), spaces: map[int]uint32{}, nextID: 1}
	if s.fs == nil {
		s.fs = vfs.Default
	}
	if s.memory <= 0 {
		s.memory = record.DefaultMemory
	}
	s.recent = newRecent(unsealed(s.memory) / 3 * 2)
	s.ends = newEnds(s.recent.limit / 8)
	s.others = make(keyFilter, 1+s.recent.limit/64)
	return s, nil
}

// unsealed is the memory until Seal. No other part of the program needs memory then, so it is three times the
// limit, less the needs of the program itself: a replay looks up most of the rows it writes, at random, and
// slows down with a small cache.
func unsealed(memory int64) int64 { return max(memory, 3*memory-2<<20) }

// open opens the store unless it is open. It reports whether rows can be written.
func (s *State) open() bool {
	if s.db == nil && s.err == nil {
		s.fail(s.openWith(unsealed(s.memory)))
	}
	return s.err == nil
}

// openWith opens the store with a memory limit.
func (s *State) openWith(memory int64) error {
	s.options = storeOptions(s.fs, s.failure, memory)
	defer s.options.Cache.Unref()
	db, err := pebble.Open(s.dir, s.options)
	if failed := s.failure.Get(); failed != nil && err == nil {
		err = errors.Join(failed, db.Close())
	}
	if err == nil {
		s.db = db
	}
	return err
}

// shrink merges tables and reopens the store with the memory limit that applies after Seal.
func (s *State) shrink() {
	if s.err == nil {
		s.fail(s.db.Flush())
	}
	if s.Err() == nil && s.nextID > manyValues && s.db.Metrics().ReadAmp() > 2 {
		s.fail(s.db.Compact([]byte{'d'}, []byte{'e'}, false))
	}
	if s.Err() != nil || unsealed(s.memory) == s.memory {
		return
	}
	db := s.db
	s.db = nil
	if err := db.Close(); err != nil {
		s.fail(err)
		return
	}
	s.fail(s.openWith(s.memory))
}

// Close removes the state.
func (s *State) Close() error {
	if s.db == nil {
		return disk.RemoveAll(s.dir)
	}
	return errors.Join(s.db.Close(), disk.RemoveAll(s.dir))
}

// Err returns the first error of the store, including errors of its background work.
func (s *State) Err() error {
	if err := s.failure.Get(); err != nil && s.err == nil {
		s.err = fmt.Errorf("the temporary store in %s: %w; free some space there or choose another directory with --temp-dir", s.dir, err)
	}
	return s.err
}
