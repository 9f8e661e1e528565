package foreign

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"kvferry/internal/sys/disk"
	"kvferry/parquet/columns"
	"kvferry/record"
)

// suffix ends the names of files that are read.
const suffix = ".parquet"

// nullPartition is the value of a directory for rows whose column is null.
const nullPartition = "__HIVE_DEFAULT_PARTITION__"

// file is a file that is open.
type file struct {
	name  string // path
	rel   string // below the directory, with slashes
	f     *disk.File
	cols  *columns.File
	cells [numRoles]*columns.Leaf
	fixed [numRoles]*fixed // of columns that are directories
}

// fixed is the value of a column in all rows of a file.
type fixed struct {
	text string
	null bool
}

// list returns the files below a directory by name, as Spark and Hive read it: without names that begin with
// _ or a dot.
func list(dir string) (rel []string, err error) {
	if st, err := disk.Stat(dir); err != nil || !st.IsDir() {
		return []string{"."}, err
	}
	err = disk.WalkTree(dir, func(name string, info fs.FileInfo, _ bool) error {
		base := path.Base(name)
		switch {
		case name == ".":
			return nil
		case info.IsDir() && (base == "_delta_log" || base == ".hoodie"), strings.HasSuffix(base, ".metadata.json"):
			return fmt.Errorf("%s: %s: the directory is a table of Delta Lake, Hudi or Iceberg, whose files may have rows that were deleted: "+
				"let an engine write it as Parquet first", dir, name)
		case info.IsDir() && base == "_temporary":
			return fmt.Errorf("%s: %s: the job that writes it has not ended", dir, name)
		case info.IsDir() && (base[0] == '_' || base[0] == '.'):
			return fs.SkipDir
		case !info.IsDir() && strings.HasSuffix(base, suffix) && base[0] != '_' && base[0] != '.':
			rel = append(rel, name)
		}
		return nil
	})
	if err == nil && len(rel) == 0 {
		err = fmt.Errorf("%s: no files *%s", dir, suffix)
	}
	return rel, err
}

// open opens a file and finds its columns.
func (s *source) open(rel string) (*file, error) {
	out := &file{name: s.dir, rel: rel}
	if rel != "." {
		out.name = disk.Join(s.dir, filepath.FromSlash(rel))
	}
	var err error
	if out.f, err = s.o.Sources.Open(out.name); err != nil {
		return nil, err
	}
	st, err := out.f.Stat()
	if err == nil {
		out.cols, err = columns.Open(out.f, st.Size())
	}
	for r := range numRoles {
		if err == nil && s.m.has(r) {
			err = out.find(r, s.m.columns[r])
		}
	}
	if err != nil {
		return nil, errors.Join(out.named(err), out.f.Close())
	}
	return out, nil
}

// named adds the file to an error.
func (f *file) named(err error) error {
	var c *record.CorruptError
	if errors.As(err, &c) {
		c.Format, c.File = "parquet", f.name
		return err
	}
	return fmt.Errorf("%s: %w", f.name, err)
}

// find finds the column of a role, in the file or in the names of its directories.
func (f *file) find(r role, name string) error {
	leaf, err := f.cols.Leaf(name)
	if errors.Is(err, columns.ErrNoColumn) {
		x, twice := partition(f.rel, name)
		if twice != nil {
			return twice
		}
		f.fixed[r] = x
		if x != nil && (r == roleDB || r == roleType || r == roleKey) {
			return nil
		}
	}
	if err != nil {
		return err
	}
	f.cells[r] = leaf
	switch wrong := ""; r {
	case roleExpire, roleFieldExpire:
		if !leaf.IsTime() {
			wrong = "a timestamp or date"
		}
		return want(name, r, wrong)
	case roleScore:
		if !leaf.IsNumber() {
			wrong = "a number"
		}
		return want(name, r, wrong)
	case roleIndex:
		if !leaf.IsInteger() {
			wrong = "a signed integer"
		}
		return want(name, r, wrong)
	}
	return nil
}

