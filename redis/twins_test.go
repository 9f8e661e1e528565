package redis

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/extsort"
	"kvferry/store"
)

// TestAlike: different keys with equal hashes are not duplicates.
func TestAlike(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dump.rdb")
	body := []byte("REDIS0009\xfe\x00")
	for _, key := range []string{"a", "b", "a", "c", "b", "a"} {
		body = fmt.Appendf(body, "\x00\x01%s\x01v", key)
	}
	body = append(body, "\xfe\x01\x00\x01a\x01v\xff"...)
	if err := os.WriteFile(path, append(body, make([]byte, 8)...), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := disk.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	x, err := scan(context.Background(), f, nil, &store.Options{TempDir: t.TempDir()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var offs []int64
	tw := &twins{ctx: context.Background(), f: f, header: x.header, end: x.end,
		sorter: extsort.New(extsort.Options{TempDir: t.TempDir()})}
	defer tw.sorter.Close()
	for at := 0; ; {
		i := bytes.Index(body[at:], []byte("\x01v"))
		if i < 0 {
			break
		}
		off := at + i - 3
		offs, at = append(offs, int64(off)), at+i+2
		db := uint64(len(offs) / 7)
		row := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(off)), db)
		if err := tw.sorter.Add(7, row, nil); err != nil {
			t.Fatal(err)
		}
	}
	want := []int64{offs[2], offs[4], offs[5]}
	if got, err := tw.repeated(); err != nil || !slices.Equal(got, want) || !slices.Equal(x.repeated, want) {
		t.Errorf("%v and %v, want %v; %v", got, x.repeated, want, err)
	}
}
