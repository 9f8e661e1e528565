package transfer

import (
	"cmp"
	"context"
	"errors"
	"io"

	"kvferry/convert/result"
	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/internal/pass/progress"
	"kvferry/record"
)

// task executes one Task. It is used once, by one goroutine, and allocates nothing per record.
type task struct {
	*pass.Task
	*Rules
	target format.Target
	reader record.Reader
	writer record.Writer // nil if the task only counts

	hasher   record.Hasher
	header   record.Header // of the current record, adapted to the target
	lastKey  []byte        // key of the last record that kept its name
	hasLast  bool
	lost     int64                           // dropped records and elements so far
	open     openRecord                      // the last record
	looked   [record.BatchLen]record.Element // while names are taken; see look
	opaque   bool                            // a loss of kind module was counted for the current record
	later    []record.Loss                   // losses of a module value's expiry, counted only if the value is kept
	gauge    progress.Gauge
	report   func(record.Loss) // lose, as a func value made once
	digests  [record.NumTypes]record.Digest
	expiring expiringDigests
	fading   expiringFields // of the current record
	orphans  orphans
	ledger   record.Ledger
	books    record.Books
	losses   result.Losses
	undecided
	skipped  [record.NumTypes]record.Digest
	findings result.Findings
}

// openRecord is the state of the last record, which may go on.
type openRecord struct {
	lost    int64 // task.lost before it
	count   int64 // elements kept
	taken   bool  // its name is taken, and it has no element so far
	moved   bool  // it is renamed: another reader yields it
	renamed bool  // it has a new name
}

// Run reads the records of a task and, if write is set, writes them to the task's shard of the target. Otherwise it
// only counts them. After an error the shard is aborted.
func Run(ctx context.Context, t *pass.Task, r *Rules, src format.Source, target format.Target,
	write bool) (*result.Result, error) {
	x := &task{Task: t, Rules: r, target: target, losses: result.Losses{}, expiring: expiringDigests{}}
	x.hasher = record.Hasher{PlainZero: r.PlainZero, ExactScores: r.ExactScores, CountOnly: r.CountOnly}
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
	if err := x.openBoth(ctx, src, write); err != nil {
		return nil, err
	}
	if s, ok := x.writer.(format.Sparing); ok && s.OnDecided(x.decided) {
		x.waiting = map[int64]*fate{}
	}
	err := each(x.reader, func() error { return x.pause(ctx) }, x.batch)
	err = cmp.Or(err, x.reader.Close())
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

// each passes all batches of a reader to do, and calls pause between some of them.
func each(r record.Reader, pause func() error, do func(*record.Batch) error) error {
	for seen := 0; ; {
		b, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = do(b)
		}
		if err != nil {
			return err
		}
		if seen += len(b.Records); seen >= record.CheckEvery {
			seen = 0
			if err := pause(); err != nil {
				return err
			}
		}
	}
}

// openBoth makes the reader and the writer.
func (x *task) openBoth(ctx context.Context, src format.Source, write bool) error {
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

// pause reports progress, aborts the writer after a refused loss, and returns ctx.Err().
func (x *task) pause(ctx context.Context) error {
	x.gauge.Flush()
	if x.writer != nil && x.Refused.Load() {
		x.writer.Abort()
		x.writer = nil
	}
	return ctx.Err()
}

// batch moves the records of a batch.
func (x *task) batch(b *record.Batch) error {
	for i := 0; i < len(b.Records); {
		n := x.unchanged(b, i)
		if n == 0 {
			n = 1
			x.adapt(b, i)
		}
		i += n
	}
	if x.Back != nil {
		x.Back.batch(b)
	}
	x.gauge.Batch(b)
	if x.waiting != nil || x.Lapse != nil {
		x.follow(b)
	} else {
		x.hasher.Batch(&x.digests, b)
	}
	if x.writer != nil {
		if err := x.writer.Write(b); err != nil {
			return err
		}
	}
	x.book(b)
	return nil
}

// unchanged returns the number of strings from record i on that the target takes without changes, and sets their
// database.
func (x *task) unchanged(b *record.Batch, i int) int {
	n := b.Strings(i)
	if n == 0 || !x.Group.Has(record.String) {
		return 0
	}
	batch := b.Records[i : i+n]
	n = x.target.Unchanged(batch, b.Elems)
	if !x.SameName {
		n = x.takeNames(batch[:n])
	}
	for j := range batch[:n] {
		batch[j].DB = x.TargetDB
	}
	return n
}

// adapt changes record i of a batch to what the target holds of it, and counts the losses.
func (x *task) adapt(b *record.Batch, i int) {
	r := &b.Records[i]
	if b.Begins(i) {
		x.begin(r)
	} else { // the target holds what begin made of the header
		key, last, deleted := r.Key, r.Last, r.MaxDeleted
		if x.open.renamed {
			key = x.header.Key
		}
		r.Header = x.header
		r.Key, r.Last, r.MaxDeleted = key, last, deleted
		x.header = r.Header
	}
	if x.open.taken {
		x.giveWay(r, b.Ends(i))
	}
	if x.open.moved && b.Ends(i) {
		r.Rows = record.Rows{} // the reader of renamed records has them
	}
	if x.open.taken || r.Out() {
		return
	}
	if r.N > 0 {
		elems := b.Of(i)
		kept := x.target.ElementLosses(&x.header, x.fit(elems), x.report)
		if r.N = len(kept); r.N > 0 && &kept[0] != &elems[0] {
			copy(elems, kept)
		}
		x.open.count += int64(r.N)
	}
	if b.Ends(i) {
		x.end(r)
	}
}

// begin starts a record.
func (x *task) begin(r *record.Record) {
	r.DB = x.TargetDB
	x.header = r.Header
	x.open, x.opaque = openRecord{lost: x.lost}, false
	if r.Out() {
		return
	}
	x.open.taken = r.Keyless == record.Keyed && x.isTaken(r.Key)
	moves := x.open.taken && (x.NewNames || x.Renames != nil)
	if x.drops(moves) {
		x.open.taken, r.Class = false, record.Lost
		return
	}
	if moves { // it is adapted under its new name
		x.header = r.Header
	}
	r.Header = x.header
	x.orphans.begin()
}

// end finishes a record.
func (x *task) end(r *record.Record) {
	kept := x.keeps(x.open.count)
	if !kept && r.Type == record.Stream {
		x.lose(record.Loss{Kind: record.LossBlankStream, Drops: true, Detail: "it never had an entry"})
	}
	if lost := x.lost - x.open.lost; lost > 0 {
		r.Lost = lost
		if !kept {
			r.Settle(record.Lost) // the target holds no part of it
		}
	}
	if !kept {
		return
	}
	for _, l := range x.later {
		x.lose(l)
	}
	if r.Keyless == record.Keyed && !x.open.renamed {
		x.takeName(r.Key)
	}
}

// result returns the totals of the task.
func (x *task) result() *result.Result {
	x.books.Close(&x.ledger)
	r := &result.Result{N: x.N, Ledger: x.ledger.Snapshot(), Losses: x.losses.List(), Findings: x.findings.List()}
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
