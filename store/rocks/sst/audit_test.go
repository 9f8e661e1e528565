package sst

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// countAll walks a table from a block to another, as a reader of all rows does.
func countAll(r *Reader, from, to int, pass func(blocks.Handle, []byte, error) bool) error {
	w, err := r.Walk(nil, pass)
	if err != nil {
		return err
	}
	defer w.Close()
	for i := 0; i < to; i++ {
		ok, err := w.Next()
		if !ok || err != nil {
			return err
		}
		if i < from {
			continue
		}
		if _, err := w.Load(); err != nil {
			return err
		}
		if !w.Counted() {
			if err := w.Count(nil, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// auditEntries has every kind that is counted separately, and keys that share trailer bytes.
func auditEntries() []testsst.Entry {
	out := testsst.SomeEntries(60)
	for i := range out {
		switch i % 7 {
		case 3:
			out[i].Kind, out[i].Value = base.KindDelete, ""
		case 5:
			out[i].Kind = base.KindMerge
		}
	}
	return append(out, testsst.Put("zz", 0x0302, "a"), testsst.Put("zz", 0x0202, "b"))
}

// TestAuditCounts: each mismatch between properties and rows is an error once all blocks were counted, in any order,
// and not before.
func TestAuditCounts(t *testing.T) {
	tombs := []testsst.Entry{testsst.RangeDel("a", 3, "b")}
	for name, spec := range map[string]testsst.Spec{"": {BlockSize: 100},
		"two-level": {BlockSize: 100, IndexType: testsst.TwoLevelIndex}, "tombstones": {BlockSize: 100, Tombstones: tombs}} {
		table := testsst.MakeTable(t, spec, auditEntries())
		if err := countAll(memoryReader(table, Options{}), 0, 99, nil); err != nil {
			t.Errorf("%s, right counts: %v", name, err)
		}
		info, _ := memoryReader(table, Options{}).Open()
		for what, n := range map[string]int64{"num.entries": info.Entries, "deleted.keys": info.Deletes,
			"merge.operands":      info.Merges,
			"num.range-deletions": info.RangeDeletes,
			"raw.key.size":        info.KeyBytes, "raw.value.size": info.ValueBytes} {
			spec.Props = map[string][]byte{"rocksdb." + what: binary.AppendUvarint(nil, uint64(n)+7)}
			r := memoryReader(testsst.MakeTable(t, spec, auditEntries()), Options{})
			for _, part := range [][2]int{{5, 99}, {0, 3}, {2, 3}, {0, 4}} {
				if err := countAll(r, part[0], part[1], nil); err != nil {
					t.Errorf("%s, %s: blocks %v: %v", name, what, part, err)
				}
			}
			var c *blocks.CountError
			if err := countAll(r, 3, 6, nil); !errors.As(err, &c) || c.Said != n+7 {
				t.Errorf("%s, %s: all blocks: %v", name, what, err)
			}
			if err := countAll(r, 0, 1, nil); !errors.As(err, &c) {
				t.Errorf("%s, %s: after that: %v", name, what, err)
			}
			var passed []string
			pass := func(_ blocks.Handle, _ []byte, err error) bool { passed = append(passed, err.Error()); return true }
			if err := countAll(r, 0, 99, pass); err != nil || len(passed) == 0 || !strings.Contains(passed[0], "by its properties") {
				t.Errorf("%s, %s: passed over: %q, %v", name, what, passed, err)
			}
		}
	}
}

// TestAuditGap: a block that lies where padding could, and was not read yet, is counted when it is.
func TestAuditGap(t *testing.T) {
	tried := 0
	for size := 370; size < 380; size++ {
		table := testsst.MakeTable(t, testsst.Spec{BlockSize: size}, testsst.SomeEntries(200))
		r := memoryReader(table, Options{})
		w, err := r.Walk(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		end := uint64(0)
		for i := 0; ; i++ {
			if ok, err := w.Next(); !ok || err != nil {
				break
			}
			if off := w.Handle().Off; i > 1 && touches(end, off) {
				tried++
				r := memoryReader(table, Options{})
				for _, part := range [][2]int{{0, i - 1}, {i, 9999}, {0, 9999}} {
					if err := countAll(r, part[0], part[1], nil); err != nil {
						t.Errorf("block size %d, block %d: %v", size, i, err)
					}
				}
			}
			end = w.Handle().Off // of the block before, as if that were not there
		}
		w.Close()
	}
	if tried == 0 {
		t.Error("no block begins at a multiple of 512")
	}
}

// TestAuditNoRows: an index that names no block leaves nothing to count.
func TestAuditNoRows(t *testing.T) {
	none := func([]blocks.Handle, [][]byte) ([]blocks.Handle, [][]byte) { return nil, nil }
	for name, spec := range map[string]testsst.Spec{"entries by": {EditIndex: none},
		"lists no block": {EditIndex: none, LevelDB: true}} {
		r := memoryReader(testsst.MakeTable(t, spec, testsst.SomeEntries(3)), Options{LevelDB: spec.LevelDB})
		if err := countAll(r, 0, 9, nil); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAuditBlocks: blocks that no engine writes, behind right checksums.
func TestAuditBlocks(t *testing.T) {
	at := func(i int, change func([]byte) []byte) func(int, []byte) []byte {
		return func(n int, b []byte) []byte {
			if n == i {
				return change(b)
			}
			return b
		}
	}
	moved := func(b []byte) []byte { b[len(b)-8]++; return b } // the last restart point
	empty := func([]byte) []byte { return binary.LittleEndian.AppendUint32(make([]byte, 4), 1) }
	for _, tt := range []struct {
		name   string
		change func([]byte) []byte
		want   error
	}{{"restart", moved, blocks.ErrRestart}, {"empty", empty, blocks.ErrEmpty}} {
		for i := range 3 {
			for _, level := range []bool{false, true} {
				spec := testsst.Spec{BlockSize: 200, LevelDB: level, EditBlock: at(i, tt.change)}
				r := memoryReader(testsst.MakeTable(t, spec, testsst.SomeEntries(40)), Options{LevelDB: level})
				if err := countAll(r, 0, 99, nil); !errors.Is(err, tt.want) {
					t.Errorf("%s of block %d, LevelDB %t: %v", tt.name, i, level, err)
				}
			}
		}
	}
}

// TestIndexFaults: an index that misses a block, names one twice or names a wrong one is damaged, on every access path;
// a walk that skips the fault reads the other blocks.
func TestIndexFaults(t *testing.T) {
	for _, kind := range []uint32{0, testsst.TwoLevelIndex} {
		for i := 0; i < 9; i++ {
			for name, change := range map[string]func([]blocks.Handle, [][]byte) ([]blocks.Handle, [][]byte){
				"gone": func(h []blocks.Handle, k [][]byte) ([]blocks.Handle, [][]byte) {
					return slices.Delete(h, i, i+1), slices.Delete(k, i, i+1)
				},
				"ahead": func(h []blocks.Handle, k [][]byte) ([]blocks.Handle, [][]byte) { h[i] = h[i+1]; return h, k },
				"back":  func(h []blocks.Handle, k [][]byte) ([]blocks.Handle, [][]byte) { h[i] = h[max(i-1, 0)]; return h, k },
			} {
				if name == "back" && i == 0 {
					continue
				}
				what := fmt.Sprintf("index %d, %s, block %d", kind, name, i)
				entries := testsst.SomeEntries(60)
				spec := testsst.Spec{BlockSize: 100, IndexType: kind, EditIndex: change}
				table := testsst.MakeTable(t, spec, entries)
				err := countAll(memoryReader(table, Options{}), 0, 99, nil)
				if !errors.Is(err, errGap) && !errors.Is(err, errTwice) {
					t.Errorf("%s: %v", what, err)
				}
				spec.EditIndex = nil
				whole := memoryReader(testsst.MakeTable(t, spec, entries), Options{})
				got, want := blocksPassed(t, memoryReader(table, Options{})), len(blocksPassed(t, whole))-1
				if len(got) != want && kind == 0 {
					t.Errorf("%s: %d blocks are read, want %d", what, len(got), want)
				}
			}
		}
	}
}

// blocksPassed walks past all faults, which are reported once each, and returns the blocks.
func blocksPassed(t *testing.T, r *Reader) (out []blocks.Handle) {
	t.Helper()
	w, err := r.Walk(nil, func(blocks.Handle, []byte, error) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for {
		ok, err := w.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return out
		}
		out = append(out, w.Handle())
	}
}

// TestTouches: the allowed gap between two data blocks.
func TestTouches(t *testing.T) {
	for _, tt := range []struct {
		end, off uint64
		want     bool
	}{{0, 0, true}, {100, 100, true}, {100, 101, false}, {100, 99, false}, {100, 4096, true}, {4095, 4096, true},
		{100, 8192, true}, {4096, 8192, true}, {4096, 12288, false}, {5000, 12288, false}, {100, 512, true}, {100, 256, false}} {
		if got := touches(tt.end, tt.off); got != tt.want {
			t.Errorf("%d after %d: %t", tt.off, tt.end, got)
		}
	}
}
