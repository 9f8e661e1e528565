package rocks

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"kvferry/record"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/manifest"
)

// Engines number every entry that they write, and log it before it takes effect. So the sequence numbers in the logs
// have no gap from the first entry that is not in a table yet to the last one, and they continue where tables and
// MANIFEST end. Once all logs are loaded, kvferry checks the following:
//
//	tables of a column family   no log that it reads has numbers up to the largest of them
//	last sequence               the MANIFEST has the last number at the time it was written: logs begin at the next
//	                            number or below it, and reach it
//	one log, the next log       no number is missing or repeated
//	logs that are needed        reach the last entry flushed when a later log was begun, if the MANIFEST has it
//	logs no longer needed       have no number above those of tables, MANIFEST and the others
//
// A log from which no column family takes entries, such as one about to be removed, is no evidence: later logs may be
// missing. If the logs have no entries, the check is impossible: compactions drop sequence numbers.

// maxIngested is the longest run of numbers attributed to ingested tables: the numbers are in no log, and once the
// tables are compacted they are nowhere.
const maxIngested = 16

// lastFlushed returns the largest sequence number of a column family's tables that is known to have been in a log.
// LevelDB's MANIFEST only has the numbers in the bounds.
func (ks *family) lastFlushed(f *manifest.Family) uint64 {
	seq := f.Logged
	if ks.st.levelDB {
		for _, t := range ks.Tables {
			for _, k := range [][]byte{t.Smallest, t.Largest} {
				_, tr := base.SplitKey(k)
				seq = max(seq, tr>>8)
			}
		}
	}
	return seq
}

// checkLastSequence reports a database with tables that RocksDB would take for one that was never written to.
func (db *database) checkLastSequence() {
	tables := slices.ContainsFunc(db.spaces, func(ks *family) bool { return len(ks.Tables) > 0 })
	// If a log has been written to since, the next snapshot has a number.
	written := slices.ContainsFunc(db.logs, func(l *logFile) bool { return l.seqs.Any() })
	if db.levelDB || db.version.LastSeq > 0 || !tables || written {
		return
	}
	db.report(record.Finding{Kind: record.FindLastSequence, Severity: record.Warning, Place: record.InFile(db.version.Name),
		Detail: "the last sequence number is 0 and there are rows, as earlier versions of kvferry wrote them: a server that compacts while a " +
			"snapshot from before its first write is held (SCAN and KEYS take them) loses every row; convert it to its own format before a server opens it"})
}

// logJudge compares the sequence numbers of logs, the oldest first.
type logJudge struct {
	db     *database
	tables uint64          // the largest number of all tables
	logged uint64          // the largest number of tables that was in a log
	alone  map[uint64]bool // numbers of tables with a single number, as ingested tables have
	last   uint64          // the last number accounted for
	prev   *logFile        // with entries, nil before the first that counts
}

// judgeLogs reports where logs do not follow each other, the tables and the MANIFEST.
func (db *database) judgeLogs(ctx context.Context) error {
	j := logJudge{db: db, alone: maps.Clone(db.version.Ingested)}
	for _, ks := range db.spaces {
		j.logged = max(j.logged, ks.flushed)
		for _, t := range ks.Tables {
			j.tables = max(j.tables, t.MaxSeq)
			if t.MinSeq == t.MaxSeq {
				j.alone[t.MaxSeq] = true
			}
		}
	}
	j.last = max(j.tables, db.version.LastSeq)
	if err := j.retired(ctx); err != nil {
		return err
	}
	j.unflushed()
	for _, l := range db.logs {
		j.passed(l)
	}
	for _, l := range db.logs {
		if !l.seqs.Any() {
			continue
		}
		if !j.within(l) || !j.follows(l) {
			return nil
		}
	}
	// A running server may not yet have written the entries that the MANIFEST counts.
	if j.prev != nil && !db.opts.AllowLive && db.version.LastSeq > max(j.last, j.logged) {
		j.gap(j.prev, j.prev.file.Size, j.last+1, db.version.LastSeq, "the MANIFEST counts them, but the logs end before: the end of the "+
			"last log or later logs are missing")
	}
	return nil
}

