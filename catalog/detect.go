package catalog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"kvferry/convert"
	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/internal/text/suggest"
	"kvferry/record"
	"kvferry/redis"
	"kvferry/store"
)

// maxDepth is the number of directory levels searched for stores. The deepest layout of any server is
// dump/db0/<partition>/hashes.
const maxDepth = 4

// maxStores limits the evidence of a directory that is no dataset, such as that of a backup server.
const maxStores = 4096

// maxLinked limits the directories visited behind symbolic links, which may lead anywhere.
const maxLinked = 4096

// gather collects the stores in and below dir as evidence for detection. It follows symbolic links.
func (c *Catalog) gather(dir string) (*format.Evidence, error) {
	ev := &format.Evidence{Dir: dir}
	behind := 0
	err := disk.WalkTreeTelling(dir, func(rel string, info fs.FileInfo, linked bool) error {
		if !info.IsDir() {
			return nil
		}
		if linked {
			behind++
		}
		path := disk.Join(dir, filepath.FromSlash(rel))
		if rel != "." && convert.IsUnfinished(path) || c.peek(ev, path, rel) || depth(rel) == maxDepth || behind > maxLinked {
			return fs.SkipDir
		}
		if len(ev.Stores) >= maxStores {
			return fs.SkipAll
		}
		return nil
	}, func(rel string, err error) { ev.Closed = append(ev.Closed, format.ClosedDir{Path: rel, Err: err}) })
	return ev, err
}

func depth(rel string) int {
	if rel == "." {
		return 0
	}
	return strings.Count(filepath.ToSlash(rel), "/") + 1
}

// peek adds the evidence of a directory and reports whether the directory is a store.
func (c *Catalog) peek(ev *format.Evidence, path, rel string) bool {
	for _, d := range c.Drivers {
		found, err := d.Peek(path)
		if errors.Is(err, store.ErrNotStore) {
			continue
		}
		found.Path = rel
		if found.Kind == "" {
			found.Kind = d.Name
		}
		if found.Err == nil {
			found.Err = err
		}
		ev.Stores = append(ev.Stores, found)
		return true
	}
	return false
}

// candidate is a format and its verdict.
type candidate struct {
	format  format.Format
	verdict format.Verdict
}

// detect returns the format with the highest score for the evidence.
func (c *Catalog) detect(ev *format.Evidence, verbose io.Writer) (format.Format, error) {
	var best []candidate
	for _, f := range c.Formats {
		found := candidate{f, f.Detect(ev)}
		printVerdict(verbose, found)
		switch {
		case found.verdict.Score == 0 || len(best) > 0 && found.verdict.Score < best[0].verdict.Score:
		case len(best) > 0 && found.verdict.Score == best[0].verdict.Score:
			best = append(best, found)
		default:
			best = []candidate{found}
		}
	}
	switch len(best) {
	case 0:
		return nil, c.unknownFormat(ev)
	case 1:
		return best[0].format, nil
	}
	return nil, fmt.Errorf("%s: could be %s or %s: name the format, %s", ev.Dir,
		best[0].format.Name(), best[1].format.Name(), locationIn(best[0].format, ev.Dir))
}

// isServers returns an error if the location names a server, but the dataset is in another server's format. If the
// location names a format, isServers accepts it.
func (c *Catalog) isServers(named format.Format, ev *format.Evidence) error {
	server := format.LocationName(named)
	if server == named.Name() || named.Detect(ev).Score > 0 {
		return nil
	}
	found, err := c.detect(ev, io.Discard)
	if err != nil {
		return nil // maybe damaged: let the server's format report how
	}
	return fmt.Errorf("%s: is in the format %s (%s), not in that of %s: leave the name %s out of the location", ev.Dir,
		found.Name(), found.Limits().Detail, server, server)
}

func printVerdict(w io.Writer, found candidate) {
	fmt.Fprintf(w, "%s: score %d\n", found.format.Name(), found.verdict.Score)
	for _, why := range found.verdict.Why {
		fmt.Fprintf(w, "  %s\n", why)
	}
}

// unknownFormat describes the evidence of an unknown format, and suggests a format for a damaged dataset.
func (c *Catalog) unknownFormat(ev *format.Evidence) error {
	if ev.Head != nil {
		return c.unknownFile(ev)
	}
	if len(ev.Closed) > 0 {
		return fmt.Errorf("%s: cannot detect the format: %w", ev.Dir, ev.Closed[0].Err)
	}
	if len(ev.Stores) == 0 {
		return c.notADatabase(ev.Dir)
	}
	stores := slices.Clone(ev.Stores)
	slices.SortStableFunc(stores, func(x, y format.StoreEvidence) int { return rank(&x) - rank(&y) })
	const shown = 3
	var parts, names []string
	for i, s := range stores {
		if i == shown {
			parts = append(parts, fmt.Sprintf("%s more", record.Number(len(ev.Stores)-shown)))
			break
		}
		parts = append(parts, describeStore(&s))
	}
	what := strings.Join(parts, ", ")
	if err := stores[0].Err; disk.IsAccess(err) {
		return fmt.Errorf("%s: cannot detect the format: %w", ev.Dir, err)
	} else if err == nil {
		return fmt.Errorf("%s: unknown format: found %s%s", ev.Dir, what, otherDir(stores))
	}
	for _, f := range c.Formats {
		if slices.ContainsFunc(f.Limits().Stores, func(s format.StoreSupport) bool {
			return s.Read && s.Store == stores[0].Kind
		}) {
			names = append(names, locationIn(f, ev.Dir))
		}
	}
	text := fmt.Sprintf("%s: cannot detect the format: found %s", ev.Dir, what)
	if len(names) > 0 {
		text += fmt.Sprintf("; to list the problems, run kvferry verify with a format: %s", suggest.Or(names))
	}
	return errors.New(text)
}

