package redis

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/store"
)

// told lists a file's records as "database/key=elements expires at" and its findings as "severity kind key".
func told(t *testing.T, path string, sections bool) (out []string) {
	t.Helper()
	report := func(f record.Finding) {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", f.Severity, f.Kind, f.Key)))
	}
	src, err := New().Open(context.Background(), path,
		&format.OpenOptions{Options: store.Options{TempDir: t.TempDir(), Report: report}})
	if err != nil {
		return []string{err.Error()}
	}
	defer src.Close()
	for _, db := range src.Databases() {
		spans := []format.Span{{}}
		if sections {
			if spans, err = format.SplitAny(src, db, record.AllTypes, 3); err != nil {
				t.Fatal(err)
			}
		}
		for _, span := range spans {
			var ledger record.Ledger
			r := formattest.RecordsOf(t, src, db, record.AllTypes, span,
				&format.Env{Now: time.UnixMilli(1796000000000), TempDir: t.TempDir(), Ledger: &ledger, Report: report})
			out = append(out, told1(t, r)...)
			formattest.CheckLedger(t, &ledger)
		}
	}
	slices.Sort(out)
	return out
}

func told1(t *testing.T, r *record.Walker) (out []string) {
	t.Helper()
	for {
		h, err := r.Next()
		if err == io.EOF {
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%s/%s=", h.DB, h.Key)
		expiry := h.ExpireMS
		batch := make([]record.Element, 2)
		for {
			n, err := r.Read(batch)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for i := range batch[:n] {
				e := &batch[i]
				line += fmt.Sprintf("%s:%.3s", e.Name, e.Value)
				if e.ExpireMS != 0 {
					line += fmt.Sprintf("@%d", e.ExpireMS)
				}
				line += " "
			}
		}
		line = strings.TrimSpace(line)
		if expiry != 0 {
			line += fmt.Sprintf(" @%d", expiry)
		}
		out = append(out, line)
	}
}

// checkTold compares the records of a file in key order and in sections.
func checkTold(t *testing.T, name, path string, want ...string) {
	t.Helper()
	slices.Sort(want)
	for _, sections := range []bool{false, true} {
		if got := told(t, path, sections); !slices.Equal(got, want) {
			t.Errorf("%s, in sections %v:\n%s\nwant\n%s", name, sections, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestFound: files that were once read wrongly. The README of testdata/found names their origins.
func TestFound(t *testing.T) {
	found := func(name string, want ...string) {
		t.Helper()
		checkTold(t, name, filepath.Join("testdata/found", name+".rdb"), want...)
	}
	found("keydb-expire", "0/testkey=:foo @2569704056336")
	found("keydb-member-expiry", "0/h=f:1@1895672969509 g:2", "0/s=b:", "0/both=a: b:", "warning member-expiry both")
	found("exp-db", "1/a=:1 @1900000000000", "1/b=:2")
	found("redis810-plain", "0/k=:v")
	found("valkey081-plain", "0/k=:v")
	found("redis810-hash-templates", "0/k1=age:30 name:bob", "0/k2=age:31 name:eve")
	found("redis_ent_opcode_ram_lru", "0/a=:b", "0/c=:d", "0/e=:f")
	found("function-pre-ga", "error newer", "error newer")
	found("func-dup", "0/FUNCTION l=function:#!l", "0/a=:1", "error duplicate-key FUNCTION l")
	found("dragonfly-hash-with-expiry", "0/h=f:v")
	found("intset-5-1-5", "0/k=5:", "error damaged-value k")
	half := openOf(t, "testdata/found/slot-import.rdb", false)
	if half[0] != 1 || half[1] != 200 {
		t.Errorf("slot-import: %d records, %d half imported", half[0], half[1])
	}
	if kept := openOf(t, "testdata/found/slot-import.rdb", true); kept[0] != 201 || kept[1] != 0 {
		t.Errorf("slot-import, kept: %d records, %d half imported", kept[0], kept[1])
	}
	for _, sections := range []bool{false, true} {
		if got := told(t, "testdata/found/group-read-too-far.rdb", sections); len(got) != 3 || got[2] != "warning group-ahead x" {
			t.Errorf("group-read-too-far: %q", got)
		}
	}
	found("hfe-ttl-text", "error damaged-value h")
	for _, sections := range []bool{false, true} {
		got := told(t, "testdata/found/cluster-functions.rdb", sections)
		if n := len(got); n != 33 || !slices.Equal(got[n-2:], slices.Repeat([]string{"error duplicate-key FUNCTION lib5"}, 2)) {
			t.Errorf("cluster-functions: %d lines, %q", n, got)
		}
	}
}

// openOf returns the number of records of a file, and of keys that are half imported, which are kept or not.
func openOf(t *testing.T, path string, keep bool) (n [2]int64) {
	t.Helper()
	var kinds []string
	report := func(f record.Finding) { kinds = append(kinds, f.Severity.String()+" "+f.Kind) }
	src, err := New().Open(context.Background(), path,
		&format.OpenOptions{Options: store.Options{TempDir: t.TempDir(), Report: report, HalfImported: keep}})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if !slices.Equal(kinds, []string{"note half-imported"}) {
		t.Errorf("%s: %q", path, kinds)
	}
	if half := src.(*source).Half(); (half == 0) != keep {
		t.Errorf("%s: %d keys are no records", path, half)
	}
	for _, span := range []format.Span{{}} {
		var ledger record.Ledger
		r := formattest.RecordsOf(t, src, "0", record.AllTypes, span,
			&format.Env{Now: time.UnixMilli(1796000000000), TempDir: t.TempDir(), Ledger: &ledger, Report: report})
		n[0] += int64(len(told1(t, r)))
		formattest.CheckLedger(t, &ledger)
		for _, tally := range ledger.Snapshot() {
			n[1] += tally.Rows[record.HalfImported]
		}
	}
	return n
}

// file is an RDB file of items without a checksum.
func file(head string, items ...string) []byte {
	return append(rdb.AppendEOF(append([]byte(head), strings.Join(items, "")...)), make([]byte, 8)...)
}

func checkFile(t *testing.T, name string, b []byte, want ...string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.rdb")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	checkTold(t, name, path, want...)
}

// expiresAt returns the expiry before a key.
func expiresAt(ms int64) string {
	return string(binary.LittleEndian.AppendUint64([]byte{0xFC}, uint64(ms)))
}

// TestAttributesHold: an expiry, idle time or frequency applies to the next key, whatever lies between, and to no
// other.
func TestAttributesHold(t *testing.T) {
	const ms = 2500000000000
	library := "\xf5\x13#!lua name=l\ncode()"
	aux := "\xf7" + string(rdb.AppendLen(nil, 0x81818181<<10)) + "\x02\x01\x00"
	key := "\x00\x01k\x01v"
	for between, also := range map[string]string{
		"":                      "",
		"\xfa\x01n\x01v":        "",
		"\xfe\x00":              "",
		"\xfb\x01\x01":          "",
		"\xf4\x01\x01\x00":      "",
		"\xf8\x05\xfa\x01n\x00": "",
		"\xf9\x05\xfb\x01\x01":  "",
		"\xf2\x00\x01\x01f":     "",
		library:                 "0/FUNCTION l=function:#!l",
		library + "\xfe\x00":    "0/FUNCTION l=function:#!l",
	} {
		want := []string{fmt.Sprintf("0/k=:v @%d", ms), "0/b=:2", "0/c=:3"}
		if also != "" {
			want = append(want, also)
		}
		b := file("REDIS0012", "\x00\x01b\x012", expiresAt(ms), between, key, "\x00\x01c\x013")
		checkFile(t, fmt.Sprintf("%q", between), b, want...)
	}
	b := file("REDIS0012", "\x00\x01b\x012", expiresAt(ms), aux, key, "\x00\x01c\x013")
	checkAttribute(t, b, fmt.Sprintf("0/k=:v @%d", ms))
	b = file("REDIS0012", expiresAt(ms), "\xfe\x02", key, "\xfe\x00\x00\x01b\x012")
	checkFile(t, "SELECTDB", b, fmt.Sprintf("2/k=:v @%d", ms), "0/b=:2")
	checkRows(t, b, ms)
}

// checkAttribute looks for one line in the listing of a file.
func checkAttribute(t *testing.T, b []byte, want string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.rdb")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := told(t, path, true); !slices.Contains(got, want) || len(got) != 4 {
		t.Errorf("%q", got)
	}
}

// checkRows: the row of a key includes its expiry, wherever the file has it.
func checkRows(t *testing.T, b []byte, ms int64) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.rdb")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	src := openPath(t, path)
	for _, ks := range src.Keyspaces() {
		it, err := ks.Rows(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		key, value, err := it.Next()
		if err != nil {
			t.Fatal(err)
		}
		row := src.Describe(ks.DB, ks.Name, key, value)
		if row.Err != nil || row.ExpireMS != ms && ks.DB == "2" || row.ExpireMS != 0 && ks.DB == "0" {
			t.Errorf("database %s: %+v", ks.DB, row)
		}
	}
}

// TestNewer: an unknown item hides the rest of a file, with one finding, unless its end is known. No version is
// rejected.
func TestNewer(t *testing.T) {
	a, b := "\x00\x01a\x011", "\x00\x01b\x012"
	for _, head := range []string{"REDIS0016", "REDIS9999", "VALKEY081", "VALKEY999", "VALKEY011"} {
		checkFile(t, head, file(head, a, b), "0/a=:1", "0/b=:2")
		checkFile(t, head, file(head, a, "\x3f\x01x\x01y", b), "0/a=:1", "error newer")
		checkFile(t, head, file(head, a, "\xc8\x01x\x01y", b), "0/a=:1", "error newer")
	}
	checkFile(t, "UPDATE of Valkey", file("VALKEY081", a, "\xf2\x01x\x01y", b), "0/a=:1", "error newer")
	checkFile(t, "flag of an array", file("REDIS0014", a, "\x1c\x01x\x01\x07\x00\x00\x00\x00\x00", b), "0/a=:1", "error newer")
	checkFile(t, "module of 4.0-rc", file("REDIS0008", a, "\x06\x01x\x01y", b), "0/a=:1", "error newer")
	bad := file("REDIS0015", a, "\x3f\x01x\x01y")
	bad[len(bad)-1] = 1 // a wrong checksum
	path := filepath.Join(t.TempDir(), "x.rdb")
	if err := os.WriteFile(path, bad, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openReported(t, path, nil, false, nil); !errors.Is(err, errChecksum) {
		t.Errorf("an unknown type in a damaged file: %v", err)
	}
	checkFile(t, "cron job of KeyDB", file("REDIS0009", a, "\x40\x01x\x01s"+strings.Repeat("\x00", 16)+"\x01\x01k\x00", b),
		"0/a=:1", "0/b=:2", "0/x=keydb-cron:\x01s\x00")
}

// TestDragonfly: types 30 to 37 belong to Dragonfly in its own files, and in files older than these types in Redis.
func TestDragonfly(t *testing.T) {
	const at = 1675209600
	hash := "\x1f\x01h\x02\x01f\x01v\xc0\xff\x01g\x01w\xc2" + string(binary.LittleEndian.AppendUint32(nil, 500000000))
	set := "\x20\x01s\x03\x01a\xff\xff\xff\xff\x01b\xc0\x05\x01c\xc2" + string(binary.LittleEndian.AppendUint32(nil, 500000000))
	gone := "\x20\x01x\x01\x01a\xc0\x05"
	json := "\x1e\x01j\x02{}"
	double := strings.Repeat("\x00", 8)
	sketches := "\x21\x01A\x00" + double + double + "\x01\x02\x03\x01\x04\x02ab" +
		"\x22\x01B\x00" + double + double + "\x01\x02\x03\x01\x04\x03\x02ab\x01c" +
		"\x23\x01C\x02\x01\x05" + double + double +
		"\x24\x01D\x00\x01\x02\x03" + double + "\x01\x01i\x09\x04abcd" +
		"\x25\x01E\x01\x02\x03\x04\x05\x06\x01\x02\x02xy"
	mask := "\xdc\x03\x00\x00\x00\x07\x00\x00\x00\x00\x01m\x01v"
	want := []string{fmt.Sprintf("0/h=f:v g:w@%d", (at+500000000)*1000), "0/s=a: c:", "warning member-expiry s",
		"0/j=dragonfly:\x02{}", "0/m=:v",
		"0/A=dragonfly:\x00\x00\x00", "0/B=dragonfly:\x00\x00\x00", "0/C=dragonfly:\x02\x01\x05", "0/D=dragonfly:\x00\x01\x02", "0/E=dragonfly:\x01\x02\x03", "0/x="}
	for _, head := range []string{"REDIS0009", "REDIS0009\xfa\x06df-ver\x02v1", "REDIS0015\xfa\x09redis-ver\x08df-v1.40"} {
		checkFile(t, head, file(head, hash, set, gone, json, sketches, mask), want...)
	}
	for _, bad := range []string{"\x1f\x01h\x01\x01f\x01v\x01x", "\x1f\x01h\x01\x01f\x01v\xc0\xfe"} {
		checkFile(t, "a time that is none", file("REDIS0009", bad, "\x00\x01b\x012"), "0/b=:2", "error damaged-value h")
	}
	if _, err := openReported(t, "dump-summary.dfs", nil, false, nil); !errors.Is(err, rdb.ErrSnapshot) {
		t.Errorf("a name of a snapshot: %v", err)
	}
	for _, snapshot := range []string{"\xfa\x06df-ver\x02v1\xfa\x08shard-id\x010", "\xfa\x06df-ver\x02v1\xca\x00"} {
		for _, salvage := range []bool{false, true} {
			path := filepath.Join(t.TempDir(), "x.rdb")
			if err := os.WriteFile(path, file("REDIS0009", snapshot), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := openReported(t, path, nil, salvage, nil); !errors.Is(err, rdb.ErrSnapshot) {
				t.Errorf("%q: %v", snapshot, err)
			}
		}
	}
}

// TestProducers: the state of idempotent producers, or a changed limit of it, is reported.
func TestProducers(t *testing.T) {
	stream := func(name, producers string) string {
		return "\x1b\x01" + name + strings.Repeat("\x00", 10) + producers + "\x00\x00"
	}
	checkFile(t, "producers", file("REDIS0014", stream("a", "\x40\x64\x40\x64\x00"), stream("b", "\x40\xc8\x32\x00"),
		stream("c", "\x40\x64\x40\x64\x01\x01p\x01\x01m\x05\x01")),
		"0/a=", "0/b=", "0/c=", "warning unread-metadata b", "warning unread-metadata c")
}

// TestTemplates: hashes of Redis 8.10 with shared field names. A template is valid until its id is redefined.
func TestTemplates(t *testing.T) {
	packed := func(n byte, entries string) string {
		b := append([]byte{byte(len(entries) + 7), 0, 0, 0, n, 0}, entries...)
		return string(rdb.AppendString(nil, append(b, 0xff)))
	}
	template := "\xf2\x07\x02\x01b\x02aa"
	checkFile(t, "templates", file("REDIS0015", template, "\x1e\x01k"+packed(3, "\x07\x01\x81v\x02\x81w\x02"), "\x20\x01l\x07\x01x\x01y",
		"\xf2\x07\x01\x01z", "\x20\x01m\x07\x01x"), "0/k=b:v aa:w", "0/l=b:x aa:y", "0/m=z:x")
	checkFile(t, "fields in values", file("REDIS0015", "\x1d\x01k\x00"+packed(1, "\x81f\x02")+packed(2, "\x00\x01\x81v\x02"),
		"\x1f\x01l\x01\x02\x01f\xc0\x05\x01x\x01y"), "0/k=f:v", "0/l=f:x 5:y")
	checkFile(t, "a version before them", file("REDIS0012", template, "\x20\x01l\x07\x01x\x01y"), "0/l=b:x aa:y")
	behind := "\x00\x01b\x012"
	checkFile(t, "more values than names", file("REDIS0015", template,
		"\x1e\x01k"+packed(4, "\x07\x01\x81v\x02\x81w\x02\x01\x01"), behind),
		"0/k=b:v aa:w", "0/b=:2", "error newer k")
	for name, value := range map[string]string{
		"too few values": packed(2, "\x07\x01\x81v\x02"), "no such template": packed(2, "\x08\x01\x81v\x02"), "no id": packed(2, "\x81a\x02\x81v\x02"),
	} {
		got := file("REDIS0015", template, "\x1e\x01k"+value, behind)
		path := filepath.Join(t.TempDir(), "x.rdb")
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
		if lines := told(t, path, true); !slices.Contains(lines, "error damaged-value k") || !slices.Contains(lines, "0/b=:2") {
			t.Errorf("%s: %q", name, lines)
		}
	}
	checkFile(t, "names out of order", file("REDIS0015", "\xf2\x07\x02\x02aa\x01b",
		"\x1e\x01k"+packed(3, "\x07\x01\x81v\x02\x81w\x02"), behind),
		"0/b=:2", "error damaged-value k")
	var d rdb.Decoder
	var h record.Header
	if err := d.Begin(rdb.TypeHashTempl, rdb.Header{Version: 15}, []byte("\x07\x01x\x01y"), 0, &h); err == nil {
		t.Error("a template that stands in a file, in a payload")
	}
	if !bytes.Contains([]byte(rdb.TypeHashTempl.Name(rdb.Header{Version: 15})), []byte("template")) {
		t.Error("the name of the type")
	}
}
