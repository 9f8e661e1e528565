package convert

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"kvferry/format"
	"kvferry/internal/disk"
	"kvferry/internal/tree"
)

// journalVersion changes when an older journal cannot be continued.
const journalVersion = 6

// maxDepth is how many levels below a source files are looked at: stores lie at most four deep, and
// symbolic links may lead anywhere.
const maxDepth = 6

// identity says what a run converts into what, and how. A run may be continued only by one of the
// same identity.
type identity struct {
	Version int               `json:"version"`
	Source  string            `json:"source"`
	Files   []sourceFile      `json:"files"`
	Options map[string]string `json:"options"`
	// Now is the clock of the run. A resumed run takes it over unless it was given one.
	Now time.Time `json:"now"`
	// Resort says how the source's tables were found out of order; "" when they were not.
	Resort string `json:"resort,omitempty"`
	// Began is when the first process began, by the clock of the system, and Target what a target on a server has to know of
	// that to go on.
	Began  time.Time `json:"began"`
	Target string    `json:"target,omitempty"`
	// Plan is what the run does. Source and options being the same, it need not be made again.
	Plan *Plan `json:"plan"`
}

// sourceFile is a file of the source.
type sourceFile struct {
	Path  string    `json:"path"`
	Size  int64     `json:"size"`
	MTime time.Time `json:"mtime"`
	// Real is where the file is, when a symbolic link leads there.
	Real string `json:"real,omitempty"`
}

// newIdentity describes a run. The number of workers and the memory are not part of it: the result
// does not depend on them.
func newIdentity(o *Options) (*identity, error) {
	path, files, err := sourceOf(o.Source.Path)
	if err != nil {
		return nil, err
	}
	if o.Source.WALDir != "" {
		logs, err := sourceFiles(o.Source.WALDir)
		if err != nil {
			return nil, err
		}
		for _, f := range logs {
			f.Path = "wal-dir:" + f.Path
			files = append(files, f)
		}
	}
	return &identity{Version: journalVersion, Source: path, Files: files, Options: optionTexts(o), Now: o.Now, Began: time.Now()}, nil
}

// sourceOf returns where a source really is, and its files.
func sourceOf(location string) (path string, files []sourceFile, err error) {
	if !isPath(location) {
		return location, nil, nil
	}
	if path, err = realPath(location); err == nil {
		files, err = sourceFiles(path)
	}
	return path, files, err
}

