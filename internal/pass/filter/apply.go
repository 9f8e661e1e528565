package filter

import (
	"context"
	"errors"
	"io"
	"time"

	"kvferry/internal/pass/sorted"
	"kvferry/record"
)

const (
	// weighBatch is the number of elements weighed at once.
	weighBatch = 64
	// checkEvery is the number of records or batches between checks of the context.
	checkEvery = 256
)

// ApplyOptions control how a selection is applied.
type ApplyOptions struct {
	// Now is the time as of which expiry is evaluated.
	Now time.Time
	// Memory limits the elements of a record that are buffered until its size is known. TempDir takes the rest.
	Memory  int64
	TempDir string
	// Skipped is called for each record left out; it may be nil.
	Skipped func(*record.Header, record.Class)
	// Fields is called with the number of expired fields left out of a hash; it may be nil.
	Fields func(h *record.Header, n int)
}

// Apply returns a reader of the selected records of r. It owns r, and settles the other records there: expired ones
// as Expired, others as Filtered. It checks ctx itself, because Next may skip many records before it returns.
func (s *Selection) Apply(ctx context.Context, r record.Reader, o ApplyOptions) record.Reader {
	out := selected{Reader: r, ctx: ctx, sel: s, all: s.Everything(), window: s.window(o.Now), skipped: o.Skipped,
		now: o.Now.UnixMilli(), fields: o.Fields}
	out.strings, _ = r.(record.StringReader)
	switch {
	case out.all && s.KeepExpired:
		return r
	case s.Holds():
		return &weighed{selected: out, spool: sorted.NewSpool(sorted.Options{Memory: o.Memory, TempDir: o.TempDir})}
	}
	return &out
}

// selected skips the records that can be excluded by their headers.
type selected struct {
	record.Reader
	strings record.StringReader // the Reader, if it returns strings in batches
	head    record.Header       // scratch header of a string
	ctx     context.Context
	sel     *Selection
	all     bool // all records are selected, except expired ones
	window  window
	skipped func(*record.Header, record.Class)

	now    int64
	fields func(*record.Header, int)
	hash   *record.Header // the hash being read
	kept   bool           // a field has not expired
	gone   int            // expired fields, not reported yet
}

// Next moves to the next selected record.
func (r *selected) Next() (*record.Header, error) {
	h, err := r.next()
	if r.hash = nil; err == nil && h.Type == record.Hash && !r.sel.KeepExpired {
		r.hash, r.kept, r.gone = h, false, 0
	}
	return h, err
}

// Read returns the elements of a record, without expired fields of a hash.
func (r *selected) Read(dst []record.Element) (int, error) {
	for {
		n, err := r.Reader.Read(dst)
		if r.hash == nil {
			return n, err
		}
		if err != nil || n == 0 {
			r.tellFields()
			return n, err
		}
		if n = r.dropExpired(dst[:n]); n > 0 {
			return n, nil
		}
	}
}

// dropExpired removes expired fields from a batch and returns the number of remaining elements.
func (r *selected) dropExpired(batch []record.Element) int {
	n := 0
	for i := range batch {
		if ms := batch[i].ExpireMS; ms != 0 && ms < r.now {
			r.gone++
			continue
		}
		if n != i {
			batch[n] = batch[i]
		}
		n++
	}
	r.kept = r.kept || n > 0
	return n
}

// tellFields reports the expired fields at the end of a hash. A hash whose fields have all expired has expired
// itself.
func (r *selected) tellFields() {
	if r.gone == 0 {
		return
	}
	if r.kept {
		record.ExpireRows(r.Reader, int64(r.gone))
	} else {
		r.Settle(record.Expired)
	}
	if r.fields != nil {
		r.fields(r.hash, r.gone)
	}
	r.gone = 0
}

func (r *selected) next() (*record.Header, error) {
	for n := 1; ; n++ {
		if n%checkEvery == 0 && r.ctx.Err() != nil {
			return nil, context.Cause(r.ctx)
		}
		h, err := r.Reader.Next()
		if err != nil {
			return nil, err
		}
		if r.all && !h.Expired {
			return h, nil
		}
		class := r.admit(h)
		if class == record.Copied {
			return h, nil
		}
		r.skip(h, class)
	}
}

// NextStrings returns the selected strings of the next batch. It swaps them with others, so that every string stays
// in the batch and can be settled.
func (r *selected) NextStrings() ([]record.StringRecord, error) {
	if r.strings == nil {
		return nil, nil
	}
	r.hash = nil
	for n := 1; ; n++ {
		if n%checkEvery == 0 && r.ctx.Err() != nil {
			return nil, context.Cause(r.ctx)
		}
		batch, err := r.strings.NextStrings()
		if err != nil || len(batch) == 0 {
			return nil, err
		}
		if kept := r.admitted(batch); len(kept) > 0 {
			return kept, nil
		}
	}
}

