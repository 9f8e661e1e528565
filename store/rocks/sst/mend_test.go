package sst

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
)

// mendTable is a table whose index is to be damaged.
type mendTable struct {
	b        []byte
	spec     testsst.Spec
	data     []blocks.Handle // of the blocks with rows
	rows     [][]testsst.Entry
	from, to uint64 // the index and its partitions; to is the end of its last trailer
}

// dataEnd is the end of the rows.
func (m *mendTable) dataEnd() uint64 { return handleEnd(m.data[len(m.data)-1]) }

// reader returns the reader of bytes of the table.
func (m *mendTable) reader(b []byte, salvage bool) *Reader {
	return memoryReader(b, Options{LevelDB: m.spec.LevelDB, Salvage: salvage})
}

// newMendTable makes a table. If sized is set, its properties tell where its rows end.
func newMendTable(t *testing.T, spec testsst.Spec, entries []testsst.Entry, sized bool) *mendTable {
	t.Helper()
	m := &mendTable{spec: spec}
	m.spec.EditIndex = func(h []blocks.Handle, keys [][]byte) ([]blocks.Handle, [][]byte) {
		m.data = slices.Clone(h)
		return h, keys
	}
	m.b = testsst.MakeTable(t, m.spec, entries)
	if sized {
		m.spec.Props = map[string][]byte{"rocksdb.data.size": binary.AppendUvarint(nil, m.dataEnd())}
		m.b = testsst.MakeTable(t, m.spec, entries)
	}
	r := m.reader(m.b, false)
	info, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	m.from, m.to = info.Index.Off, handleEnd(info.Index)
	if info.IndexType == indexTwoLevel {
		m.from = m.to
		eachBlock(t, r, func(w blocks.Walk) {
			h, _ := w.(*Walk).Partition()
			m.from = min(m.from, h.Off)
		})
	}
	for _, h := range m.data {
		n := 0
		if b, err := r.dataBlock(h); err == nil {
			if bl, err := blocks.Parse(b); err == nil {
				c, _ := bl.Count()
				n = int(c.Entries)
			}
		}
		m.rows = append(m.rows, entries[:n])
		entries = entries[n:]
	}
	return m
}

// without returns the rows but for those of blocks.
func (m *mendTable) without(lost ...int) (out []testsst.Entry) {
	for i, rows := range m.rows {
		if !slices.Contains(lost, i) {
			out = append(out, rows...)
		}
	}
	return out
}

