package transfer

import (
	"context"
	"errors"
	"io"

	"kvferry/convert/plan"
	"kvferry/convert/result"
	"kvferry/convert/workers"
	"kvferry/format"
	"kvferry/internal/pass/progress"
	"kvferry/record"
)

// batchLen is the number of elements moved at once.
const batchLen = 256

// task executes one Task. It is used once, by one goroutine, and allocates nothing per record.
type task struct {
	*plan.Task
	*Rules
	target format.Target
	reader record.Reader
	writer record.Writer // nil if the task only counts

	hasher   record.Hasher
	header   record.Header // of the current record, adapted to the target
	batch    [batchLen]record.Element
	lastKey  []byte // key of the last record that kept its name
	hasLast  bool
	lost     int64         // dropped records and elements so far
	opaque   bool          // a loss of kind module was counted for the current record
	later    []record.Loss // losses of a module value's expiry, counted only if the value is kept
	share    *workers.Share
	gauge    progress.Gauge
	report   func(record.Loss) // lose, as a func value made once
	digests  [record.NumTypes]record.Digest
	expiring expiringDigests
	fading   expiringFields // of the current record
	orphans  orphans
	ledger   record.Ledger
	losses   result.Losses
	partial  result.Partial
	pending  *pending // records that the writer may skip; nil: it skips none
	own      fate     // reused for each record if pending is nil
	skipped  [record.NumTypes]record.Digest
	moved    result.Tallies // rows of skipped records, as changes to the ledger
	findings result.Findings
	// where lists the keyspaces that hold rows of a record.
	where func(*record.Header) []string
}

// Run reads the records of a task and, if write is set, writes them to the task's shard of the target. Otherwise it
// only counts them. If more data arrives at once than the share allows, it returns the share's error. After an error
// the shard is aborted.
func Run(ctx context.Context, t *plan.Task, r *Rules, src format.Source, target format.Target, sh *workers.Share, write bool) (*result.Result, error) {
	x := &task{Task: t, Rules: r, target: target, losses: result.Losses{}, expiring: expiringDigests{}, share: sh}
	x.hasher = record.Hasher{PlainZero: r.PlainZero, CountOnly: r.CountOnly}
	x.gauge = r.Meter.Gauge(t.Bytes)
	x.findings.OnError = x.gauge.Error
	x.report = x.lose
	x.findings.OnLoss = func(kind string) {
		if !r.Allows(kind) {
			r.Refused.Store(true)
		}
	}
	x.orphans.limit = -1
	if c, ok := target.(format.Commanded); ok {
		x.orphans.limit = c.Orphans()
	}
	x.partial, x.where = result.Partial{}, func(h *record.Header) []string { return keyspacesOf(src, t.DB, h) }
	if err := x.open(ctx, src, write); err != nil {
		return nil, err
	}
	if s, ok := x.writer.(format.Sparing); ok && s.OnDecided(x.decided) {
		x.pending = &pending{open: map[int64]*fate{}}
	}
	err := x.copy(ctx)
	if err == nil {
		x.passed()
	}
	if e := x.reader.Close(); err == nil {
		err = e
	}
	if x.writer != nil {
		if err != nil || r.Refused.Load() {
			x.writer.Abort()
		} else {
			err = x.writer.Close()
		}
	}
	if err != nil {
		x.gauge.Undo()
		return nil, err
	}
	x.bookRest()
	x.gauge.Finish()
	return x.result(), nil
}

// open makes the reader and the writer.
func (x *task) open(ctx context.Context, src format.Source, write bool) error {
	r, err := x.read(ctx, src)
	if err != nil {
		return err
	}
	if x.Group != 0 && !x.Refused.Load() {
		if x.writer, err = x.shard(write); err != nil {
			return errors.Join(err, r.Close())
		}
	}
	x.reader = r
	return nil
}

// shard returns the writer of the task. A task that only counts gets one that looks up keys on a server, or nil.
func (x *task) shard(write bool) (record.Writer, error) {
	if write {
		return x.target.Shard(x.N, x.TargetDB, x.Group, x.Memory.Of(x.Task))
	}
	if l, ok := x.target.(format.Loaded); ok {
		return l.Look(x.TargetDB, x.Dry)
	}
	return nil, nil
}

// copy moves all records.
func (x *task) copy(ctx context.Context) error {
	l := loop{share: x.share, pause: func() error { return x.pause(ctx) }}
	return l.run(x.reader, x.Lapse == nil, x.strings, func(h *record.Header) error { return x.record(ctx, h) })
}

// pause reports progress, aborts the writer after a refused loss, and returns ctx.Err().
func (x *task) pause(ctx context.Context) error {
	x.gauge.Flush()
	if x.writer != nil && x.Refused.Load() {
		x.writer.Abort()
		x.writer = nil
	}
	return ctx.Err()
}

// record moves one record.
func (x *task) record(ctx context.Context, h *record.Header) error {
	x.passed()
	x.begin(h)
	x.opaque = false
	if x.drops() {
		x.reader.Settle(record.Lost)
		return nil
	}
	if x.header.Keyless == record.Keyed && x.isTaken(x.header.Key) {
		return x.taken()
	}
	x.hasher.Begin(&x.header)
	x.orphans.begin()
	f := x.fate()
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
		x.reader.Settle(record.Lost) // the target holds no part of it
	case !x.Whole:
		f.lost, f.where = x.lost-lost, x.where(h)
	}
	if x.writer != nil {
		if err := x.writer.End(); err != nil {
			return err
		}
	}
	if kept {
		for _, l := range x.later {
			x.lose(l)
		}
		if h.Keyless == record.Keyed {
			x.takeName(h.Key)
		}
		x.kept(f)
	}
	x.enter(f)
	x.gauge.Record(h.Key)
	return nil
}

// begin makes a record the current one.
func (x *task) begin(h *record.Header) {
	x.header = *h
	x.header.DB = x.TargetDB
}

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
		if err := x.share.Take(x.batch[:got]); err != nil {
			return count, err
		}
		elems := x.target.ElementLosses(&x.header, x.fit(x.batch[:got]), x.report)
		if len(elems) == 0 {
			continue
		}
		count += int64(len(elems))
		x.gauge.Elements(elems)
		x.hasher.Elements(elems)
		if x.Lapse != nil && x.header.Type == record.Hash {
			x.fading.note(x.Lapse, elems)
		}
		if x.writer != nil {
			if err := x.writer.Write(elems); err != nil {
				return count, err
			}
		}
		if x.header.Type == record.String { // a string has one element
			return count, nil
		}
	}
}

// result returns the totals of the task.
func (x *task) result() *result.Result {
	for name, t := range x.moved {
		x.ledger.Add(name, &t)
	}
	ledger := x.ledger.Snapshot()
	x.partial.Correct(ledger)
	r := &result.Result{N: x.N, Ledger: ledger, Losses: x.losses.List(), Findings: x.findings.List()}
	r.Parts, r.Expiring = x.parts(&x.digests), x.expiring.list(x.TargetDB)
	r.Skipped = x.parts(&x.skipped)
	return r
}

// parts lists digests by type.
func (x *task) parts(digests *[record.NumTypes]record.Digest) []result.PartDigest {
	var f record.Fingerprint
	for t, d := range digests {
		f.Add(record.Part{DB: x.TargetDB, Type: record.Type(t)}, d)
	}
	return result.Parts(&f)
}
