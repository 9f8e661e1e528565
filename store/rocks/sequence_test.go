package rocks

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/logfile"
	"kvferry/store/rocks/manifest"
)

// written is a batch of n entries from a sequence number on.
func written(seq, n int) []byte {
	var ops [][]byte
	for i := range n {
		ops = append(ops, testsst.Op(base.KindPut, fmt.Sprintf("k%06d", seq+i), ""))
	}
	return testsst.Batch(uint64(seq), ops...)
}

// TestLogSequences: findings from the sequence numbers of tables, MANIFEST and logs. A table with numbers 50 to 100 is
// in the first column family, and the last sequence number is lastSeq, or 100.
func TestLogSequences(t *testing.T) {
	two := func(a, b []byte) [][]byte { return [][]byte{a, b} }
	for _, tt := range []struct {
		name    string
		lastSeq uint64
		logs    [][][]byte // from number 20 on
		level   bool
		want    string
	}{
		{name: "no entries", logs: [][][]byte{nil}},
		{name: "as engines write", logs: [][][]byte{two(written(101, 2), written(103, 1)), nil, {written(104, 5)}}},
		{name: "flushed while it was written", lastSeq: 103, logs: [][][]byte{two(written(101, 2), written(103, 1))}},
		{name: "gap within", logs: [][][]byte{two(written(101, 2), written(104, 1))}, want: "error log-gap 20"},
		{name: "small gap below the last sequence", lastSeq: 110, logs: [][][]byte{two(written(101, 2), written(105, 6))}, want: "warning log-gap 20"},
		{name: "large gap below the last sequence", lastSeq: 140, logs: [][][]byte{two(written(101, 2), written(135, 6))}, want: "error log-gap 20"},
		{name: "leveldb ingests nothing", level: true, lastSeq: 110, logs: [][][]byte{two(written(101, 2), written(105, 6))}, want: "error log-gap 20"},
		{name: "one number between logs is missing", logs: [][][]byte{{written(101, 3)}, {written(105, 1)}}, want: "error log-gap 21"},
		{name: "the first number is missing", logs: [][][]byte{{written(102, 1)}}, want: "error log-gap 20"},
		{name: "a log between is missing", logs: [][][]byte{{written(101, 3)}, nil, {written(140, 1)}}, want: "error log-gap 22"},
		{name: "the first log is missing", logs: [][][]byte{nil, {written(140, 1)}}, want: "error log-gap 21"},
		{name: "the first log is missing, and the MANIFEST knows more", lastSeq: 120, logs: [][][]byte{nil, {written(140, 1)}}, want: "error log-gap 21"},
		{name: "the last log is missing", lastSeq: 150, logs: [][][]byte{{written(101, 3)}}, want: "error log-gap 20"},
		{name: "a few numbers behind", lastSeq: 105, logs: [][][]byte{{written(101, 3)}}, want: "warning log-gap 20"},
		{name: "older than the tables", logs: [][][]byte{{written(60, 20)}}, want: "error foreign-log 20"},
		{name: "as when a table was ingested and compacted", logs: [][][]byte{{written(60, 40)}}, want: "warning foreign-log 20"},
		{name: "as when one was while entries were written", logs: [][][]byte{two(written(60, 30), written(101, 5))}, want: "warning foreign-log 20, warning log-gap 20"},
		{name: "begins before the tables end", logs: [][][]byte{{written(90, 30)}}, want: "error foreign-log 20"},
		{name: "leveldb, older than the tables", level: true, logs: [][][]byte{{written(60, 40)}}, want: "error foreign-log 20"},
		{name: "a copy under another number", logs: [][][]byte{{written(101, 3)}, {written(101, 3)}}, want: "error foreign-log 21"},
		{name: "an older log behind", logs: [][][]byte{{written(110, 3)}, {written(101, 3)}}, lastSeq: 109, want: "error foreign-log 21"},
		{name: "numbers go back", logs: [][][]byte{two(written(101, 3), written(102, 3))}, want: "warning foreign-log 20"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := testsst.NewDB(t)
			if tt.level {
				d = testsst.NewLevelDB(t)
			}
			d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 50, ""), testsst.Put("b", 100, ""))
			for i, records := range tt.logs {
				d.File(fmt.Sprintf("%06d.log", 20+i), testsst.Log(uint64(20+i), false, records...))
			}
			d.LastSeq = max(tt.lastSeq, 100)
			dir := d.Finish()
			_, found := openFindings(t, dir, store.Options{})
			for _, f := range *found {
				checkGap(t, &f, d.LastSeq, slices.Concat(tt.logs...))
			}
			if aboutLogs(*found) != tt.want {
				t.Errorf("findings %+v, want %q", *found, tt.want)
			}
		})
	}
}

