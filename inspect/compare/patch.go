package compare

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"

	"kvferry/inspect"
	"kvferry/internal/sys/disk"
	"kvferry/internal/text/patch"
	"kvferry/record"
)

// Patch compares A, the desired content of a server, with B, its current content, and writes the operations that turn
// B into A: put keys of A that are missing or different in B, set expiries if only they differ, and delete keys that
// A does not have.
//
// Records are compared by digest. Patch first saves the operations to a temporary file in key order, then reads A
// again for the records to put.
func Patch(ctx context.Context, o *Options, out *patch.Writer) (*Result, error) {
	d, pairs, err := prepareDiff(ctx, o)
	if err != nil {
		return nil, err
	}
	for _, p := range pairs {
		if _, err := strconv.ParseUint(p.A, 10, 31); err != nil && !p.InB {
			return nil, &NumberError{DB: p.A}
		}
	}
	for _, p := range pairs {
		if err := d.patchDatabase(ctx, p, out); err != nil {
			return nil, err
		}
	}
	d.res.Equal = d.res.Differences == 0
	return &d.res, nil
}

// NumberError reports a database whose name is not a number, so that no database of the server corresponds to it.
type NumberError struct{ DB string }

// Error names the database and how to map it to a numbered one.
func (e *NumberError) Error() string {
	return fmt.Sprintf("database %q: a server numbers its databases: compare it with one that the server has (--map-db %s=0), "+
		"or convert the dataset to an RDB file, which numbers them, and compare that file", e.DB, e.DB)
}

// patchDatabase writes the operations for one database.
func (d *differ) patchDatabase(ctx context.Context, p dbPair, out *patch.Writer) (err error) {
	todo, err := newDecisions(d.a.TempDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, todo.f.Close()) }()
	if err := d.decide(ctx, p, todo); err != nil {
		return err
	}
	next, err := todo.read()
	if err != nil {
		return err
	}
	a, err := openDigests(ctx, d.a, p.A, p.both, p.InA)
	if err != nil {
		return fmt.Errorf("first dataset: %w", err)
	}
	defer func() { err = errors.Join(err, a.close()) }()
	db := p.B
	if !p.InB {
		db = p.A
	}
	for {
		what, err := next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		what.header.DB = db
		switch what.op {
		case patch.Delete:
			err = out.Delete(&what.header)
		case patch.Expire:
			err = out.Expire(&what.header)
		default:
			err = a.put(ctx, what, out)
		}
		if err != nil {
			return err
		}
	}
}

// decide compares the records of a database and saves the operations.
func (d *differ) decide(ctx context.Context, p dbPair, todo *decisions) error {
	err := merge(ctx, d, p, openDigests, func(c int, a, b *digests) error { return d.decideOne(c, a, b, todo) })
	if err != nil {
		return err
	}
	return todo.writeHeld()
}

// decideOne decides on the operation for the head of a if c ≤ 0, or of b if c > 0.
func (d *differ) decideOne(c int, a, b *digests, todo *decisions) error {
	if c > 0 {
		d.res.Extra++
		d.res.Differences++
		err := todo.add(&decision{op: patch.Delete, header: *b.head}, false)
		b.head = nil
		return err
	}
	what := decision{header: *a.head, elements: a.whole.Elements}
	switch {
	case c < 0:
		what.op = patch.Put
		d.res.Missing++
	case a.whole.Equal(b.whole, d.res.Seconds):
	case a.bare.Equal(b.bare, false):
		what.op = patch.Expire
	default:
		what.op = patch.Put
	}
	if c == 0 {
		d.res.Records++
		if what.op != "" {
			d.res.Differing++
		}
		b.head = nil
	}
	if what.op != "" {
		d.res.Differences++
	}
	a.head = nil
	return todo.add(&what, true)
}

// digests reads the records of one side and hashes each with and without its expiry. A record without elements does
// not exist, unless it is a stream.
type digests struct {
	r           *record.Walker
	hasher      record.Hasher
	head        *record.Header
	whole, bare record.Digest
	batch       []record.Element
	key         []byte
}

// openDigests opens a database in order.
func openDigests(ctx context.Context, s *inspect.Scan, db string, types record.TypeSet, has bool) (*digests, error) {
	out := &digests{hasher: record.Hasher{PlainZero: s.PlainZero}, batch: make([]record.Element, record.BatchLen),
		r: record.Walk(record.Merge())}
	if types &= s.Types(db); !has || types == 0 {
		return out, nil
	}
	r, err := s.OpenSorted(ctx, s.Whole(db, types))
	if err != nil {
		return nil, err
	}
	out.r = record.Walk(r)
	return out, nil
}

