package dump

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/sys/bufpool"
	"kvferry/record"
)

// Encoder encodes records as text, one after the other in the order of the dump. Each method appends
// to dst and returns it.
type Encoder interface {
	AppendHead(dst []byte) []byte // before the first record
	AppendBegin(dst []byte, h *record.Header) ([]byte, error)
	AppendElement(dst []byte, e *record.Element) ([]byte, error)
	AppendEnd(dst []byte) ([]byte, error)
	AppendTail(dst []byte) []byte // after the last record
}

// Sizer is an Encoder that can write the size of a record instead of its elements.
type Sizer interface {
	// AppendSize is called between AppendBegin and AppendEnd. bytes is the size of the key and all
	// elements.
	AppendSize(dst []byte, elements, bytes int64) []byte
}

// Spiller is an Encoder that can write large values in pieces.
type Spiller interface {
	SpillTo(bufpool.Spill)
}

// Options control a dump.
type Options struct {
	Scan    *inspect.Scan
	Encoder Encoder
	// KeysOnly leaves out the elements. If the encoder is a Sizer, it writes their number and size.
	KeysOnly bool
	// Limit ends the dump after this number of records; 0 dumps all.
	Limit int64
	// Dead dumps deleted records whose rows are still on disk, instead of live ones. Tell is called
	// for anything unknown about such a record.
	Dead bool
	Tell func(db string, key []byte, t record.Type, what string)
	// Each is called for each record that is written; may be nil.
	Each func(*record.Header)
}

const (
	bufferSize = 1 << 20
	// flushSize is the size at which encoded text is written.
	flushSize = 64 << 10
	batchLen  = 256
	// Deleted records are read in spans of about deadSpanBytes of the source, in no more than maxDeadSpans.
	deadSpanBytes = 1 << 20
	maxDeadSpans  = 1024
)

// Dumper writes records as text.
type Dumper struct {
	o   *Options
	out *bufio.Writer
	buf []byte
	// batch is an array: that saves an allocation per dumper.
	batch   [batchLen]record.Element
	records int64
	written bool
}

// New returns a dumper that writes to w.
func New(w io.Writer, o *Options) *Dumper {
	d := &Dumper{o: o, out: bufio.NewWriterSize(w, bufferSize)}
	if s, ok := o.Encoder.(Spiller); ok {
		s.SpillTo(d.spill)
	}
	return d
}

// Records returns the number of dumped records.
func (d *Dumper) Records() int64 { return d.records }

// Written reports whether the dumper has written text.
func (d *Dumper) Written() bool { return d.written }

// errLimit ends a dump at its limit.
var errLimit = errors.New("limit reached")

// Run dumps all selected records. It may be called again after an error if Written is false. It flushes encoded text
// even after an error, so a reader of commands never gets half a command.
func (d *Dumper) Run(ctx context.Context) error {
	err := d.run(ctx)
	err = cmp.Or(err, d.out.Flush())
	return err
}

func (d *Dumper) run(ctx context.Context) error {
	d.records, d.written = 0, false
	d.buf = d.o.Encoder.AppendHead(d.buf[:0])
	dbs, err := d.databases()
	if err != nil {
		return err
	}
	d.begin(dbs)
	for _, db := range dbs {
		if err := d.database(ctx, db); errors.Is(err, errLimit) {
			break
		} else if err != nil {
			return err
		}
	}
	d.buf = d.o.Encoder.AppendTail(d.buf)
	return d.flush()
}

// begin starts the step of the dump.
func (d *Dumper) begin(dbs []string) {
	var total int64
	s, tasks := d.o.Scan, len(dbs)
	for _, db := range dbs {
		size := s.Size(db, s.Types(db))
		total += size
		if d.o.Dead {
			tasks += deadSpans(size) - 1
		}
	}
	s.Meter.Begin(s.Step, total, 0, tasks)
}

// databases returns the databases that are selected.
func (d *Dumper) databases() ([]string, error) {
	if !d.o.Dead {
		return d.o.Scan.Databases()
	}
	dbs, err := DeadDatabases(d.o.Scan.Source)
	if err != nil {
		return nil, err
	}
	return d.o.Scan.Selected().SelectDBs(dbs)
}

// DeadDatabases returns the names of the databases that may have deleted records.
func DeadDatabases(src format.Source) ([]string, error) {
	if u, ok := format.As[format.Undead](src); ok {
		return u.DeadDatabases()
	}
	return src.Databases(), nil
}

func (d *Dumper) database(ctx context.Context, db string) error {
	s := d.o.Scan
	types := s.Types(db)
	if types == 0 {
		return nil
	}
	if !d.o.Dead {
		open := s.Ordered
		if d.o.KeysOnly {
			open = s.OrderedKeys
		}
		r, err := open(ctx, db)
		if err != nil {
			return err
		}
		return errors.Join(d.all(ctx, r), r.Close())
	}
	parts, err := d.deadParts(db, types)
	for _, p := range parts {
		if err == nil {
			err = d.dead(ctx, p)
		}
	}
	return err
}

// deadSpans returns the number of spans for a database of this size.
func deadSpans(size int64) int { return int(min(max(size/deadSpanBytes, 1), maxDeadSpans)) }

