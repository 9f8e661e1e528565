package convert

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"kvferry/format"
	"kvferry/internal/filter"
	"kvferry/internal/progress"
	"kvferry/internal/sorted"
	"kvferry/record"
)

// batchLen is how many elements go from the reader to the writer at once.
const batchLen = 256

// rules is what all tasks of a run go by.
type rules struct {
	now       time.Time
	selection *filter.Selection
	sameName  bool          // the target holds one name under several types
	plainZero bool          // the score -0 is taken for 0
	fields    bool          // it holds expiries of fields
	groups    bool          // it holds consumer groups
	noBlank   bool          // a stream that never had an entry is none
	whole     bool          // a record is one row of the source
	lapse     *lapse        // what expires meanwhile; nil on disk, where nothing does
	gone      int64         // what the proof leaves out: all that expires up to then
	prefer    []record.Type // which type keeps a name otherwise
	memory    shares        // of readers, and as much again of writers
	tempDir   string
	renames   []rename // not nil: the others get these names
	// sortSections says that sections of the source are put in order, as spans of keys are.
	sortSections bool
	meter        *progress.Meter
	// refused is set when a loss is not allowed: from then on tasks only count.
	refused *atomic.Bool
	allows  func(kind string) bool
}

// task runs one Task. It is used once, by one goroutine; nothing in it is allocated per record.
type task struct {
	*Task
	*rules
	target format.Target
	reader record.Reader
	writer record.Writer // nil when nothing is written

	hasher   record.Hasher
	header   record.Header // of the current record, as the target will have it
	batch    [batchLen]record.Element
	lastKey  []byte // of the last record with elements
	hasLast  bool
	lost     int64 // records and elements left out so far
	opaque   bool  // the current record was told to be a loss of kind module
	share    *share
	gauge    progress.Gauge
	report   func(record.Loss) // lose, made once
	digests  [record.NumTypes]record.Digest
	expiring expiringDigests
	fading   expiringFields // of the current record
	orphans  orphans
	ledger   record.Ledger
	losses   lossSet
	partial  partial
	findings findingSet
	// where lists the keyspaces that hold rows of a record.
	where func(*record.Header) []string
}

// runTask reads the records of a task and writes them to its shard of the target. Without a target
// the records are only counted. A *largeError says that more came at once than its share allows; nothing is left of the
// task then.
func runTask(ctx context.Context, t *Task, r *rules, src format.Source, target format.Target, sh *share, write bool) (*taskResult, error) {
	x := &task{Task: t, rules: r, target: target, losses: lossSet{}, expiring: expiringDigests{}, share: sh}
	x.gauge = r.meter.Gauge(t.Bytes)
	x.findings.onError = x.gauge.Error
	x.report = x.lose
	x.findings.onLoss = func(kind string) {
		if !r.allows(kind) {
			r.refused.Store(true)
		}
	}
	x.orphans.limit = -1
	if c, ok := target.(format.Commanded); ok {
		x.orphans.limit = c.Orphans()
	}
	x.partial, x.where = partial{}, func(h *record.Header) []string { return keyspacesOf(src, t.DB, h) }
	if err := x.open(ctx, src, write); err != nil {
		return nil, err
	}
	err := x.copy(ctx)
	if e := x.reader.Close(); err == nil {
		err = e
	}
	if x.writer != nil {
		if err != nil || r.refused.Load() {
			x.writer.Abort()
		} else {
			err = x.writer.Close()
		}
	}
	if err != nil {
		x.gauge.Undo()
		return nil, err
	}
	x.gauge.Finish()
	return x.result(), nil
}

// open makes the reader and the writer.
func (x *task) open(ctx context.Context, src format.Source, write bool) error {
	r, err := x.read(ctx, src)
	if err != nil {
		return err
	}
	if x.Group != 0 && !x.refused.Load() {
		if x.writer, err = x.shard(write); err != nil {
			return errors.Join(err, r.Close())
		}
	}
	x.reader = r
	return nil
}

// shard returns what records are written with, or, of a task that only counts, what looks at keys of a server; nil is neither.
func (x *task) shard(write bool) (record.Writer, error) {
	if write {
		return x.target.Shard(x.N, x.TargetDB, x.Group, x.memory.of(x.Task))
	}
	if l, ok := x.target.(format.Loaded); ok {
		return l.Look(x.TargetDB)
	}
	return nil, nil
}

// read returns the reader of the task. When types of the source may compete for a name in the target,
// they are read one by one and merged by preference.
func (x *task) read(ctx context.Context, src format.Source) (record.Reader, error) {
	types := x.Types.Types()
	if x.sameName || len(types) == 1 || !src.Format().Limits().SameName {
		return x.readTypes(ctx, src, x.Types, 1)
	}
	if x.renames != nil {
		return x.readRenamed(ctx, src)
	}
	return x.readRivals(ctx, src)
}