// TestNumbersWithoutTrace: a flush drops a put with its single deletion and the deletion of an empty range, and neither
// tables nor MANIFEST have their numbers. The log that the MANIFEST needs first shows that nothing is missing.
func TestNumbersWithoutTrace(t *testing.T) {
	single := testsst.Batch(101, testsst.Op(base.KindPut, "s", "x"), testsst.Op(base.KindSingleDelete, "s"),
		testsst.Op(base.KindRangeDelete, "b", "b"))
	for _, tt := range []struct {
		name  string
		first byte // log that the MANIFEST, of number 5, needs
		logs  map[uint64][]byte
		level bool
		want  string
	}{
		{"the first log that is needed", 20, map[uint64][]byte{20: written(104, 3)}, false, "warning log-gap 20"},
		{"and the one before it, to be removed", 20, map[uint64][]byte{19: single, 20: written(104, 3)}, false, "warning log-gap 20"},
		{"the one before it alone", 20, map[uint64][]byte{19: single, 20: nil}, false, ""},
		{"a log from which nothing was dropped", 20, map[uint64][]byte{19: written(101, 3), 20: nil}, false, "error foreign-log 19"},
		{"the first log is missing", 20, map[uint64][]byte{21: written(104, 3)}, false, "error log-gap 21"},
		{"begun before the MANIFEST", 3, map[uint64][]byte{4: written(104, 3)}, false, "warning log-gap 4"},
		{"begun behind the MANIFEST", 3, map[uint64][]byte{6: written(104, 3)}, false, "warning log-gap 6"},
		{"a later log", 3, map[uint64][]byte{7: written(104, 3)}, false, "error log-gap 7"},
		{"a gap within", 20, map[uint64][]byte{20: written(101, 1), 21: written(104, 3)}, false, "error log-gap 21"},
		{"leveldb", 20, map[uint64][]byte{20: written(104, 3)}, true, "error log-gap 20"},
	} {
		d := testsst.NewDB(t)
		if tt.level {
			d = testsst.NewLevelDB(t)
		}
		d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 50, ""), testsst.Put("b", 100, ""))
		d.Edit([]byte{manifest.TagLogNumber, tt.first})
		for n, b := range tt.logs {
			var records [][]byte
			if b != nil {
				records = append(records, b)
			}
			d.File(fmt.Sprintf("%06d.log", n), testsst.Log(n, false, records...))
		}
		d.LastSeq = 100
		_, found := openFindings(t, d.Finish(), store.Options{})
		if aboutLogs(*found) != tt.want {
			t.Errorf("%s: findings %+v, want %q", tt.name, *found, tt.want)
		}
	}
}

// TestIngestedSince: tables that were ingested take numbers that no log has, here 106, and compactions may take them
// out of sight. A later MANIFEST no longer shows it.
func TestIngestedSince(t *testing.T) {
	compact := func(d *testsst.DB, ingested string) {
		d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 50, ""), testsst.Put("c", 106, ""))
		var number uint64
		fmt.Sscanf(ingested, "%d", &number)
		os.Remove(filepath.Join(d.Dir, ingested))
		last := &d.Edits[len(d.Edits)-1]
		*last = slices.Concat(testsst.EditNumber(manifest.TagNextFileNumber, d.Next),
			binary.AppendUvarint([]byte{manifest.TagDeletedFile, 0}, number), *last)
	}
	for _, tt := range []struct {
		name   string
		tables func(d *testsst.DB)
		log    [][]byte // nil: all
		want   string
	}{
		{"ingested", func(d *testsst.DB) { d.Ingest(0, 0, 106, "c") }, nil, ""},
		{"ingested and compacted", func(d *testsst.DB) { compact(d, d.Ingest(0, 0, 106, "c")) }, nil, ""},
		{"the log of another time", func(d *testsst.DB) { compact(d, d.Ingest(0, 0, 106, "c")) }, [][]byte{written(60, 20)}, "warning log-gap 20"},
		{"compacted before the MANIFEST began", func(d *testsst.DB) {
			d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 50, ""), testsst.Put("c", 106, ""))
		}, nil, "warning foreign-log 20, warning log-gap 20"},
	} {
		d := testsst.NewDB(t)
		tt.tables(d)
		if tt.log == nil {
			tt.log = [][]byte{written(101, 5), written(107, 3)}
		}
		d.File("000020.log", testsst.Log(20, false, tt.log...))
		d.LastSeq = 106
		_, found := openFindings(t, d.Finish(), store.Options{})
		if aboutLogs(*found) != tt.want {
			t.Errorf("%s: findings %+v, want %q", tt.name, *found, tt.want)
		}
	}
}

