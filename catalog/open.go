package catalog

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"kvferry/convert"
	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
)

// Open opens the dataset. It reports a finding for each store in the directory that the format does not open, because
// its data is not read.
func (f *Found) Open(ctx context.Context, options *format.OpenOptions) (format.Source, error) {
	tried := &tries{location: f.Given}
	noting := *options
	noting.Store = tried.opener(options.Store)
	if options.Pass != nil {
		noting.Pass = func(db string, t record.TypeSet, dir string) bool {
			pass := options.Pass(db, t, dir)
			if pass {
				tried.add(dir)
			}
			return pass
		}
	}
	src, err := f.Format.Open(ctx, f.Location.Path, &noting)
	if err == nil {
		if err := f.reportBeside(ctx, options); err != nil {
			return nil, errors.Join(err, src.Close())
		}
	}
	if err != nil || options.Options.Report == nil {
		return src, err
	}
	options.Options.Sources.OnReplaced(func(path string) {
		options.Options.Report(record.Finding{Kind: record.FindReplaced, Severity: record.Note,
			Place: record.InFile(path), Detail: "another file took its place while it was read; kvferry read the earlier one"})
	})
	report := func(kind, path string, severity record.Severity, detail string) {
		options.Options.Report(record.Finding{Kind: kind, Severity: severity, Place: record.InFile(path), Detail: detail})
	}
	beside := f.Format.Limits().Beside
	for _, s := range f.unread(tried) {
		if top, _, _ := strings.Cut(s.Path, "/"); slices.Contains(beside, top) {
			report(record.FindBeside, s.Path, record.Note, describeStore(&s)+" is a copy or log that the server keeps next to its data; kvferry does not read it")
			continue
		}
		severity := record.Error
		var missing *store.MissingError
		if errors.As(s.Err, &missing) && missing.By == "" { // a copy that was never finished has no CURRENT
			severity = record.Warning
		}
		report(record.FindStoreNotRead, s.Path, severity, describeStore(&s)+" is not where "+f.Format.Name()+" has its databases; kvferry does not read it")
	}
	for _, rel := range src.Extra() {
		if _, err := store.Inside(f.Location.Path, rel); errors.Is(err, store.ErrNotRegular) {
			report(record.FindNoFile, rel, record.Warning, "not a regular file of the dataset, but a directory, a pipe, a device, or a link that leads out of the dataset; kvferry does not read or copy it")
		}
	}
	for _, c := range f.Evidence.Closed {
		if !tried.below(disk.Join(f.Location.Path, filepath.FromSlash(c.Path))) {
			report(record.FindStoreNotRead, c.Path, record.Warning,
				"kvferry may not read this directory ("+c.Err.Error()+"), in which "+f.Format.Name()+" has no databases")
		}
	}
	return src, nil
}

// Input returns the source of a conversion. The conversion may change options before it opens the dataset.
func (f *Found) Input(options format.OpenOptions) convert.Input {
	return convert.Input{Format: f.Format, Store: f.Driver.Name, Path: f.Location.Path, WALDir: options.WALDir,
		Open: func(ctx context.Context, change func(*store.Options)) (format.Source, error) {
			stores := &inspect.Stores{Root: f.Location.Path} // names files with their store's directory
			o := options
			o.Store = stores.Opener(options.Store)
			change(&o.Options)
			o.Options.Memory /= f.Crowd()
			o.Options.Resort = o.Options.Resort || options.Options.Resort
			src, err := f.Open(ctx, &o)
			if err != nil {
				return nil, err
			}
			return stores.Named(src), nil
		}}
}

// KeyspacesOf returns the keyspaces that detection found in the store at a directory.
func (f *Found) KeyspacesOf(dir string) []format.KeyspaceEvidence {
	for _, s := range f.Evidence.Stores {
		if filepath.Clean(disk.Join(f.Location.Path, s.Path)) == filepath.Clean(dir) {
			return s.Keyspaces
		}
	}
	return nil
}

// unread lists the stores that were found but not opened. If the location names a kind of store, stores of other
// kinds are skipped on purpose.
func (f *Found) unread(tried *tries) []format.StoreEvidence {
	var out []format.StoreEvidence
	for _, s := range f.Evidence.Stores {
		if f.Location.Store != "" && s.Kind != f.Driver.Name {
			continue
		}
		if !tried.has(disk.Join(f.Location.Path, filepath.FromSlash(s.Path))) {
			out = append(out, s)
		}
	}
	return out
}

// tries records the directories that the format opened or skipped as stores.
type tries struct {
	location string // of the dataset, as given
	mu       sync.Mutex
	dirs     []os.FileInfo
	paths    []string
}

func (t *tries) opener(open store.Opener) store.Opener {
	return func(ctx context.Context, dir string, o *store.Options) (store.Store, error) {
		t.add(dir)
		st, err := open(ctx, dir, o)
		if err != nil && ctx.Err() == nil && inspect.Unreadable(dir, err) {
			err = &UnreadableError{t.location, err}
		}
		return st, err
	}
}

func (t *tries) add(dir string) {
	info, err := disk.Stat(dir)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.dirs = append(t.dirs, info)
	}
	t.paths = append(t.paths, filepath.Clean(dir))
}

// below reports whether dir or a directory below it was opened or skipped.
func (t *tries) below(dir string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.paths, func(path string) bool {
		return path == filepath.Clean(dir) || strings.HasPrefix(path, filepath.Clean(dir)+string(filepath.Separator))
	})
}

// has reports whether a directory was opened or skipped, under any name.
func (t *tries) has(dir string) bool {
	info, err := disk.Stat(dir)
	if err != nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, d := range t.dirs {
		if disk.SameFile(d, info) {
			return true
		}
	}
	return false
}

// UnreadableError means that a store exists but cannot be opened.
type UnreadableError struct {
	Location string // location of the dataset, as given
	err      error
}

// Error returns the cause.
func (e *UnreadableError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *UnreadableError) Unwrap() error { return e.err }