// name tells the run from others: what is read, when, and into what. Where the source lies and when its files were
// written does not count.
func (id *identity) name() string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %d %q", id.Version, id.Now.UnixNano(), id.Options)
	for _, f := range id.Files {
		fmt.Fprintf(h, " %q %d", f.Path, f.Size)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// optionTexts names the options that the result depends on as the command line does.
func optionTexts(o *Options) map[string]string {
	m := map[string]string{
		"source":        o.Source.Format.Name() + "+" + o.Source.Store,
		"target":        format.LocationName(o.Target.Format) + "+" + o.Target.Store,
		"layout":        layoutName(o.Layout),
		"version-epoch": fmt.Sprint(o.Version),
		"expired":       expiredName(o.Selection.KeepExpired),
	}
	if o.Namespace != "" {
		m["namespace"] = o.Namespace
	}
	if o.MaxBitmap != 0 {
		m["max-bitmap"] = fmt.Sprint(o.MaxBitmap)
	}
	if o.Cluster {
		m["cluster"] = "yes"
	}
	if o.SST {
		m["sst"] = "yes"
	}
	if l := o.Target.Format.Limits(); l.Instances > 0 {
		m["instances"], m["slots"] = fmt.Sprint(cmp.Or(o.Instances, l.Instances)), fmt.Sprint(cmp.Or(o.Slots, l.Slots))
	}
	if o.Source.WALDir != "" {
		m["wal-dir"] = o.Source.WALDir
	}
	if o.Target.Address != "" {
		m["target"] = o.Target.Address
	}
	if o.Prefer != nil {
		m["on-conflict"] = fmt.Sprint("keep=", o.Prefer)
	}
	if o.Rename {
		m["on-conflict"] = "rename"
	}
	maps.Copy(m, o.Selection.Conditions(o.Now).Texts())
	return m
}

func expiredName(keep bool) string {
	if keep {
		return "keep"
	}
	return "drop"
}

func layoutName(l format.Layout) string {
	switch l {
	case format.LayoutFlat:
		return "flat"
	case format.LayoutDB:
		return "db"
	}
	return "auto"
}

// realPath is the absolute path of a file with its symbolic links resolved.
func realPath(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return disk.EvalSymlinks(path)
}

// sourceFiles lists the files below dir, also behind symbolic links, with what changes when they do.
func sourceFiles(dir string) ([]sourceFile, error) {
	var out []sourceFile
	err := tree.Walk(dir, func(rel string, info fs.FileInfo, linked bool) error {
		if info.IsDir() {
			if strings.Count(rel, "/") >= maxDepth {
				return fs.SkipDir
			}
			return nil
		}
		f := sourceFile{Path: rel, Size: info.Size(), MTime: info.ModTime().UTC()}
		if linked && info.Mode()&fs.ModeSymlink == 0 {
			var err error
			if f.Real, err = realPath(filepath.Join(dir, filepath.FromSlash(rel))); err != nil {
				return err
			}
		}
		out = append(out, f)
		return nil
	})
	slices.SortFunc(out, func(a, b sourceFile) int { return cmp.Compare(a.Path, b.Path) })
	return out, err
}

// continues returns an error that says why a run of identity now cannot continue one of identity id.
func (id *identity) continues(now *identity) error {
	if id.Version != now.Version {
		return fmt.Errorf("it was written by another version of kvferry")
	}
	if id.Source != now.Source {
		return fmt.Errorf("it converts %s, not %s", id.Source, now.Source)
	}
	// The clock stands before the options: relative times among them are told by it.
	if !id.Now.Equal(now.Now) {
		return fmt.Errorf("its --now is %s, not %s: leave out --now to continue it",
			id.Now.Format(time.RFC3339Nano), now.Now.Format(time.RFC3339Nano))
	}
	// Other options depend on the target.
	if a, b := id.Options["target"], now.Options["target"]; a != b {
		return fmt.Errorf("it converts to %s, not to %s: name the same target to continue it", strings.TrimSuffix(a, "+"), strings.TrimSuffix(b, "+"))
	}
	for _, name := range slices.Sorted(maps.Keys(union(id.Options, now.Options))) {
		switch a, b := id.Options[name], now.Options[name]; {
		case a == b:
		case a == "":
			return fmt.Errorf("it has no --%s: leave it out to continue it", name)
		default:
			return fmt.Errorf("it has %s %s, not %s: pass the same value to continue it", name, orNone(a), orNone(b))
		}
	}
	if err := sameFiles(id.Files, now.Files); err != nil {
		return fmt.Errorf("the source has changed: %w", err)
	}
	return nil
}

func union(a, b map[string]string) map[string]string {
	m := maps.Clone(a)
	maps.Copy(m, b)
	return m
}

func orNone(s string) string {
	if s == "" {
		return "(none)"
	}
	return s
}

func sameFiles(was, is []sourceFile) error {
	have := make(map[string]sourceFile, len(is))
	for _, f := range is {
		have[f.Path] = f
	}
	for _, f := range was {
		g, ok := have[f.Path]
		switch {
		case !ok:
			return fmt.Errorf("%s is gone", f.name())
		case g.Real != f.Real:
			return fmt.Errorf("%s is at %s now, was at %s", f.name(), orNone(g.Real), orNone(f.Real))
		case g.Size != f.Size:
			return fmt.Errorf("%s has %d bytes, had %d", f.name(), g.Size, f.Size)
		case !g.MTime.Equal(f.MTime):
			return fmt.Errorf("%s was modified at %s", f.name(), g.MTime.Format(time.RFC3339))
		}
		delete(have, f.Path)
	}
	for _, f := range have {
		return fmt.Errorf("%s is new", f.name())
	}
	return nil
}

// name is the path, but for a dataset that is one file.
func (f *sourceFile) name() string {
	if f.Path == "." {
		return "the file"
	}
	return f.Path
}
