package rocks

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
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

// openFindings opens a directory and collects its findings.
func openFindings(t *testing.T, dir string, o store.Options) (*database, *[]record.Finding) {
	t.Helper()
	var found []record.Finding
	o.Report = func(f record.Finding) { found = append(found, f) }
	return openTest(t, dir, o), &found
}

// rowsError opens a directory and returns the first error of opening or reading it.
func rowsError(dir string, o store.Options) error {
	o.Comparers = testsst.Comparers
	return testsst.RowsError(Open(context.Background(), dir, &o))
}

func TestLogKinds(t *testing.T) {
	d := testsst.NewDB(t)
	d.Family(1, "one", testsst.BytewiseName)
	d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 1, "old"), testsst.Put("b", 2, "old"), testsst.Put("s", 2, "old"),
		testsst.Put("r1", 3, "old"), testsst.Put("r2", 4, "old"))
	d.Log(7,
		testsst.Batch(10, testsst.Op(base.KindPut, "a", "new"), testsst.Op(base.KindLogData, "blob"),
			testsst.Op(base.KindDelete, "b"), testsst.Op(base.KindSingleDelete, "s"), testsst.Op(base.KindNoop)),
		testsst.Batch(13, testsst.Op(base.KindRangeDelete, "r1", "r2"), testsst.Op(base.KindMerge, "m", "1"),
			testsst.Op(base.KindMerge, "m", "2")),
		testsst.Batch(16, testsst.OpCF(base.KindCFPut, 1, "x", "1"), testsst.OpCF(base.KindCFPut, 1, "y", "1"),
			testsst.OpCF(base.KindCFDelete, 1, "y"), testsst.OpCF(base.KindCFPut, 1, "z", "1"),
			testsst.OpCF(base.KindCFSingleDelete, 1, "z"), testsst.OpCF(base.KindCFMerge, 1, "m", "3"),
			testsst.OpCF(base.KindCFPut, 1, "w", "1"), testsst.OpCF(base.KindCFRangeDelete, 1, "w", "x")),
		testsst.Batch(24), testsst.Batch(24, testsst.Op(base.KindPut, "", "empty")))
	db := openTest(t, d.Finish(), store.Options{Merger: testsst.JoinMerger})
	wantRows(t, db, 0, "=empty a=new m=1,2 r2=old")
	wantRows(t, db, 1, "m=3 x=1")
	if n := db.Keyspaces()[1].Size(); n == 0 {
		t.Error("column family 1 has no size, its rows are in the log")
	}
	it, _ := db.Keyspaces()[0].Rows(nil, nil)
	it.Next()
	if p := it.Place(); p.File != "000007.log" || p.Level != -1 || p.Seq != 24 || p.Off == 0 {
		t.Errorf("place %+v", p)
	}
}

// TestUnknownFamily: writes of a column family are passed over only if the MANIFEST says that it was dropped.
func TestUnknownFamily(t *testing.T) {
	for _, drops := range []bool{true, false} {
		d := testsst.NewDB(t)
		if drops {
			d.Drop(1)
		}
		d.Family(2, "two", testsst.BytewiseName)
		d.Log(5, testsst.Batch(1, testsst.Op(base.KindPut, "k", "v"), testsst.OpCF(base.KindCFPut, 1, "k", "v")))
		err := rowsError(d.Finish(), store.Options{})
		if drops && err != nil || !drops && (err == nil || !strings.Contains(err.Error(), "column family: 1 is unknown to the MANIFEST")) {
			t.Errorf("dropped %t: %v", drops, err)
		}
	}
}