func want(name string, r role, wrong string) error {
	if wrong == "" {
		return nil
	}
	return fmt.Errorf("column %q: %s must be %s: write it as one", name, roleNames[r], wrong)
}

// partition returns the value of a column that is a directory, as in country=de/part-1.parquet; nil if there is none.
func partition(rel, name string) (found *fixed, err error) {
	for _, part := range strings.Split(path.Dir(rel), "/") {
		have, value, ok := strings.Cut(part, "=")
		switch {
		case !ok || have != name:
			continue
		case found != nil:
			return nil, fmt.Errorf("two directories have the name %q: rename one", name+"=")
		}
		if text, err := url.PathUnescape(value); err == nil {
			value = text
		}
		found = &fixed{text: value, null: value == nullPartition}
	}
	return found, nil
}

// each calls row for every row of all files, with the cells of some roles. With salvage it leaves out row
// groups that cannot be read, and names them to damaged.
func (s *source) each(ctx context.Context, roles []role, damaged func(f *file, group int, err error) error,
	row func(*cells) error) error {
	for _, rel := range s.files {
		f, err := s.open(rel)
		if err != nil {
			if err = damaged(&file{name: disk.Join(s.dir, filepath.FromSlash(rel))}, -1, err); err != nil {
				return err
			}
			continue
		}
		c := cells{file: f, roles: roles}
		first := int64(0)
		for g, group := range f.cols.Groups() {
			c.row = first
			first += group.Rows
			err := c.group(ctx, g, group.Rows, row)
			c.close()
			if err = f.passDamage(g, err, damaged); err != nil {
				return errors.Join(err, f.f.Close())
			}
		}
		if err := f.f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// passDamage gives damage to damaged.
func (f *file) passDamage(group int, err error, damaged func(*file, int, error) error) error {
	if !errors.As(err, new(*record.CorruptError)) {
		return err
	}
	return damaged(f, group, f.named(err))
}

// cells are the cells of a row.
type cells struct {
	*file
	roles []role
	at    [numRoles]*columns.Cells
	row   int64 // of the file, from 1
}

// group calls row for the rows of a row group.
func (c *cells) group(ctx context.Context, g int, rows int64, row func(*cells) error) error {
	for _, r := range c.roles {
		if leaf := c.cells[r]; leaf != nil {
			at, err := c.cols.Cells(g, leaf)
			if err != nil {
				return err
			}
			c.at[r] = at
		}
	}
	for range rows {
		for _, r := range c.roles {
			if at := c.at[r]; at != nil {
				if err := at.Next(); err == io.EOF {
					return &record.CorruptError{Off: record.NoOffset, Field: "column " + at.Name, Err: record.ErrShort}
				} else if err != nil {
					return err
				}
			}
		}
		c.row++
		if err := record.Stopped(ctx, int(c.row)); err != nil {
			return err
		}
		if err := row(c); err != nil {
			return err
		}
	}
	return nil
}

func (c *cells) close() {
	for r, at := range c.at {
		if at != nil {
			at.Close()
			c.at[r] = nil
		}
	}
}

// null reports whether a cell is null or not mapped.
func (c *cells) null(r role) bool {
	if x := c.fixed[r]; x != nil {
		return x.null
	}
	return c.at[r] == nil || c.at[r].IsNull()
}

// append appends a cell as bytes.
func (c *cells) append(dst []byte, r role) []byte {
	if x := c.fixed[r]; x != nil {
		return append(dst, x.text...)
	}
	return c.at[r].Append(dst)
}

// millis returns a time in milliseconds since 1970; 0 for null. Times before 1970 become 1: they have passed.
func (c *cells) millis(r role) int64 {
	if c.null(r) {
		return 0
	}
	return max(1, c.at[r].Time().UnixMilli())
}
