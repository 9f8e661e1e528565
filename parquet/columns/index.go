package columns

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/zeebo/xxh3"

	"kvferry/record"
)

// Page is a page of a column as the indexes of the file describe it.
type Page struct {
	Row  int64 // the first
	Null bool  // no row has a value
	// Least is not above any value, Most not below.
	Least, Most []byte
}

// Pages returns the pages of a column in a row group; nil if the file has no indexes of them.
func (f *File) Pages(group, leaf int) ([]Page, error) {
	c := &f.RowGroups[group].Columns[leaf]
	places, err := f.places(c)
	if err != nil || places == nil || c.BoundsSize <= 0 {
		return nil, indexError(c.Index, f.leaves[leaf], err)
	}
	var bounds struct {
		Null  thrift.Slice[bool]   `thrift:"1"`
		Least thrift.Slice[[]byte] `thrift:"2"`
		Most  thrift.Slice[[]byte] `thrift:"3"`
	}
	if c.Bounds < 0 || int64(c.BoundsSize) > f.end-c.Bounds {
		err = errors.New("it is not within the file")
	} else {
		err = f.index(c.Bounds, int64(c.BoundsSize), &bounds)
	}
	if n := len(places); err == nil && (len(bounds.Null) != n || len(bounds.Least) != n || len(bounds.Most) != n) {
		err = fmt.Errorf("bounds of %d pages, there are %d", len(bounds.Null), n)
	}
	if err != nil {
		return nil, indexError(c.Bounds, f.leaves[leaf], err)
	}
	out := make([]Page, len(places))
	for i := range out {
		out[i] = Page{places[i].FirstRowIndex, bounds.Null[i], bounds.Least[i], bounds.Most[i]}
	}
	return out, nil
}

// indexError adds the place to an error of an index.
func indexError(off int64, leaf *node, err error) error {
	if err == nil {
		return nil
	}
	return corrupt(off, "index of "+leaf.path, err)
}

// places returns the pages of a column; nil if there is no offset index.
func (f *File) places(c *chunk) ([]format.PageLocation, error) {
	var index struct {
		Pages thrift.Slice[format.PageLocation] `thrift:"1"`
	}
	if c.IndexSize == 0 {
		return nil, nil
	}
	err := f.index(c.Index, int64(c.IndexSize), &index)
	return index.Pages, err
}

// index reads an index.
func (f *File) index(off, size int64, into any) error {
	b := make([]byte, size)
	if err := readAt(f.r, b, off); err != nil {
		return err
	}
	_, err := unmarshal(b, into)
	return err
}

// Over returns the file with another reader of its bytes.
func (f *File) Over(r io.ReaderAt) *File {
	out := *f
	out.r = r
	return &out
}

// Room is a file for the bytes of a row group.
type Room interface {
	io.ReaderAt
	io.WriterAt
}

// Held reads a section into a room, compares its checksum, and returns the file with the section read from there. If the
// room fails, the section is read from the file again.
func (f *File) Held(s Section, room Room) (*File, error) {
	to := &holding{room: room}
	if err := checkSum(io.TeeReader(io.NewSectionReader(f.r, s.Off, s.End-s.Off), to), s); err != nil || to.err != nil {
		return f, err
	}
	return f.Over(&held{f.r, room, s}), nil
}

// holding writes to a room until that fails.
type holding struct {
	room Room
	n    int64
	err  error
}

// Write appends bytes.
func (h *holding) Write(b []byte) (int, error) {
	if h.err == nil {
		_, h.err = h.room.WriteAt(b, h.n)
		h.n += int64(len(b))
	}
	return len(b), nil
}

// held reads a section from a room.
type held struct {
	io.ReaderAt
	room io.ReaderAt
	s    Section
}

// ReadAt reads at an offset of the file.
func (h *held) ReadAt(b []byte, off int64) (int, error) {
	if off >= h.s.Off && off+int64(len(b)) <= h.s.End {
		return h.room.ReadAt(b, off-h.s.Off)
	}
	return h.ReaderAt.ReadAt(b, off)
}

// CheckSum reads a section of the file and compares its checksum.
func CheckSum(r io.ReaderAt, s Section) error {
	return checkSum(io.NewSectionReader(r, s.Off, s.End-s.Off), s)
}

func checkSum(r io.Reader, s Section) error {
	h := xxh3.New()
	n, err := io.CopyBuffer(h, r, make([]byte, bufferBytes))
	switch {
	case err != nil:
		return err
	case n < s.End-s.Off:
		return record.Short(int(s.Off), "file", int(s.End-s.Off), int(n))
	case h.Sum64() != s.Sum:
		return corrupt(s.Off, "bytes", fmt.Errorf("checksum mismatch up to offset %d", s.End))
	}
	return nil
}

// CheckSum compares the checksum of a section.
func (f *File) CheckSum(s Section) error { return CheckSum(f.r, s) }
