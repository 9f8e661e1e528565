package work

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"kvferry/convert/result"
	"kvferry/internal/sys/disk"

	"github.com/gofrs/flock"
)

// Entry is one line of the journal: exactly one field is set.
type Entry struct {
	Plan *Identity      `json:"plan,omitempty"` // the first line
	Task *result.Result `json:"task,omitempty"` // a task is done and its tables are on disk
	// Finishing is set when the tables start to become a database. Written is set after that and lists the files of
	// the target. Proved is set after the proof, if one is made, and after the report is written.
	Finishing bool    `json:"finishing,omitempty"`
	Written   *Census `json:"written,omitempty"`
	Proved    bool    `json:"proved,omitempty"`
	// Upload is an object in parts that was begun in an object store. Uploaded is set when the target is complete there.
	Upload   *Upload `json:"upload,omitempty"`
	Uploaded bool    `json:"uploaded,omitempty"`
}

// Upload is an object in parts: its key and the store's id of it.
type Upload struct {
	Key string `json:"key"`
	ID  string `json:"id"`
}

// journal is an append-only file of JSON lines, synced after each line. Everything it records is on disk.
type journal struct {
	mu    sync.Mutex
	lock  *flock.Flock
	file  *disk.File
	lines int
	tasks int // lines of finished tasks
	// failed is set after a failed write, which may leave a partial line. A line appended to that would be
	// unreadable.
	failed error
}

// State is the state of an unfinished run, read from its journal.
type State struct {
	ID        *Identity // nil: the run died before it wrote its plan
	Tasks     []*result.Result
	Finishing bool
	Made      *Census // the finished target; nil: it is unfinished
	proved    bool
	// Uploads are the objects in parts that were begun in an object store, by key.
	Uploads  map[string]string
	uploaded bool
}

// errBusy means that another process holds the lock of the directory.
var errBusy = errors.New("another kvferry is using it")

// openJournal locks a work directory, and opens or makes its journal and reads it. A truncated last line was never
// synced and is dropped. lax permits a file system without locks.
func openJournal(dir string, lax bool) (*journal, *State, error) {
	lock, err := lockWork(dir, os.O_RDWR|os.O_CREATE)
	if err != nil && !(lax && lockless(err)) {
		return nil, nil, err
	}
	j, state, err := readJournal(filepath.Join(dir, journalFile))
	if err != nil {
		return nil, nil, errors.Join(err, unlock(lock))
	}
	j.lock, j.tasks = lock, len(state.Tasks)
	return j, state, nil
}

