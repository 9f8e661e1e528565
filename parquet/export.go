package parquet

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"kvferry/internal/sys/disk"
	"kvferry/internal/text/jsonl"
	"kvferry/parquet/columns"
	"kvferry/record"
)

const (
	// fileBytes is the size at which a file ends, after a record.
	fileBytes = 256 << 20
	// A row group is a 32nd of the memory, for each type that a worker writes at the same time.
	groupShare = 32
	minGroup   = 64 << 10
	maxGroup   = 32 << 20
	// The bounds of keys are in memory until their file ends: it ends when long ones have so many times the bytes of a
	// row group.
	longKey = 4 << 10
	maxLong = 8
)

// ExportOptions control an Export.
type ExportOptions struct {
	Text    string // "", TextStrict or TextLossy
	Creator string
	Source  string    // name of the source's format
	Home    string    // its format.Limits.DefaultDB
	Now     time.Time // when expiry is evaluated
	Memory  int64     // bytes that all writers may buffer
	// Compression is one of columns.Compressions; "" is the first.
	Compression string
	// Keys makes estimators of memory, for a dataset with a row for each record; nil: a row for each element.
	Keys func() Estimator
}

func (o *ExportOptions) rows() string {
	if o.Keys != nil {
		return rowsKeys
	}
	return rowsElements
}

// Export writes a dataset. The directory appears when it is complete.
type Export struct {
	dir, temp string
	box       string // holds temp, whose own permissions are then those of any directory
	o         ExportOptions
	full      int64 // size at which a file ends

	mu       sync.Mutex
	files    []written
	replaced int64
}

// written is a finished file. part and n order the files of a type.
type written struct {
	line    fileLine
	part, n int
}

// Create starts an export to a directory that does not exist.
func Create(dir string, o ExportOptions) (*Export, error) {
	if _, err := disk.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			err = fmt.Errorf("%s: %w: name a new directory", dir, fs.ErrExist)
		}
		return nil, err
	}
	dir = filepath.Clean(dir)
	box, err := disk.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+".tmp-*")
	if err != nil {
		return nil, err
	}
	e := &Export{dir: dir, box: box, temp: filepath.Join(box, filepath.Base(dir)), o: o, full: fileBytes}
	if err = disk.Mkdir(e.temp); err != nil {
		return nil, errors.Join(err, e.Abort())
	}
	return e, nil
}

// In starts an export of some parts to an empty directory. Files returns what is known of their files, and Assemble
// makes a dataset of those of all parts.
func In(dir string, o ExportOptions) *Export { return &Export{temp: dir, o: o, full: fileBytes} }

// Abort removes what was written.
func (e *Export) Abort() error { return disk.RemoveAll(cmp.Or(e.box, e.temp)) }

// Files describes files of some parts, for Assemble.
type Files struct {
	Files    []partFile `json:"files"`
	Replaced int64      `json:"replaced"`
}

type partFile struct {
	Line fileLine `json:"line"`
	Part int      `json:"part"`
	N    int      `json:"n"`
}

// Files returns the files that were written.
func (e *Export) Files() *Files {
	out := &Files{Files: []partFile{}, Replaced: e.replaced}
	for _, f := range e.files {
		out.Files = append(out.Files, partFile{f.line, f.part, f.n})
	}
	return out
}

// Assemble makes a dataset of the files of all parts, which lie in the directory of the export. found is the number of
// errors that the dumps have reported. It returns the number of records.
func (e *Export) Assemble(parts []*Files, found int) (records int64, err error) {
	for _, p := range parts {
		for _, f := range p.Files {
			if err := f.Line.check(); err != nil {
				return 0, err
			}
			path := filepath.Join(e.temp, filepath.FromSlash(f.Line.File))
			if st, err := disk.Lstat(path); err != nil {
				return 0, err
			} else if st.Size() != f.Line.Size {
				return 0, fmt.Errorf("%s: %s bytes, but %s were written", path, record.Number(st.Size()),
					record.Number(f.Line.Size))
			}
			e.files = append(e.files, written{f.Line, f.Part, f.N})
			records += f.Line.Records
		}
		e.replaced += p.Replaced
	}
	return records, e.complete(found)
}

