package redis

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kvferry/internal/disk"
	"kvferry/internal/extsort"
	"kvferry/store"
)

// TestHashes: numbers that occur more than once are found in memory and in runs.
func TestHashes(t *testing.T) {
	for _, n := range []int{0, 1, 2, 1 << 10, 1<<10 + 1, 50_000} {
		for _, memory := range []int64{0, 1} {
			r := rand.New(rand.NewPCG(uint64(n), 1))
			var all, want []uint64
			for range n {
				all = append(all, r.Uint64())
			}
			for i := range n / 10 {
				for range 1 + i%3 {
					all = append(all, all[i])
				}
				want = append(want, all[i])
			}
			if n > 1 {
				all, want = append(all, 0, 0, 1<<64-1, 1<<64-1), append(want, 0, 1<<64-1)
			}
			r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			slices.Sort(want)
			h := newHashes(memory, t.TempDir())
			for _, x := range all {
				if err := h.add(x); err != nil {
					t.Fatal(err)
				}
			}
			if spilled := len(h.runs) > 0; spilled != (memory > 0 && len(all) > 1<<10) {
				t.Errorf("%d numbers, memory %d: spilled %v", len(all), memory, spilled)
			}
			got, err := h.twice()
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%d numbers, memory %d: %d occur twice, want %d; %v", len(all), memory, len(got), len(want), err)
			}
			if err := h.close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestAlike: keys that only have the same hash are no twins.
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
	x, err := scan(context.Background(), f, &store.Options{TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	var offs []int64
	tw := &twins{ctx: context.Background(), f: f, header: x.header, end: x.end, sorter: extsort.New(extsort.Options{TempDir: t.TempDir()})}
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
