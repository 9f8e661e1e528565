package catalog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"kvferry/convert"
	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/object"
	"kvferry/internal/text/escape"
	"kvferry/internal/text/suggest"
	"kvferry/redis"
	"kvferry/store"
)

// standardInput is the location of standard input. Standard output cannot be a target.
const standardInput = "-"

// NoStores is the driver of formats without stores.
var NoStores = &Driver{
	Open:   func(context.Context, string, *store.Options) (store.Store, error) { return nil, store.ErrNotStore },
	Create: func(string, store.BuildOptions) (store.Builder, error) { return nil, errors.ErrUnsupported },
}

// Place is the parsed location of a source. The source has not been accessed yet.
type Place struct {
	Location
	Given string        // the location as given, without the secrets of a URL
	named format.Format // nil: detect the format
}

// Remote reports whether the place is a server.
func (p *Place) Remote() bool { return p.named != nil && p.named.Limits().Place == format.OnServer }

// Found is a located dataset.
type Found struct {
	// Location contains the detected format and store.
	Location Location
	Given    string // the location as given, without the secrets of a URL
	Format   format.Format
	Driver   *Driver
	Evidence *format.Evidence
	beside   *beside // other datasets of the same server; may be nil
}

// Source parses the location of a source.
func (c *Catalog) Source(given string) (*Place, error) {
	loc, err := c.parse(given)
	if err != nil {
		return nil, err
	}
	named, err := c.named(&loc)
	if err != nil {
		return nil, err
	}
	if object.IsAddress(loc.Path) {
		if c.Objects == nil {
			return nil, format.Usagef("%s: an object store cannot be read here: download it first",
				escape.Text(object.Shown(loc.Path)))
		}
		if loc.Path, err = c.Objects(loc.Path); err != nil {
			return nil, format.Usagef("%w", err)
		}
		given = object.Shown(given)
	}
	return &Place{loc, given, named}, c.checkPlace(named, loc.Path)
}

// Find detects the format at a place, unless the location names it. It writes the verdict of each format to verbose.
func (c *Catalog) Find(p *Place, verbose io.Writer) (*Found, error) {
	if p.Remote() {
		return &Found{Location: p.Location, Given: p.Given, Format: p.named, Driver: NoStores,
			Evidence: &format.Evidence{Dir: p.Path}}, nil
	}
	ev, err := c.evidence(p.Path)
	if err != nil {
		return nil, err
	}
	found := &Found{Location: p.Location, Given: p.Given, Format: p.named, Driver: NoStores, Evidence: ev}
	if p.named == nil {
		if found.Format, err = c.detect(ev, verbose); err != nil {
			return nil, err
		}
		found.Location.Format = found.Format.Name()
	} else if err := c.isServers(p.named, ev); err != nil {
		return nil, err
	}
	if err := found.chooseDump(p.named != nil); err != nil {
		return nil, err
	}
	if f, ok := found.Format.(format.Finder); ok {
		found.Format = f.Found(ev)
	}
	if found.Format.Limits().Place == format.InDirectory {
		found.Driver, err = c.storeOf(&found.Location, ev)
	}
	return found, err
}

// Crowd returns the divisor for the memory of a store if a dataset has many stores. Five stores are usual.
func (f *Found) Crowd() int64 { return max(1, int64(len(f.Evidence.Stores))/5) }

// named returns the format named in a location, or nil, and checks the store.
func (c *Catalog) named(loc *Location) (format.Format, error) {
	if loc.Format == "" {
		return nil, nil
	}
	if loc.Store != "" {
		if _, err := c.Driver(loc.Store); err != nil {
			return nil, err
		}
	}
	return c.Format(loc.Format)
}

// storeOf returns the driver of the named store, or of the common kind of all stores found.
func (c *Catalog) storeOf(loc *Location, ev *format.Evidence) (*Driver, error) {
	if loc.Store != "" {
		if kind := onlyOther(ev, loc.Store); kind != "" {
			return nil, fmt.Errorf("%s: it is on %s, not on %s: write %s+%s:%s", loc.Path, kind, loc.Store, loc.Format, kind,
				loc.Path)
		}
		return c.Driver(loc.Store)
	}
	switch {
	case len(ev.Stores) == 0 && len(ev.Closed) > 0:
		return nil, ev.Closed[0].Err
	case len(ev.Stores) == 0:
		return nil, c.notADatabase(loc.Path)
	}
	var kinds []string
	for _, s := range ev.Stores {
		if len(kinds) == 0 || kinds[len(kinds)-1] != s.Kind {
			kinds = append(kinds, s.Kind)
		}
	}
	if len(kinds) > 1 {
		return nil, fmt.Errorf("%s: found stores of several kinds (%s): choose one, such as %s+%s:%s",
			loc.Path, strings.Join(kinds, ", "), loc.Format, kinds[0], loc.Path)
	}
	return c.Driver(kinds[0])
}