// Replaced returns the number of values that were not UTF-8 and were changed.
func (e *Export) Replaced() int64 { return e.replaced }

// Finish completes the dataset. found is the number of errors that the dump has reported.
func (e *Export) Finish(found int) error {
	if err := e.complete(found); err != nil {
		return err
	}
	if err := disk.RenameNew(e.temp, e.dir); err != nil {
		return err
	}
	if err := disk.Remove(e.box); err != nil {
		return err
	}
	return disk.SyncPath(filepath.Dir(e.dir))
}

// complete gives the files their names, writes the manifest and makes all of it durable.
func (e *Export) complete(found int) error {
	m := manifest{head: head{Parquet: version, Creator: e.o.Creator, Source: e.o.Source, Home: jsonl.Text(e.o.Home),
		Rows: e.o.rows(), Text: e.o.Text, Now: e.o.Now.UTC().Format(time.RFC3339Nano)}}
	slices.SortFunc(e.files, func(a, b written) int {
		return cmp.Or(cmp.Compare(a.line.Type, b.line.Type), cmp.Compare(a.part, b.part), cmp.Compare(a.n, b.n))
	})
	paths := []string{e.temp}
	for i, n := 0, 0; i < len(e.files); i++ {
		f := &e.files[i].line
		n++
		if i == 0 || e.files[i-1].line.Type != f.Type {
			n = 1
			paths = append(paths, filepath.Join(e.temp, partition(f.Type)))
		}
		name := partName(f.Type, n)
		if err := disk.RenameNew(filepath.Join(e.temp, f.File), filepath.Join(e.temp, name)); err != nil {
			return err
		}
		f.File = name
		m.files = append(m.files, *f)
		m.end.Records, m.end.Rows = m.end.Records+f.Records, m.end.Rows+f.Rows
	}
	m.end.Files, m.end.Replaced, m.end.Errors = len(m.files), e.replaced, found
	b, err := m.append(nil)
	if err != nil {
		return err
	}
	name := filepath.Join(e.temp, ManifestName)
	if err := disk.WriteFile(name, b); err != nil {
		return err
	}
	return disk.SyncAll(append(paths, name))
}

// Part returns the writer of a part: records of a database in (key, type) order. Parts are numbered in key order, and
// each is written by one goroutine.
func (e *Export) Part(n int, types record.TypeSet) (record.Writer, error) {
	limit := min(max(e.o.Memory/groupShare/int64(max(1, len(types.Types()))), minGroup), maxGroup)
	p := &part{e: e, n: n, limit: limit, text: texts{mode: e.o.Text}}
	if e.o.Keys != nil {
		return &keysPart{part: p, memory: e.o.Keys()}, nil
	}
	return p, nil
}

// part writes the files of a part, one at a time of each type.
type part struct {
	e     *Export
	n     int
	limit int64
	text  texts

	open    [record.NumTypes]*file
	feed    record.Feeder
	h       record.Kept
	current *file // of the record; nil before its first element
	done    []written
}

// file is a file that is being written.
type file struct {
	f     *disk.File
	w     *columns.Writer
	rows  rows
	line  fileLine
	group groupLine
	long  int64 // bytes of long keys, which bounds in the footer may repeat
}

// Begin starts a record.
func (p *part) Begin(h *record.Header) error {
	p.h.Keep(h)
	p.current = nil
	return nil
}

// Write writes the records of a batch.
func (p *part) Write(b *record.Batch) error { return p.feed.Feed(b, p, nil) }

// Elements appends elements.
func (p *part) Elements(elems []record.Element) error {
	if len(elems) == 0 {
		return nil
	}
	if err := p.begin(); err != nil {
		return err
	}
	n, err := p.current.rows.elements(elems)
	if err != nil {
		return err
	}
	return p.current.wrote(n)
}