func TestLogNumbers(t *testing.T) {
	d := testsst.NewDB(t)
	d.Family(1, "one", testsst.BytewiseName)
	d.Drop(2)
	d.Edit(testsst.EditNumber(manifest.TagLogNumber, 5))
	d.Edit(testsst.EditNumber(manifest.TagColumnFamily, 1), testsst.EditNumber(manifest.TagLogNumber, 7))
	both := func(seq uint64, v string) []byte {
		return testsst.Batch(seq, testsst.Op(base.KindPut, "k"+v, v), testsst.OpCF(base.KindCFPut, 1, "k"+v, v),
			testsst.OpCF(base.KindCFPut, 2, "k", "dropped"))
	}
	d.Log(4, both(1, "4"))
	d.Log(5, both(4, "5"))
	d.Log(7, both(7, "7"))
	d.Log(8)
	d.File("x.log", []byte("not a log"))
	db := openTest(t, d.Finish(), store.Options{})
	if n := len(db.Keyspaces()); n != 2 {
		t.Fatalf("%d keyspaces", n)
	}
	wantRows(t, db, 0, "k5=5 k7=7")
	wantRows(t, db, 1, "k7=7")
	var logs []string
	for _, f := range db.Files() {
		if f.Kind == "log" {
			logs = append(logs, f.Path)
		}
	}
	if want := "[000005.log 000007.log 000008.log]"; fmt.Sprint(logs) != want {
		t.Errorf("logs %v, want %s", logs, want)
	}
}

func TestPreviousLog(t *testing.T) {
	d := testsst.NewLevelDB(t)
	d.Edit(testsst.EditNumber(manifest.TagLogNumber, 6), testsst.EditNumber(manifest.TagPrevLogNumber, 3))
	d.Log(2, testsst.Batch(1, testsst.Op(base.KindPut, "two", "")))
	d.Log(3, testsst.Batch(1, testsst.Op(base.KindPut, "three", "")))
	d.Log(6, testsst.Batch(2, testsst.Op(base.KindPut, "six", "")))
	wantRows(t, openTest(t, d.Finish(), store.Options{}), 0, "six= three=")
}

// TestSameEntryTwice: a merge operand in both a log and a table counts once.
func TestSameEntryTwice(t *testing.T) {
	d := testsst.NewDB(t)
	d.Table(0, 0, testsst.Spec{}, testsst.NewEntry("m", 5, base.KindMerge, "x"), testsst.NewEntry("m", 4, base.KindMerge, "w"))
	d.Log(6, testsst.Batch(5, testsst.Op(base.KindMerge, "m", "x")))
	d.Log(7, testsst.Batch(5, testsst.Op(base.KindMerge, "m", "x")))
	dir := d.Finish()
	wantRows(t, openTest(t, dir, store.Options{Merger: testsst.JoinMerger}), 0, "m=w,x")
	d.Log(7, testsst.Batch(5, testsst.Op(base.KindMerge, "m", "y")))
	if err := rowsError(dir, store.Options{Merger: testsst.JoinMerger}); err == nil || !strings.Contains(err.Error(), "sequence number 5") {
		t.Errorf("error %v", err)
	}
}

