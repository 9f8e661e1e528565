package work

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"kvferry/internal/pass"
	"kvferry/internal/sys/disk"
)

// Parts is a work directory that several processes share, each of which does a part of the plan:
//
//	<target>.kvferry/plan             the Identity, by which all processes go; it appears once and never changes
//	<target>.kvferry/parts/3-of-16    a finished part: a work directory with the journal and the tables of its tasks
//	<target>.kvferry/parts/3-of-16.*  attempts at it, which a process began and may be working on
//
// The processes need no lock, so the directory may be on a network file system. Each attempt has a directory
// of its own, which is renamed when it is complete. The first one that is stays, and the others are equal.
type Parts struct {
	Target string // final path of the target
	Path   string // of the shared work directory
}

const (
	planFile = "plan"
	partsDir = "parts"
)

// FindParts returns the work directory of the parts of a conversion to target, which need not exist.
func FindParts(target string) *Parts { return &Parts{filepath.Clean(target), Path(target)} }

// OpenParts makes the directory unless another process did. It refuses one in which a run by itself works.
func OpenParts(target string) (*Parts, error) {
	p := FindParts(target)
	if err := disk.Mkdir(p.Path); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, cannotWork(p.Path, err)
	}
	entries, err := disk.ReadDir(p.Path)
	shared := slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == partsDir })
	if err == nil && !shared && len(entries) > 0 {
		err = checkWork(p.Path, false)
	}
	if err != nil {
		return nil, err
	}
	if err := disk.Mkdir(filepath.Join(p.Path, partsDir)); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return p, disk.SyncPath(filepath.Dir(p.Path))
}

// Exist reports whether the target is being built in parts.
func (p *Parts) Exist() bool {
	_, err := disk.Lstat(filepath.Join(p.Path, partsDir))
	return err == nil
}

// Identity returns the identity that the processes share; nil before one has published it.
func (p *Parts) Identity() (*Identity, error) {
	path := filepath.Join(p.Path, planFile)
	f, err := disk.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	var e Entry
	if err := json.Unmarshal(data, &e); err != nil || e.Plan == nil || e.Plan.Plan == nil {
		return nil, &ResumeError{Dir: p.Path, Parts: true, Err: fmt.Errorf("%s is no plan of this version: %v", path, err)}
	}
	return e.Plan, nil
}

// Publish makes an identity the shared one, unless another process was first. It returns the shared one, and whether
// that is id.
func (p *Parts) Publish(id *Identity) (shared *Identity, own bool, err error) {
	data, err := json.Marshal(Entry{Plan: id})
	if err != nil {
		return nil, false, err
	}
	file := &Names{filepath.Join(p.Path, planFile), filepath.Join(p.Path, partsDir), planFile}
	if err := file.Make(func(path string) error { return disk.WriteSynced(path, data) }); err != nil {
		return nil, false, err
	}
	if shared, err = p.Identity(); err == nil && shared == nil {
		err = fmt.Errorf("%s: deleted by another program", file.Path)
	}
	if err != nil {
		return nil, false, err
	}
	was, err := json.Marshal(Entry{Plan: shared})
	return shared, bytes.Equal(was, data), errors.Join(err, disk.SyncPath(p.Path))
}

// appear gives a complete file its name, unless another process was first. The other name goes. A network file system
// may report an error of a call that succeeded, so only the result counts.
func appear(half, to string) error {
	err := disk.Link(half, to)
	if err != nil && !errors.Is(err, fs.ErrExist) { // not every file system has links
		err = disk.RenameNew(half, to)
	}
	if _, lost := disk.Lstat(to); lost == nil {
		err = nil
	}
	return errors.Join(err, disk.RemoveAll(half))
}

// path is the directory of a finished part.
func (p *Parts) path(part pass.Part) string {
	return filepath.Join(p.Path, partsDir, part.Name())
}

// Report is the path of the report of a finished part.
func (p *Parts) Report(part pass.Part) string { return (&Dir{Path: p.path(part)}).Report() }