// TestUnflushedLogs: by the MANIFEST, logs from 20 up to 30, and up to 40, have entries missing from all tables, and
// reach 103 and 106.
func TestUnflushedLogs(t *testing.T) {
	whole, begin := written(101, 3), written(101, 2)
	for _, tt := range []struct {
		name string
		logs map[int][][]byte
		live bool
		want string
	}{
		{name: "there", logs: map[int][][]byte{20: {whole}, 30: {written(104, 3)}, 40: nil}},
		{name: "there under another number", logs: map[int][][]byte{25: {whole}, 30: {written(104, 3)}, 40: nil}},
		{name: "empty", logs: map[int][][]byte{20: nil, 30: nil, 40: nil}, want: "error log-gap 20"},
		{name: "the first empty", logs: map[int][][]byte{20: nil, 30: {written(104, 3)}, 40: nil}, want: "error log-gap 20"},
		{name: "the first cut", logs: map[int][][]byte{20: {begin}, 30: {written(104, 3)}, 40: nil}, want: "warning log-gap 20"},
		{name: "the second empty", logs: map[int][][]byte{20: {whole}, 30: nil, 40: nil}, want: "error log-gap 30"},
		{name: "the second cut", logs: map[int][][]byte{20: {whole}, 30: {written(104, 2)}, 40: nil}, want: "warning log-gap 30"},
		{name: "the second missing", logs: map[int][][]byte{20: {whole}, 40: {written(107, 1)}}, want: "error log-gap 20"},
		{name: "the second of empty writes", logs: map[int][][]byte{20: {whole}, 30: {testsst.Batch(107)}, 40: nil}, want: "warning log-gap 30"},
		{name: "all missing", logs: map[int][][]byte{40: nil}, want: "error log-gap MANIFEST-000005"},
		{name: "all missing, and written since", logs: map[int][][]byte{40: {written(107, 3)}}, want: "error log-gap MANIFEST-000005"},
		{name: "of a server at work", logs: map[int][][]byte{40: nil}, live: true},
		{name: "all missing, and the last", want: "error log-gap MANIFEST-000005"},
		{name: "all missing, and the last, of a server at work", live: true, want: "warning no-log MANIFEST-000005"},
	} {
		d := testsst.NewDB(t)
		d.Family(1, "one", testsst.BytewiseName)
		d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 50, ""), testsst.Put("b", 100, ""))
		flush := func(family, log, lowest, seq uint64) {
			d.Table(family, 1, testsst.Spec{}, testsst.Put(fmt.Sprint("c", seq), 50, ""), testsst.Put(fmt.Sprint("d", seq), seq, ""))
			table := d.Edits[len(d.Edits)-1]
			d.Edits = d.Edits[:len(d.Edits)-1]
			d.Edit(table, testsst.EditNumber(manifest.TagLogNumber, log), testsst.EditNumber(manifest.TagMinLogToKeep, lowest),
				testsst.EditNumber(manifest.TagNextFileNumber, log+2))
		}
		d.Edits = append(
			[][]byte{slices.Concat(testsst.EditComparator(testsst.BytewiseName), testsst.EditNumber(manifest.TagLogNumber, 0),
				testsst.EditNumber(manifest.TagNextFileNumber, 15), testsst.EditNumber(manifest.TagLastSequence, 1))}, d.Edits[1:]...)
		flush(0, 20, 15, 99)
		flush(1, 20, 20, 100)
		flush(0, 30, 20, 103)
		flush(0, 40, 20, 106)
		for n, records := range tt.logs {
			d.File(fmt.Sprintf("%06d.log", n), testsst.Log(uint64(n), false, records...))
		}
		d.LastSeq = 106
		_, found := openFindings(t, d.Finish(), store.Options{AllowLive: tt.live})
		if aboutLogs(*found) != tt.want {
			t.Errorf("%s: findings %+v, want %q", tt.name, *found, tt.want)
		}
	}
}

// aboutLogs returns the severities, kinds and log numbers of findings.
func aboutLogs(found []record.Finding) string {
	var out []string
	for _, f := range found {
		out = append(out, fmt.Sprint(f.Severity, " ", f.Kind, " ", strings.TrimSuffix(strings.TrimLeft(f.Place.File, "0"), ".log")))
	}
	return strings.Join(out, ", ")
}

