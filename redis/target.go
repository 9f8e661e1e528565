package redis

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/crc64"
	"kvferry/store"
)

// target is a file under construction: a directory of sections, joined at the end.
//
//	<location>/000007.section   the items of shard 7
//	<location>/joined           the whole file, before it takes the place of the directory
type target struct {
	*dataset.Adapter
	format *rdbFormat
	dir    string
	o      format.CreateOptions

	syncs    *disk.Syncer
	mu       sync.Mutex
	sections map[int]*part
}

// maxSyncs limits the sections that are synced concurrently.
const maxSyncs = 4

// part is a finished section.
type part struct {
	N       int    `json:"n"`
	DB      string `json:"db"`
	Version string `json:"version"`
	Bytes   int64  `json:"bytes"`
	Keys    int64  `json:"keys"`
	Expires int64  `json:"expires"`
	Sum     uint64 `json:"crc64"`

	durable *disk.Syncing // nil: durable, or no sync requested
}

// create starts a target.
func create(f *rdbFormat, location string, o *format.CreateOptions) (format.Target, error) {
	if err := checkNumbers(o.DBs); err != nil {
		return nil, fmt.Errorf("%s: %w", location, err)
	}
	if err := disk.MkdirAll(location); err != nil {
		return nil, err
	}
	return &target{Adapter: f.adapter(), format: f, dir: location, o: *o,
		syncs: disk.NewSyncer(maxSyncs), sections: map[int]*part{}}, nil
}

// checkNumbers refuses databases without a number.
func checkNumbers(dbs []string) error {
	for _, name := range dbs {
		if n, err := strconv.ParseUint(name, 10, 31); err != nil || strconv.FormatUint(n, 10) != name {
			return fmt.Errorf("database %q: databases of an RDB file have numbers", name)
		}
	}
	return nil
}

// adapter returns the limits of the file.
func (f *rdbFormat) adapter() *dataset.Adapter {
	a := NewAdapter(f.Limits(), f.version, "RDB "+f.version.String())
	a.Odd[record.Other] = func(h *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
		return dataset.KeepIf(batch, func(e *record.Element) bool { return f.keepOpaque(h, e, report) })
	}
	return a
}

// keepOpaque drops values of other servers, and libraries if the version has no functions.
func (f *rdbFormat) keepOpaque(h *record.Header, e *record.Element, report func(record.Loss)) bool {
	library := h.Keyless == record.Library
	switch {
	case library && f.version.Functions(), h.Keyless == record.ModuleAux, h.Keyless == record.Keyed && rdb.IsModule(e):
		return true
	case library:
		report(record.Loss{Kind: record.LossModule, Drops: true, Detail: "functions need --rdb-version 10 or newer",
			Avoid: "--rdb-version 10 or newer keeps functions"})
	default:
		report(record.Loss{Kind: record.LossModule, Drops: true, Detail: fmt.Sprintf("a value of type %s", record.Quote(e.Name))})
	}
	return false
}

// Groups returns one group: all types share the file.
func (t *target) Groups() []record.TypeSet { return []record.TypeSet{t.format.version.Types()} }

func (t *target) section(n int) string { return filepath.Join(t.dir, fmt.Sprintf("%06d.section", n)) }

// Shard starts a section.
func (t *target) Shard(n int, db string, _ record.TypeSet, memory int64) (record.Writer, error) {
	f, err := t.newFile(n)
	if err != nil {
		return nil, err
	}
	return t.writer(f, n, db, memory), nil
}

// done adds a finished section.
func (t *target) done(p *part) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sections[p.N] = p
}

// Tables describes a durable section for the journal; First holds its part as JSON.
func (t *target) Tables(n int) ([]store.Table, error) {
	t.mu.Lock()
	p := t.sections[n]
	t.mu.Unlock()
	if p == nil {
		return nil, nil
	}
	if err := p.durable.Wait(); err != nil {
		return nil, err
	}
	first, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return []store.Table{{File: filepath.Base(t.section(n)), Keyspace: Keyspace, Shard: n, First: first, Entries: p.Keys,
		Bytes: p.Bytes}}, nil
}

// Adopt adds a section that an earlier process finished.
func (t *target) Adopt(n int, db string, tables []store.Table) error {
	for _, table := range tables {
		var p part
		if err := json.Unmarshal(table.First, &p); err != nil || p.N != n || p.DB != db ||
			p.Version != t.format.version.String() {
			return fmt.Errorf("%s: section %d differs from the journal", t.dir, n)
		}
		if st, err := disk.Stat(t.section(n)); err != nil {
			return err
		} else if st.Size() != p.Bytes {
			return fmt.Errorf("%s: section %d has %s bytes, had %s", t.dir, n, record.Number(st.Size()), record.Number(p.Bytes))
		}
		t.done(&p)
	}
	return nil
}

// Finish joins the sections into a file, which replaces the directory.
func (t *target) Finish(ctx context.Context) (format.Source, error) {
	joined := filepath.Join(t.dir, "joined")
	if err := t.awaitSynced(); err != nil {
		return nil, err
	}
	if err := t.join(ctx, joined); err != nil {
		return nil, err
	}
	aside := t.dir + ".sections"
	if err := disk.RemoveAll(aside); err != nil {
		return nil, err
	}
	if err := disk.Rename(t.dir, aside); err != nil {
		return nil, err
	}
	if err := disk.Rename(filepath.Join(aside, "joined"), t.dir); err != nil {
		return nil, err
	}
	if err := disk.RemoveAll(aside); err != nil {
		return nil, err
	}
	if t.o.Reopen == nil {
		return nil, nil
	}
	return t.format.Open(ctx, t.dir, t.o.Reopen)
}