// onlyOther returns the kind of a dataset's stores if none is of the given kind. It returns "" if a store is of that
// kind or is unreadable.
func onlyOther(ev *format.Evidence, kind string) (other string) {
	for _, s := range ev.Stores {
		if s.Kind == kind || s.Err != nil {
			return ""
		}
		other = s.Kind
	}
	return other
}

// checkPlace explains why a path cannot be a source. f is its format, or nil to detect it.
func (c *Catalog) checkPlace(f format.Format, path string) error {
	inTables := f != nil && f.Limits().Place == format.InTables // files of other programs may be alone
	inDirectory := f != nil && f.Limits().Place == format.InDirectory || inTables
	switch {
	case f != nil && f.Limits().Place == format.OnServer:
		return nil
	case path == standardInput:
		if f == nil || f.Limits().Place != format.InFile {
			return format.Usagef("-: standard input is read as an RDB file only, rdb:-; write ./- for a file of that name")
		}
		return nil
	}
	st, err := disk.Stat(path)
	if dangling := disk.Dangling(path); dangling != nil {
		return dangling
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && convert.IsUnfinished(convert.WorkPath(path)):
		return fmt.Errorf("%s does not exist yet, because its conversion is unfinished; run it again with --resume", path)
	case errors.Is(err, fs.ErrNotExist) && inDirectory:
		return fmt.Errorf("%s: no such directory%s", path, suggest.Path(path))
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: no such file or directory%s", path, suggest.Path(path))
	case err != nil:
		return err
	case st.IsDir() && f != nil && f.Limits().Place == format.InFile:
		if name := c.fileIn(path); name != "" {
			return fmt.Errorf("%s: is a directory; name the file in it: %s", path, name)
		}
		if ev, err := c.gather(path); err == nil {
			if found, err := c.detect(ev, io.Discard); err == nil {
				return fmt.Errorf("%s: is a directory of %s: name it %s", path, found.Limits().Detail, locationIn(found, path))
			}
		}
	case inTables && st.Mode().IsRegular():
	case inDirectory && st.Mode().IsRegular():
		if err := c.partOfStore(path); err != nil {
			return err
		}
		return fmt.Errorf("%s: a file; %s has its data in a directory; rdb: and aof: are the formats of single files", path,
			f.Name())
	case !st.IsDir() && (inDirectory || !st.Mode().IsRegular()):
		return fmt.Errorf("%s: neither a directory nor a regular file%s", path, piped(f))
	}
	return nil
}

// piped returns advice on reading a format from a pipe. f is nil if the format is to be detected.
func piped(f format.Format) string {
	switch {
	case f == nil || f.Limits().Place == format.InFile:
		return "; from a pipe kvferry reads an RDB file that is standard input: write rdb:- for the source, and < before the pipe"
	case f.Limits().Place == format.InFiles:
		return "; an append-only file is not read from a pipe: write it to a file first"
	}
	return ""
}

// evidence gathers the evidence of a directory or file. It does not read standard input.
func (c *Catalog) evidence(path string) (*format.Evidence, error) {
	if path == standardInput {
		return &format.Evidence{Dir: path, Head: []byte{}}, nil
	}
	st, err := disk.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.IsDir() {
		return c.gather(path)
	}
	head, err := redis.Head(path)
	return &format.Evidence{Dir: path, Head: head}, err
}

// CheckDirectory returns an error if a path is not a directory.
func CheckDirectory(path string) error {
	st, err := disk.Stat(path)
	if dangling := disk.Dangling(path); dangling != nil {
		return dangling
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: no such directory%s", path, suggest.Path(path))
	case err != nil:
		return err
	case !st.IsDir():
		return fmt.Errorf("%s: not a directory", path)
	}
	return nil
}
