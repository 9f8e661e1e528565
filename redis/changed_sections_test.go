package redis

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/store"
)

// Sections that are read a second time must be unchanged: in file order, and sorted.
func TestSectionsChanged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dump.rdb")
	src, _ := write(t, path, formatOf(t, "11"), 300, time.Unix(1700000000, 0))
	if err := src.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	read := func(src format.Source, sorted bool) (err error) {
		for _, db := range src.Databases() {
			span := format.Span{To: src.(*source).end}
			if sorted {
				span = format.Span{}
			}
			r, err := formattest.Walk(src.Records(context.Background(), db, record.AllTypes, span,
				&format.Env{Now: time.Unix(1700000000, 0)}))
			for err == nil {
				_, err = r.Next()
			}
			if err != io.EOF {
				return err
			}
		}
		return nil
	}
	var changed *disk.ChangedError
	for _, at := range []int{0, -1, 400, len(data) / 2, len(data) - 40} {
		for _, sorted := range []bool{false, true} {
			if err := os.WriteFile(path, data, 0o644); err != nil {
				t.Fatal(err)
			}
			src, err := New().Open(context.Background(), path, &format.OpenOptions{Options: store.Options{}})
			if err != nil {
				t.Fatal(err)
			}
			other := append([]byte(nil), data...)
			if at > 0 {
				other[at] ^= 1
			} else if at < 0 {
				other = other[:len(other)/2]
			}
			if err := os.WriteFile(path, other, 0o644); err != nil {
				t.Fatal(err)
			}
			if err := read(src, sorted); errors.As(err, &changed) != (at != 0) || at == 0 && err != nil {
				t.Errorf("a change at %d, sorted %v: %v", at, sorted, err)
			}
			src.Close()
		}
	}
}
