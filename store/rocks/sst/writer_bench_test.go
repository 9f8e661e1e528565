package sst_test

import (
	"encoding/binary"
	"fmt"
	"io"
	"testing"

	"github.com/cockroachdb/pebble/bloom"
	"github.com/cockroachdb/pebble/sstable"

	"kvferry/store/rocks/sst"
)

// discard is a Pebble file that drops all bytes.
type discard struct{}

func (discard) Write([]byte) error { return nil }
func (discard) Finish() error      { return nil }
func (discard) Abort()             {}

// benchRows are rows like those of a hash: fields of keys.
func benchRows() (keys [][]byte, value []byte, size int64) {
	for i := range 200_000 {
		k := binary.LittleEndian.AppendUint32(nil, 8)
		k = fmt.Appendf(k, "key:%04d", i/100)
		k = append(k, 1, 0, 0, 0)
		k = fmt.Appendf(k, "field:%06d", i%100)
		keys = append(keys, k)
		size += int64(len(k)) + 24
	}
	return keys, []byte("some value of 24 bytes..."), size
}

func BenchmarkWriter(b *testing.B) {
	keys, value, size := benchRows()
	varied := append([]byte(nil), value...)
	b.Run("kvferry", func(b *testing.B) {
		b.SetBytes(size)
		for range b.N {
			w := sst.NewWriter(io.Discard, options())
			for i, k := range keys {
				binary.LittleEndian.PutUint64(varied, uint64(i)*0x9e3779b97f4a7c15)
				w.Add(k, varied)
			}
			if _, err := w.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("pebble", func(b *testing.B) {
		b.SetBytes(size)
		for range b.N {
			w := sstable.NewWriter(discard{}, sstable.WriterOptions{Compression: sstable.SnappyCompression,
				TableFormat:  sstable.TableFormatRocksDBv2,
				FilterPolicy: bloom.FilterPolicy(10), FilterType: sstable.TableFilter, IndexBlockSize: 1 << 30})
			for i, k := range keys {
				binary.LittleEndian.PutUint64(varied, uint64(i)*0x9e3779b97f4a7c15)
				if err := w.Set(k, varied); err != nil {
					b.Fatal(err)
				}
			}
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