// deadParts cuts a database into spans of keys that are read one after the other. Few records are dead, so progress
// counts spans.
func (d *Dumper) deadParts(db string, types record.TypeSet) ([]inspect.Part, error) {
	size, spans := d.o.Scan.Source.Size(db, types), []format.Span{{}}
	if keys := d.o.Scan.Selected().Spans(); keys != nil {
		spans = format.Join(keys, maxDeadSpans)
	} else if n := deadSpans(size); n > 1 {
		var err error
		if spans, err = format.SplitAny(d.o.Scan.Source, db, types, n); err != nil {
			return nil, err
		}
	}
	parts := make([]inspect.Part, len(spans))
	for i, span := range spans {
		n := int64(len(spans))
		parts[i] = inspect.Part{DB: db, Types: types, Span: span, Bytes: size*int64(i+1)/n - size*int64(i)/n}
	}
	return parts, nil
}

// dead dumps the deleted records of a part.
func (d *Dumper) dead(ctx context.Context, p inspect.Part) error {
	r, err := d.openDead(ctx, p)
	if err != nil {
		return err
	}
	if !d.o.KeysOnly {
		r = d.o.Scan.ByName(r, 4)
	}
	return errors.Join(d.all(ctx, r), r.Close())
}

// openDead returns a reader of deleted records.
func (d *Dumper) openDead(ctx context.Context, p inspect.Part) (record.Reader, error) {
	s := d.o.Scan
	src, ok := format.As[format.Undead](s.Source)
	if !ok {
		return nil, fmt.Errorf("--dead: %s keeps no deleted records; leave out --dead", s.Source.Format().Name())
	}
	tell := func(key []byte, t record.Type, what string) {
		if d.o.Tell != nil && s.Selected().Type(t) && s.Selected().Key(key) {
			d.o.Tell(p.DB, key, t, what)
		}
	}
	r, err := src.DeadRecords(ctx, p.DB, p.Types, p.Span, s.Env(), tell)
	if err != nil {
		return nil, err
	}
	return s.Apply(ctx, s.Meter.Reader(r, p.Bytes, nil), nil), nil
}

func (d *Dumper) all(ctx context.Context, reader record.Reader) error {
	r := record.Walk(reader)
	for n := 1; ; n++ {
		if d.o.Limit > 0 && d.records >= d.o.Limit {
			return errLimit
		}
		h, err := r.Next()
		if err == io.EOF {
			return d.flush()
		}
		if err != nil {
			return err
		}
		if err := record.Stopped(ctx, n); err != nil {
			return err
		}
		if err := d.record(ctx, r, h); err != nil {
			return err
		}
	}
}

// record writes one record. It writes only after the first element is read, because a record without elements does
// not exist.
func (d *Dumper) record(ctx context.Context, r *record.Walker, h *record.Header) error {
	n, err := r.Read(d.batch[:])
	if err != nil && err != io.EOF {
		return err
	}
	if err == io.EOF && h.Type != record.Stream {
		return nil
	}
	if d.o.Each != nil {
		d.o.Each(h)
	}
	if d.buf, err = d.o.Encoder.AppendBegin(d.buf, h); err != nil {
		return err
	}
	if d.o.KeysOnly {
		if err := d.size(ctx, r, h, n); err != nil {
			return err
		}
		n = 0
	}
	for n > 0 {
		if err := d.elements(d.batch[:n]); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if n, err = r.Read(d.batch[:]); err != nil && err != io.EOF {
			return err
		}
	}
	d.records++
	if d.buf, err = d.o.Encoder.AppendEnd(d.buf); err != nil {
		return err
	}
	if len(d.buf) >= flushSize {
		return d.flush()
	}
	return nil
}

// size writes the number and size of a record's elements. n elements are already in the batch.
func (d *Dumper) size(ctx context.Context, r *record.Walker, h *record.Header, n int) error {
	s, ok := d.o.Encoder.(Sizer)
	if !ok {
		return nil
	}
	elements, bytes := int64(0), int64(len(h.Key))
	for n > 0 {
		more, size := record.Measure(h.Type, d.batch[:n])
		elements, bytes = elements+more, bytes+size
		clear(d.batch[:n])
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var err error
		if n, err = r.Read(d.batch[:]); err != nil && err != io.EOF {
			return err
		}
	}
	d.buf = s.AppendSize(d.buf, elements, bytes)
	return nil
}

func (d *Dumper) elements(elems []record.Element) error {
	var err error
	for i := range elems {
		if d.buf, err = d.o.Encoder.AppendElement(d.buf, &elems[i]); err != nil {
			return err
		}
		if len(d.buf) >= flushSize {
			if err := d.flush(); err != nil {
				return err
			}
		}
	}
	clear(elems) // frees the memory that large rows are read into
	return nil
}

// spill writes text in the middle of a value. The buffered writer returns its error on the next write.
func (d *Dumper) spill(text []byte) []byte {
	d.buf = text
	_ = d.flush()
	return d.buf
}

func (d *Dumper) flush() error {
	d.written = d.written || len(d.buf) > 0
	_, err := d.out.Write(d.buf)
	d.buf = bufpool.Reset(d.buf)
	return err
}