// checkGap fails when sequence numbers are said to be missing that logs have, or when these are not all that are missing
// there. Tables and MANIFEST reach last.
func checkGap(t *testing.T, f *record.Finding, last uint64, records [][]byte) {
	t.Helper()
	if f.Kind != record.FindLogGap {
		return
	}
	have := map[uint64]bool{last: true}
	for _, r := range records {
		for i := range binary.LittleEndian.Uint32(r[8:]) {
			have[binary.LittleEndian.Uint64(r)+uint64(i)] = true
		}
	}
	var n, from, to uint64
	_, missing, _ := strings.Cut(f.Detail, " missing, ")
	fmt.Sscanf(f.Detail, "%d", &n)
	fmt.Sscanf(missing, "%d to %d:", &from, &to)
	if n != to-from+1 || !have[from-1] && from != 101 || have[from] || have[to] && to != last || !have[to+1] && to != last {
		t.Errorf("%d numbers, %d to %d: %s", n, from, to, f.Detail)
	}
}

// TestComesNext: a truncated batch is the next one of its log if its number equals or follows the last one, apart from
// numbers that ingested tables may have taken in between.
func TestComesNext(t *testing.T) {
	var l logFile
	for seq, want := range map[uint64]bool{1: true, 1 << 50: true} {
		if got := l.comesNext(testsst.Batch(seq)); got != want {
			t.Errorf("%d in an empty log: %t", seq, got)
		}
	}
	l.seqs.First, l.seqs.Last = 90, 100
	l.seqs.Add(mustSeqs(t, 100, 1), 0)
	for seq, want := range map[uint64]bool{99: false, 100: true, 101: true, 101 + maxIngested: true, 102 + maxIngested: false} {
		if got := l.comesNext(testsst.Batch(seq)); got != want {
			t.Errorf("%d after 100: %t", seq, got)
		}
	}
	if !l.comesNext([]byte{1, 2}) {
		t.Error("a batch that was cut within its number")
	}
}

// mustSeqs are the numbers of a batch.
func mustSeqs(t *testing.T, seq, n int) seqRange {
	t.Helper()
	b, err := newBatch(&logfile.Reader{}, written(seq, n), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Decode(func(logEntry) error { return nil }); err != nil {
		t.Fatal(err)
	}
	r, ok := b.Seqs()
	if !ok {
		t.Fatal("no numbers")
	}
	return r
}

// TestRetiredLogs: a log whose number the MANIFEST has retired has no new entries, unless it is a renamed later log.
func TestRetiredLogs(t *testing.T) {
	for _, tt := range []struct {
		name string
		logs map[uint64][]byte // the MANIFEST needs those from 30 on
		last uint64
		want string
	}{
		{"in tables", map[uint64][]byte{20: written(95, 6), 30: written(101, 2)}, 100, ""},
		{"in tables that dropped the end", map[uint64][]byte{20: written(95, 8)}, 102, ""},
		{"copied", map[uint64][]byte{20: written(101, 2), 30: written(101, 2)}, 100, ""},
		{"renamed", map[uint64][]byte{20: written(101, 2), 31: nil}, 100, "error foreign-log 000020.log"},
		{"renamed, begun before the last flush", map[uint64][]byte{0: written(98, 9)}, 104, "error foreign-log 000000.log"},
		{"damaged", map[uint64][]byte{20: []byte("short"), 31: nil}, 100, ""},
	} {
		for _, level := range []bool{false, true} {
			d := testsst.NewDB(t)
			if level {
				d = testsst.NewLevelDB(t)
			}
			d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 50, ""), testsst.Put("b", 100, ""))
			d.Edit([]byte{2, 30})
			for n, b := range tt.logs {
				var records [][]byte
				if b != nil {
					records = append(records, b)
				}
				d.File(fmt.Sprintf("%06d.log", n), testsst.Log(n, false, records...))
			}
			d.LastSeq = tt.last
			_, found := openFindings(t, d.Finish(), store.Options{})
			got := ""
			for _, f := range *found {
				if f.Kind != "no-log" { // of the case without other logs
					got += fmt.Sprint(f.Severity, " ", f.Kind, " ", f.Place.File)
				}
			}
			if got != tt.want {
				t.Errorf("%s, leveldb %v: %q, want %q", tt.name, level, got, tt.want)
			}
		}
	}
}