// awaitSynced waits until all sections are synced.
func (t *target) awaitSynced() error {
	var errs []error
	for _, p := range t.sections {
		errs = append(errs, p.durable.Wait())
	}
	return errors.Join(errs...)
}

// Abort removes the written files.
func (t *target) Abort() {
	t.awaitSynced() // waits for syncs, which hold the files open
	disk.RemoveAll(t.dir)
	disk.RemoveAll(t.dir + ".sections")
}

// joiner concatenates the parts of a file and computes the checksum.
type joiner struct {
	f        *disk.File
	off      int64
	sum      uint64
	sections []piece // placed sections, to be copied later
	err      error
	copied   store.Copied // may be nil
	done     atomic.Int64 // of off bytes
}

// piece is a section and its offset in the file.
type piece struct {
	path string
	off  int64
	n    int64
}

func (j *joiner) write(b []byte) {
	if j.err == nil {
		j.sum = crc64.Update(j.sum, b)
		_, j.err = j.f.WriteAt(b, j.off)
		j.off += int64(len(b))
	}
}

// place reserves the range of a section. Its checksum is known, so the bytes can be copied later.
func (j *joiner) place(path string, p *part) {
	j.sections = append(j.sections, piece{path, j.off, p.Bytes})
	j.sum = crc64.Combine(j.sum, p.Sum, p.Bytes)
	j.off += p.Bytes
}

// copy copies the sections to their offsets, on all idle cores.
func (j *joiner) copy(ctx context.Context, spare func(func()) bool) error {
	if j.err != nil {
		return j.err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	work := func() {
		buf := make([]byte, copyBuffer)
		for ctx.Err() == nil {
			i := int(next.Add(1)) - 1
			if i >= len(j.sections) {
				return
			}
			if err := j.sections[i].copy(ctx, j.f, buf, j.tell); err != nil {
				cancel(err)
			}
		}
	}
	var wg sync.WaitGroup
	helpers := 0
	for spare != nil && helpers < len(j.sections) {
		wg.Add(1)
		if !spare(func() { defer wg.Done(); work() }) {
			wg.Done()
			break
		}
		helpers++
	}
	if helpers == 0 {
		work()
	}
	wg.Wait()
	return context.Cause(ctx)
}

// tell reports n bytes as copied.
func (j *joiner) tell(n int) {
	done := j.done.Add(int64(n))
	if j.copied != nil {
		j.copied(done, j.off, 0, 0)
	}
}

// copyBuffer is the size of a copy step; it fits the CPU cache.
const copyBuffer = 256 << 10

// copy copies a section to its offset. It calls tell with the bytes of each step.
func (p *piece) copy(ctx context.Context, to *disk.File, buf []byte, tell func(n int)) error {
	in, err := disk.Open(p.path)
	if err != nil {
		return err
	}
	var done int64 // the file has its full size: its end is already written
	for err == nil && ctx.Err() == nil {
		var n int
		n, err = in.Read(buf)
		if done += int64(n); n > 0 && done <= p.n {
			if _, werr := to.WriteAt(buf[:n], p.off+done-int64(n)); werr != nil {
				err = werr
			}
			tell(n)
		}
	}
	if err == io.EOF {
		err = nil
	}
	if err == nil && ctx.Err() == nil && done != p.n {
		err = fmt.Errorf("%s: has %s bytes, had %s", p.path, record.Number(done), record.Number(p.n))
	}
	return errors.Join(err, in.Close())
}

// join writes the whole file: header, AUX fields, databases in ascending order, checksum.
func (t *target) join(ctx context.Context, path string) error {
	f, err := disk.Create(path)
	if err != nil {
		return err
	}
	j := &joiner{f: f, copied: t.o.Copied}
	j.write(rdb.AppendHead(nil, t.format.version, t.o.Now.Unix()))
	if t.format.base && t.format.version.Number >= 7 {
		j.write(rdb.AppendAux(nil, "aof-base", "1"))
	}
	for _, parts := range t.databases() {
		var keys, expires uint64
		for _, p := range parts {
			keys += uint64(p.Keys)
			expires += uint64(p.Expires)
		}
		n, _ := strconv.ParseUint(parts[0].DB, 10, 31)
		if keys > 0 {
			j.write(rdb.AppendDatabase(nil, t.format.version, n, keys, expires))
		}
		for _, p := range parts {
			j.place(t.section(p.N), p)
		}
	}
	j.write(rdb.AppendEnd(nil, t.format.version, j.sum))
	return errors.Join(j.copy(ctx, t.o.Build.Spare), f.Close())
}

// databases returns the sections of each database, in order.
func (t *target) databases() [][]*part {
	byDB := map[string][]*part{}
	for _, p := range t.sections {
		byDB[p.DB] = append(byDB[p.DB], p)
	}
	var out [][]*part
	for _, parts := range byDB {
		slices.SortFunc(parts, func(a, b *part) int { return cmp.Compare(a.N, b.N) })
		out = append(out, parts)
	}
	slices.SortFunc(out, func(a, b []*part) int {
		return cmp.Or(cmp.Compare(len(a[0].DB), len(b[0].DB)), cmp.Compare(a[0].DB, b[0].DB))
	})
	return out
}
