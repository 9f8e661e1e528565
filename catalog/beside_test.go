package catalog

import (
	"context"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kvferry/format"
	"kvferry/record"
	"kvferry/redis/rdb/crc64"
	"kvferry/store"
)

// TestCountBeside: the records of the other dataset are counted without keys that the server deletes when it starts.
func TestCountBeside(t *testing.T) {
	dir := t.TempDir()
	dump, err := os.ReadFile("../redis/testdata/found/slot-import.rdb")
	if err != nil {
		t.Fatal(err)
	}
	past := time.Unix(1500000000, 0)
	for name, data := range map[string]string{"dump.rdb": string(dump), "appendonly.aof": "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(filepath.Join(dir, "dump.rdb"), past, past); err != nil {
		t.Fatal(err)
	}
	c := Default()
	place, err := c.Source(dir)
	if err != nil {
		t.Fatal(err)
	}
	found, err := c.Find(place, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var details []string
	src, err := found.Open(context.Background(), &format.OpenOptions{Options: store.Options{TempDir: t.TempDir(),
		Report: func(f record.Finding) { details = append(details, f.Detail) }}})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if got := strings.Join(details, "\n"); !strings.Contains(got, "an RDB file with 1 record of ") {
		t.Errorf("%q", got)
	}
	written := []byte("REDIS0009\xff")
	written = binary.LittleEndian.AppendUint64(written, crc64.Update(0, written))
	if err := os.WriteFile(filepath.Join(dir, "dump.rdb"), written, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, own := range []bool{false, true} { // of a target that is read back
		place, err := c.Source(filepath.Join(dir, "dump.rdb"))
		if err != nil {
			t.Fatal(err)
		}
		found, err := c.Find(place, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		src, err := found.Open(context.Background(),
			&format.OpenOptions{Options: store.Options{TempDir: t.TempDir(), Own: own, Report: func(record.Finding) { n++ }}})
		if err != nil {
			t.Fatal(err)
		}
		src.Close()
		if (n == 0) != own {
			t.Errorf("own %t: %d findings", own, n)
		}
	}
}