// retired judges logs whose entries are all in tables, by their file numbers. The edit of the MANIFEST that retires a
// log also has the last sequence number, so a log with later numbers bears the name of another log.
func (j *logJudge) retired(ctx context.Context) error {
	known := j.largestKnown(nil)
	for _, l := range j.db.retired {
		if err := l.count(ctx); err != nil {
			return err
		}
		if last := l.lastPassed(); last > known {
			j.foreign(l, 0, record.Error, fmt.Sprintf("the MANIFEST lists no log this old, so it is not read, but it has sequence numbers up to %d, "+
				"while tables, MANIFEST and other logs end at %d: it is a later log under another name", last, known))
		}
	}
	return nil
}

// passed judges a log that some column families no longer read. The edit that retires it for a family has the last
// number of its tables, so the same holds for their entries, except the entries that a table need not keep.
func (j *logJudge) passed(l *logFile) {
	if known, last := j.largestKnown(l), l.lastPassed(); last > known {
		j.foreign(l, 0, record.Warning, fmt.Sprintf("by its number, some column families have its entries in tables and do not read them, but they have sequence "+
			"numbers up to %d, while tables, MANIFEST and other logs end at %d: it seems to be a later log under another name",
			last, known))
	}
}

// unflushed judges the logs that, by the MANIFEST, have entries missing from all tables. A checkpoint has these logs
// too. A running server may have flushed since.
func (j *logJudge) unflushed() {
	from, flushes := j.db.version.Unflushed()
	if j.db.opts.AllowLive || j.db.behind != nil {
		return
	}
	f := record.Finding{Kind: record.FindLogGap, Severity: record.Error, Place: record.InFile(j.db.version.Name)}
	logs, last := j.db.logs, uint64(0)
	for _, flush := range flushes {
		written := false
		for ; len(logs) > 0 && logs[0].number < flush.Log; logs = logs[1:] {
			l := logs[0]
			f.Place.File, last, written = l.name, max(last, l.seqs.Last), written || l.file.Size > 0
		}
		what := "are empty or missing: writes are lost"
		switch {
		case written && last >= flush.Seq:
			from = flush.Log
			continue
		case written:
			f.Severity = record.Warning
			what = fmt.Sprintf("end at sequence number %d, but the flushed tables reach %d: writes are lost, unless they were made without a log",
				last, flush.Seq)
		}
		f.Detail = fmt.Sprintf("by the MANIFEST, logs from %06d to before %06d have writes that are not in tables, and these logs %s; "+
			"bring back the logs that belong to these tables", from, flush.Log, what)
		j.db.report(f)
		return
	}
}

// largestKnown returns the largest number in tables, MANIFEST and all logs except but.
func (j *logJudge) largestKnown(but *logFile) uint64 {
	known := j.last
	for _, l := range j.db.logs {
		if l != but {
			known = max(known, l.seqs.Last)
		}
	}
	return known
}

// within judges one log by itself; false means that it is foreign.
func (j *logJudge) within(l *logFile) bool {
	f := l.flushed
	if l.nFlushed > 0 {
		severity, what := record.Error, fmt.Sprintf("it has sequence number %d of column family %s, whose tables reach %d already (such entries: %d)",
			f.seq, f.ks.Name(), f.ks.flushed, l.nFlushed)
		sound := j.compacted(f.ks.flushed)
		if sound {
			severity, what = record.Warning, what+", unless that is the number of a table that was ingested and then compacted"
		}
		j.foreign(l, f.off, severity, what)
		if !sound {
			return false
		}
	}
	if b := l.seqs.Back; b.First > 0 {
		j.foreign(l, b.Off, record.Warning, fmt.Sprintf("sequence number %d comes after %d", b.First, b.Prev))
	}
	if g := l.seqs.Gap; g.First > 0 {
		j.gap(l, g.Off, g.Prev+1, g.First-1, fmt.Sprintf("in this log; such numbers in all: %d", l.seqs.Missing))
	}
	return true
}

