package rocks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/logfile"
	"kvferry/store/rocks/lsm"
)

// findLogs returns the logs that a column family needs, oldest first, and collects the others in db.retired.
func (db *database) findLogs() ([]*logFile, error) {
	dir := db.dir
	if db.opts.WALDir != "" {
		dir = db.opts.WALDir
	}
	entries, err := disk.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var logs []*logFile
	for _, e := range entries {
		base, ok := strings.CutSuffix(e.Name(), logExt)
		n, err := strconv.ParseUint(base, 10, 64)
		if !ok || err != nil {
			continue
		}
		f, err := db.files.Open(dir, e.Name(), db.opts.AllowLive)
		if err != nil {
			return nil, err
		}
		name := e.Name()
		if dir != db.dir {
			f.Name, name = f.Path, f.Path
		}
		l := &logFile{number: n, file: f, name: name}
		if n < db.version.FirstLog() && (n == 0 || n != db.version.PrevLog) {
			db.retired = append(db.retired, l)
			continue
		}
		logs = append(logs, l)
	}
	slices.SortFunc(logs, func(a, b *logFile) int { return cmp.Compare(a.number, b.number) })
	if len(logs) > 0 || db.opts.WALDir != "" {
		return logs, nil
	}
	had, err := hadLogs(db.version, db.dir)
	if (had || db.version.Rebuilt) && err == nil {
		err = db.missingLogs()
	}
	return nil, err
}

// walLoader distributes the log entries to the keyspaces.
type walLoader struct {
	db      *database
	byID    map[uint32]*family
	sorters map[*family]*lsm.Sorter
	origins []string
	log     *logFile
	index   uint32 // of log in origins
	off     int64  // of the record being read
	// take receives the entries that are not in a table yet, log by log.
	take func(*family, logEntry) error
	// again is set if the logs were read before: their faults have been reported.
	again bool
	// noFamily holds the unnamed column families already reported; see unnamed.
	noFamily map[uint32]bool
}

// loadLogs reads all logs into sorted runs.
func (db *database) loadLogs(ctx context.Context) error {
	if len(db.logs) == 0 {
		return nil
	}
	w := db.newWALLoader()
	for _, ks := range db.spaces {
		if ks.Comparer().Wrapping != nil {
			ks.circles = &circles{wrapping: ks.Comparer().Wrapping, byLow: map[string]*circle{}, most: db.opts.Memory / 4}
		}
	}
	w.take, w.sorters = w.sort, map[*family]*lsm.Sorter{}
	for _, ks := range db.spaces {
		s := lsm.NewSorter(ks.Keyspace, db.opts.Memory/4/int64(len(db.spaces)))
		defer s.Close()
		w.sorters[ks] = s
	}
	if err := w.run(ctx); err != nil {
		return err
	}
	if err := db.reportCircles(ctx); err != nil {
		return err
	}
	return w.finish()
}

// newWALLoader prepares to read all logs.
func (db *database) newWALLoader() *walLoader {
	w := &walLoader{db: db, byID: map[uint32]*family{}, noFamily: map[uint32]bool{}}
	for _, ks := range db.spaces {
		w.byID[ks.id] = ks
	}
	for _, l := range db.logs {
		w.origins = append(w.origins, l.name)
	}
	return w
}

// run reads all logs.
func (w *walLoader) run(ctx context.Context) error {
	for i, l := range w.db.logs {
		w.log, w.index = l, uint32(i)
		if err := w.load(ctx, i == len(w.db.logs)-1); err != nil {
			return err
		}
	}
	return nil
}

// load reads one log.
func (w *walLoader) load(ctx context.Context, last bool) error {
	r, done, err := w.log.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	for {
		rec, off, err := r.Next()
		if err == logfile.ErrTorn && last && w.log.comesNext(r.Partial) {
			w.torn(record.Warning, off, "the last record of the last log is incomplete, as after a crash or in a copy cut off: engines drop it, though a client may have seen its writes")
			return nil
		}
		if err == io.EOF {
			w.ended(r, off)
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			if over, err := w.recordError(r, off, err, last); over {
				return err
			}
			continue
		}
		r.Salvage = false
		if err := w.batch(r, rec, off); err != nil {
			return err
		}
	}
}

// batch takes the entries of a record.
func (w *walLoader) batch(r *logfile.Reader, rec []byte, off int64) error {
	w.off = off
	b, err := newBatch(r, rec, off)
	if err == nil {
		err = b.Decode(w.add)
	}
	if err != nil {
		if err = w.passes(off, 0, w.batchError(err), "the entries of this write batch from there on are missing"); err != nil {
			return err
		}
	}
	if seqs, ok := b.Seqs(); ok && !w.again {
		w.log.seqs.Add(seqs, off)
	}
	return nil
}

