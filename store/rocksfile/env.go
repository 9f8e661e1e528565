package rocksfile

import (
	"os"
	"sync"

	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/files"
)

// env is what the keyspaces of a store share.
type env struct {
	dir      string // of the store, for errors
	manifest string // path of what says the bounds of tables, for errors
	merger   *store.Merger
	salvage  bool  // read past tables and blocks that cannot be read
	resort   bool  // sort tables that are not in order
	memory   int64 // of buffers, for all of the store
	tempDir  string
	report   func(record.Finding) // takes findings from any goroutine
	windows  files.Windows

	mu     sync.Mutex
	spools []*os.File
	closed bool
}

// spoolFile makes a file for a spool that nobody else sees, gone when the env is closed.
func (e *env) spoolFile() (*os.File, error) {
	f, err := tempFile(e.tempDir)
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

// close gives the files of all spools back.
func (e *env) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for _, f := range e.spools {
		f.Close()
	}
	e.spools = nil
}

// tempFile makes a file without a name.
func tempFile(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "kvferry-spool-*")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