// Strings returns the selected strings of a batch that begins with the current record.
func (r *selected) Strings(bound []byte) ([]record.StringRecord, error) {
	run, ok := r.Reader.(record.StringRunner)
	if !ok {
		return nil, nil
	}
	batch, err := run.Strings(bound)
	return r.admitted(batch), err
}

// admitted moves the selected strings of a batch to its front, in their order, and returns them.
func (r *selected) admitted(batch []record.StringRecord) []record.StringRecord {
	n := 0
	if r.all {
		for n < len(batch) && !batch[n].Expired {
			n++
		}
	}
	for i := n; i < len(batch); i++ {
		s := &batch[i]
		if !r.all || s.Expired {
			s.Header(&r.head)
			if class := r.admit(&r.head); class != record.Copied {
				s.Class = class
				if r.skipped != nil {
					r.skipped(&r.head, class)
				}
				continue
			}
		}
		if n != i {
			batch[n], batch[i] = batch[i], batch[n]
		}
		n++
	}
	return batch[:n]
}

// admit returns the class of a record, judged by its header.
func (r *selected) admit(h *record.Header) record.Class {
	switch {
	case h.Expired && !r.sel.KeepExpired:
		return record.Expired
	case !r.sel.Header(h), !r.window.has(h.ExpireMS):
		return record.Filtered
	}
	return record.Copied
}

// Counted reports the counts of the underlying reader.
func (r *selected) Counted(f record.CountFunc) { record.Counted(r.Reader, f) }

func (r *selected) skip(h *record.Header, class record.Class) {
	r.Settle(class)
	if r.skipped != nil {
		r.skipped(h, class)
	}
}

// weighed skips small records, too. It buffers elements until a record is large enough, and then returns them again:
// first from the spool, then from the last batch, which holds views of the source.
type weighed struct {
	selected
	spool   *sorted.Spool
	spooled bool // the spool holds elements to return
	used    bool // the spool was written to
	array   [weighBatch]record.Element
	batch   []record.Element // unread part of array
}

// Next moves to the next record that is large enough.
func (r *weighed) Next() (*record.Header, error) {
	for n := 1; ; n++ {
		if n%checkEvery == 0 && r.ctx.Err() != nil {
			return nil, context.Cause(r.ctx)
		}
		h, err := r.selected.Next()
		if err != nil {
			return nil, err
		}
		enough, err := r.weigh(h)
		if err != nil {
			return nil, err
		}
		if enough {
			return h, nil
		}
		r.skip(h, record.Filtered)
	}
}

// NextStrings returns no batch, so that all strings go through Next.
func (r *weighed) NextStrings() ([]record.StringRecord, error) { return nil, nil }

// Strings returns no batch, so that the current string goes through Read.
func (r *weighed) Strings([]byte) ([]record.StringRecord, error) { return nil, nil }

// weigh reads elements of a record until it is large enough. It returns false if the record ends before that.
func (r *weighed) weigh(h *record.Header) (bool, error) {
	if r.used {
		r.spool.Reset()
	}
	r.batch, r.spooled, r.used = nil, false, false
	elements, size := int64(0), int64(len(h.Key))
	for n := 1; elements < r.sel.MinElements || size < r.sel.MinBytes; n++ {
		if n%checkEvery == 0 && r.ctx.Err() != nil {
			return false, context.Cause(r.ctx)
		}
		if len(r.batch) > 0 {
			r.used = true
			if err := r.spool.Add(h.Type, r.batch); err != nil {
				return false, err
			}
		}
		got, err := r.selected.Read(r.array[:])
		r.batch = r.array[:got]
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		elements += int64(got)
		for i := range r.batch {
			size += r.batch[i].Bytes(h.Type)
		}
	}
	if !r.used {
		return true, nil
	}
	r.spooled = true
	return true, r.spool.Rewind()
}

// Read returns the buffered elements and then the rest.
func (r *weighed) Read(dst []record.Element) (int, error) {
	if r.spooled {
		n, err := r.spool.Read(dst)
		if err != io.EOF {
			return n, err
		}
		r.spooled = false
	}
	if len(r.batch) > 0 {
		n := copy(dst, r.batch)
		r.batch = r.batch[n:]
		return n, nil
	}
	return r.selected.Read(dst)
}

// Close closes the source and the spool.
func (r *weighed) Close() error { return errors.Join(r.Reader.Close(), r.spool.Close()) }