// readRivals reads the types one by one, in order of preference within a key.
func (x *task) readRivals(ctx context.Context, src format.Source) (record.Reader, error) {
	types := x.Types.Types()
	var readers []record.Reader
	merged := func() record.Reader { return record.MergeBy(byPreference(x.prefer), readers...) }
	for _, t := range types {
		r, err := x.readTypes(ctx, src, record.Of(t), int64(len(types)))
		if err != nil {
			return nil, errors.Join(err, merged().Close())
		}
		readers = append(readers, r)
	}
	return merged(), nil
}

// readRenamed puts the records that get another name where that name belongs.
func (x *task) readRenamed(ctx context.Context, src format.Source) (record.Reader, error) {
	r, err := x.readRivals(ctx, src)
	if err != nil {
		return nil, err
	}
	env := format.Env{Now: x.now, Memory: leastShare, TempDir: x.tempDir}
	return record.Merge(r, &renamedReader{ctx: ctx, src: src, env: env, list: renamedIn(x.renames, x.Task)}), nil
}

// readTypes reads what is selected of some types in order, with a part of the task's memory.
func (x *task) readTypes(ctx context.Context, src format.Source, types record.TypeSet, part int64) (record.Reader, error) {
	memory := x.memory.of(x.Task) / part
	if x.selection.Holds() {
		memory /= 2 // the other half is for what is held
	}
	env := &format.Env{Now: x.now, Memory: memory, TempDir: x.tempDir, Ledger: &x.ledger, Report: x.findings.report}
	r, err := src.Records(ctx, x.DB, types, x.Span, env)
	if err != nil {
		return nil, err
	}
	r = x.selection.Apply(ctx, r, filter.ApplyOptions{Now: x.now, Memory: memory, TempDir: x.tempDir})
	if !src.Sorted() || x.sortSections && x.Span.IsSection() {
		r = sorted.Records(r, sorted.Options{Memory: memory, TempDir: x.tempDir})
	}
	return r, nil
}

// copy moves all records.
func (x *task) copy(ctx context.Context) error {
	l := loop{share: x.share, pause: func() error { return x.pause(ctx) }}
	return l.run(x.reader, x.lapse == nil, x.strings, func(h *record.Header) error { return x.record(ctx, h) })
}

// pause hands over what was counted, and stops the task or its writing when it is to stop.
func (x *task) pause(ctx context.Context) error {
	x.gauge.Flush()
	if x.writer != nil && x.refused.Load() {
		x.writer.Abort()
		x.writer = nil
	}
	return ctx.Err()
}

// record moves one record.
func (x *task) record(ctx context.Context, h *record.Header) error {
	x.begin(h)
	x.opaque = false
	if x.drops() {
		x.reader.Settle(record.Lost)
		return nil
	}
	if x.isTaken(x.header.Key) {
		return x.taken()
	}
	x.hasher.Begin(&x.header)
	x.orphans.begin()
	if x.writer != nil {
		if err := x.writer.Begin(&x.header); err != nil {
			return err
		}
	}
	lost := x.lost
	count, err := x.elements(ctx)
	if err != nil {
		return err
	}
	kept := x.keeps(count)
	if !kept && h.Type == record.Stream {
		x.lose(record.Loss{Kind: record.LossBlankStream, Drops: true, Detail: "it never had an entry"})
	}
	switch {
	case x.lost == lost:
	case !kept:
		x.reader.Settle(record.Lost) // nothing is left of it
	case !x.whole:
		x.partial.add(x.where(h), x.lost-lost)
	}
	if x.writer != nil {
		if err := x.writer.End(); err != nil {
			return err
		}
	}
	if kept {
		x.takeName(h.Key)
		d := x.hasher.End(&x.header)
		x.digests[h.Type].Add(d)
		if x.lapse != nil {
			x.lapses(d)
		}
	}
	x.gauge.Record(h.Key)
	return nil
}

// begin makes a record the current one.
func (x *task) begin(h *record.Header) {
	x.header = *h
	x.header.DB = x.TargetDB
}

// isTaken reports whether a name belongs to the record before.
func (x *task) isTaken(key []byte) bool {
	return !x.sameName && x.hasLast && bytes.Equal(x.lastKey, key)
}

// takeName gives a name to a record that is kept.
func (x *task) takeName(key []byte) {
	if !x.sameName {
		x.lastKey, x.hasLast = append(x.lastKey[:0], key...), true
	}
}

// keeps reports whether the current record is one in the target with count elements left: a stream may be empty.
func (x *task) keeps(count int64) bool {
	return count > 0 || x.header.Type == record.Stream && !(x.noBlank && isZero(x.header.Last))
}

func isZero(id []byte) bool { return bytes.Count(id, []byte{0}) == len(id) }

// elements moves the elements of the current record and counts them.
func (x *task) elements(ctx context.Context) (int64, error) {
	var count int64
	for n := 1; ; n++ {
		got, err := x.reader.Read(x.batch[:])
		if err == io.EOF {
			return count, nil
		}
		if err != nil {
			return count, err
		}
		if n%checkEvery == 0 {
			x.gauge.Flush()
			if err := ctx.Err(); err != nil {
				return count, err
			}
		}
		if err := x.share.take(x.batch[:got]); err != nil {
			return count, err
		}
		elems := x.target.ElementLosses(&x.header, x.fit(x.batch[:got]), x.report)
		if len(elems) == 0 {
			continue
		}
		count += int64(len(elems))
		x.gauge.Elements(elems)
		x.hasher.PlainZero = x.plainZero
		x.hasher.Elements(elems)
		if x.lapse != nil && x.header.Type == record.Hash {
			x.fading.note(x.lapse, elems)
		}
		if x.writer != nil {
			if err := x.writer.Write(elems); err != nil {
				return count, err
			}
		}
		if x.header.Type == record.String { // it has one
			return count, nil
		}
	}
}

