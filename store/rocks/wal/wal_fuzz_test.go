package wal

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"kvferry/store/internal/handmade"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/logfile"
)

// FuzzWAL reads a log and its write batches.
func FuzzWAL(f *testing.F) {
	f.Add(handmade.Log(7, false, handmade.Batch(1, handmade.Op(base.KindPut, "a", "b"), handmade.OpCF(base.KindCFMerge, 3, "c", "d")), handmade.Batch(3, handmade.Op(base.KindDelete, "x"))))
	f.Add(handmade.Log(7, true, handmade.Batch(1, handmade.Op(base.KindRangeDelete, "a", "b")), handmade.Batch(2, handmade.Op(base.KindPut, "big", strings.Repeat("x", 2*logfile.BlockSize)))))
	f.Add(append(handmade.Log(7, true, handmade.Batch(1, handmade.Op(base.KindPut, "a", "b"))), handmade.Log(3, true, handmade.Batch(1, handmade.Op(base.KindPut, "a", "b")))...))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, salvage := range []bool{false, true} {
			l := logfile.NewReader(bytes.NewReader(b), 7)
			l.Salvage = salvage
			for n := 0; ; n++ {
				rec, off, err := l.Next()
				if off < 0 || off > int64(len(b)) || n > len(b) {
					t.Fatalf("record %d at %d of %d bytes", n, off, len(b))
				}
				if err == nil {
					(&Batch{Fields: base.Fields{Buf: rec}}).Decode(func(Entry) error { return nil })
				} else if err == io.EOF || !salvage {
					break
				} else if err != logfile.ErrWithin {
					l.Resync()
				}
			}
		}
	})
}
