package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"kvferry/format"
	"kvferry/internal/filter"
	"kvferry/internal/jsonl"
	"kvferry/internal/sorted"
	"kvferry/record"
	"kvferry/store"
)

const dumpHelp = `Print a dataset as text, one record a line, in ascending (database, key, type) order:

  {"db":"0","type":"zset","key":"board","expire_at_ms":0,"value":[["alice","1.5"]]}

Text that is valid UTF-8 is a JSON string; other bytes are {"base64":"…"}. With --encode base64,
every key, field, member and value is written as base64. Expired records are left out unless
--expired keep is given.
` + exitHelp

const dumpExample = `  kvferry dump /data/pika/dump > all.jsonl
  kvferry dump --type hash --match 'user:*' /data/pika/dump
  kvferry dump --keys-only -o keys.jsonl blackwidow:/data/new`

// dumpFlags are the flags of dump.
type dumpFlags struct {
	source   SourceFlags
	filter   FilterFlags
	format   string
	encode   string
	expired  string
	output   string
	keysOnly bool
}

// dump prints a dataset.
func (a *App) dump() *cobra.Command {
	var f dumpFlags
	cmd := &cobra.Command{
		Use:     "dump SRC",
		Short:   "Print a dataset as JSON lines",
		Long:    dumpHelp,
		Example: dumpExample,
		Args:    exactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.runDump(cmd, &f, args[0]) },
	}
	f.source.Register(cmd)
	f.filter.Register(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.format, "format", "jsonl", "form of the output: jsonl")
	fs.StringVar(&f.encode, "encode", "text", "how bytes are written: text or base64")
	fs.StringVar(&f.expired, "expired", "drop", "what becomes of expired keys: drop or keep")
	fs.StringVarP(&f.output, "output", "o", "", "write to a `file`, which exists only when it is complete")
	fs.BoolVar(&f.keysOnly, "keys-only", false, "leave the values out")
	return cmd
}

func (a *App) runDump(cmd *cobra.Command, f *dumpFlags, location string) error {
	d := &dumper{ctx: cmd.Context(), memory: f.source.Memory() / 4, tempDir: f.source.TempDir()}
	var err error
	if d.filter, err = f.filter.Filter(); err != nil {
		return err
	}
	if d.keepExpired, err = keepExpired(f.expired); err != nil {
		return err
	}
	if f.format != "jsonl" {
		return usagef("--format %q: want jsonl", f.format)
	}
	if f.encode != "text" && f.encode != "base64" {
		return usagef("--encode %q: want text or base64", f.encode)
	}
	d.enc = jsonl.Encoder{Base64: f.encode == "base64", KeysOnly: f.keysOnly}
	findings := &noted{w: cmd.ErrOrStderr()}
	d.env = format.Env{Now: f.source.Clock(a), Memory: d.memory / 2, TempDir: d.tempDir, Report: findings.report}
	src, err := a.Open(cmd.Context(), cmd, location, &f.source, findings.report)
	if err != nil {
		return err
	}
	err = toOutput(cmd, f.output, func(w io.Writer) error { return d.dump(src, w) })
	findings.sum()
	if err == nil && d.lines == 0 && d.filter.Active() {
		fmt.Fprintln(cmd.ErrOrStderr(), "kvferry: no record passes the filter")
	}
	return errors.Join(err, src.Close())
}

