package rocks

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cespare/xxhash/v2"

	"kvferry/internal/testkit/testsst"
	"kvferry/store/rocks/base"
)

// TestBatchInParts: a batch is decoded the same whether it is in memory or comes a part at a time, also when it is cut or
// damaged.
func TestBatchInParts(t *testing.T) {
	ops := [][]byte{testsst.Op(base.KindLogData, "x")}
	for i := range 60 {
		ops = append(ops, testsst.Op(base.KindPut, fmt.Sprintf("key%d", i), strings.Repeat("v", i*17)),
			testsst.Op(base.KindDelete, "d"), testsst.OpCF(base.KindCFMerge, 3, "m", strings.Repeat("w", 70*i)))
	}
	large := strings.Repeat("0123456789", LargeValue/9)
	ops = append(ops, testsst.Op(base.KindPut, "large", large), testsst.Op(base.KindPut, "k", "v"),
		testsst.Op(base.KindRangeDelete, "a", large), testsst.Op(base.KindMerge, "l", large))
	whole := testsst.Batch(7, ops...)
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
			want, _, wantErr := sumBatch(&writeBatch{Fields: base.Fields{Buf: b}})
			got, streamed, err := sumBatch(&writeBatch{src: iotest.OneByteReader(bytes.NewReader(b)), rest: int64(n)})
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
func sumBatch(d *writeBatch) (sum uint64, streamed int, err error) {
	h := xxhash.New()
	err = d.Decode(func(e logEntry) error {
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

// TestLargeAtTheEdges: a value as large as is held, or as what is there, is in memory; of one byte more the end is missed,
// too.
func TestLargeAtTheEdges(t *testing.T) {
	for _, n := range []int{LargeValue - 1, LargeValue, LargeValue + 1} {
		whole := testsst.Batch(7, testsst.Op(base.KindPut, "k", strings.Repeat("v", n)))
		for _, held := range []int{12, len(whole) - 1, len(whole)} {
			var from bool
			var size int
			d := &writeBatch{Fields: base.Fields{Buf: bytes.Clone(whole[:held])}, src: bytes.NewReader(whole[held:]),
				rest: int64(len(whole) - held)}
			err := d.Decode(func(e logEntry) error {
				from = e.From != nil || e.Size > 0
				v, err := e.Whole()
				size = len(v)
				return err
			})
			if want := n > LargeValue && held < len(whole); err != nil || from != want || size != n {
				t.Errorf("value of %d bytes, %d of %d in memory: %d bytes, in parts %t, %v", n, held, len(whole), size, from, err)
			}
			if r, ok := d.Seqs(); !ok || r != (seqRange{7, 7}) {
				t.Errorf("sequence numbers %v, %t", r, ok)
			}
		}
		if n > LargeValue { // the last byte is missing, and the value is not read
			d := &writeBatch{Fields: base.Fields{Buf: bytes.Clone(whole[:len(whole)-1])}, rest: 1,
				src: iotest.ErrReader(io.ErrUnexpectedEOF)}
			if err := d.Decode(func(logEntry) error { return nil }); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("a value without its last byte: %v", err)
			}
		}
	}
	d := &writeBatch{Fields: base.Fields{Buf: testsst.Batch(7)}}
	if err := d.Decode(func(logEntry) error { return nil }); err != nil {
		t.Error(err)
	}
	if r, ok := d.Seqs(); ok {
		t.Errorf("a batch of nothing takes the sequence numbers %v", r)
	}
}

// TestLastByte: of a batch in parts the last byte is decoded, too, when it is alone in its part.
func TestLastByte(t *testing.T) {
	value := strings.Repeat("v", batchChunk-12-6)
	for last, want := range map[byte]string{base.KindNoop: "<nil>", 0x55: "offset 65537: tag: write batch with tag 0x55: not supported by the native reader"} {
		b := testsst.Batch(7, testsst.Op(base.KindPut, "k", value), []byte{last})
		if last == base.KindNoop {
			b = testsst.Batch(7, testsst.Op(base.KindPut, "k", value), testsst.Op(last))
		} else {
			binary.LittleEndian.PutUint32(b[8:], 1)
		}
		if len(b) != batchChunk+1 {
			t.Fatalf("%d bytes", len(b))
		}
		d := &writeBatch{src: bytes.NewReader(b), rest: int64(len(b))}
		if err := d.Decode(func(logEntry) error { return nil }); fmt.Sprint(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