func TestLogDamage(t *testing.T) {
	big := testsst.Batch(1, testsst.Op(base.KindPut, "big", strings.Repeat("x", 3*logfile.BlockSize)))
	small := testsst.Batch(2, testsst.Op(base.KindPut, "small", "1"))
	last := testsst.Batch(3, testsst.Op(base.KindPut, "last", "1"))
	whole := testsst.Log(7, false, big, small, last)
	smallAt := len(testsst.Log(7, false, big))
	lastAt := len(testsst.Log(7, false, big, small))
	flip := func(at int) []byte {
		b := slices.Clone(whole)
		b[at] ^= 0x40
		return b
	}
	noise := make([]byte, 1000)
	rand.New(rand.NewSource(1)).Read(noise)
	fakeHeader := []byte{1, 2, 3, 4, 0xff, 1, 1} // of a whole record of 511 bytes, which would fit
	tests := []struct {
		name string
		log  []byte
		more bool   // another log follows
		rows string // "!": an error
		told string // of the log; what a salvage reads instead of the error
	}{
		{"whole", whole, false, "big last small", ""},
		{"within the last record", whole[:lastAt+9], false, "big small", "warning torn-log"},
		{"within the last header", whole[:lastAt+3], false, "big small", "warning torn-log"},
		{"at a record's end", whole[:lastAt], false, "big small", ""},
		{"between fragments", whole[:2*logfile.BlockSize], false, "", "warning torn-log"},
		{"within a fragment", whole[:logfile.BlockSize+100], false, "", "warning torn-log"},
		{"torn, but not the last log", whole[:lastAt+9], true, "!", "big more small"},
		{"zeros after", append(slices.Clone(whole), make([]byte, 50000)...), false, "big last small", "warning torn-log"},
		{"zeros after, of whole pages", append(slices.Clone(whole), make([]byte, 1<<20-len(whole))...), false, "big last small", "note torn-log"},
		{"nothing but zeros", make([]byte, 50000), false, "", "warning torn-log"},
		{"nothing but pages of zeros", make([]byte, 1<<16), false, "", "warning torn-log"},
		{"random bytes at the end", slices.Concat(whole[:lastAt], noise[:200]), false, "!", "big small"},
		{"a header at the end, and noise", slices.Concat(whole[:lastAt], fakeHeader, noise[:200]), false, "!", "big small"},
		{"zeros within", slices.Concat(whole[:lastAt], make([]byte, 20), whole[lastAt:]), false, "!", "big small"},
		{"payload", flip(smallAt + 20), false, "!", "big last"},
		{"last payload", flip(lastAt + 20), false, "!", "big small"},
		{"length", flip(smallAt + 4), false, "!", "big"},
		{"high length", flip(smallAt + 5), false, "!", "big"},
		{"type", flip(smallAt + 6), false, "!", "big"},
		{"length of a full block", flip(4), false, "!", "last small"},
		{"missing middle", slices.Concat(whole[:logfile.BlockSize], whole[2*logfile.BlockSize:]), false, "!", "last small"},
		{"missing first", whole[logfile.BlockSize:], false, "!", "last small"},
		{"missing last", slices.Concat(whole[:2*logfile.BlockSize], testsst.Log(7, false, small)), false, "!", "small"},
		{"first twice", slices.Concat(whole[:logfile.BlockSize], whole), false, "!", "big last small"},
		{"garbage", bytes.Repeat([]byte("garbage "), 10000), false, "!", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := testsst.NewDB(t)
			d.File("000007.log", tt.log)
			if tt.more {
				d.Log(8, testsst.Batch(4, testsst.Op(base.KindPut, "more", "1")))
			}
			dir := d.Finish()
			if tt.rows == "!" {
				wantCorrupt(t, rowsError(dir, store.Options{}), "000007.log")
				checkSalvagedLog(t, dir, tt.told)
				return
			}
			db, found := openFindings(t, dir, store.Options{})
			rows, _ := testsst.ReadRows(t, db.Keyspaces()[0], nil, nil)
			var keys []string
			for _, r := range rows {
				keys = append(keys, string(r.Key))
			}
			if got := strings.Join(keys, " "); got != tt.rows {
				t.Errorf("rows %s, want %s", got, tt.rows)
			}
			var told []string
			for _, f := range *found {
				told = append(told, fmt.Sprint(f.Severity, " ", f.Kind))
			}
			if got := strings.Join(told, ", "); got != tt.told {
				t.Errorf("findings %+v, want %q", *found, tt.told)
			}
		})
	}
}

// TestLogUnread: what a salvage cannot read of a log is known to the byte: a record, or the rest of a block.
func TestLogUnread(t *testing.T) {
	small := testsst.Batch(2, testsst.Op(base.KindPut, "small", "1"))
	whole := testsst.Log(7, false, small, testsst.Batch(3, testsst.Op(base.KindPut, "last", "1")))
	lastAt := len(testsst.Log(7, false, small))
	for at, want := range map[int]int{20: lastAt, 4: len(whole), lastAt + 20: len(whole) - lastAt} {
		log := slices.Clone(whole)
		log[at] ^= 0x40
		d := testsst.NewDB(t)
		d.File("000007.log", log)
		_, found := openFindings(t, d.Finish(), store.Options{Salvage: true})
		unread := int64(0)
		for _, f := range *found {
			unread += f.Unread
		}
		if unread != int64(want) {
			t.Errorf("byte %d of %d: %d bytes were not read, want %d", at, len(whole), unread, want)
		}
	}
}

// checkSalvagedLog: a salvage reads the remaining keys of a damaged log in every way, and reports each place once.
func checkSalvagedLog(t *testing.T, dir, want string) {
	t.Helper()
	db, found := openFindings(t, dir, store.Options{Salvage: true})
	ks := db.Keyspaces()[0]
	rows, _ := testsst.ReadRows(t, ks, nil, nil)
	var keys, physical []string
	for _, r := range rows {
		keys = append(keys, string(r.Key))
	}
	if err := ks.Unordered(func(e *store.Entry) error { physical = append(physical, string(e.Key)); return nil }); err != nil {
		t.Error(err)
	}
	slices.Sort(physical)
	if got := strings.Join(keys, " "); got != want || !slices.Equal(keys, physical) {
		t.Errorf("keys %q, want %q; physical entries %q", got, want, physical)
	}
	errs := 0
	for _, f := range *found {
		if f.Severity == record.Error && f.Kind == record.FindDamagedFile && f.Place.File == "000007.log" {
			errs++
		}
	}
	if errs == 0 || errs != len(*found) {
		t.Errorf("findings %+v", *found)
	}
}