// toOutput calls write with standard output, or with a file that appears when write has succeeded.
func toOutput(cmd *cobra.Command, path string, write func(io.Writer) error) error {
	if path == "" {
		return write(cmd.OutOrStdout())
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".tmp-*")
	if err != nil {
		return err
	}
	err = write(f)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

const (
	dumpBatch  = 256
	dumpBuffer = 1 << 20
	// dumpFlush is at what size encoded text goes to the writer.
	dumpFlush = 64 << 10
)

// dumper writes records as text.
type dumper struct {
	ctx         context.Context
	filter      *filter.Filter
	keepExpired bool
	env         format.Env
	memory      int64
	tempDir     string

	enc   jsonl.Encoder
	out   *bufio.Writer
	buf   []byte
	batch [dumpBatch]record.Element
	lines int64
	// written says that text has left buf.
	written bool
}

// dump writes all records of a source. When its tables turn out not to be in order before anything
// was written, it starts over with them sorted.
func (d *dumper) dump(src *Opened, w io.Writer) error {
	d.out = bufio.NewWriterSize(w, dumpBuffer)
	err := d.all(src)
	var order *store.OrderError
	if errors.As(err, &order) {
		if d.written {
			return fmt.Errorf("%w; start over with --resort", err)
		}
		d.buf, d.lines = d.buf[:0], 0
		var again format.Source
		if again, err = src.Reopen(d.ctx, func(o *store.Options) { o.Resort = true }); err != nil {
			return err
		}
		err = errors.Join(d.all(again), again.Close())
	}
	if err != nil {
		return err
	}
	return d.out.Flush()
}

func (d *dumper) all(src format.Source) error {
	dbs, err := d.filter.SelectDBs(src.Databases())
	if err != nil {
		return err
	}
	for _, db := range dbs {
		types := src.Types(db)
		if d.filter.Types != 0 {
			types &= d.filter.Types
		}
		if types == 0 {
			continue
		}
		r, err := src.Records(d.ctx, db, types, format.Span{}, &d.env)
		if err != nil {
			return err
		}
		if !src.Sorted() {
			r = sorted.Records(r, sorted.Options{Memory: d.memory, TempDir: d.tempDir, Admit: d.admit})
		}
		if !d.enc.KeysOnly {
			r = sorted.ByName(r, sorted.Options{Memory: d.memory, TempDir: d.tempDir})
		}
		if err := errors.Join(d.records(r), r.Close()); err != nil {
			return err
		}
	}
	return nil
}

// admit says which records are written.
func (d *dumper) admit(h *record.Header) record.Class {
	switch {
	case h.Expired && !d.keepExpired:
		return record.Expired
	case !d.filter.Header(h):
		return record.Filtered
	}
	return record.Copied
}

func (d *dumper) records(r record.Reader) error {
	for n := 1; ; n++ {
		h, err := r.Next()
		if err == io.EOF {
			return d.flush()
		}
		if err != nil {
			return err
		}
		if n%64 == 0 && d.ctx.Err() != nil {
			return d.ctx.Err()
		}
		if class := d.admit(h); class != record.Copied {
			r.Settle(class)
			continue
		}
		if err := d.record(r, h); err != nil {
			return err
		}
	}
}

// record writes one line. A record without elements is none: nothing of it is written before its
// first element.
func (d *dumper) record(r record.Reader, h *record.Header) error {
	began := len(d.buf)
	d.buf = d.enc.AppendBegin(d.buf, h)
	count := 0
	for {
		n, err := r.Read(d.batch[:])
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		count += n
		if d.enc.KeysOnly {
			break
		}
		if err := d.elements(d.batch[:n]); err != nil {
			return err
		}
	}
	if count == 0 && h.Type != record.Stream {
		d.buf = d.buf[:began]
		return nil
	}
	d.lines++
	d.buf = d.enc.AppendEnd(d.buf)
	if len(d.buf) >= dumpFlush {
		return d.flush()
	}
	return nil
}

func (d *dumper) elements(elems []record.Element) error {
	var err error
	for i := range elems {
		if d.buf, err = d.enc.AppendElement(d.buf, &elems[i]); err != nil {
			return err
		}
		if len(d.buf) >= dumpFlush {
			if err := d.flush(); err != nil {
				return err
			}
		}
	}
	return d.ctx.Err()
}

func (d *dumper) flush() error {
	d.written = d.written || len(d.buf) > 0
	_, err := d.out.Write(d.buf)
	d.buf = d.buf[:0]
	return err
}
