package redis

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/record"
	"kvferry/store"
)

// TestTail: data after the end of a file is reported with its offset, in every form of a file. Unread records are
// damage.
func TestTail(t *testing.T) {
	const file = "REDIS0009\xfe\x00\x00\x01k\x01v\xff\x00\x00\x00\x00\x00\x00\x00\x00"
	const end = int64(len(file))
	zeros := strings.Repeat("\x00", 300<<10)
	for _, c := range []struct {
		name, tail string
		severity   record.Severity
		off        int64
		detail     string
	}{
		{"nothing", "", 0, 0, ""},
		{"a mark", "0123456789abcdef0123456789abcdef01234567", 0, 0, ""},
		{"no mark", "0123456789ABCDEF0123456789abcdef01234567", record.Warning, end, "40 bytes after the end"},
		{"a longer mark", strings.Repeat("0", 41), record.Warning, end, "41 bytes"},
		{"a byte", "\n", record.Warning, end, "1 byte after the end"},
		{"zeros", zeros, record.Note, end, "307,200 bytes, all zero,"},
		{"zeros and more", zeros + "x", record.Warning, end, "307,201 bytes after the end"},
		{"a file", file, record.Error, end, "another RDB file (REDIS0009)"},
		{"a file of Valkey", "VALKEY080", record.Error, end, "another RDB file (VALKEY080)"},
		{"half a header", "REDIS", record.Warning, end, "5 bytes"},
		{"a file behind zeros", zeros + file, record.Error, end + int64(len(zeros)), "another RDB file"},
		{"commands", "*1\r\n$4\r\nPING\r\n", record.Error, end, "name it aof:"},
		{"an annotation", "#TS:1700000000\r\n*1\r\n$4\r\nPING\r\n", record.Error, end, "name it aof:"},
		{"no command", "*\r\n$", record.Warning, end, "4 bytes"},
	} {
		for form, b := range packedForms(t, []byte(file+c.tail)) {
			var found []record.Finding
			report := func(f record.Finding) { found = append(found, f) }
			path := filepath.Join(t.TempDir(), "dump.rdb")
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := openReported(t, path, nil, false, report)
			var corrupt *record.CorruptError
			if c.severity == record.Error {
				if !errors.As(err, &corrupt) || corrupt.File != path || corrupt.Off != c.off ||
					!strings.Contains(err.Error(), c.detail) {
					t.Errorf("%s, %s: %v", c.name, form, err)
				}
				_, err = openReported(t, path, nil, true, report)
			}
			if err != nil {
				t.Errorf("%s, %s: %v", c.name, form, err)
				continue
			}
			checkTail(t, c.name+", "+form, found, record.Finding{Severity: c.severity, Detail: c.detail,
				Place: record.Place{File: path, Off: c.off}})
			found = nil
			if n, err := openReported(t, "-", b, true, report); err != nil || n != 1 {
				t.Errorf("%s, %s, standard input: %d records, %v", c.name, form, n, err)
			}
			checkTail(t, c.name+", standard input", found,
				record.Finding{Severity: c.severity, Detail: c.detail, Place: record.Place{File: "-", Off: c.off}})
		}
	}
}

// openReported opens a file and returns its number of records.
func openReported(t *testing.T, path string, stdin []byte, salvage bool, report func(record.Finding)) (int64, error) {
	t.Helper()
	src, err := New().Open(context.Background(), path, &format.OpenOptions{Stdin: bytes.NewReader(stdin),
		Options: store.Options{TempDir: t.TempDir(), Salvage: salvage, Report: report}})
	if err != nil {
		return 0, err
	}
	defer src.Close()
	var n int64
	for _, d := range sumOfAll(t, src, true).Parts() {
		n += int64(d.Records)
	}
	return n, nil
}

func checkTail(t *testing.T, name string, found []record.Finding, want record.Finding) {
	t.Helper()
	if want.Detail == "" && len(found) == 0 {
		return
	}
	if len(found) != 1 || found[0].Kind != FindTrailing || found[0].Severity != want.Severity ||
		found[0].Place.File != want.Place.File || found[0].Place.Off != want.Place.Off ||
		!strings.Contains(found[0].Detail, want.Detail) {
		t.Errorf("%s: %+v, want %+v", name, found, want)
	}
}
