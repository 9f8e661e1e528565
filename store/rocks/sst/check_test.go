package sst

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/store"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// TestCheckOtherFilters: of filters that are not known, the checksum is checked; one that is not right is a finding at its block.
func TestCheckOtherFilters(t *testing.T) {
	for _, name := range []string{"filter.other", "fullfilter.other", "partitionedfilter.other"} {
		for _, version := range []uint32{2, 6} {
			table := testsst.MakeTable(t, testsst.Spec{Filter: name, BlockSize: 300, Version: version}, testsst.SomeEntries(40))
			r := memoryReader(table, Options{})
			var h blocks.Handle
			err := r.EachMeta(func(n string, value []byte) error {
				if n == name {
					h = blocks.ReadHandle(&base.Fields{Buf: value}, n)
				}
				return nil
			})
			if err != nil || h.Size == 0 {
				t.Fatalf("%s: %v", name, err)
			}
			if _, err := r.CheckBlocks(nil, func(off uint64, err error) {
				t.Errorf("%s, sound: at %d: %v", name, off, err)
			}); err != nil {
				t.Error(err)
			}
			for _, at := range []uint64{h.Off, h.Off + h.Size, handleEnd(h) - 1} {
				b := bytes.Clone(table)
				b[at] ^= 1
				var found []error
				_, err := memoryReader(b, Options{}).CheckBlocks(nil, func(off uint64, err error) {
					if off != h.Off {
						t.Errorf("%s: at %d: %v", name, off, err)
					}
					found = append(found, err)
				})
				if err != nil || len(found) != 1 || !errors.Is(found[0], base.ErrChecksum) {
					t.Errorf("%s, byte %d: %v, %v", name, at, found, err)
				}
			}
		}
	}
}

// TestMissedKeys: a filter that excludes a key of the table is a finding, in a small table and in one of whose blocks only
// some are looked at.
func TestMissedKeys(t *testing.T) {
	for _, n := range []int{100, 1000} {
		table := writtenTable(t, &WriterOptions{Comparer: store.Bytewise}, n, 500)
		r := memoryReader(table, Options{})
		if r.Whole() != (n == 100) {
			t.Fatalf("%d bytes", len(table))
		}
		name := "fullfilter." + rocksFilterName
		var h blocks.Handle
		err := r.EachMeta(func(n string, value []byte) error {
			if n == name {
				h = blocks.ReadHandle(&base.Fields{Buf: value}, n)
			}
			return nil
		})
		if err != nil || h.Size == 0 {
			t.Fatal(err)
		}
		if _, err := r.CheckBlocks(nil, func(off uint64, err error) { t.Errorf("sound: at %d: %v", off, err) }); err != nil {
			t.Error(err)
		}
		b := table[h.Off : handleEnd(h)-4]
		clear(b[:h.Size-5]) // the bits, but not the end that describes them
		binary.LittleEndian.PutUint32(table[handleEnd(h)-4:], testsst.SumOf(testsst.CRC32C, b))
		var found []error
		_, err = memoryReader(table, Options{}).CheckBlocks(nil, func(off uint64, err error) {
			if off != h.Off {
				t.Errorf("at %d: %v", off, err)
			}
			found = append(found, err)
		})
		if err != nil || len(found) != 1 || !errors.Is(found[0], ErrMissed) {
			t.Errorf("%d rows: %v, %v", n, found, err)
		}
	}
}