// follows judges a log by its predecessor; false means that it is foreign.
func (j *logJudge) follows(l *logFile) bool {
	s := &l.seqs
	switch {
	case j.prev == nil && l.entries == 0:
		j.last = max(j.last, s.Last)
		return true
	case j.prev == nil && s.First > j.last+1 && j.db.behind != nil:
		// Unlisted tables have the entries before the first log.
	case j.prev == nil && s.First > j.last+1 && j.db.version.Begins(l.number):
		j.gap(l, 0, j.last+1, s.First-1, "tables and MANIFEST end before them, and the first log that the MANIFEST needs begins after them")
	case j.prev == nil && s.First > j.last+1:
		j.gap(l, 0, j.last+1, s.First-1, "tables and MANIFEST end before them, and the first log begins after them: an earlier log is missing, "+
			"or it is of another time")
	case j.prev != nil && s.First > j.last+1:
		j.gap(l, 0, j.last+1, s.First-1, fmt.Sprintf("they were between %s and this log: a log is missing", j.prev.name))
	case j.prev != nil && s.First <= j.last:
		j.foreign(l, 0, record.Error, fmt.Sprintf("it begins at sequence number %d, and %s reaches %d: one of them is a copy, or of another dataset",
			s.First, j.prev.name, j.last))
		return false
	}
	j.prev, j.last = l, s.Last
	return true
}

// gap reports missing sequence numbers, unless ingested tables took them all. It is only a warning if tables may have
// the entries, or had no need to keep them: a flush drops what lastPassed leaves out, and its edit of the MANIFEST says
// which log comes next. Of LevelDB it is an error, since its tables and its MANIFEST have every number.
func (j *logJudge) gap(l *logFile, off int64, from, to uint64, where string) {
	if !j.db.levelDB && j.ingested(from, to) {
		return
	}
	f := record.Finding{Kind: record.FindLogGap, Severity: record.Error, Place: record.Place{File: l.name, Off: off, Level: -1}}
	lost := "the writes that had them are lost"
	n := to - from + 1
	known := to <= j.tables || n <= maxIngested && to <= j.db.version.LastSeq
	if !j.db.levelDB && (known || off == 0 && j.db.version.Begins(l.number)) {
		f.Severity, lost = record.Warning, "the writes that had them are lost, unless they are in tables or left no trace in them, as a put with its single deletion"
	}
	f.Detail = fmt.Sprintf("%s missing, %d to %d: %s; %s; bring back the logs that were beside these tables",
		record.Count(int64(n), "sequence number"), from, to, lost, where)
	j.db.report(f)
}

// ingested reports whether each of the sequence numbers is the only one of a table.
func (j *logJudge) ingested(from, to uint64) bool {
	for n := from; n <= to; n++ {
		if !j.alone[n] {
			return false
		}
	}
	return true
}

// compacted reports whether seq may come from an ingested table that was compacted with others: no log has it, but a
// log has one of the maxIngested numbers before it.
func (j *logJudge) compacted(seq uint64) bool {
	near := false
	for _, l := range j.db.logs {
		if l.seqs.Has(seq) {
			return false
		}
		for n := range uint64(maxIngested) {
			near = near || n < seq && l.seqs.Has(seq-1-n)
		}
	}
	return near && !j.db.levelDB
}

// foreign reports a log that does not belong to this database.
func (j *logJudge) foreign(l *logFile, off int64, s record.Severity, what string) {
	j.db.report(record.Finding{Kind: record.FindForeignLog, Severity: s, Place: record.Place{File: l.name, Off: off, Level: -1},
		Detail: what + "; bring back the logs that were beside these tables"})
}