// readJournal opens or makes a journal and decodes it.
func readJournal(path string) (*journal, *State, error) {
	f, err := disk.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	state, err := decodeJournal(data[:whole])
	if err != nil {
		return nil, nil, errors.Join(&ResumeError{Dir: filepath.Dir(path), Err: fmt.Errorf("%s: %w", path, err)}, f.Close())
	}
	if err = f.Truncate(int64(whole)); err == nil {
		_, err = f.Seek(int64(whole), io.SeekStart)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return &journal{file: f, lines: bytes.Count(data, []byte("\n"))}, state, nil
}

// journalFile is the journal of a work directory.
const journalFile = "journal"

// lockless reports whether a file system has no locks, as some network file systems.
func lockless(err error) bool {
	return errors.Is(err, syscall.ENOLCK) || errors.Is(err, syscall.ENOSYS) || errors.Is(err, errors.ErrUnsupported)
}

func unlock(lock *flock.Flock) error {
	if lock == nil {
		return nil
	}
	return lock.Close()
}

// lockFile is locked by the process that uses a directory. It is separate from the journal because some systems
// forbid reading a locked file.
const lockFile = "lock"

// lockWork locks a work directory. If another process holds the lock, the error names that process.
func lockWork(dir string, flags int) (*flock.Flock, error) {
	lock := flock.New(filepath.Join(dir, lockFile), flock.SetFlag(flags), flock.SetPermissions(0o644))
	locked, err := lock.TryLock()
	switch {
	case locked:
		return lock, nil
	case err != nil:
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if pid, err := disk.ReadFile(filepath.Join(dir, pidFile)); err == nil && len(bytes.TrimSpace(pid)) > 0 {
		return nil, fmt.Errorf("%s: %w (process %s)", dir, errBusy, bytes.TrimSpace(pid))
	}
	return nil, fmt.Errorf("%s: %w", dir, errBusy)
}

// probeWork returns an error if another process holds the lock of a work directory.
func probeWork(dir string) error {
	lock, err := lockWork(dir, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return lock.Close()
}

func decodeJournal(data []byte) (*State, error) {
	state := new(State)
	for n := 1; len(data) > 0; n++ {
		line, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		switch {
		case (n == 1) != (e.Plan != nil):
			return nil, fmt.Errorf("line %d: the plan must be on the first line, and only there", n)
		case e.Plan != nil:
			state.ID = e.Plan
		case e.Task != nil:
			again := func(t *result.Result) bool { return t.N == e.Task.N } // a server lost the rows of its first run
			state.Tasks = append(slices.DeleteFunc(state.Tasks, again), e.Task)
		case e.Written != nil:
			state.Made = e.Written
		case e.Upload != nil:
			if state.Uploads == nil {
				state.Uploads = map[string]string{}
			}
			state.Uploads[e.Upload.Key] = e.Upload.ID
		}
		state.Finishing = state.Finishing || e.Finishing
		state.proved = state.proved || e.Proved
		state.uploaded = state.uploaded || e.Uploaded
	}
	sortTasks(state.Tasks)
	return state, nil
}

// sortTasks sorts results that workers finished in any order. Merge keeps the samples that come first in the plan.
func sortTasks(tasks []*result.Result) {
	slices.SortStableFunc(tasks, func(a, b *result.Result) int { return cmp.Compare(a.N, b.N) })
}

// Append writes lines and syncs them. After a failed write it always fails. Without a journal it does nothing.
func (j *journal) Append(entries ...Entry) error {
	if j == nil || len(entries) == 0 {
		return nil
	}
	var lines []byte
	tasks := 0
	for i := range entries {
		line, err := json.Marshal(entries[i])
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
		if entries[i].Task != nil {
			tasks++
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed != nil {
		return j.failed
	}
	if _, j.failed = j.file.Write(lines); j.failed != nil {
		return j.failed
	}
	j.lines += len(entries)
	j.tasks += tasks
	j.failed = j.file.Sync()
	return j.failed
}

// Begun reports whether the journal has a line.
func (j *journal) Begun() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lines > 0
}

// Done returns the number of finished tasks in the journal.
func (j *journal) Done() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.tasks
}

// reset empties the journal.
func (j *journal) reset() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines, j.tasks, j.failed = 0, 0, nil
	if err := j.file.Truncate(0); err != nil {
		return err
	}
	_, err := j.file.Seek(0, io.SeekStart)
	return err
}

// Close closes the journal and unlocks the directory. It may be called twice.
func (j *journal) Close() error {
	err := j.file.Close()
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return errors.Join(err, unlock(j.lock))
}

// Begun returns the unfinished runs whose work directories are in dir, by the path of their targets.
func Begun(dir string) (map[string]*Identity, error) {
	entries, err := disk.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	out := map[string]*Identity{}
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), workSuffix)
		if !ok {
			continue
		}
		data, err := disk.ReadFile(filepath.Join(dir, entry.Name(), journalFile))
		if err != nil {
			continue // not an unfinished run
		}
		line, _, _ := bytes.Cut(data, []byte("\n"))
		var e Entry
		if json.Unmarshal(line, &e) == nil && e.Plan != nil {
			out[filepath.Join(dir, name)] = e.Plan
		}
	}
	return out, nil
}