// wantCorrupt fails unless err is a CorruptError in that file.
func wantCorrupt(t *testing.T, err error, file string) {
	t.Helper()
	var c *record.CorruptError
	if !errors.As(err, &c) || filepath.Base(c.File) != file {
		t.Errorf("error %v, want a CorruptError in %s", err, file)
	}
}

func TestRecycledLog(t *testing.T) {
	old := testsst.Log(3, true, testsst.Batch(1, testsst.Op(base.KindPut, "old", strings.Repeat("o", 500))),
		testsst.Batch(2, testsst.Op(base.KindPut, "older", strings.Repeat("o", 500))))
	rec := func(key string, n int) []byte {
		return testsst.Batch(10, testsst.Op(base.KindPut, key, strings.Repeat("n", n)))
	}
	head := testsst.Log(7, true, rec("new", 10))
	oldRecord := len(testsst.Log(3, true, testsst.Batch(1, testsst.Op(base.KindPut, "old", strings.Repeat("o", 500)))))
	exact := testsst.Log(7, true, rec("new", oldRecord-len(testsst.Log(7, true, rec("new", 200)))+200))
	damaged := testsst.Log(7, true, rec("new", 10), testsst.Batch(11, testsst.Op(base.KindPut, "next", "1")),
		testsst.Batch(12, testsst.Op(base.KindPut, "third", "1")))
	damaged[len(head)+20] ^= 1
	tests := []struct {
		name, rows string
		log        []byte
		found      int
	}{
		{"fresh", "new", head, 0},
		{"ends at an old record", "new", append(slices.Clone(exact), old[len(exact):]...), 0},
		{"ends within an old record", "new", append(slices.Clone(head), old[len(head):]...), 1},
		{"damaged with a record behind", "!", damaged, 0},
		{"damaged last record", "new", damaged[:len(damaged)-len(testsst.Log(7, true, testsst.Batch(12, testsst.Op(base.KindPut, "third", "1"))))], 1},
		{"of another number from the start", "", old, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := testsst.NewDB(t)
			d.LastSeq = 9
			d.File("000007.log", tt.log)
			dir := d.Finish()
			if tt.rows == "!" {
				wantCorrupt(t, rowsError(dir, store.Options{}), "000007.log")
				return
			}
			db, found := openFindings(t, dir, store.Options{})
			rows, _ := testsst.ReadRows(t, db.Keyspaces()[0], nil, nil)
			got := ""
			for _, r := range rows {
				got += string(r.Key)
			}
			if got != tt.rows || len(*found) != tt.found {
				t.Errorf("rows %s, want %s; findings %+v", got, tt.rows, *found)
			}
		})
	}
}

