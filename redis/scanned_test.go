package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/store"
)

// scannedFile returns a file with two databases and a library, and its scan.
func scannedFile(t *testing.T) (path string, scan []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "dump.rdb")
	src, _ := write(t, path, formatOf(t, "11"), 4, fixtures.Clock)
	defer src.Close()
	s, ok := format.As[format.Scanned](src)
	if !ok || s.Scan() == nil {
		t.Fatal("no scan")
	}
	return path, s.Scan()
}

// readKnown reads all sections of a file, opened with a scan.
func readKnown(t *testing.T, path string, scan []byte) error {
	t.Helper()
	src, err := New().Open(context.Background(), path, &format.OpenOptions{Scan: scan, Options: store.Options{}})
	if err != nil {
		return err
	}
	defer src.Close()
	for _, db := range src.Databases() {
		spans, err := format.SplitAny(src, db, record.AllTypes, 3)
		if err != nil {
			return err
		}
		for _, span := range spans {
			r, err := formattest.Walk(src.Records(context.Background(), db, record.AllTypes, span,
				&format.Env{Now: fixtures.Clock}))
			for err == nil {
				_, err = r.Next()
			}
			if err != io.EOF {
				return err
			}
		}
	}
	return nil
}

// TestScanned checks that a file opened with its scan is the same source, and not read again: a change in a section
// fails only when the section is read. A change of any byte fails at the latest then.
func TestScanned(t *testing.T) {
	path, scan := scannedFile(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	open := func(scan []byte) (*source, error) {
		src, err := New().Open(context.Background(), path, &format.OpenOptions{Scan: scan, Options: store.Options{}})
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { src.Close() })
		return src.(*source), nil
	}
	whole, err := open(nil)
	if err != nil {
		t.Fatal(err)
	}
	known, err := open(scan)
	if err != nil || !slices.Equal(whole.Databases(), known.Databases()) || len(known.dbs) != 2 ||
		whole.header() != known.header() ||
		whole.Rest() != known.Rest() || whole.Layout() != known.Layout() || !bytes.Equal(known.Scan(), scan) {
		t.Fatal(err)
	}
	for i, db := range known.dbs {
		was := *whole.dbs[i]
		if db.samples != nil || was.samples == nil && i == 0 || db.items != was.items || db.sizes != was.sizes ||
			db.types != was.types || !slices.Equal(db.sections, was.sections) {
			t.Errorf("%+v, was %+v", db, was)
		}
	}
	var sections []section
	for _, db := range known.dbs {
		sections = append(sections, db.sections...)
	}
	for at := 0; at < len(data); at++ {
		inside := slices.ContainsFunc(sections, func(s section) bool { return s.from <= int64(at) && int64(at) < s.to })
		if inside && at%(len(data)/20) > 0 {
			continue
		}
		other := bytes.Clone(data)
		other[at] ^= 1
		if err := os.WriteFile(path, other, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := open(scan); (err == nil) != inside {
			t.Errorf("a change at %d, in a section %t: %v", at, inside, err)
		}
		if err := readKnown(t, path, scan); err == nil {
			t.Errorf("a change at %d of %d has no effect", at, len(data))
		}
	}
}

// TestScanOfAnother checks that a damaged scan has no effect, and that the scan of another file is refused.
func TestScanOfAnother(t *testing.T) {
	path, scan := scannedFile(t)
	f, err := disk.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if parseScan(scan) == nil || parseScan(scan).chained(f) != nil {
		t.Fatal("not that of the file")
	}
	for at := range scan {
		other := bytes.Clone(scan)
		other[at] ^= 1
		if parseScan(other) != nil || parseScan(scan[:at]) != nil {
			t.Errorf("taken with damage at %d: %s", at, other)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func() []byte{
		"longer":      func() []byte { return append(bytes.Clone(data), 0) },
		"shorter":     func() []byte { return data[:len(data)-1] },
		"no checksum": func() []byte { return append(bytes.Clone(data[:len(data)-8]), make([]byte, 8)...) },
	} {
		other := filepath.Join(t.TempDir(), "other.rdb")
		if err := os.WriteFile(other, change(), 0o644); err != nil {
			t.Fatal(err)
		}
		o := &format.OpenOptions{Scan: scan, Options: store.Options{Salvage: true}}
		if _, err := New().Open(context.Background(), other, o); !errors.Is(err, errScan) {
			t.Errorf("%s: %v", name, err)
		}
		o.Scan = scan[1:]
		src, err := New().Open(context.Background(), other, o)
		if err != nil {
			t.Fatal(name, err)
		}
		if src.(*source).dbs[0].samples == nil || src.(*source).Scan() != nil {
			t.Errorf("%s: it was not scanned, or the scan is passed on", name)
		}
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDamagedEnd: a file whose end became another opcode is not intact for those who hear of no findings, as a proof.
func TestDamagedEnd(t *testing.T) {
	path, _ := scannedFile(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range 8 {
		data[len(data)-9] = 0xFF ^ 1<<bit // the opcode of the end is 0xFF
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if readKnown(t, path, nil) == nil {
			t.Errorf("bit %d: no error", bit)
		}
	}
}

// TestOwn: a target that is read back has the header, checksum and end that were written. A version without a checksum
// makes a damaged file look intact, and so do zeros in place of the checksum.
func TestOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dump.rdb")
	for _, version := range []string{"6", "9", "11", "valkey80"} {
		f := formatOf(t, version)
		src, _ := write(t, path, f, 2, fixtures.Clock)
		src.Close()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		check := func(what string, other []byte) {
			t.Helper()
			if err := os.WriteFile(path, other, 0o600); err != nil {
				t.Fatal(err)
			}
			report := func(record.Finding) {}
			src, err := f.Open(context.Background(), path, &format.OpenOptions{Options: store.Options{Own: true, Report: report}})
			if err == nil {
				src.Close()
			}
			if (err == nil) != (what == "") {
				t.Errorf("version %s%s: %v", version, what, err)
			}
		}
		check("", data)
		for _, end := range [][2]int{{0, 16}, {len(data) - 9, len(data)}} {
			for at := end[0]; at < end[1]; at++ {
				for bit := range 8 {
					other := bytes.Clone(data)
					other[at] ^= 1 << bit
					check(fmt.Sprintf(", bit %d of byte %d", bit, at), other)
				}
			}
		}
		check(", no checksum", append(bytes.Clone(data[:len(data)-8]), make([]byte, 8)...))
		check(", a byte more", append(bytes.Clone(data), 0))
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
