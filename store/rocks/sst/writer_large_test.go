package sst_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand"
	"runtime"
	"testing"

	"kvferry/store"
	"kvferry/store/rocks/sst"
)

// largeNoise returns an incompressible value.
func largeNoise() []byte {
	b := make([]byte, 1200<<10)
	rand.New(rand.NewSource(3)).Read(b)
	return b
}

// TestLargeRowsHaveBlocks: a large row has a block of its own, the blocks around it stay as small as elsewhere, and
// together the blocks cover the file from its first byte on.
func TestLargeRowsHaveBlocks(t *testing.T) {
	const mib = 1 << 20
	noise := largeNoise()
	value := func(key string, n int) row { return row{[]byte(key), noise[:n-len(key)]} }
	rows := []row{value("key:1", 20), value("key:2", 30), value("key:3", mib+1), value("key:3 more", 20), value("key:4", mib),
		value("key:5", 20), value("key:6", mib+2), value("key:7", mib+3), value("key:8", mib-1)}
	l, err := pebbleReader(t, write(t, options(), rows), store.Bytewise).Layout()
	if err != nil {
		t.Fatal(err)
	}
	// The row that fills an ordinary block ends it; only a large row ends it earlier.
	sizes := []int{50, mib + 1, 20 + mib, 20, mib + 2, mib + 3, mib - 1}
	counts := []int{2, 1, 2, 1, 1, 1, 1}
	if len(l.Data) != len(sizes) {
		t.Fatalf("%d blocks, want %d", len(l.Data), len(sizes))
	}
	at := uint64(0)
	for i, b := range l.Data {
		if most := sizes[i] + counts[i]*(8+7) + 8; b.Offset != at || int(b.Length) > most || int(b.Length) < most-8-10*counts[i] {
			t.Errorf("block %d has %d bytes at %d; want at most %d at %d", i, b.Length, b.Offset, most, at)
		}
		at += b.Length + 5
	}
}

// TestLargeRowsAreNotCopied holds the writer to a small part of a large row's size.
func TestLargeRowsAreNotCopied(t *testing.T) {
	noise := largeNoise()
	packed := bytes.Repeat(noise[:1000], 8<<10)
	for _, value := range [][]byte{packed, bytes.Repeat(noise, 7)} {
		for _, f := range []sst.Format{sst.RocksDB2, sst.RocksDB5} {
			o := options()
			o.Format = f
			w := sst.NewWriter(io.Discard, o)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for i := range 2 {
				if err := w.Add(binary.BigEndian.AppendUint32(nil, uint32(i)), value); err != nil {
					t.Fatal(err)
				}
			}
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 2<<20 {
				t.Errorf("format %d: two rows of %d bytes took %d bytes of memory", f, len(value), took)
			}
			if _, err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
