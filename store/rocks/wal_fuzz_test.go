package rocks

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/logfile"
)

// FuzzWAL reads a log and its write batches.
func FuzzWAL(f *testing.F) {
	f.Add(testsst.Log(7, false, testsst.Batch(1, testsst.Op(base.KindPut, "a", "b"), testsst.OpCF(base.KindCFMerge, 3, "c", "d")),
		testsst.Batch(3, testsst.Op(base.KindDelete, "x"))))
	f.Add(testsst.Log(7, true, testsst.Batch(1, testsst.Op(base.KindRangeDelete, "a", "b")),
		testsst.Batch(2, testsst.Op(base.KindPut, "big", strings.Repeat("x", 2*logfile.BlockSize)))))
	f.Add(append(testsst.Log(7, true, testsst.Batch(1, testsst.Op(base.KindPut, "a", "b"))),
		testsst.Log(3, true, testsst.Batch(1, testsst.Op(base.KindPut, "a", "b")))...))
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
					(&writeBatch{Fields: base.Fields{Buf: rec}}).Decode(func(logEntry) error { return nil })
				} else if err == io.EOF || !salvage {
					break
				} else if err != logfile.ErrWithin {
					l.Resync()
				}
			}
		}
	})
}
