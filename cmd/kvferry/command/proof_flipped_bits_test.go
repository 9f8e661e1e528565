package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"kvferry/format"
	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store"
)

// TestOwn changes bits of targets of all formats. The proof notices every one: it finds an error or other records. At
// the ends of files are what tells readers how to read the rest, and whether it has checksums.
func TestOwn(t *testing.T) {
	t.Parallel()
	targets := append(slices.Clone(matrixTargets), place{format: "rdb"}, place{format: "aof"})
	for _, f := range testApp().Formats {
		known := slices.ContainsFunc(targets, func(p place) bool { return formatOf(t, p.format).Name() == f.Name() })
		if l := f.Limits(); !known && l.NoTarget == "" && l.Place != format.OnServer {
			t.Errorf("no target of format %s", f.Name())
		}
	}
	rarely := 1_999 // each change takes opening all stores; store/rocks changes every bit
	if testing.Short() {
		rarely = 15_991
	}
	for _, p := range some(targets, 3) {
		t.Run(p.format+" "+p.store, func(t *testing.T) {
			t.Parallel()
			p.path = written(t, p, 5)
			want, err := readOwn(t, p)
			if err != nil {
				t.Fatal(err)
			}
			var files []string
			err = filepath.WalkDir(p.path, func(name string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					files = append(files, name)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range some(files, min(3, len(files))) {
				testsst.FlipBits(t, name, rarely, func() error {
					got, err := readOwn(t, p)
					if err == nil && got != want {
						err = errors.New(got)
					}
					return err
				})
			}
		})
	}
}

// readOwn reads a target as the proof does, and returns the digests of its records.
func readOwn(t *testing.T, p place) (text string, err error) {
	var mu sync.Mutex
	var found error
	report := func(f record.Finding) {
		mu.Lock()
		defer mu.Unlock()
		if f.Severity >= record.Error {
			found = errors.New(f.Kind)
		}
	}
	d := p.driver(t)
	src, err := formatOf(t, p.format).Open(context.Background(), p.path, &format.OpenOptions{Store: d.Open, Kind: d.Name,
		Options: store.Options{Own: true, Memory: 1 << 20, TempDir: filepath.Dir(p.path), Report: report}})
	if err != nil {
		return "", err
	}
	defer src.Close()
	for _, db := range src.Databases() {
		ledger := new(record.Ledger)
		r, err := src.Records(context.Background(), db, record.AllTypes, format.Span{},
			&format.Env{Now: testNow, Memory: 1 << 20, TempDir: filepath.Dir(p.path), Ledger: ledger, Report: report,
				AnyOrder: true})
		if err != nil {
			return "", err
		}
		r = record.Booked(r, ledger)
		var hasher record.Hasher
		var digests [record.NumTypes]record.Digest
		var b *record.Batch
		for b, err = r.Next(); err == nil; b, err = r.Next() {
			hasher.Batch(&digests, b)
		}
		if err == io.EOF {
			err = nil
		}
		if err = errors.Join(err, r.Close(), ledger.Check()); err != nil {
			return "", err
		}
		text += fmt.Sprintln(db, digests)
	}
	return text, found
}
