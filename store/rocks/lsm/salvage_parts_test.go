package lsm_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/record"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/blocks"
	"kvferry/store/rocks/lsm"
	"kvferry/store/rocks/sst"
)

// entryID identifies an entry of a test.
type entryID struct {
	key string
	seq uint64
}

// part is a part of a table that a salvage may lose: a data block, an index partition, the index, or a case of
// ofTables.
type part struct {
	what   string // of a part of ofTables
	file   string
	h      blocks.Handle
	sep    []byte // nil: the index
	stored []byte // as it lies in the file, with its trailer
	starts []int  // of its entries, in a block that is not compressed
	// lost[i] holds the losses if entries from starts[i] on are unreadable; lost[0] is everything.
	lost []map[entryID]bool
	// below are the data blocks of a partition or index, by entry.
	below []*part
	tombs map[uint64]bool // range tombstones that are lost with it
}

// partsOf lists the parts of all tables of a sound database.
func partsOf(t testing.TB, db *database) []*part {
	t.Helper()
	return ofEach(t, db, partsOfTable)
}

// ofEach collects what of returns for each table.
func ofEach(t testing.TB, db *database, of func(testing.TB, string, *lsm.Table) []*part) (parts []*part) {
	t.Helper()
	for _, ks := range db.spaces {
		for _, tab := range ks.Tables {
			parts = append(parts, of(t, db.dir, tab)...)
		}
	}
	return parts
}

func partsOfTable(t testing.TB, dir string, tab *lsm.Table) (parts []*part) {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(dir, tab.Name))
	if err != nil {
		t.Fatal(err)
	}
	info, err := tab.Load()
	if err != nil {
		t.Fatal(err)
	}
	walk, err := tab.Source.Walk(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer walk.Close()
	newPart := func(h blocks.Handle, sep []byte) *part {
		p := &part{file: tab.Name, h: h, sep: bytes.Clone(sep), stored: file[h.Off : h.Off+h.Size+blocks.TrailerLen]}
		parts = append(parts, p)
		return p
	}
	index := newPart(info.Index, nil)
	var partition *part
	for {
		ok, err := walk.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		if h, sep := walk.(*sst.Walk).Partition(); h.Size > 0 && (partition == nil || partition.h != h) {
			partition = newPart(h, sep)
		}
		data := newPart(walk.Handle(), walk.Separator())
		b, err := walk.Load()
		if err != nil {
			t.Fatal(err)
		}
		data.entries(t, b, func(key []byte) map[entryID]bool {
			user, tr := base.SplitKey(key)
			return map[entryID]bool{{string(user), tr >> 8}: true}
		})
		if partition != nil {
			partition.below = append(partition.below, data)
		}
		index.below = append(index.below, data)
	}
	for _, p := range parts {
		if p.below != nil {
			i := 0
			b, err := blocks.Parse(p.stored[:p.h.Size])
			if err != nil {
				t.Fatal(err)
			}
			p.entries(t, b, func([]byte) map[entryID]bool {
				if p == index && partition != nil { // only all of it can be lost
					return nil
				}
				i++
				return p.below[i-1].lost[0]
			})
			p.lost[0] = lostWith(p.below)
		}
	}
	return parts
}

// entries finds the entries of a part's block and the loss from each on.
func (p *part) entries(t testing.TB, bl blocks.Block, of func(key []byte) map[entryID]bool) {
	t.Helper()
	e := blocks.Entries{Data: bl.Entries}
	var each []map[entryID]bool
	for {
		ok, err := e.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		p.starts = append(p.starts, e.At)
		each = append(each, of(e.Key))
	}
	if p.stored[p.h.Size] != testsst.Raw {
		p.starts = nil
	}
	p.lost = make([]map[entryID]bool, max(len(each), 1))
	rest := map[entryID]bool{}
	for i := len(each) - 1; i >= 0; i-- {
		maps.Copy(rest, each[i])
		p.lost[i] = maps.Clone(rest)
	}
}

func lostWith(parts []*part) map[entryID]bool {
	lost := map[entryID]bool{}
	for _, p := range parts {
		maps.Copy(lost, p.lost[0])
	}
	return lost
}

