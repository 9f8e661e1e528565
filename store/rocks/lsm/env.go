package lsm

import (
	"os"
	"sync"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/files"
)

// Env is shared by the keyspaces of a store.
type Env struct {
	Dir      string // of the store, for errors
	Manifest string // path of the file with the tables' bounds, for errors
	Merger   *store.Merger
	LevelDB  bool // only puts and tombstones exist
	Salvage  bool // skip tables and blocks that cannot be read
	// OpenDamaged leaves a table that cannot be opened to the cursors that reach its keys.
	OpenDamaged bool
	Resort      bool  // sort tables in disorder
	Memory      int64 // for the buffers of the whole store
	TempDir     string
	Report      func(record.Finding) // safe for concurrent use
	Windows     files.Windows

	mu     sync.Mutex
	spools []*disk.File
	closed bool
}

// spoolFile creates an unnamed temporary file for spools, deleted when the env is closed.
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

// spoolFile returns the file to which the keyspace's next spool is appended; spools are written one at a time.
func (ks *Keyspace) spoolFile() (f *disk.File, err error) {
	if ks.spool == nil {
		ks.spool, err = ks.Env.spoolFile()
	}
	return ks.spool, err
}

// NumSpools returns the number of spool files.
func (e *Env) NumSpools() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.spools)
}

// Close closes all spool files, which deletes them.
func (e *Env) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for _, f := range e.spools {
		f.Close()
	}
	e.spools = nil
}