func TestRefusedLogs(t *testing.T) {
	le := binary.LittleEndian
	tests := []struct {
		name, want  string
		log         []byte
		unsupported bool
	}{
		{"begin prepare", "begin of a prepared transaction", testsst.Log(7, false, testsst.Batch(1, []byte{0x09})), true},
		{"end prepare", "end of a prepared transaction", testsst.Log(7, false, testsst.Batch(1, testsst.Op(0x0a, "xid"))), true},
		{"commit", "commit of a prepared transaction", testsst.Log(7, false, testsst.Batch(1, testsst.Op(0x0b, "xid"))), true},
		{"rollback", "rollback of a prepared transaction", testsst.Log(7, false, testsst.Batch(1, testsst.Op(0x0c, "xid"))), true},
		{"blob index", "blob index", testsst.Log(7, false, testsst.Batch(1, testsst.Op(base.KindBlobIndex, "k", "v"))), true},
		{"wide column", "wide-column entity", testsst.Log(7, false, testsst.Batch(1, testsst.Op(0x16, "k", "v"))), true},
		{"timestamp", "delete with timestamp", testsst.Log(7, false, testsst.Batch(1, testsst.Op(0x14, "k"))), true},
		{"unknown tag", "tag 0x55", testsst.Log(7, false, testsst.Batch(1, []byte{0x55})), true},
		{"compressed", "log compressed with codec 4", testsst.Frame(logfile.FragCompression, 0, false, []byte{4, 0, 0, 0}), true},
		{"timestamps", "user-defined timestamps", testsst.Frame(logfile.FragTimestamps, 0, false, []byte{1}), true},
		{"type", "fragment type 42", testsst.Frame(42, 0, false, []byte{1}), true},
		{"short batch", "write batch", testsst.Log(7, false, []byte{1, 2, 3}), false},
		{"count", "1 entries, but 2 in the header", testsst.Log(7, false, append(le.AppendUint32(make([]byte, 8), 2), testsst.Op(base.KindPut, "a", "b")...)), false},
		{"cut", "need 9 bytes, have 1", testsst.Log(7, false, append(le.AppendUint32(make([]byte, 8), 1), base.KindPut, 9, 'x')), false},
		{"sequence", "sequence number", testsst.Log(7, false, testsst.Batch(1<<60, testsst.Op(base.KindPut, "a", "b"))), false},
		{"sequence at the end", "sequence number", testsst.Log(7, false, testsst.Batch(base.MaxSequence, testsst.Op(base.KindPut, "a", "b"), testsst.Op(base.KindPut, "b", "b"))), false},
		{"family", "99 is unknown", testsst.Log(7, false, testsst.Batch(1, testsst.OpCF(base.KindCFPut, 99, "a", "b"))), false},
		{"key", "varint", testsst.Log(7, false, append(le.AppendUint32(make([]byte, 8), 1), base.KindPut, 0xff)), false},
		{"long varint", "varint too long", testsst.Log(7, false, append(le.AppendUint32(make([]byte, 8), 1),
			append([]byte{base.KindPut}, bytes.Repeat([]byte{0xff}, 12)...)...)), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := testsst.NewDB(t)
			d.File("000007.log", tt.log)
			dir := d.Finish()
			err := rowsError(dir, store.Options{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "000007.log") {
				t.Fatalf("error %v, want %s", err, tt.want)
			}
			if errors.Is(err, base.ErrUnsupported) != tt.unsupported {
				t.Errorf("%v: unsupported is %t", err, !tt.unsupported)
			}
			if !tt.unsupported {
				wantCorrupt(t, err, "000007.log")
			}
		})
	}
}

