package wal

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cespare/xxhash/v2"

	"kvferry/store/internal/handmade"
	"kvferry/store/rocks/base"
)

// TestBatchInParts: a batch is decoded the same whether it is in memory or comes a part at a time, also when it is cut or
// damaged.
func TestBatchInParts(t *testing.T) {
	ops := [][]byte{handmade.Op(base.KindLogData, "x")}
	for i := range 60 {
		ops = append(ops, handmade.Op(base.KindPut, fmt.Sprintf("key%d", i), strings.Repeat("v", i*17)), handmade.Op(base.KindDelete, "d"),
			handmade.OpCF(base.KindCFMerge, 3, "m", strings.Repeat("w", 70*i)))
	}
	large := strings.Repeat("0123456789", LargeValue/9)
	ops = append(ops, handmade.Op(base.KindPut, "large", large), handmade.Op(base.KindPut, "k", "v"), handmade.Op(base.KindRangeDelete, "a", large), handmade.Op(base.KindMerge, "l", large))
	whole := handmade.Batch(7, ops...)
	cuts := []int{0, 5, 11, 12, len(whole) - 1, len(whole) - len(large), len(whole)}
	for i := 13; i < len(whole); i += 397_003 {
		cuts = append(cuts, i)
	}
	for _, n := range cuts {
		for _, flip := range []bool{false, true} {
			b := bytes.Clone(whole[:n])
			if flip && n > 0 {
				b[n*2/3] ^= 0x81
			}
			want, _, wantErr := sumBatch(&Batch{Fields: base.Fields{Buf: b}})
			got, streamed, err := sumBatch(&Batch{src: iotest.OneByteReader(bytes.NewReader(b)), rest: int64(n)})
			if got != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Errorf("cut to %d, flipped %t: %v, want %v", n, flip, err, wantErr)
			}
			if n == len(whole) && !flip && (err != nil || streamed != 2) {
				t.Errorf("%d values were not in memory, %v", streamed, err)
			}
		}
	}
}

// sumBatch sums up the entries of a batch.
func sumBatch(d *Batch) (sum uint64, streamed int, err error) {
	h := xxhash.New()
	err = d.Decode(func(e Entry) error {
		fmt.Fprintf(h, "%d %d %d %q %d ", e.Family, e.Kind, e.Seq, e.Key, max(int64(len(e.Value)), e.Size))
		h.Write(e.Value)
		if e.From == nil {
			return nil
		}
		streamed++
		_, err := io.Copy(h, e.From)
		return err
	})
	return h.Sum64(), streamed, err
}