// TestLogsOfFamilies: logs that no column family needs are no evidence, even if later logs are missing. A column family
// whose tables are ahead of a log that another family needs does not count for that log.
func TestLogsOfFamilies(t *testing.T) {
	one := func(seq int, families ...uint64) []byte {
		var ops [][]byte
		for _, f := range families {
			ops = append(ops, testsst.OpCF(base.KindCFPut, f, fmt.Sprint("k", seq), ""))
		}
		return testsst.Batch(uint64(seq), ops...)
	}
	for _, tt := range []struct {
		name string
		logs map[uint64][]byte
		last uint64
		want int
	}{
		{"dormant family, logs half removed", map[uint64][]byte{20: one(101, 0), 30: one(151, 0)}, 150, 0},
		{"a family still needs the first", map[uint64][]byte{20: one(101, 1), 30: one(151, 0)}, 150, 1},
		{"renamed, one family has done with it", map[uint64][]byte{20: one(101, 0, 1)}, 100, 1},
		{"one family has done with it", map[uint64][]byte{20: one(101, 0, 1)}, 101, 0},
		{"one family has done with it, and another log goes on", map[uint64][]byte{20: one(101, 0, 1), 30: one(103, 0)}, 100, 0},
		{"flushed in one, not in the other", map[uint64][]byte{20: one(100, 0, 1), 30: one(102, 0)}, 101, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := testsst.NewDB(t)
			d.Family(1, "one", testsst.BytewiseName)
			d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 50, ""), testsst.Put("b", 100, ""))
			d.Edit([]byte{2, 30}) // log number of the first family
			for n, b := range tt.logs {
				d.File(fmt.Sprintf("%06d.log", n), testsst.Log(n, false, b))
			}
			d.LastSeq = tt.last
			if _, found := openFindings(t, d.Finish(), store.Options{}); len(*found) != tt.want {
				t.Errorf("findings %+v", *found)
			}
		})
	}
}

// TestNeverWritten: with a last sequence number of 0, a compaction may drop the rows.
func TestNeverWritten(t *testing.T) {
	rows := []testsst.Entry{testsst.Put("a", 0, ""), testsst.Put("b", 0, "")}
	for _, tt := range []struct {
		name    string
		level   bool
		rows    []testsst.Entry
		lastSeq uint64
		log     []byte
		want    int
	}{
		{name: "rows", rows: rows, want: 1},
		{name: "no rows"},
		{name: "leveldb", level: true, rows: rows},
		{name: "written since", rows: rows, log: written(1, 2)},
		{name: "last sequence of 1", rows: rows, lastSeq: 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := testsst.NewDB(t)
			if tt.level {
				d = testsst.NewLevelDB(t)
			}
			if tt.rows != nil {
				d.Table(0, 6, testsst.Spec{}, tt.rows...)
			}
			d.LastSeq = tt.lastSeq
			if tt.log != nil {
				d.Log(20, tt.log)
			}
			_, found := openFindings(t, d.Finish(), store.Options{})
			if len(*found) != tt.want || tt.want > 0 && (*found)[0].Kind != "last-sequence" {
				t.Errorf("findings %+v", *found)
			}
		})
	}
}

// soonOver is a context that is over once it has been asked a number of times.
type soonOver struct {
	context.Context
	asked int
}

func (c *soonOver) Err() error {
	if c.asked--; c.asked >= 0 {
		return nil
	}
	return context.DeadlineExceeded
}

// TestHugeEmptyFiles: a MANIFEST or a log of 20 GiB of zeros takes no memory, and reading a log ends with its context.
func TestHugeEmptyFiles(t *testing.T) {
	const huge = 20 << 30
	grow := func(path string) {
		if err := os.Truncate(path, huge); err != nil {
			t.Skip(err)
		}
	}
	d := testsst.NewDB(t)
	d.Log(20, written(1, 3))
	dir := d.Finish()
	grow(filepath.Join(dir, "000020.log"))
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	before := m.TotalAlloc
	ctx := &soonOver{Context: context.Background(), asked: 2000}
	if _, err := Open(ctx, dir, &store.Options{}); !errors.Is(err, context.DeadlineExceeded) || ctx.asked < -10 {
		t.Errorf("error %v; the context was asked %d times after its end", err, -ctx.asked)
	}
	grow(filepath.Join(dir, "MANIFEST-000005"))
	for _, ctx := range []context.Context{ctx, context.Background()} {
		_, err := Open(ctx, dir, &store.Options{})
		done := ctx.Err() != nil
		if err == nil || done != errors.Is(err, context.DeadlineExceeded) || !done && !strings.Contains(err.Error(), "zeros") {
			t.Errorf("error %v", err)
		}
	}
	runtime.ReadMemStats(&m)
	if m.TotalAlloc-before > 16<<20 {
		t.Errorf("%d MiB", (m.TotalAlloc-before)>>20)
	}
}