// TestUnknownInLogs: a salvage loses a row of an unknown kind, the rest of a batch behind an unknown tag, and the rest of a log
// behind an unknown kind of fragment. It names each once, and reads everything beside it.
func TestUnknownInLogs(t *testing.T) {
	first := testsst.Batch(2, testsst.Op(base.KindPut, "a", "1"), testsst.Op(base.KindPut, "b", "1"))
	next := testsst.Batch(5, testsst.Op(base.KindPut, "z", "1"))
	big := testsst.Batch(11, testsst.Op(base.KindPut, "big", strings.Repeat("x", logfile.BlockSize)))
	tagged := testsst.Batch(4, testsst.Op(base.KindPut, "c", "1"), []byte{0x55, 1, 'x'}, testsst.Op(base.KindPut, "d", "1"))
	tests := []struct {
		name, rows, detail string
		log                []byte
	}{
		{"wide columns", "b=1 z=1", "wide-column entity (kind 0x16): not supported by the native reader; the row is missing: key \"a\"",
			testsst.Log(7, false, first, testsst.Batch(4, testsst.Op(base.KindWideColumns, "a", "v")), next)},
		{"merge operands on wide columns", "b=1 z=1", "wide-column entity (kind 0x16): not supported by the native reader; the row is missing: key \"a\"",
			testsst.Log(7, false, first, testsst.Batch(4, testsst.Op(base.KindWideColumns, "a", "v"), testsst.Op(base.KindMerge, "a", "m")),
				testsst.Batch(6, testsst.Op(base.KindPut, "z", "1")))},
		{"time of writing", "b=1 z=1", "value with a write time (kind 0x18): not supported by the native reader; the row is missing: key \"a\"",
			testsst.Log(7, false, first, testsst.Batch(4, testsst.Op(base.KindWriteTime, "a", "v")), next)},
		{"blob index", "b=1 z=1", "blob index (kind 0x10): not supported by the native reader; the row is missing: key \"a\"",
			testsst.Log(7, false, first, testsst.Batch(4, testsst.Op(base.KindBlobIndex, "a", "v")), next)},
		{"a large row", "b=1 z=1", "wide-column entity (kind 0x16): not supported by the native reader; the row is missing: key \"a\"",
			testsst.Log(7, false, first, testsst.Batch(4, testsst.Op(base.KindWideColumns, "a", strings.Repeat("v", 6<<20))), next)},
		{"tag", "a=1 b=1 c=1 z=1", "write batch: at 18: tag: write batch with tag 0x55: not supported by the native reader; " +
			"the entries of this write batch from there on are missing: rows that they deleted or changed keep their old state",
			testsst.Log(7, false, first, tagged, next)},
		{"prepared transaction", "a=1 b=1 z=1", "write batch: at 13: tag: write batch with a begin of a prepared transaction (tag 0x9): not supported by the native " +
			"reader; the entries of this write batch from there on are missing: rows that they deleted or changed keep their old state",
			testsst.Log(7, false, first, testsst.Batch(4, []byte{0x09}, testsst.Op(base.KindPut, "p", "1")), next)},
		{"timestamps", "a=1 b=1", "log record: log with user-defined timestamps: not supported by the native reader; " +
			"everything after it in this log is missing: rows that they deleted or changed keep their old state",
			slices.Concat(testsst.Log(7, false, first), testsst.Frame(logfile.FragTimestamps, 0, false, []byte{1}), testsst.Log(7, false, next, big, big))},
		{"fragment", "a=1 b=1", "log record: log with fragment type 42: not supported by the native reader; " +
			"everything after it in this log is missing: rows that they deleted or changed keep their old state",
			slices.Concat(testsst.Log(7, false, first), testsst.Frame(42, 0, false, []byte{1}), testsst.Log(7, false, next, big, big))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := testsst.NewDB(t)
			d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 1, "older"))
			d.File("000007.log", tt.log)
			dir := d.Finish()
			db, found := openFindings(t, dir, store.Options{Salvage: true, Merger: testsst.JoinMerger})
			wantRows(t, db, 0, tt.rows)
			if len(*found) != 1 || (*found)[0].Kind != record.FindNewer || (*found)[0].Severity != record.Error ||
				(*found)[0].Detail != tt.detail ||
				(*found)[0].Place.File != "000007.log" {
				t.Errorf("findings %+v, want %s", *found, tt.detail)
			}
			lost := 0
			if err := db.Keyspaces()[0].Unordered(func(e *store.Entry) error {
				if e.Kind == store.Lost {
					lost++
				}
				return nil
			}); err != nil || len(*found) != 1 || (lost > 0) != strings.Contains(tt.detail, "the row is missing") {
				t.Errorf("unordered: %d rows are lost, findings %+v, %v", lost, *found, err)
			}
			if err := rowsError(dir, store.Options{Merger: testsst.JoinMerger}); !errors.Is(err, base.ErrUnsupported) ||
				!record.IsNewer(err) || !strings.Contains(err.Error(), "000007.log") {
				t.Errorf("without a salvage: %v", err)
			}
		})
	}
}

// walDirDB makes a database whose MANIFEST counts on log 7, which is not there, and whose OPTIONS
// file names a wal_dir.
func walDirDB(t *testing.T, dir, wal string) *testsst.DB {
	t.Helper()
	d := testsst.NewDB(t)
	d.Dir = dir
	d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 1, ""))
	d.Edit(testsst.EditNumber(manifest.TagLogNumber, 7))
	d.Finish()
	d.File("OPTIONS-000008", []byte("[DBOptions]\n  wal_dir=/old\n"))
	d.File("OPTIONS-000010", []byte("[DBOptions]\n  max_open_files=5000\n  wal_dir="+wal+"\n"))
	return d
}