// Done reports whether a part is finished.
func (p *Parts) Done(part pass.Part) bool {
	_, err := disk.Lstat(p.path(part))
	return err == nil
}

// Missing lists the parts of n that are not finished.
func (p *Parts) Missing(n int) []int { return pass.Missing(n, p.Done) }

// Attempt begins an attempt at a part, in a directory of its own. temp is as in Open.
func (p *Parts) Attempt(part pass.Part, temp string) (*Dir, error) {
	dir, err := disk.MkdirTemp(filepath.Join(p.Path, partsDir), part.Name()+".*"+halfSuffix)
	if err != nil {
		return nil, err
	}
	w := &Dir{Target: p.Target, Path: dir}
	j, _, err := readJournal(filepath.Join(dir, journalFile))
	if err != nil {
		return nil, errors.Join(err, disk.RemoveAll(dir))
	}
	w.journal = j // no other process uses the directory
	if err := w.makeTemp(temp); err != nil {
		return nil, errors.Join(err, w.Discard())
	}
	return w, nil
}

// Do does a part unless another process does: attempt works in a directory of its own, by the plan of was, which is nil in
// the first process. fits refuses the plan of another run. already is true if another process was faster.
func (p *Parts) Do(part pass.Part, temp string, fits func(*Identity) error,
	attempt func(w *Dir, was *Identity) error) (already bool, err error) {
	if _, err := OpenParts(p.Target); err != nil {
		return false, err
	}
	was, err := p.Identity()
	if err == nil && was != nil {
		err = fits(was)
	}
	if err != nil || p.Done(part) {
		return true, err
	}
	w, err := p.Attempt(part, temp)
	if err == nil {
		err = attempt(w, was)
	}
	if err != nil && p.Done(part) { // another process removed what this one wrote
		return true, nil
	}
	return false, err
}

// Planned returns the identity that the processes share, unless fits refuses it. Before a part has run, the error is a
// *MissingError.
func (p *Parts) Planned(fits func(*Identity) error) (*Identity, error) {
	id, err := p.Identity()
	if err == nil && id == nil {
		err = &MissingError{Target: p.Target}
	}
	if err == nil {
		err = fits(id)
	}
	return id, err
}

// Whole is like Planned, but all parts must be finished.
func (p *Parts) Whole(fits func(*Identity) error) (*Identity, error) {
	id, err := p.Planned(fits)
	if err != nil {
		return nil, err
	}
	if missing := p.Missing(id.Parts); missing != nil {
		return nil, &MissingError{Target: p.Target, Missing: missing, Parts: id.Parts}
	}
	return id, nil
}

// Adopt renames a complete attempt to the name of the part, unless another process was first. Then it removes other
// attempts at the part; a process that works on one fails and finds the part finished.
func (p *Parts) Adopt(w *Dir, part pass.Part) error {
	err := errors.Join(w.removeTemp(), w.Close())
	if err == nil {
		err = syncTree(w.Path)
	}
	if err == nil {
		err = disk.RenameNew(w.Path, p.path(part))
	}
	if err != nil && !p.Done(part) {
		return err
	}
	if err := disk.SyncPath(filepath.Dir(w.Path)); err != nil {
		return err
	}
	p.sweep(part)
	return nil
}

// sweep removes the attempts at a finished part as far as possible. The finish removes the rest.
func (p *Parts) sweep(part pass.Part) {
	dir := filepath.Join(p.Path, partsDir)
	entries, _ := disk.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), part.Name()+".") && strings.HasSuffix(e.Name(), halfSuffix) {
			w := &Dir{Path: filepath.Join(dir, e.Name())}
			_ = errors.Join(w.removeTemp(), disk.RemoveAll(w.Path))
		}
	}
}