// next moves head to the next record and hashes the whole record.
func (d *digests) next() error {
	for d.head == nil {
		h, err := d.r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		head := *h
		d.key = append(d.key[:0], h.Key...)
		head.Key = d.key
		d.hasher.Begin(&head)
		for {
			n, err := d.r.Read(d.batch)
			if err == io.EOF {
				break
			}
			if err != nil {
				return err
			}
			d.hasher.Elements(d.batch[:n])
			clear(d.batch[:n]) // frees the memory that large rows are read into
		}
		d.whole = d.hasher.End(&head)
		bare := head
		bare.ExpireMS = 0
		d.bare = d.hasher.End(&bare)
		if d.whole.Records > 0 {
			d.head = &head
		}
	}
	return nil
}

func (d *digests) first() *record.Header { return d.head }

func (d *digests) close() error { return d.r.Close() }

// put skips to a record and writes it.
func (d *digests) put(ctx context.Context, what *decision, out *patch.Writer) error {
	for n := 0; ; n++ {
		if err := record.Stopped(ctx, n); err != nil {
			return err
		}
		h, err := d.r.Next()
		if err == io.EOF {
			return fmt.Errorf("key %s no longer exists: the dataset is changing", record.Quote(what.header.Key))
		}
		if err != nil {
			return err
		}
		if record.Compare(h, &what.header) != 0 {
			continue
		}
		head := *h
		head.DB = what.header.DB
		if err := out.Put(&head, what.elements); err != nil {
			return err
		}
		for {
			n, err := d.r.Read(d.batch)
			if err == io.EOF {
				return nil
			}
			if err == nil {
				err = out.Elements(d.batch[:n])
				clear(d.batch[:n])
			}
			if err != nil {
				return err
			}
		}
	}
}

// decision is the operation for one record.
type decision struct {
	op       patch.Op // "" if the sides agree
	header   record.Header
	elements int64
}

// decisions stores decisions in an anonymous temporary file, each as
//
//	op 1B | type 1B | keyless 1B | key length, expiry, elements: varints | key
//
// A key has one type on a server, so writing a record of A replaces a record of another type without a delete.
// Keyless records, such as function libraries, do not replace keys of the same name.
type decisions struct {
	f    *disk.File
	w    *bufio.Writer
	key  []byte // key of the held decisions
	bare record.Keyless
	held []decision
	kept bool // A has the key
}

func newDecisions(dir string) (*decisions, error) {
	f, err := disk.Temp(dir, "patch")
	if err != nil {
		return nil, err
	}
	return &decisions{f: f, w: bufio.NewWriter(f)}, nil
}

// add holds a decision until the key changes. inA is true if A has the record.
func (d *decisions) add(x *decision, inA bool) error {
	if bare := x.header.Keyless; d.key == nil || bare != d.bare || !bytes.Equal(d.key, x.header.Key) {
		if err := d.writeHeld(); err != nil {
			return err
		}
		d.key, d.bare = record.KeepKey(nil, x.header.Key), bare
	}
	if inA && d.kept && d.bare == record.Keyed { // a module may have several keyless records besides its values
		return fmt.Errorf("key %s has several types in the first dataset, but a server holds one type per key: convert it with --on-conflict, and compare the result",
			record.Quote(d.key))
	}
	d.kept = d.kept || inA
	x.header.Key = d.key
	d.held = append(d.held, *x)
	return nil
}

// writeHeld writes the held decisions for a key.
func (d *decisions) writeHeld() error {
	for _, x := range d.held {
		if x.op == "" || x.op == patch.Delete && d.kept {
			continue
		}
		b := []byte{x.op[0], byte(x.header.Type), byte(d.bare)}
		b = binary.AppendVarint(b, int64(len(d.key)))
		b = binary.AppendVarint(b, x.header.ExpireMS)
		b = binary.AppendVarint(b, x.elements)
		if _, err := d.w.Write(append(b, d.key...)); err != nil {
			return err
		}
	}
	d.held, d.kept = d.held[:0], false
	return nil
}

// read returns a function that returns the decisions in order.
func (d *decisions) read() (func() (*decision, error), error) {
	if err := d.w.Flush(); err != nil {
		return nil, err
	}
	if _, err := d.f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	in := bufio.NewReader(d.f)
	ops := map[byte]patch.Op{patch.Put[0]: patch.Put, patch.Expire[0]: patch.Expire, patch.Delete[0]: patch.Delete}
	return func() (*decision, error) {
		op, err := in.ReadByte()
		if err != nil {
			return nil, err
		}
		t, err := in.ReadByte()
		var bare byte
		if err == nil {
			bare, err = in.ReadByte()
		}
		x := &decision{op: ops[op], header: record.Header{Type: record.Type(t), Keyless: record.Keyless(bare)}}
		var n int64
		for _, to := range []*int64{&n, &x.header.ExpireMS, &x.elements} {
			if err == nil {
				*to, err = binary.ReadVarint(in)
			}
		}
		if err == nil {
			x.header.Key = make([]byte, n)
			_, err = io.ReadFull(in, x.header.Key)
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return x, err
	}, nil
}
