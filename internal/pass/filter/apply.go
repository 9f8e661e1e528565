package filter

import (
	"context"
	"errors"
	"io"
	"time"

	"kvferry/internal/pass/sorted"
	"kvferry/record"
)

// weighBatch is the number of elements returned from a spool at once.
const weighBatch = 64

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

// Apply returns a reader of the records of r in which those that are not selected have the class Expired or Filtered.
// It owns r.
func (s *Selection) Apply(ctx context.Context, r record.Reader, o ApplyOptions) record.Reader {
	out := selected{Reader: r, ctx: ctx, sel: s, all: s.Everything(), window: s.window(o.Now), skipped: o.Skipped,
		now: o.Now.UnixMilli(), fields: o.Fields}
	switch {
	case out.all && s.KeepExpired:
		return r
	case s.Holds():
		return &weighed{selected: out, spool: sorted.NewSpool(sorted.Options{Memory: o.Memory, TempDir: o.TempDir})}
	}
	return &out
}

// Wanted returns a function that reports whether a record may be selected; nil if all may. See format.Env.
func (s *Selection) Wanted(now time.Time) func(*record.Header) bool {
	all, window := s.Everything(), s.window(now)
	if all && s.KeepExpired {
		return nil
	}
	return func(h *record.Header) bool {
		return (s.KeepExpired || !h.Expired) && (all || s.Header(h) && window.has(h.ExpireMS))
	}
}

// selected sets the classes of records that can be excluded by their headers, and takes out expired fields.
type selected struct {
	record.Reader
	ctx     context.Context
	sel     *Selection
	all     bool // all records are selected, except expired ones
	window  window
	skipped func(*record.Header, record.Class)

	now    int64
	fields func(*record.Header, int)
	kept   bool // a field of the hash that goes on has not expired
}

// Next returns the next records.
func (r *selected) Next() (*record.Batch, error) {
	if r.ctx.Err() != nil {
		return nil, context.Cause(r.ctx)
	}
	b, err := r.Reader.Next()
	if err != nil {
		return nil, err
	}
	for i := range b.Records {
		h := &b.Records[i]
		if b.Begins(i) && (!r.all || h.Expired) {
			r.admit(h)
		}
		if h.Type == record.Hash && !r.sel.KeepExpired && !h.Out() {
			r.dropExpired(b, i)
		}
	}
	return b, nil
}

// admit sets the class of a record, judged by its header.
func (r *selected) admit(h *record.Record) {
	switch {
	case h.Out():
	case h.Expired && !r.sel.KeepExpired:
		r.skip(h, record.Expired)
	case !r.sel.Header(&h.Header), !r.window.has(h.ExpireMS):
		r.skip(h, record.Filtered)
	}
}

func (r *selected) skip(h *record.Record, class record.Class) {
	h.Class = class
	if r.skipped != nil {
		r.skipped(&h.Header, class)
	}
}

// dropExpired removes the expired fields of a hash. A hash whose fields have all expired has expired itself.
func (r *selected) dropExpired(b *record.Batch, i int) {
	h, elems := &b.Records[i], b.Of(i)
	n := 0
	for j := range elems {
		if ms := elems[j].ExpireMS; ms != 0 && ms < r.now {
			h.Gone++
			continue
		}
		if n != j {
			elems[n] = elems[j]
		}
		n++
	}
	h.N = n
	r.kept = n > 0 || r.kept && !b.Begins(i)
	if h.Gone == 0 || !b.Ends(i) {
		return
	}
	if !r.kept {
		h.Class = record.Expired
	}
	if r.fields != nil {
		r.fields(&h.Header, int(h.Gone))
	}
}

// weighed excludes records by size, too. If a record goes on before its size is known to be selected, it buffers the
// elements, and returns them before the rest: until the record is large enough, or has ended. A record that exceeds
// MaxBytes is excluded at once, so no more than MaxBytes are buffered in vain.
type weighed struct {
	selected
	elements, size int64 // of the last record
	held           bool  // the last record is held back
	head           record.Kept
	spool          *sorted.Spool
	spooled        bool          // the spool has elements
	rest           *record.Batch // follows the spool; nil if no elements are returned from it
	given          bool          // elements from the spool were returned
	array          [weighBatch]record.Element
	one            [1]record.Record
	out            record.Batch
}

// Next returns the next records.
func (r *weighed) Next() (*record.Batch, error) {
	if r.rest != nil {
		return r.replay()
	}
	for {
		b, err := r.selected.Next()
		if err != nil {
			return nil, err
		}
		for i := range b.Records {
			if r.weigh(b, i) {
				continue
			}
			if i == len(b.Records)-1 && b.More {
				if err := r.hold(b, i); err != nil {
					return nil, err
				}
				b.Records, b.More = b.Records[:i], false
				break
			}
			r.skip(&b.Records[i], record.Filtered)
		}
		if len(b.Records) == 0 {
			continue
		}
		if b.Cont && r.held {
			return r.resume(b)
		}
		return b, nil
	}
}

// weigh reports whether record i of a batch is out, or is selected whatever follows. It excludes a record that is too
// large.
func (r *weighed) weigh(b *record.Batch, i int) bool {
	h := &b.Records[i]
	if b.Begins(i) {
		r.elements, r.size = 0, int64(len(h.Key))
	}
	n, bytes := record.Measure(h.Type, b.Of(i))
	r.elements, r.size = r.elements+n, r.size+bytes
	limit := r.sel.MaxBytes
	if limit > 0 && r.size > limit && !h.Out() {
		r.skip(h, record.Filtered)
	}
	return h.Out() || r.elements >= r.sel.MinElements && r.size >= r.sel.MinBytes && (limit == 0 || b.Ends(i))
}

// hold buffers the elements of record i of a batch.
func (r *weighed) hold(b *record.Batch, i int) error {
	if !r.held {
		r.head.Keep(&b.Records[i].Header)
		r.held = true
	}
	r.spooled = r.spooled || b.Records[i].N > 0
	return r.spool.Add(r.head.Type, b.Of(i))
}

// resume returns the record that was held back, which goes on in b.
func (r *weighed) resume(b *record.Batch) (*record.Batch, error) {
	spooled := r.spooled
	r.held, r.spooled = false, false
	if !spooled || b.Records[0].Out() {
		b.Cont = false
		if spooled {
			r.spool.Reset()
		}
		return b, nil
	}
	if err := r.spool.Rewind(); err != nil {
		return nil, err
	}
	r.one[0] = b.Records[0]
	r.one[0].Header = r.head.Header
	r.rest, r.given = b, false
	return r.replay()
}

// replay returns the elements of the spool, then the batch after them.
func (r *weighed) replay() (*record.Batch, error) {
	h := &r.one[0]
	if n, err := r.spool.Read(r.array[:]); err != io.EOF && h.Class == record.Copied && !h.Skip {
		h.First, h.N = 0, n
		r.out = record.Batch{Records: r.one[:], Elems: r.array[:n], Cont: r.given, More: true}
		r.given = true
		return &r.out, err
	}
	r.spool.Reset()
	b := r.rest
	r.rest = nil
	first := &b.Records[0]
	first.Class, first.Skip, first.Hidden = h.Class, h.Skip, h.Hidden
	return b, nil
}

// Close closes the source and the spool.
func (r *weighed) Close() error { return errors.Join(r.Reader.Close(), r.spool.Close()) }