// Open opens the shared work directory to finish the target, like Open that of an unfinished run. One process at a time
// may do so. It holds the lock of the directory if the file system has locks.
func (p *Parts) Open(temp string) (*Dir, *State, error) {
	if err := checkWork(p.Path, true); err != nil && !lockless(err) {
		return nil, nil, err
	}
	return (&Dir{Target: p.Target, Path: p.Path}).begin(temp, false, true, true)
}

// Made returns the census of the assembled target; nil before. It takes no lock, because the journal grows no more.
func (p *Parts) Made() (*Census, error) {
	data, err := disk.ReadFile(filepath.Join(p.Path, journalFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	state, err := decodeJournal(data[:bytes.LastIndexByte(data, '\n')+1])
	if err != nil {
		return nil, err
	}
	return state.Made, nil
}

// Reader returns the directory for a process that reads the assembled target. Its spools are in a directory of their
// own, below temp or, if that is "", beside the parts; done removes them.
func (p *Parts) Reader(temp string) (w *Dir, done func() error, err error) {
	if temp == "" {
		temp = filepath.Join(p.Path, partsDir)
	}
	dir, err := disk.MkdirTemp(temp, tempPrefix+"*"+halfSuffix)
	if err != nil {
		return nil, nil, err
	}
	return &Dir{Target: p.Target, Path: p.Path, spools: dir}, func() error { return disk.RemoveAll(dir) }, nil
}

// Gather adds the parts to the journal of the directory and links their tables to its data. It skips those that
// an earlier process has added. Once the target is under construction, its tables have new names, and Gather adds none.
func (p *Parts) Gather(w *Dir, state *State) (*State, error) {
	if state.Finishing || state.Made != nil {
		return state, nil
	}
	id, err := p.Identity()
	if err != nil || id == nil {
		return nil, errors.Join(err, errors.New("no part has run"))
	}
	var add []Entry
	if state.ID == nil {
		add = append(add, Entry{Plan: id})
	}
	have := map[int]bool{}
	for _, t := range state.Tasks {
		have[t.N] = true
	}
	for k := 1; k <= id.Parts; k++ {
		part := pass.Part{K: k, N: id.Parts}
		own, err := p.read(part, id)
		if err != nil {
			return nil, err
		}
		for _, t := range own.Tasks {
			if have[t.N] {
				continue
			}
			for _, table := range t.Tables {
				if err := linkTable(p.path(part), w.Path, table.File); err != nil {
					return nil, err
				}
			}
			add = append(add, Entry{Task: t})
		}
	}
	if err := errors.Join(syncDirs(w.Data()), w.Append(add...)); err != nil {
		return nil, err
	}
	state.ID = id
	for _, e := range add {
		if e.Task != nil {
			state.Tasks = append(state.Tasks, e.Task)
		}
	}
	sortTasks(state.Tasks)
	return state, nil
}

// LinkAll links all files of a finished part to the data of a work directory.
func (p *Parts) LinkAll(w *Dir, part pass.Part) error {
	from := (&Dir{Path: p.path(part)}).Data()
	return disk.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err == nil {
			err = linkTable(p.path(part), w.Path, filepath.ToSlash(rel))
		}
		return err
	})
}

// read returns the state of a finished part of a plan.
func (p *Parts) read(part pass.Part, id *Identity) (*State, error) {
	j, state, err := readJournal(filepath.Join(p.path(part), journalFile))
	if err != nil {
		return nil, err
	}
	if err := j.Close(); err != nil {
		return nil, err
	}
	if state.ID == nil || !state.ID.Began.Equal(id.Began) {
		return nil, &ResumeError{Dir: p.Path, Parts: true, Err: fmt.Errorf("part %s was made by another plan", part)}
	}
	want := part.Of(id.Plan.Tasks)
	for i := range want {
		if len(state.Tasks) != len(want) || state.Tasks[i].N != want[i].N {
			return nil, &ResumeError{Dir: p.Path, Parts: true, Err: fmt.Errorf("part %s lacks task %d", part, want[i].N)}
		}
	}
	return state, nil
}
