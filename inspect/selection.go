package inspect

import (
	"encoding/binary"
	"fmt"
	"io"

	"kvferry/internal/extsort"
	"kvferry/internal/filter"
	"kvferry/record"
)

// Selection says which records a command is about. The zero Selection takes all that have not expired.
type Selection struct {
	filter.Filter
	// KeepExpired takes records that have expired too.
	KeepExpired bool
	// ExpireFrom and ExpireTo bound the expiry in Unix milliseconds, From <= expiry < To; 0 is open.
	// With either, records that never expire are left out.
	ExpireFrom, ExpireTo int64
	// MinElements and MinBytes leave out smaller records, by the logical bytes that inspect counts.
	MinElements, MinBytes int64
	// Sample takes one key in so many, the same ones in every dataset; 0 and 1 take all.
	Sample uint64
}

// Validate says what cannot be meant.
func (s *Selection) Validate() error {
	if s.ExpireTo != 0 && s.ExpireFrom >= s.ExpireTo {
		return fmt.Errorf("the earliest expiry asked for is not before the latest")
	}
	if s.MinElements < 0 || s.MinBytes < 0 {
		return fmt.Errorf("the least size of a record is negative")
	}
	return nil
}

// Everything reports whether all records are taken, apart from expired ones.
func (s *Selection) Everything() bool {
	return !s.Active() && s.ExpireFrom == 0 && s.ExpireTo == 0 && !s.held() && s.Sample <= 1
}

// held reports whether a record's elements decide about it.
func (s *Selection) held() bool { return s.MinElements > 0 || s.MinBytes > 0 }

// Admit says what becomes of a record, as far as its header shows.
func (s *Selection) Admit(h *record.Header) record.Class {
	switch {
	case h.Expired && !s.KeepExpired:
		return record.Expired
	case !s.Header(h), !s.sampled(h.Key), !s.expiry(h.ExpireMS):
		return record.Filtered
	}
	return record.Copied
}

func (s *Selection) sampled(key []byte) bool {
	return s.Sample <= 1 || record.HashBytes(key).Lo%s.Sample == 0
}

// RowsOnly reports whether the selection asks for nothing that a physical row does not show.
func (s *Selection) RowsOnly() bool {
	return s.ExpireFrom == 0 && s.ExpireTo == 0 && !s.held() && !s.KeepExpired
}

func (s *Selection) expiry(ms int64) bool {
	if s.ExpireFrom == 0 && s.ExpireTo == 0 {
		return true
	}
	return ms != 0 && ms >= s.ExpireFrom && (s.ExpireTo == 0 || ms < s.ExpireTo)
}

// Apply returns a reader of the records of r that are selected. It owns r. memory is what may be held
// of a record until its size is known.
func (s *Selection) Apply(r record.Reader, memory int64, tempDir string) record.Reader {
	return s.apply(r, memory, tempDir, nil)
}

// apply is Apply; skipped is told each record that is left out, and may be nil.
func (s *Selection) apply(r record.Reader, memory int64, tempDir string, skipped func(*record.Header, record.Class)) record.Reader {
	if s.KeepExpired && s.Everything() {
		return r
	}
	out := &selected{Reader: r, sel: s, all: s.Everything(), skipped: skipped}
	if s.held() {
		out.held = &hold{sorter: extsort.New(extsort.Options{Memory: memory, TempDir: tempDir})}
	}
	return out
}

// selected leaves records out.
type selected struct {
	record.Reader
	sel  *Selection
	all  bool // but for expired ones
	held *hold

	skipped func(*record.Header, record.Class)
}

// Next moves to the next record that is selected.
func (r *selected) Next() (*record.Header, error) {
	for {
		h, err := r.Reader.Next()
		if err != nil {
			return nil, err
		}
		if r.all && !h.Expired {
			return h, nil
		}
		class := r.sel.Admit(h)
		if class == record.Copied && r.held != nil {
			if class, err = r.weigh(h); err != nil {
				return nil, err
			}
		}
		if class == record.Copied {
			return h, nil
		}
		r.Settle(class)
		if r.skipped != nil {
			r.skipped(h, class)
		}
	}
}

// weigh holds the elements of a record until it is large enough, or ends before that.
func (r *selected) weigh(h *record.Header) (record.Class, error) {
	r.held.reset()
	elements, size := int64(0), int64(len(h.Key))
	var batch [64]record.Element
	for elements < r.sel.MinElements || size < r.sel.MinBytes {
		n, err := r.Reader.Read(batch[:])
		if err == io.EOF {
			return record.Filtered, nil
		}
		if err != nil {
			return 0, err
		}
		elements += int64(n)
		for i := range batch[:n] {
			size += elementBytes(h.Type, &batch[i])
			if err := r.held.add(&batch[i]); err != nil {
				return 0, err
			}
		}
	}
	return record.Copied, r.held.rewind()
}

// Read hands out what is held and then the rest.
func (r *selected) Read(dst []record.Element) (int, error) {
	if r.held != nil && r.held.left {
		if n, err := r.held.read(dst); n > 0 || err != nil {
			return n, err
		}
	}
	return r.Reader.Read(dst)
}

// Close closes the source and removes what is held.
func (r *selected) Close() error {
	err := r.Reader.Close()
	if r.held != nil {
		if cerr := r.held.sorter.Close(); err == nil {
			err = cerr
		}
	}
	return err
}

// hold keeps elements in the order they came: rows of ordinal → s(name) score(LE64) value.
type hold struct {
	sorter *extsort.Sorter
	rows   *extsort.Iterator
	n      uint64
	row    []byte
	left   bool
}

func (h *hold) reset() {
	h.sorter.Reset()
	h.rows, h.n, h.left = nil, 0, false
}

func (h *hold) add(e *record.Element) error {
	h.row = appendElement(h.row[:0], e)
	h.n++
	return h.sorter.Add(h.n, nil, h.row)
}

func (h *hold) rewind() (err error) {
	h.rows, err = h.sorter.Sort()
	h.left = err == nil
	return err
}

// read hands out one element at a time: only the last row's view is valid.
func (h *hold) read(dst []record.Element) (int, error) {
	_, _, value, err := h.rows.Next()
	if err == io.EOF {
		h.left = false
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	h.row = append(h.row[:0], value...)
	return 1, decodeElement(&dst[0], h.row)
}

// appendElement appends s(name) score(LE64) value.
func appendElement(dst []byte, e *record.Element) []byte {
	dst = append(binary.AppendUvarint(dst, uint64(len(e.Name))), e.Name...)
	dst = binary.LittleEndian.AppendUint64(dst, scoreBits(e.Score))
	return append(dst, e.Value...)
}

// decodeElement reads what appendElement wrote, as views.
func decodeElement(e *record.Element, b []byte) error {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) || len(b)-w-int(n) < 8 {
		return record.Short(0, "held element", int(n)+8, len(b))
	}
	b = b[w:]
	e.Name = b[:n:n]
	e.Score = scoreOf(binary.LittleEndian.Uint64(b[n:]))
	e.Value = b[n+8:]
	return nil
}
