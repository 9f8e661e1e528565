package rocks

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"slices"

	"github.com/zeebo/xxh3"

	"kvferry/internal/sys/disk"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/logfile"
)

// pass notes an entry that its column family has in tables. A flush drops a single deletion together with the put that
// it deletes, and the deletion of an empty range.
func (l *logFile) pass(e *logEntry) {
	switch {
	case e.Kind == base.KindRangeDelete && bytes.Compare(e.Key, e.Value) >= 0:
	case e.Kind == base.KindSingleDelete:
		for i := len(l.passed) - 1; i >= 0; i-- {
			if p := &l.passed[i]; p.family == e.Family && p.key == xxh3.Hash(e.Key) {
				l.passed = slices.Delete(l.passed, i, i+1)
				return
			}
		}
	default:
		if len(l.passed) == maxPassed {
			l.passed = append(l.passed[:0], l.passed[maxPassed/2:]...)
		}
		l.passed = append(l.passed, passedEntry{e.Seq, e.Family, xxh3.Hash(e.Key)})
	}
}

// maxPassed is the maximum length of passed.
const maxPassed = 256

// lastPassed returns the largest sequence number that a flush of the noted entries keeps.
func (l *logFile) lastPassed() (last uint64) {
	for i := range l.passed {
		last = max(last, l.passed[i].seq)
	}
	return last
}

// open starts reading a log, up to its size when it was found.
func (l *logFile) open(ctx context.Context) (*logfile.Reader, func(), error) {
	f, err := l.file.Acquire()
	if err != nil {
		return nil, nil, err
	}
	r := logfile.NewReader(logfile.Within(ctx, io.NewSectionReader(f, 0, l.file.Size)), l.number)
	r.Huge = logfile.HugeRecord
	return r, l.file.Release, nil
}

// resync continues after an error of Next: with the next record if that is readable, else with the next block. It
// returns false if the disk refuses to read on, or if an unknown fragment may change the meaning of the rest.
func resync(r *logfile.Reader, err error) bool {
	if errors.Is(err, base.ErrUnsupported) {
		return false
	}
	r.Salvage = true
	if !errors.Is(err, logfile.ErrWithin) && !errors.Is(err, logfile.ErrPacked) {
		r.Resync()
	}
	var path *fs.PathError
	return !errors.As(err, &path)
}

// count notes the entries in the readable part of a log that is not read otherwise.
func (l *logFile) count(ctx context.Context) error {
	r, done, err := l.open(ctx)
	if err != nil {
		return err
	}
	defer done()
	for {
		rec, off, err := r.Next()
		var b *writeBatch
		if err == nil {
			b, err = newBatch(r, rec, off)
		}
		if err == nil {
			err = b.Decode(func(e logEntry) error {
				l.pass(&e)
				return ctx.Err()
			})
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case disk.IsAccess(err):
			return err
		case err != nil:
			return nil
		}
	}
}

// comesNext reports whether a truncated batch may be the next one of a log, by its sequence number if that is complete.
// Empty batches may repeat the last number, and ingested tables take numbers in between.
func (l *logFile) comesNext(start []byte) bool {
	if len(start) < 8 || !l.seqs.Any() {
		return true
	}
	seq := binary.LittleEndian.Uint64(start)
	return l.seqs.Last <= seq && seq <= l.seqs.Last+1+maxIngested
}

// noteFlushed notes an entry that a table of its column family had already.
func (l *logFile) noteFlushed(ks *family, seq uint64, off int64) {
	if l.nFlushed++; l.nFlushed == 1 {
		l.flushed = flushedEntry{ks, seq, off}
	}
}

// logExt ends the names of logs.
const logExt = ".log"