// salvaged returns the rows of the readable blocks from a key on, and what the walk passes over.
func salvaged(t *testing.T, r *Reader, from string) (out []testsst.Entry, passed []error) {
	t.Helper()
	bw, err := r.Walk(nil, func(_ blocks.Handle, _ []byte, err error) bool {
		passed = append(passed, err)
		return true
	})
	if err != nil {
		return nil, []error{err}
	}
	defer bw.Close()
	ok := false
	if from == "" {
		ok, err = bw.Next()
	} else {
		ok, err = bw.Seek([]byte(from))
	}
	for ; ok && err == nil; ok, err = bw.Next() {
		bl, err := bw.Load()
		if err != nil {
			t.Fatalf("block at %d: %v", bw.Handle().Off, err)
		}
		if !bw.Counted() {
			if err := bw.Count(nil, nil); err != nil {
				t.Fatalf("block at %d: %v", bw.Handle().Off, err)
			}
		}
		for e := (blocks.Entries{Data: bl.Entries}); ; {
			ok, err := e.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			user, tr := base.SplitKey(e.Key)
			if string(user) > string(bw.Separator()) {
				t.Fatalf("key %q in a block up to %q", user, bw.Separator())
			}
			out = append(out, testsst.NewEntry(string(user), tr>>8, byte(tr), string(e.Val)))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return out, passed
}

// mendedIn returns what errors say about the replaced index; nil unless exactly one does.
func mendedIn(passed []error) (m *blocks.MendedError) {
	n := 0
	for _, err := range passed {
		if errors.As(err, &m) {
			n++
		}
	}
	if n != 1 {
		return nil
	}
	return m
}

// mendSpecs are tables of every format, index, codec and checksum type, with blocks of every size.
func mendSpecs() map[string]testsst.Spec {
	specs := variants()
	for name, spec := range specs {
		if spec.NoChecksum {
			delete(specs, name)
		}
	}
	specs["leveldb, filter"] = testsst.Spec{LevelDB: true, BlockSize: 200, Filter: "filter.other"}
	specs["deltas"] = testsst.Spec{Version: 5, Delta: true, UserKeys: true, BlockSize: 100, Checksum: testsst.XXH3}
	specs["empty partitions"] = testsst.Spec{IndexType: testsst.TwoLevelIndex, BlockSize: 100, EmptyParts: true}
	specs["xxh64, partitions"] = testsst.Spec{IndexType: testsst.TwoLevelIndex, BlockSize: 100, Version: 5,
		Checksum: testsst.XXH64, Codec: testsst.LZ4}
	specs["xxh32, partitions"] = testsst.Spec{IndexType: testsst.TwoLevelIndex, BlockSize: 100, Checksum: testsst.XXH32,
		Codec: testsst.Snappy}
	return specs
}

// TestMendReadsAllRows flips bits of the index and of its partitions, or clears them: a salvage reads all rows, from any key
// on, and reports the damage once. Another reader fails.
func TestMendReadsAllRows(t *testing.T) {
	entries := testsst.SomeEntries(60)
	for name, spec := range mendSpecs() {
		for _, sized := range []bool{false, !spec.LevelDB} {
			m := newMendTable(t, spec, entries, sized)
			damages := []func(b []byte){func(b []byte) { clear(b[m.from:m.to]) }}
			for at := m.from; at < m.to; at += 1 + (m.to-m.from)/4 {
				damages = append(damages, func(b []byte) { b[at] ^= 1 << (at % 8) })
			}
			for i, damage := range damages {
				what := fmt.Sprintf("%s, sized %t, damage %d", name, sized, i)
				b := slices.Clone(m.b)
				damage(b)
				if got, err := scan(m.reader(b, false), ""); err == nil {
					t.Errorf("%s: a reader that does not salvage reads %d rows", what, len(got))
				}
				r := m.reader(b, true)
				got, passed := salvaged(t, r, "")
				e := mendedIn(passed)
				if !slices.Equal(got, entries) || e == nil || len(passed) != 1 {
					t.Fatalf("%s: %d rows, passed over %v", what, len(got), passed)
				}
				whole := sized || spec.LevelDB
				if e.Blocks != len(m.data) || e.Whole != whole || e.Counted == spec.LevelDB || e.Rest != nil || e.Unread != 0 ||
					!errors.Is(e.Err, base.ErrChecksum) {
					t.Errorf("%s: %d blocks: %+v", what, len(m.data), e)
				}
				var c *record.CorruptError
				if !errors.As(passed[0], &c) || uint64(c.Off) < m.from || uint64(c.Off) >= m.to || !strings.HasPrefix(c.Field, "index") {
					t.Errorf("%s: the damage is at %+v", what, c)
				}
				if _, err := r.Walk(nil, nil); !errors.As(err, &e) {
					t.Errorf("%s: a walk that passes over nothing: %v", what, err)
				}
				for i := 0; i < len(entries); i += 13 {
					got, _ := salvaged(t, r, entries[i].Key)
					if len(got) < len(entries)-i || !slices.Equal(got[len(got)-len(entries)+i:], entries[i:]) {
						t.Errorf("%s: %d rows from %s on", what, len(got), entries[i].Key)
					}
				}
				first, last, err := r.Ends(1 << 20)
				if whole && (err != nil || !bytes.Equal(first, entries[0].Internal()) ||
					!bytes.Equal(last, entries[59].Internal())) || !whole && !errors.As(err, &e) {
					t.Errorf("%s: ends %q to %q, %v", what, first, last, err)
				}
				if _, users := r.opts.Cache.InUse(); users != 0 {
					t.Errorf("%s: %d users of indexes", what, users)
				}
			}
		}
	}
}

// TestMendBesideDamage: blocks that are damaged beside the index are missing. With what the index still names, only these
// are; if it names nothing, the rows end with the first of them. Other bytes in place of a block are like a flipped bit.
func TestMendBesideDamage(t *testing.T) {
	entries := testsst.SomeEntries(120)
	for sum := byte(testsst.CRC32C); sum <= testsst.XXH3; sum++ {
		for _, kind := range []uint32{testsst.BinaryIndex, testsst.TwoLevelIndex} {
			m := newMendTable(t, testsst.Spec{Version: 5, Checksum: sum, IndexType: kind, BlockSize: 150}, entries, true)
			n := len(m.data)
			for _, lost := range [][]int{{0}, {1}, {5}, {n - 1}, {0, 1}, {3, 7, n - 1}} {
				for _, garbage := range []bool{false, true} {
					for _, all := range []bool{false, true} {
						what := fmt.Sprintf("checksum %d, index %d, blocks %d, garbage %t, no index %t", sum, kind, lost, garbage,
							all)
						b := slices.Clone(m.b)
						for _, i := range lost {
							h := m.data[i]
							if garbage {
								copy(b[h.Off:handleEnd(h)], noise(int(h.Size)))
							} else {
								b[h.Off+3] ^= 1
							}
						}
						b[m.to-1] ^= 1 // a checksum of the index
						missing := slices.Clone(lost)
						if all {
							clear(b[m.from:m.to])
							for i := lost[0]; i < n; i++ {
								missing = append(missing, i)
							}
						}
						want := m.without(missing...)
						got, passed := salvaged(t, m.reader(b, true), "")
						if !slices.Equal(got, want) {
							t.Errorf("%s: %d rows, want %d, passed over %v", what, len(got), len(want), passed)
						}
						e := mendedIn(passed)
						if len(want) == 0 { // nothing replaces the index
							if e != nil || len(passed) != 1 {
								t.Errorf("%s: passed over %v", what, passed)
							}
							continue
						}
						if e == nil || e.Whole || !e.Counted {
							t.Fatalf("%s: passed over %v", what, passed)
						}
						unread := int64(0) // behind the last block that is found
						for i := n - 1; slices.Contains(missing, i); i-- {
							unread = int64(m.dataEnd() - m.data[i].Off)
						}
						if e.Unread != unread || errors.Is(e.Rest, errRest) != (unread > 0) {
							t.Errorf("%s: %+v, want %d unread bytes", what, e, unread)
						}
						gaps, counts := 0, 0
						for _, err := range passed {
							if errors.Is(err, errGap) {
								gaps++
							}
							c := (*blocks.CountError)(nil)
							if errors.As(err, &c) && c.Said == 120 && c.Found == int64(len(want)) {
								counts++
							}
						}
						within := 0 // runs of missing blocks before one that is found
						for i := range n - 1 {
							if slices.Contains(missing, i) && !slices.Contains(missing, i+1) {
								within++
							}
						}
						fewer := 0 // with no gap before the end, the rows are fewer than the properties say
						if within == 0 {
							fewer = 1
						}
						if gaps != within || counts != fewer || len(passed) != 1+gaps+counts {
							t.Errorf("%s: passed over %v, want %d gaps", what, passed, within)
						}
					}
				}
			}
		}
	}
}

// TestMendOfNoRows: a block whose checksum is right but whose rows are not whole is not part of a new index.
func TestMendOfNoRows(t *testing.T) {
	entries := testsst.SomeEntries(60)
	for name, change := range map[string]func(b []byte) []byte{
		"empty":   func([]byte) []byte { return binary.LittleEndian.AppendUint32(make([]byte, 4), 1) },
		"restart": func(b []byte) []byte { b[len(b)-8]++; return b },
		"short":   func([]byte) []byte { return []byte{1, 2} },
		"key":     func(b []byte) []byte { return append([]byte{0, 7, 0, 1, 2, 3, 4, 5, 6, 7}, 0, 0, 0, 0, 1, 0, 0, 0) },
	} {
		sound := newMendTable(t, testsst.Spec{BlockSize: 200}, entries, false)
		m := newMendTable(t, testsst.Spec{BlockSize: 200, EditBlock: func(i int, b []byte) []byte {
			if i == 2 {
				return change(b)
			}
			return b
		}}, entries, false)
		m.b[m.to-1] ^= 1
		got, passed := salvaged(t, m.reader(m.b, true), "")
		if want := sound.without(2); !slices.Equal(got, want) {
			t.Errorf("%s: %d rows, want %d", name, len(got), len(want))
		}
		if e := mendedIn(passed); e == nil || e.Blocks != len(m.data)-1 || e.Whole {
			t.Errorf("%s: passed over %v", name, passed)
		}
	}
}

// TestMendLargeBlocks: blocks are found without an index whatever their size, but for XXH32, whose cost bounds the size.
// What the index names has no bound.
func TestMendLargeBlocks(t *testing.T) {
	entries := testsst.SomeEntries(40)
	for i := range entries {
		entries[i].Value = strings.Repeat(entries[i].Key, 1500)
	}
	for sum := byte(testsst.CRC32C); sum <= testsst.XXH3; sum++ {
		m := newMendTable(t, testsst.Spec{Version: 5, Checksum: sum, BlockSize: 140 << 10}, entries, true)
		if len(m.data) < 3 || m.data[0].Size < 2*tryStep {
			t.Fatalf("blocks %v", m.data)
		}
		for _, all := range []bool{false, true} {
			b := slices.Clone(m.b)
			b[m.to-1] ^= 1
			if all {
				clear(b[m.from:m.to])
			}
			got, passed := salvaged(t, m.reader(b, true), "")
			if all && sum == testsst.XXH32 {
				if len(got) != 0 || mendedIn(passed) != nil || len(passed) != 1 {
					t.Errorf("XXH32, no index: %d rows, passed over %v", len(got), passed)
				}
				continue
			}
			if e := mendedIn(passed); !slices.Equal(got, entries) || e == nil || !e.Whole {
				t.Errorf("checksum %d, no index %t: %d rows, passed over %v", sum, all, len(got), passed)
			}
		}
	}
}

// TestMendNoNeed: a sound index is not replaced, nor one of a table without checksums, nor without a salvage.
func TestMendNoNeed(t *testing.T) {
	entries := testsst.SomeEntries(60)
	for name, spec := range variants() {
		b := testsst.MakeTable(t, spec, entries)
		r := memoryReader(b, Options{LevelDB: spec.LevelDB, Salvage: true})
		got, passed := salvaged(t, r, "")
		if !slices.Equal(got, entries) || len(passed) != 0 || r.mended != nil {
			t.Errorf("%s: %d rows, passed over %v", name, len(got), passed)
		}
	}
	m := newMendTable(t, testsst.Spec{NoChecksum: true, BlockSize: 100}, entries, false)
	clear(m.b[m.from:m.to])
	r := m.reader(m.b, true)
	if got, err := scan(r, ""); len(got) != 0 || err == nil || r.mended != nil {
		t.Errorf("no checksums: %d rows, %v", len(got), err)
	}
}

// TestMendAligned: without an index, blocks that nearly fill the alignment are found behind the zeros of block_align.
func TestMendAligned(t *testing.T) {
	entries := testsst.SomeEntries(600)
	for _, align := range []int{512, 1024, 2048, 4096} {
		spec := testsst.Spec{LevelDB: true, BlockSize: 350}
		m := newMendTable(t, spec, entries, false)
		w := testsst.TableWriter{T: t, Spec: spec}
		for _, h := range m.data {
			w.Out = append(w.Out, make([]byte, -len(w.Out)&(align-1))...)
			w.Out = append(w.Out, m.b[h.Off:handleEnd(h)]...)
		}
		end := uint64(len(w.Out))
		index := blocks.Handle{Off: end, Size: 40}
		w.Out = append(w.Out, make([]byte, 45)...) // a destroyed one
		var meta testsst.Block
		body := append(meta.Finish(nil), 0)
		at := uint64(len(w.Out))
		w.Out = binary.LittleEndian.AppendUint32(append(w.Out, body...), testsst.SumOf(testsst.CRC32C, body))
		w.Footer(blocks.Handle{Off: at, Size: uint64(len(body)) - 1}, index)
		got, passed := salvaged(t, m.reader(w.Out, true), "")
		e := mendedIn(passed)
		if !slices.Equal(got, entries) || e == nil || !e.Whole || e.Blocks != len(m.data) || len(passed) != 1 {
			t.Errorf("align %d: %d rows, passed over %v", align, len(got), passed)
		}
	}
}