// TestMissingLogs: logs that are kept elsewhere are asked for, others are reported as missing.
func TestMissingLogs(t *testing.T) {
	root := t.TempDir()
	kv, ssd, link := filepath.Join(root, "hdd", "kv"), filepath.Join(root, "ssd", "kv"), filepath.Join(root, "link")
	server := filepath.Join(root, "server", "kv")
	for _, dir := range []string{kv, ssd, server} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(server, "CURRENT"), []byte("MANIFEST-000001\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(kv, link); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, dir, wal string
		refused        bool
	}{
		{"beside the tables", kv, kv + "/", false},
		{"none named", kv, "", false},
		{"another name", kv, "/elsewhere/wal", true},
		{"another name, here", kv, root, true},
		{"the same name, not here", kv, "/elsewhere/kv/", false},
		{"the same name, relative", kv, "nemo/kv", false},
		{"the same name, here", kv, ssd, true},
		{"the database that this is a copy of, here", kv, server, false},
		{"this directory by a link", kv, link, false},
		{"opened by a link", link, "/elsewhere/kv", false},
		{"opened by a link, elsewhere", link, "/elsewhere/link", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			walDirDB(t, tt.dir, tt.wal)
			if tt.refused {
				err := rowsError(tt.dir, store.Options{})
				if err == nil || !strings.Contains(err.Error(), "--wal-dir") ||
					!strings.Contains(err.Error(), "by OPTIONS-000010 they are in "+tt.wal) {
					t.Errorf("error %v", err)
				}
			} else {
				db, found := openFindings(t, tt.dir, store.Options{})
				wantRows(t, db, 0, "a=")
				if len(*found) != 1 || (*found)[0].Kind != "no-log" || (*found)[0].Severity != record.Warning {
					t.Errorf("findings %+v", *found)
				}
			}
			// With --wal-dir there is no finding, with or without logs.
			db, found := openFindings(t, tt.dir, store.Options{WALDir: tt.dir})
			wantRows(t, db, 0, "a=")
			if len(*found) > 0 {
				t.Errorf("with --wal-dir: findings %+v", *found)
			}
		})
	}
}

// TestLogsLeftBehind: a directory that RocksDB opened to write always has a log; a checkpoint need not, even if somebody read it
// or tried to open it. LevelDB makes no checkpoints.
func TestLogsLeftBehind(t *testing.T) {
	for _, tt := range []struct {
		name  string
		level bool
		files []string
		want  record.Severity
	}{
		{name: "checkpoint", want: record.Warning},
		{name: "checkpoint with a log of messages", files: []string{"LOG"}, want: record.Warning},
		{name: "checkpoint that failed to open", files: []string{"LOCK", "LOG"}, want: record.Warning},
		{name: "checkpoint opened to read", files: []string{"IDENTITY"}, want: record.Warning},
		{name: "server", files: []string{"LOCK", "IDENTITY"}, want: record.Error},
		{name: "LevelDB", level: true, want: record.Error},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := walDirDB(t, t.TempDir(), "")
			if tt.level {
				d = testsst.NewLevelDB(t)
				d.Edit(testsst.EditNumber(manifest.TagLogNumber, 7))
				d.Finish()
			}
			for _, file := range tt.files {
				d.File(file, nil)
			}
			_, found := openFindings(t, d.Dir, store.Options{})
			if len(*found) != 1 || (*found)[0].Kind != "no-log" || (*found)[0].Severity != tt.want {
				t.Errorf("findings %+v", *found)
			}
			if _, found := openFindings(t, d.Dir, store.Options{WALDir: d.Dir}); len(*found) > 0 {
				t.Errorf("with --wal-dir: findings %+v", *found)
			}
			d.Log(7)
			if _, found := openFindings(t, d.Dir, store.Options{}); len(*found) > 0 {
				t.Errorf("with an empty log: findings %+v", *found)
			}
		})
	}
}