// begin starts the record in its file. A record without elements is not written.
func (p *part) begin() (err error) {
	if p.current != nil {
		return nil
	}
	f := p.open[p.h.Type]
	if f == nil {
		if f, err = p.create(); err != nil {
			return err
		}
		p.open[p.h.Type] = f
	}
	p.current = f
	if t := p.h.Type; t == record.Hash || t == record.Set || t == record.ZSet {
		f.line.ByName = f.line.ByName && p.h.ByName
	}
	if err := f.rows.begin(&p.h.Header); err != nil {
		return err
	}
	f.line.Records++
	if len(p.h.Key) > longKey && !p.single() {
		f.long += 2 * int64(len(p.h.Key))
	}
	if p.h.Type == record.Stream && p.e.o.Keys == nil {
		return f.wrote(1)
	}
	return nil
}

// single reports whether a record has one row.
func (p *part) single() bool { return p.h.Type == record.String || p.e.o.Keys != nil }

// create starts a file of the record's type.
func (p *part) create() (*file, error) {
	typ := p.h.Type.String()
	dir := partition(typ)
	if err := disk.MkdirAll(filepath.Join(p.e.temp, dir)); err != nil {
		return nil, err
	}
	name := fmt.Sprintf("%s/%d-%d", dir, p.n, len(p.done))
	f, err := disk.Create(filepath.Join(p.e.temp, filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	f.Stream()
	cols := columnsOf(p.single(), p.text.mode != "")
	if !utf8.ValidString(p.h.DB) {
		cols[colDB].Kind = columns.Binary
	}
	if p.e.o.Keys != nil {
		cols = auditColumns(cols)
	}
	sorted := sortedBy
	if p.text.mode == TextLossy { // keys that were changed may be out of order
		sorted = nil
	}
	w := columns.NewWriter(f, &columns.Options{Columns: cols, Sorted: sorted,
		Creator: p.e.o.Creator, Pairs: map[string]string{"kvferry.type": typ, "kvferry.db": p.h.DB}, Limit: p.limit,
		Compression: p.e.o.Compression})
	return &file{f: f, line: fileLine{File: name, DB: jsonl.Text(p.h.DB), Type: typ, ByName: true}, w: w,
		rows: rows{w: w, text: &p.text, audit: p.e.o.Keys != nil}}, nil
}

// wrote counts rows of the record.
func (f *file) wrote(n int) error {
	if f.group.Rows == 0 {
		f.group.First = jsonl.Text(f.rows.h.Key[:min(len(f.rows.h.Key), maxFirst)])
	}
	f.group.Rows += int64(n)
	f.line.Rows += int64(n)
	full, err := f.w.Rows(n)
	if full {
		f.endGroup()
	}
	return err
}

func (f *file) endGroup() {
	if f.group.Rows > 0 {
		f.line.Groups = append(f.line.Groups, f.group)
	}
	f.group = groupLine{}
}

// End finishes the record.
func (p *part) End() error {
	if p.h.Type == record.Stream {
		if err := p.begin(); err != nil {
			return err
		}
	}
	return p.ended()
}

// ended closes the file of the record if it is full.
func (p *part) ended() error {
	f := p.current
	if f == nil || f.w.Size() < p.e.full && f.long < maxLong*p.limit {
		return nil
	}
	p.open[p.h.Type] = nil
	return p.close(f)
}

// close completes a file.
func (p *part) close(f *file) error {
	groups, tail, err := f.w.Close()
	f.endGroup()
	if err == nil {
		err = f.f.Sync()
	}
	for i, g := range groups {
		f.line.Groups[i].End, f.line.Groups[i].Sum = g.End, sumText(g.Sum)
	}
	f.line.Size, f.line.Tail, f.line.Sum = tail.End, tail.Off, sumText(tail.Sum)
	p.done = append(p.done, written{f.line, p.n, len(p.done)})
	return errors.Join(err, f.f.Close())
}

// Close completes the files of the part.
func (p *part) Close() (err error) {
	for t, f := range p.open {
		if f != nil && err == nil {
			p.open[t] = nil
			err = p.close(f)
		}
	}
	if err != nil {
		p.Abort()
		return err
	}
	p.e.mu.Lock()
	defer p.e.mu.Unlock()
	p.e.files = append(p.e.files, p.done...)
	p.e.replaced += p.text.replaced
	return nil
}

// Abort closes the files of the part. Export.Abort removes them.
func (p *part) Abort() {
	for t, f := range p.open {
		if f != nil {
			p.open[t] = nil
			_ = f.f.Close()
		}
	}
}