// ended reports data after the last record of a log.
func (w *walLoader) ended(r *logfile.Reader, off int64) {
	size := w.log.file.Size
	switch {
	case r.Leftover:
		w.torn(record.Warning, off, "the log ends at bytes that an older use of the file seems to have left")
	case r.Older && off == 0:
		w.torn(record.Warning, 0, "the log contains only remains of an earlier use of the file: it was just begun, or it is the wrong log")
	case r.ZeroAt == 0:
		w.torn(record.Warning, 0, fmt.Sprintf("the log consists of %s zero bytes: its writes are lost, as after a power failure",
			record.Number(size)))
	case r.ZeroAt > 0 && size%preallocated != 0:
		w.torn(record.Warning, r.ZeroAt, fmt.Sprintf("the rest of the log is %s zero bytes, which no engine preallocates: "+
			"the writes there are lost, as after a power failure", record.Number(size-r.ZeroAt)))
	case r.ZeroAt > 0:
		w.torn(record.Note, r.ZeroAt, fmt.Sprintf("the rest of the log is %s zero bytes: preallocated space, or writes lost in a power failure",
			record.Number(size-r.ZeroAt)))
	}
}

// preallocated divides the size of a log with preallocated space: engines allocate whole pages.
const preallocated = 4096

// errNotCut means that the end of a log is damaged.
var errNotCut = errors.New("damaged: not a record that was cut off, since its sequence number is not the next one")

// torn reports where a log ends early.
func (w *walLoader) torn(severity record.Severity, off int64, detail string) {
	if w.again {
		return
	}
	f := record.Finding{Kind: "torn-log", Severity: severity, Place: record.Place{File: w.log.name, Off: off, Level: -1},
		Detail: detail}
	if severity == record.Warning {
		f.Lost = fmt.Sprintf("the writes from offset %s of %s on, if there were any", record.Number(off), w.log.name)
		f.Sure = "everything before was read; a log does not record how many writes follow"
	}
	w.db.report(f)
}

// batchError places an error within a write batch in its log.
func (w *walLoader) batchError(err error) error {
	var c *record.CorruptError
	if errors.As(err, &c) && c.File == "" {
		field := "write batch: "
		if c.Off >= 0 {
			field += fmt.Sprintf("at %d: ", c.Off)
		}
		return base.Corrupt(w.log.file.Path, w.off, field+c.Field, c.Err)
	}
	return err
}

// add takes one entry of a write batch.
func (w *walLoader) add(e logEntry) error {
	ks := w.byID[e.Family]
	if ks == nil {
		if w.db.version.Rebuilt && w.unnamed(e.Family) {
			return nil
		}
		if !w.db.version.Dropped(e.Family) {
			return &record.CorruptError{Off: record.NoOffset, Field: "column family",
				Err: fmt.Errorf("%d is unknown to the MANIFEST", e.Family)}
		}
		return nil // dropped since
	}
	if !ks.reads(w.log) {
		w.log.pass(&e)
		return nil // a table holds it
	}
	if _, err := w.db.env.KindOf(base.Trailer(e.Seq, e.Kind)); err != nil && w.db.levelDB {
		return &record.CorruptError{Off: record.NoOffset, Field: "tag", Err: err}
	}
	if e.Seq > base.MaxSequence {
		return &record.CorruptError{Off: record.NoOffset, Field: "sequence", Err: fmt.Errorf("sequence number %d", e.Seq)}
	}
	return w.take(ks, e)
}

// sort takes an entry on the first pass over the logs.
func (w *walLoader) sort(ks *family, e logEntry) error {
	w.log.entries++
	if _, err := lsm.KindOf(base.Trailer(e.Seq, e.Kind)); err != nil && w.db.opts.Salvage {
		ks.lostRow(e.Key, record.Place{File: w.log.name, Off: w.off, Level: -1, Seq: e.Seq}, err)
	}
	if e.Seq <= ks.flushed {
		w.log.noteFlushed(ks, e.Seq, w.off)
	}
	if e.Kind == base.KindRangeDelete {
		ks.AddTombstone(e.Key, e.Value, e.Seq, record.Place{File: w.log.name, Off: w.off, Level: -1, Seq: e.Seq})
		return nil
	}
	if ks.circles != nil {
		ks.circles.note(e.Key)
	}
	o := lsm.Origin{File: w.index, Off: uint64(w.off)}
	if e.From != nil {
		return w.sorters[ks].AddLarge(e.Key, base.Trailer(e.Seq, e.Kind), e.Size, e.From, o)
	}
	return w.sorters[ks].Add(e.Key, base.Trailer(e.Seq, e.Kind), e.Value, o)
}

// finish builds sorted runs from the collected entries.
func (w *walLoader) finish() error {
	inMemory := w.db.opts.Memory / 8 / int64(len(w.db.spaces))
	for _, ks := range w.db.spaces {
		s := w.sorters[ks]
		t, err := s.Spool(-1, w.origins, inMemory)
		if err != nil {
			return fmt.Errorf("%s: sorting the logs: %w", w.db.dir, err)
		}
		ks.SetLogs(t, s.Bytes)
		if err := s.Close(); err != nil {
			return err
		}
	}
	return nil
}