// damage is a part and the damaged entry in it; -1 damages any byte, which the checksum detects.
type damage struct {
	*part
	entry int
}

// mended reports whether the index is damaged so that its checksum tells: a salvage replaces it and loses nothing.
func (d *damage) mended() bool { return d.below != nil && d.entry < 0 }

func (d *damage) lostEntries() map[entryID]bool {
	if d.mended() {
		return nil
	}
	return d.lost[max(d.entry, 0)]
}

// apply damages the file.
func (d *damage) apply(t testing.TB, dir string, r *rand.Rand) {
	t.Helper()
	path := filepath.Join(dir, d.file)
	if d.what == partMissing {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d.what == partCut {
		b = b[:r.Intn(len(b))]
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	stored := b[d.h.Off : d.h.Off+d.h.Size+blocks.TrailerLen]
	if d.entry < 0 {
		stored[r.Intn(len(stored))] ^= byte(1 + r.Intn(255))
	} else {
		at := stored[d.starts[d.entry]:d.h.Size]
		for i := range min(6, len(at)) { // no length is that large
			at[i] = 0xff
		}
		binary.LittleEndian.PutUint32(stored[d.h.Size+1:], base.MaskCRC(crc32.Checksum(stored[:d.h.Size+1], base.Castagnoli)))
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// hides reports whether a part is unreachable because of damage above it.
func (d *damage) hides(p *part) bool {
	if d.part == p || d.file != p.file || d.what == partTombs {
		return false
	}
	if d.what != "" {
		return true // whichever of two is seen first
	}
	if d.below == nil || p.what != "" {
		return false
	}
	if d.mended() && p.below != nil && p.sep != nil && p.h.Off > d.h.Off {
		return true // the first damage of an index is the reason to replace it
	}
	if d.sep == nil {
		return true // all of the table
	}
	i := slices.Index(d.below, p)
	return i >= 0 && i >= d.entry
}

// choose damages some of the parts.
func choose(r *rand.Rand, parts []*part, chance int) (out []damage) {
	for _, p := range parts {
		if r.Intn(chance) > 0 || p.sep == nil && r.Intn(4) > 0 {
			continue
		}
		d := damage{p, -1}
		if len(p.starts) > 0 && p.sep != nil && r.Intn(2) == 0 {
			// Only entry headers and the bytes before the restarts can be damaged.
			if i := r.Intn(len(p.starts)); p.starts[i]+6 <= int(p.h.Size)-4 {
				d.entry = i
			}
		}
		out = append(out, d)
	}
	return apart(out)
}

// apart leaves out all other damage of a table whose index is replaced: what is found of its blocks depends on both.
func apart(ds []damage) []damage {
	first := map[string]*part{}
	for i := range ds {
		if first[ds[i].file] == nil && ds[i].mended() {
			first[ds[i].file] = ds[i].part
		}
	}
	return slices.DeleteFunc(ds, func(d damage) bool { return first[d.file] != nil && first[d.file] != d.part })
}

// without returns the remaining entries.
func without(entries []testsst.Entry, ds []damage) []testsst.Entry {
	lost := map[entryID]bool{}
	for i := range ds {
		maps.Copy(lost, ds[i].lostEntries())
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e testsst.Entry) bool { return lost[entryID{e.Key, e.Seq}] })
}

// wantSkips checks that exactly the visible damages were reported, once each.
func wantSkips(t *testing.T, found []record.Finding, ds []damage) {
	t.Helper()
	var got, want []string
	for _, f := range found {
		switch f.Kind {
		case record.FindDamagedBlock, record.FindMissingFile, record.FindFileSize:
			if f.Severity == record.Error {
				got = append(got, fmt.Sprintf("%s %s@%d", f.Kind, f.Place.File, f.Place.Off))
			}
		}
	}
	for i := range ds {
		if !slices.ContainsFunc(ds, func(d damage) bool { return d.hides(ds[i].part) }) {
			want = append(want, fmt.Sprintf("%s %s@%d", ds[i].kind(), ds[i].file, ds[i].off()))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("reported %v\nwant     %v\n%+v", got, want, found)
	}
}
