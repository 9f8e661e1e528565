package lsm

import (
	"os"
	"sync"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/files"
)

// Env is what the keyspaces of a store share.
type Env struct {
	Dir      string // of the store, for errors
	Manifest string // path of what says the bounds of tables, for errors
	Merger   *store.Merger
	LevelDB  bool  // which has puts and tombstones alone
	Salvage  bool  // skip tables and blocks that cannot be read
	Resort   bool  // sort tables that are not in order
	Memory   int64 // of buffers, for all of the store
	TempDir  string
	Report   func(record.Finding) // takes findings from any goroutine
	Windows  files.Windows

	mu     sync.Mutex
	spools []*disk.File
	closed bool
}

// spoolFile makes a file for spools that nobody else sees, gone when the env is closed.
func (e *Env) spoolFile() (*disk.File, error) {
	f, err := disk.Temp(e.TempDir, "spool")
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		f.Close()
		return nil, os.ErrClosed
	}
	e.spools = append(e.spools, f)
	return f, nil
}

// spoolFile returns the file that the next spool of the keyspace is appended to: one at a time is written.
func (ks *Keyspace) spoolFile() (f *disk.File, err error) {
	if ks.spool == nil {
		ks.spool, err = ks.Env.spoolFile()
	}
	return ks.spool, err
}

// NumSpools counts the files of spools.
func (e *Env) NumSpools() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.spools)
}

// Close gives the files of all spools back.
func (e *Env) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for _, f := range e.spools {
		f.Close()
	}
	e.spools = nil
}
