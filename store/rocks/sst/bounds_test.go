package sst

import (
	"bytes"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// TestBounds: the bounds of a table that no MANIFEST lists enclose what is readable: the keys of the first and last readable
// blocks, the separator of a damaged last block, and range tombstones.
func TestBounds(t *testing.T) {
	entries := testsst.SomeEntries(60)
	at := func(e testsst.Entry) string { return string(e.Internal()) }
	bounds := func(b []byte, o Options) (string, string, error) {
		o.Unlisted = true
		first, last, err := memoryReader(b, o).Bounds()
		return string(first), string(last), err
	}
	for name, spec := range map[string]testsst.Spec{"binary": {}, "two-level": {IndexType: testsst.TwoLevelIndex},
		"leveldb": {LevelDB: true}} {
		spec.BlockSize = 150
		m := newMendTable(t, spec, entries, false)
		n := len(m.data)
		o := Options{LevelDB: spec.LevelDB}
		damaged := func(lost ...int) []byte {
			b := bytes.Clone(m.b)
			for _, i := range lost {
				b[m.data[i].Off+3] ^= 1
			}
			return b
		}
		sep := string(base.AppendKey(nil, []byte(entries[59].Key), 0))
		var all []int
		for i := range n {
			all = append(all, i)
		}
		for _, c := range []struct {
			what        string
			b           []byte
			first, last string
		}{
			{"sound", m.b, at(entries[0]), at(entries[59])},
			{"first blocks", damaged(0, 1), at(m.rows[2][0]), at(entries[59])},
			{"last block", damaged(n - 1), at(entries[0]), sep},
			{"only one is left", damaged(all[1:]...), at(entries[0]), sep},
			{"none is left", damaged(all...), "", ""},
		} {
			first, last, err := bounds(c.b, o)
			if err != nil || first != c.first || last != c.last {
				t.Errorf("%s, %s: %q to %q, %v, want %q to %q", name, c.what, first, last, err, c.first, c.last)
			}
		}
		if spec.IndexType == testsst.TwoLevelIndex {
			var h blocks.Handle
			eachBlock(t, memoryReader(m.b, o), func(w blocks.Walk) { h, _ = w.(*Walk).Partition() })
			b := bytes.Clone(m.b)
			b[h.Off] ^= 1 // the last partition
			if first, last, err := bounds(b, o); err != nil || first != at(entries[0]) || last != sep {
				t.Errorf("%s, last partition: %q to %q, %v", name, first, last, err)
			}
		} else if h, p := func() (h blocks.Handle, p []byte) {
			eachBlock(t, memoryReader(m.b, o), func(w blocks.Walk) { h, p = w.(*Walk).Partition() })
			return h, p
		}(); h.Size != 0 || p != nil {
			t.Errorf("%s: partition %v up to %q", name, h, p)
		}
		b := bytes.Clone(m.b)
		clear(b[m.from:m.to])
		if first, last, err := bounds(b, o); err == nil {
			t.Errorf("%s, no index: %q to %q", name, first, last)
		}
		o.Salvage = true
		if first, last, err := bounds(b, o); err != nil || first != at(entries[0]) || last != at(entries[59]) {
			t.Errorf("%s, replaced index: %q to %q, %v", name, first, last, err)
		}
	}
	tombs := []testsst.Entry{testsst.RangeDel("a", 9, "c"), testsst.RangeDel("x", 3, "z")}
	first, last, err := bounds(testsst.MakeTable(t, testsst.Spec{Tombstones: tombs}, entries), Options{})
	end := string(base.AppendKey(nil, []byte("z"), base.Trailer(base.MaxSequence, base.KindRangeDelete)))
	if err != nil || first != at(tombs[0]) || last != end {
		t.Errorf("tombstones: %q to %q, %v", first, last, err)
	}
	if first, last, err := bounds([]byte("no table"), Options{}); err == nil {
		t.Errorf("no table: %q to %q", first, last)
	}
}