// fit leaves out of a batch what the target's limits say that it cannot hold.
func (x *task) fit(batch []record.Element) []record.Element {
	switch {
	case x.header.Type == record.Hash && !x.fields:
		for i := range batch {
			if batch[i].ExpireMS != 0 {
				batch[i].ExpireMS = 0
				x.lose(record.Loss{Kind: record.LossFieldExpiry, Detail: "field " + record.Quote(batch[i].Name)})
			}
		}
	case x.header.Type == record.Stream && !x.groups:
		return x.entries(batch)
	case x.header.Type == record.Stream && x.orphans.limit >= 0:
		return x.orphans.leaveOut(batch, x.lose)
	}
	return batch
}

// entries leaves out consumer groups; each is a loss, with its consumers and pending entries. They come last.
func (x *task) entries(batch []record.Element) []record.Element {
	for i := range batch {
		if batch[i].Kind == record.Entry {
			continue
		}
		for j := range batch[i:] {
			if e := &batch[i+j]; e.Kind == record.Group {
				x.lose(record.Loss{Kind: record.LossStreamGroups, Drops: true, Detail: "group " + record.Quote(e.Name)})
			} else {
				x.lost++
			}
		}
		return batch[:i]
	}
	return batch
}

// drops asks the target what it cannot hold of the current record and reports whether that is the
// whole record.
func (x *task) drops() bool {
	if x.header.Type == record.Other && !x.Group.Has(record.Other) {
		x.lose(record.Loss{Kind: record.LossModule, Drops: true, Detail: "the target does not support it"})
		return true
	}
	dropped := false
	for _, l := range x.target.Losses(&x.header) {
		x.lose(l)
		dropped = dropped || l.Drops
	}
	if dropped {
		return true
	}
	if !x.Group.Has(x.header.Type) {
		x.lose(record.Loss{Kind: x.header.Type.String(), Drops: true, Detail: "the target has no such type"})
		return true
	}
	return false
}

// keyspacesOf lists the keyspaces of a database that hold rows of a record.
func keyspacesOf(src format.Source, db string, h *record.Header) []string {
	var out []string
	for _, r := range src.Where(db, h.Key) {
		if r.Type == h.Type || r.Type == 0 {
			out = append(out, r.Keyspace)
		}
	}
	return out
}

// taken leaves out the current record because its name is taken.
func (x *task) taken() error {
	something, err := x.something()
	if err == nil && something {
		x.reader.Settle(x.giveName())
	}
	return err
}

// giveName counts the loss of the current record, whose name is taken, and returns the class of its rows.
func (x *task) giveName() record.Class {
	if x.renames == nil {
		x.lose(record.Loss{Kind: record.LossSameName, Drops: true, Detail: "the target holds each name under one type only"})
		return record.Lost
	}
	to := newName(x.renames, rename{db: x.DB, typ: x.header.Type, key: x.header.Key})
	x.lose(record.Loss{Kind: record.LossSameName, Detail: "written as " + record.Quote(to)})
	if x.dropsAs(to) {
		return record.Lost // the loss is counted where the new name comes up
	}
	return record.Copied
}

// something reports whether the current record is one, which most are not without elements.
func (x *task) something() (bool, error) {
	n, err := x.reader.Read(x.batch[:1])
	if err == io.EOF {
		return x.keeps(0), nil
	}
	return n > 0, err
}

// dropsAs reports whether the target cannot hold the current record under a name.
func (x *task) dropsAs(name []byte) bool {
	h := x.header
	h.Key = name
	return slices.ContainsFunc(x.target.Losses(&h), func(l record.Loss) bool { return l.Drops })
}

// lose counts a loss of the current record. Of a value in several pieces that only its own server understands the first says it.
func (x *task) lose(l record.Loss) {
	if l.Kind == record.LossModule {
		if x.opaque {
			x.lost++
			return
		}
		x.opaque = true
	}
	x.losses.add(l, x.DB, &x.header)
	if l.Drops {
		x.lost++
	}
	if !l.Note && !x.allows(l.Kind) {
		x.refused.Store(true)
	}
}

// result sums up the task.
func (x *task) result() *taskResult {
	ledger := x.ledger.Snapshot()
	x.partial.correct(ledger)
	r := &taskResult{N: x.N, Ledger: ledger, Losses: x.losses.list(), Findings: x.findings.list()}
	var f record.Fingerprint
	for t, d := range x.digests {
		f.Add(record.Part{DB: x.TargetDB, Type: record.Type(t)}, d)
	}
	r.Parts, r.Expiring = parts(&f), x.expiring.list(x.TargetDB)
	return r
}
