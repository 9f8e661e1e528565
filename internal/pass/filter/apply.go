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
	// weighBatch is how many elements are weighed at once.
	weighBatch = 64
	// checkEvery is how many records or batches pass between looks at the context.
	checkEvery = 256
)

// ApplyOptions says how a selection is applied.
type ApplyOptions struct {
	// Now is the moment that the command works with.
	Now time.Time
	// Memory is what may be held of a record until its size is known, TempDir where the rest goes.
	Memory  int64
	TempDir string
	// Skipped is told each record that is left out; it may be nil.
	Skipped func(*record.Header, record.Class)
	// Fields is told how many fields of a hash have expired and are left out; it may be nil.
	Fields func(h *record.Header, n int)
}

// Apply returns a reader of the records of r that are selected. It owns r, and settles what it leaves
// out there: expired records are Expired, others Filtered. Where next to nothing is selected, the
// reader looks at ctx while its caller waits.
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

// selected leaves out records that their headers decide about.
type selected struct {
	record.Reader
	strings record.StringReader // that is the Reader; nil: it is none
	head    record.Header       // of one of its strings
	ctx     context.Context
	sel     *Selection
	all     bool // but for expired ones
	window  window
	skipped func(*record.Header, record.Class)

	now    int64
	fields func(*record.Header, int)
	hash   *record.Header // whose fields are being read
	kept   bool           // one of them has not expired
	gone   int            // of them, not told yet
}

// Next moves to the next record that is selected.
func (r *selected) Next() (*record.Header, error) {
	h, err := r.next()
	if r.hash = nil; err == nil && h.Type == record.Hash && !r.sel.KeepExpired {
		r.hash, r.kept, r.gone = h, false, 0
	}
	return h, err
}

// Read returns the elements of a record but the fields of a hash that have expired.
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

// dropExpired removes expired fields of a batch and returns how many elements are left.
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

// tellFields tells of expired fields at the end of a hash. One of no others has expired itself.
func (r *selected) tellFields() {
	if r.gone == 0 {
		return
	}
	if !r.kept {
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

// NextStrings returns those of the next strings that are selected. They change places with those that are not.
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

// Strings returns those of the current string and those that follow it that are selected; it is one of them.
func (r *selected) Strings(bound []byte) ([]record.StringRecord, error) {
	run, ok := r.Reader.(record.StringRunner)
	if !ok {
		return nil, nil
	}
	batch, err := run.Strings(bound)
	return r.admitted(batch), err
}

// admitted moves those of a batch that are selected to its front and returns them, in their order.
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

// admit says what becomes of a record, as far as its header shows.
func (r *selected) admit(h *record.Header) record.Class {
	switch {
	case h.Expired && !r.sel.KeepExpired:
		return record.Expired
	case !r.sel.Header(h), !r.window.has(h.ExpireMS):
		return record.Filtered
	}
	return record.Copied
}

// Counted tells what the reader below has counted.
func (r *selected) Counted(f record.CountFunc) { record.Counted(r.Reader, f) }

func (r *selected) skip(h *record.Header, class record.Class) {
	r.Settle(class)
	if r.skipped != nil {
		r.skipped(h, class)
	}
}

// weighed leaves out small records too. What was read of a record before it was large enough is
// returned again: first what is in the spool, then the batch that decided, which is views of the
// source.
type weighed struct {
	selected
	spool   *sorted.Spool
	spooled bool // the spool has elements that were not returned
	used    bool // the spool is not empty
	array   [weighBatch]record.Element
	batch   []record.Element // of array, not returned
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

// NextStrings leaves all to Next.
func (r *weighed) NextStrings() ([]record.StringRecord, error) { return nil, nil }

// Strings leaves the current record to Read.
func (r *weighed) Strings([]byte) ([]record.StringRecord, error) { return nil, nil }

// weigh reads elements of a record until it is large enough, or ends before that.
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

// Read returns what was weighed and then the rest.
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

// Close closes the source and removes what is held.
func (r *weighed) Close() error { return errors.Join(r.Reader.Close(), r.spool.Close()) }