func TestWALDir(t *testing.T) {
	d := walDirDB(t, t.TempDir(), "/elsewhere/wal")
	dir, other := d.Dir, t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "000007.log"),
		testsst.Log(7, false, testsst.Batch(2, testsst.Op(base.KindPut, "b", ""))), 0o644); err != nil {
		t.Fatal(err)
	}
	db := openTest(t, dir, store.Options{WALDir: other})
	wantRows(t, db, 0, "a= b=")
	if f := db.Files()[2]; f.Kind != "log" || f.Path != filepath.Join(other, "000007.log") {
		t.Errorf("file %+v", f)
	}
	// With a log next to the tables, wal_dir is ignored.
	d.Log(7, testsst.Batch(2, testsst.Op(base.KindPut, "c", "")))
	db, found := openFindings(t, dir, store.Options{})
	wantRows(t, db, 0, "a= c=")
	if len(*found) > 0 {
		t.Errorf("findings %+v", *found)
	}
	if _, err := Open(context.Background(), dir, &store.Options{WALDir: filepath.Join(other, "missing")}); !errors.Is(err,
		os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// TestNeverHadLogs: a database of log number 0 is one that this program wrote, unless RocksDB has
// opened it and written no table.
func TestNeverHadLogs(t *testing.T) {
	d := testsst.NewDB(t)
	dir := d.Finish()
	if _, found := openFindings(t, dir, store.Options{}); len(*found) > 0 {
		t.Errorf("findings %+v", *found)
	}
	d.File("IDENTITY", []byte("id"))
	d.File("LOCK", nil)
	if _, found := openFindings(t, dir, store.Options{}); len(*found) != 1 || (*found)[0].Kind != "no-log" ||
		(*found)[0].Severity != record.Error {
		t.Errorf("findings %+v", *found)
	}
	lost := filepath.Join(dir, "lost")
	if err := os.Mkdir(lost, 0o755); err != nil {
		t.Fatal(err)
	}
	d.File("lost/000004.log", nil)
	if _, found := openFindings(t, dir, store.Options{}); len(*found) > 0 {
		t.Errorf("repaired: findings %+v", *found)
	}
	if err := os.RemoveAll(lost); err != nil {
		t.Fatal(err)
	}
	d.Table(0, 1, testsst.Spec{}, testsst.Put("a", 1, ""))
	d.Finish()
	if _, found := openFindings(t, dir, store.Options{}); len(*found) > 0 {
		t.Errorf("findings %+v", *found)
	}
	l := testsst.NewLevelDB(t)
	l.Edit(testsst.EditNumber(manifest.TagPrevLogNumber, 3))
	if _, found := openFindings(t, l.Finish(), store.Options{}); len(*found) != 1 || (*found)[0].Kind != "no-log" {
		t.Errorf("findings %+v", *found)
	}
}

// TestSalvageLog: Unordered continues after damage, and other reads return the error.
func TestSalvageLog(t *testing.T) {
	d := testsst.NewDB(t)
	d.Table(0, 1, testsst.Spec{}, testsst.Put("t", 1, ""))
	records := [][]byte{testsst.Batch(2, testsst.Op(base.KindPut, "first", "")),
		testsst.Batch(3, testsst.Op(base.KindPut, "hit", ""))}
	for i := range 3 {
		records = append(records, testsst.Batch(uint64(4+i),
			testsst.Op(base.KindPut, fmt.Sprint("big", i), strings.Repeat("x", logfile.BlockSize-100))))
	}
	log := testsst.Log(7, false, records...)
	log[len(testsst.Log(7, false, records[0]))+10] ^= 1
	d.File("000007.log", log)
	db, found := openFindings(t, d.Finish(), store.Options{})
	ks := db.Keyspaces()[0]
	if _, err := ks.Rows(nil, nil); err == nil {
		t.Error("rows of a damaged log")
	}
	_, err := ks.Sample(1)
	wantCorrupt(t, err, "000007.log")
	_, err = ks.Entries(nil, nil)
	wantCorrupt(t, err, "000007.log")
	var keys []string
	if err := ks.Unordered(func(e *store.Entry) error { keys = append(keys, string(e.Key)); return nil }); err != nil {
		t.Fatal(err)
	}
	// The record that is damaged is lost alone: its length leads to a whole one.
	if want := "[t first big0 big1 big2]"; fmt.Sprint(keys) != want {
		t.Errorf("keys %v, want %s", keys, want)
	}
	if len(*found) != 1 || (*found)[0].Kind != record.FindDamagedFile || (*found)[0].Place.File != "000007.log" {
		t.Errorf("findings %+v", *found)
	}
	stop := errors.New("stop")
	if err := ks.Unordered(func(e *store.Entry) error {
		if string(e.Key) == "first" {
			return stop
		}
		return nil
	}); err != stop {
		t.Errorf("error %v, want the callback's", err)
	}
}
