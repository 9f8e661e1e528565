package convert

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// work is the directory beside the target in which a run works:
//
//	<target>.kvferry/journal      what has been done
//	<target>.kvferry/data/        the target, until it is published
//	<target>.kvferry/kept/        links to its tables, while they are made a database
//	<target>.kvferry/tmp/         spools
//	<target>.kvferry/report.json  the report, until it is published
type work struct {
	target string
	dir    string
	*journal
}

func (w *work) data() string   { return filepath.Join(w.dir, "data") }
func (w *work) kept() string   { return filepath.Join(w.dir, "kept") }
func (w *work) tmp() string    { return filepath.Join(w.dir, "tmp") }
func (w *work) report() string { return filepath.Join(w.dir, "report.json") }

// ReportPath is where the report of a conversion to target is published.
func ReportPath(target string) string { return filepath.Clean(target) + ".kvferry-report.json" }

func workDir(target string) string { return filepath.Clean(target) + ".kvferry" }

// existsError says that the target is there already. It is an fs.ErrExist.
type existsError struct{ path string }

func (e *existsError) Error() string { return e.path + ": already exists; it is not touched" }
func (e *existsError) Unwrap() error { return fs.ErrExist }

// checkTarget refuses a target that exists, cannot be made or would change the source.
func checkTarget(source, target string) error {
	if _, err := os.Lstat(target); err == nil {
		return &existsError{target}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(filepath.Clean(target))
	st, err := os.Stat(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: the directory %s does not exist", target, parent)
	}
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return fmt.Errorf("%s: %s is not a directory", target, parent)
	}
	return checkApart(source, parent, target)
}

// checkApart refuses a target inside the source, which must not change.
func checkApart(source, parent, target string) error {
	src, err := filepath.Abs(source)
	if err == nil {
		src, err = filepath.EvalSymlinks(src)
	}
	if err != nil {
		return err
	}
	dst, err := filepath.Abs(parent)
	if err == nil {
		dst, err = filepath.EvalSymlinks(dst)
	}
	if err != nil {
		return err
	}
	if dst == src || strings.HasPrefix(dst, src+string(filepath.Separator)) {
		return fmt.Errorf("%s: lies inside the source %s, which is not to be changed", target, source)
	}
	return nil
}

// openWork makes the work directory, or takes over an unfinished one when resume is set.
func openWork(target string, resume bool) (*work, *journaled, error) {
	w := &work{target: filepath.Clean(target), dir: workDir(target)}
	err := os.Mkdir(w.dir, 0o755)
	if errors.Is(err, fs.ErrExist) {
		if !resume {
			return nil, nil, fmt.Errorf("%s: left by a conversion that did not finish; continue it with --resume, "+
				"or remove that directory to start over", w.dir)
		}
	} else if err != nil {
		return nil, nil, err
	}
	var state *journaled
	if w.journal, state, err = openJournal(w.dir); err != nil {
		return nil, nil, err
	}
	if err := errors.Join(os.RemoveAll(w.tmp()), os.MkdirAll(w.tmp(), 0o755)); err != nil {
		return nil, nil, errors.Join(err, w.close())
	}
	return w, state, syncDir(filepath.Dir(w.dir))
}

// clear removes everything but the journal, which it empties, to start over.
func (w *work) clear() error {
	return errors.Join(w.reset(), os.RemoveAll(w.data()), os.RemoveAll(w.kept()), os.RemoveAll(w.report()))
}

// discard ends the work and leaves nothing.
func (w *work) discard() error {
	return errors.Join(w.close(), os.RemoveAll(w.dir))
}

// keep links the unfinished tables aside, so that dying while they are made a database costs
// nothing: their names are what changes then, not their bytes. On a file system without hard links
// nothing is kept, and a run that dies in that moment starts over.
func (w *work) keep() error {
	half := w.kept() + ".half"
	if err := os.RemoveAll(half); err != nil {
		return err
	}
	if err := linkTree(w.data(), half); err != nil {
		return os.RemoveAll(half)
	}
	return errors.Join(os.Rename(half, w.kept()), syncDir(w.dir))
}

// restore brings kept tables back and reports whether there were any.
func (w *work) restore() (bool, error) {
	if _, err := os.Stat(w.kept()); err != nil {
		return false, nil
	}
	if err := os.RemoveAll(w.data()); err != nil {
		return false, err
	}
	return true, os.Rename(w.kept(), w.data())
}

// linkTree makes dst a copy of src whose files are hard links.
func linkTree(src, dst string) error {
	return filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Mkdir(filepath.Join(dst, rel), 0o755)
		}
		return os.Link(path, filepath.Join(dst, rel))
	})
}