// unknownFile explains why a file is not a dataset.
func (c *Catalog) unknownFile(ev *format.Evidence) error {
	if len(ev.Head) == 0 {
		return fmt.Errorf("%s: the file is empty; copy it again, or name another", ev.Dir)
	}
	if err := c.partOfStore(ev.Dir); err != nil {
		return err
	}
	if cutHeader(string(ev.Head)) {
		return fmt.Errorf("%s: an RDB file that is cut off in its header, after %s; copy it again", ev.Dir,
			record.Count(int64(len(ev.Head)), "byte"))
	}
	return fmt.Errorf("%s: neither an RDB file nor an append-only file; other formats have their data in directories; "+
		"if the file is damaged at its beginning, name its format: rdb:%s or aof:%s", ev.Dir, ev.Dir, ev.Dir)
}

// cutHeader reports whether a file is the beginning of the header of an RDB file.
func cutHeader(head string) bool {
	const headerLen, least = 9, 3
	return len(head) >= least && len(head) < headerLen &&
		slices.ContainsFunc([]string{"REDIS", "VALKEY"}, func(magic string) bool {
			n := min(len(head), len(magic))
			return head[:n] == magic[:n]
		})
}

// partOfStore returns an error with advice if a file belongs to a store, else nil.
func (c *Catalog) partOfStore(path string) error {
	dir := disk.Dir(path)
	for _, d := range c.Drivers {
		if _, err := d.Peek(dir); !errors.Is(err, store.ErrNotStore) && !disk.IsAccess(err) {
			return fmt.Errorf("%s: a file of a database (%s): name the directory of the dataset, which is %s or one above it",
				path, d.Name, dir)
		}
	}
	return nil
}

// otherDir returns advice on the right directory. The given one is a single store of a dataset, or contains several
// datasets.
func otherDir(stores []format.StoreEvidence) string {
	if len(stores) == 1 && stores[0].Path == "." {
		return "; this may be one store of a dataset; name the directory that contains all its stores"
	}
	return "; name the directory of one dataset"
}

// rank orders stores in messages: unreadable ones first.
func rank(s *format.StoreEvidence) int {
	if s.Err != nil {
		return 0
	}
	return 1
}

// describeStore describes a store: "a rocksdb database in db0/x (default, data_cf)".
func describeStore(s *format.StoreEvidence) string {
	text := "a " + s.Kind + " database"
	if s.Path != "." {
		text += " in " + s.Path
	}
	var names []string
	for _, k := range s.Keyspaces {
		names = append(names, k.Name)
	}
	switch {
	case s.Err != nil:
		text += fmt.Sprintf(" that cannot be read (%v%s)", s.Err, sizeText(s.Err))
	case len(names) > 0:
		text += fmt.Sprintf(" (%s)", strings.Join(names, ", "))
	}
	return text
}

// sizeText returns the size of the file of a corruption error. It helps to recognize a truncated file.
func sizeText(err error) string {
	var corrupt *record.CorruptError
	if !errors.As(err, &corrupt) || corrupt.File == "" {
		return ""
	}
	st, err := disk.Stat(corrupt.File)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("; the file has %s", record.Count(st.Size(), "byte"))
}

// notADatabase explains that a directory contains no store, and lists some entries.
func (c *Catalog) notADatabase(dir string) error {
	entries, err := disk.ReadDir(dir)
	if err != nil {
		return err
	}
	if convert.IsUnfinished(dir) {
		return fmt.Errorf("%s: the work directory of an unfinished conversion; run that conversion again with --resume", dir)
	}
	if len(entries) == 0 {
		return fmt.Errorf("%s: the directory is empty; name the directory of the dataset", dir)
	}
	if name := c.fileIn(dir); name != "" {
		return fmt.Errorf("%s: a directory with a dataset in a file: name the file: %s", dir, name)
	}
	return fmt.Errorf("%s: not a database: no CURRENT file or data.mdb here or %d levels below (found %s)",
		dir, maxDepth, someNames(entries))
}

// maxFiles limits the files that fileIn checks.
const maxFiles = 64

// fileIn returns the location of the only file in a directory that is a dataset, or "" if none or several are.
func (c *Catalog) fileIn(dir string) (location string) {
	entries, err := disk.ReadDir(dir)
	if err != nil || len(entries) > maxFiles {
		return ""
	}
	for _, e := range entries {
		path := disk.Join(dir, e.Name())
		if !e.Type().IsRegular() {
			continue
		}
		head, err := redis.Head(path)
		if err != nil || len(head) == 0 {
			continue
		}
		f, err := c.detect(&format.Evidence{Dir: path, Head: head}, io.Discard)
		if err != nil {
			continue
		}
		if location != "" {
			return ""
		}
		location = locationIn(f, path)
	}
	return location
}

func someNames(entries []os.DirEntry) string {
	const shown = 3
	var names []string
	for i, e := range entries {
		if i == shown {
			names = append(names, fmt.Sprintf("%s more", record.Number(len(entries)-shown)))
			break
		}
		names = append(names, e.Name())
	}
	return strings.Join(names, ", ")
}
