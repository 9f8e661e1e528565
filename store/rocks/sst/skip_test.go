package sst

import (
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/store/rocks/blocks"
)

// TestSkipTo: from every block to every offset it is the same as going on block by block.
func TestSkipTo(t *testing.T) {
	for name, spec := range variants() {
		r := memoryReader(testsst.MakeTable(t, spec, testsst.SomeEntries(60)), Options{LevelDB: spec.LevelDB})
		var all []blocks.Handle
		eachBlock(t, r, func(w blocks.Walk) { all = append(all, w.Handle()) })
		for from := -1; from < len(all); from++ {
			for _, h := range append(all, blocks.Handle{}, blocks.Handle{Size: 1 << 40}) {
				for _, off := range []uint64{h.Off, h.Off + h.Size, h.Off + h.Size + 1} {
					want := min(from+1, len(all))
					for want < len(all) && all[want].Off+all[want].Size < off {
						want++
					}
					w, err := r.Walk(nil, nil)
					if err != nil {
						t.Fatal(err)
					}
					for range from + 1 {
						w.Next()
					}
					ok, err := w.SkipTo(off)
					if err != nil || ok != (want < len(all)) || w.Handle() != all[min(want, len(all)-1)] {
						t.Fatalf("%s: from block %d of %d to offset %d: %v, %v, want block %d", name, from, len(all), off, ok,
							err, want)
					}
					if ok, err := w.Next(); err != nil || ok != (want+1 < len(all)) || ok && w.Handle() != all[want+1] {
						t.Fatalf("%s: after block %d: %v, %v", name, want, ok, err)
					}
					w.Close()
				}
			}
		}
	}
}
