package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/record"

	"kvferry/fixtures"
	"kvferry/store/rocks/base"
	"kvferry/store/rocks/manifest"
)

// Faults that no program can detect in files with valid checksums.
const (
	byValue = "changed value bytes under a right checksum"
	byName  = "changed key bytes under a right checksum"
	byRow   = "a row left out with every count right"
	byKind  = "a row of LevelDB made a tombstone, which has no count"
)

// forgery is a fault inside a reassembled file. do returns a description, "" if it found no target, and the reason why
// no program can detect the fault, "" if it is detectable.
type forgery[T any] struct {
	name string
	do   func(r *fixtures.Rand, t T) (what, hidden string)
}

// pickRow picks a row of a table.
func (t *table) pickRow(r *fixtures.Rand) (b, i int) {
	b = r.Intn(len(t.blocks))
	return b, r.Intn(len(t.blocks[b]))
}

// change changes the value of a random row, and with counted corrects the counts.
func change(counted bool, f func(r *fixtures.Rand, v []byte) []byte) func(*fixtures.Rand, *table) (string, string) {
	return func(r *fixtures.Rand, t *table) (string, string) {
		b, i := t.pickRow(r)
		v := f(r, slices.Clone(t.blocks[b][i].value))
		if v == nil {
			return "", ""
		}
		t.blocks[b][i].value = v
		if counted || t.levelDB {
			t.count()
			return fmt.Sprintf(" of row %d of block %d", i, b), byValue
		}
		return fmt.Sprintf(" of row %d of block %d", i, b), ""
	}
}

func longer(r *fixtures.Rand, v []byte) []byte {
	more := make([]byte, 1+r.Intn(9))
	r.Fill(more)
	return append(v, more...)
}

func shorter(r *fixtures.Rand, v []byte) []byte {
	if len(v) == 0 {
		return nil
	}
	return v[:r.Intn(len(v))]
}

func flipped(r *fixtures.Rand, v []byte) []byte {
	if len(v) == 0 {
		return nil
	}
	v[r.Intn(len(v))] ^= 1 << r.Intn(8)
	return v
}

// forgedKinds are kinds to give a row: known, refused and nonexistent kinds.
var forgedKinds = []byte{base.KindDelete, base.KindMerge, base.KindSingleDelete, base.KindBlobIndex, base.KindWideColumns, 0x09,
	0x1f, 0x7f}

// brokenIndex is a table with a bit of its index changed: a salvage finds all rows.
const brokenIndex = "index-bit"

// unforged is a table reassembled without a fault.
const unforged = "nothing"

var tableForgeries = []forgery[*table]{
	{unforged, func(*fixtures.Rand, *table) (string, string) { return " but its blocks", "" }},
	{"index-drop", func(r *fixtures.Rand, t *table) (string, string) {
		at := r.Intn(len(t.blocks))
		t.index = func(x []row) []row { return slices.Delete(x, at, at+1) }
		return fmt.Sprintf(" entry %d", at), ""
	}},
	{brokenIndex, func(r *fixtures.Rand, t *table) (string, string) {
		bit := uint64(r.Intn(1 << 20))
		t.broken = func(index []byte) { index[bit/8%uint64(len(index))] ^= 1 << (bit % 8) }
		return fmt.Sprintf(" bit %d", bit), ""
	}},
	{"index-twice", func(r *fixtures.Rand, t *table) (string, string) {
		from, to := r.Intn(len(t.blocks)), r.Intn(len(t.blocks))
		if from == to {
			return "", ""
		}
		t.index = func(x []row) []row { x[to].value = x[from].value; return x }
		return fmt.Sprintf(" block %d in place of %d", from, to), ""
	}},
	{"index-swap", func(r *fixtures.Rand, t *table) (string, string) {
		a, b := r.Intn(len(t.blocks)), r.Intn(len(t.blocks))
		if a == b {
			return "", ""
		}
		t.index = func(x []row) []row { x[a].value, x[b].value = x[b].value, x[a].value; return x }
		return fmt.Sprintf(" blocks %d and %d", a, b), ""
	}},
	{"blocks-swap", func(r *fixtures.Rand, t *table) (string, string) {
		a, b := r.Intn(len(t.blocks)), r.Intn(len(t.blocks))
		if a == b {
			return "", ""
		}
		t.blocks[a], t.blocks[b] = t.blocks[b], t.blocks[a]
		return fmt.Sprintf(" %d and %d", a, b), ""
	}},
	{"rows-swap", func(r *fixtures.Rand, t *table) (string, string) {
		b, i := t.pickRow(r)
		if i == 0 {
			return "", ""
		}
		rows := t.blocks[b]
		rows[i], rows[i-1] = rows[i-1], rows[i]
		return fmt.Sprintf(" %d and %d of block %d", i-1, i, b), ""
	}},
	{"row-drop", func(r *fixtures.Rand, t *table) (string, string) { return t.drop(r, false) }},
	{"row-drop-counted", func(r *fixtures.Rand, t *table) (string, string) { return t.drop(r, true) }},
	{"row-twice", func(r *fixtures.Rand, t *table) (string, string) {
		b, i := t.pickRow(r)
		t.blocks[b] = slices.Insert(t.blocks[b], i, t.blocks[b][i])
		t.count()
		return fmt.Sprintf(" %d of block %d", i, b), ""
	}},
	{"kind", func(r *fixtures.Rand, t *table) (string, string) {
		b, i := t.pickRow(r)
		k := slices.Clone(t.blocks[b][i].key)
		kind, hidden := fixtures.Pick(r, forgedKinds), ""
		if t.levelDB && kind == base.KindDelete {
			hidden = byKind
		}
		if k[len(k)-8] == kind {
			return "", ""
		}
		k[len(k)-8] = kind
		t.blocks[b][i].key = k
		return fmt.Sprintf(" %#x of row %d of block %d", kind, i, b), hidden
	}},
	{"sequence", func(r *fixtures.Rand, t *table) (string, string) {
		b, i := t.pickRow(r)
		k := slices.Clone(t.blocks[b][i].key)
		k[len(k)-1-r.Intn(7)] ^= 1 << r.Intn(8)
		t.blocks[b][i].key = k
		return fmt.Sprintf(" of row %d of block %d", i, b), ""
	}},
	{"key-byte", func(r *fixtures.Rand, t *table) (string, string) {
		b, i := t.pickRow(r)
		k := slices.Clone(t.blocks[b][i].key)
		if len(k) <= 8 {
			return "", ""
		}
		k[r.Intn(len(k)-8)] ^= 1 << r.Intn(8)
		t.blocks[b][i].key = k
		return fmt.Sprintf(" of row %d of block %d", i, b), byName
	}},
	{"value-byte", change(true, flipped)},
	{"value-longer", change(true, longer)},
	{"value-shorter", change(true, shorter)},
	{"value-longer-uncounted", change(false, longer)},
	{"value-shorter-uncounted", change(false, shorter)},
	{"property", func(r *fixtures.Rand, t *table) (string, string) {
		if len(t.props) == 0 {
			return "", ""
		}
		p := &t.props[r.Intn(len(t.props))]
		if len(p.value) == 0 {
			return "", ""
		}
		p.value = flipped(r, slices.Clone(p.value))
		return " " + string(p.key), ""
	}},
	{"restart", func(r *fixtures.Rand, t *table) (string, string) {
		at := r.Intn(len(t.blocks))
		if len(t.blocks[at]) <= 3 {
			return "", ""
		}
		by := uint32(1 + r.Intn(9))
		t.restart = func(b int, off []uint32) {
			if b == at {
				off[len(off)-1] += by
			}
		}
		return fmt.Sprintf(" of block %d by %d", at, by), ""
	}},
	{"range-drop", func(r *fixtures.Rand, t *table) (string, string) { return t.dropRange(r, false) }},
	{"range-drop-counted", func(r *fixtures.Rand, t *table) (string, string) { return t.dropRange(r, true) }},
	{"range-byte", func(r *fixtures.Rand, t *table) (string, string) {
		if len(t.ranges) == 0 {
			return "", ""
		}
		at := r.Intn(len(t.ranges))
		d := &t.ranges[at]
		if r.Chance(50) {
			d.key = flipped(r, slices.Clone(d.key))
		} else if d.value = flipped(r, slices.Clone(d.value)); d.value == nil {
			return "", ""
		}
		return fmt.Sprintf(" of tombstone %d", at), byName
	}},
	{"range-more", func(r *fixtures.Rand, t *table) (string, string) {
		if t.levelDB {
			return "", ""
		}
		first, last := t.blocks[0][0].key, t.blocks[len(t.blocks)-1]
		user, _ := base.SplitKey(first)
		end, _ := base.SplitKey(last[len(last)-1].key)
		key := append(bytes.Clone(user), first[len(user):]...)
		key[len(user)] = base.KindRangeDelete
		t.ranges = append(t.ranges, row{key, bytes.Clone(end)})
		if r.Chance(50) {
			return " uncounted", ""
		}
		t.count()
		return " counted", byRow
	}},
	{"first-block-empty", func(r *fixtures.Rand, t *table) (string, string) {
		t.blocks = slices.Insert(t.blocks, 0, []row{})
		t.set("rocksdb.num.data.blocks", uint64(len(t.blocks)))
		return " ", ""
	}},
}

// drop removes a row.
func (t *table) drop(r *fixtures.Rand, counted bool) (what, hidden string) {
	b, i := t.pickRow(r)
	if len(t.blocks[b]) == 1 {
		return "", ""
	}
	t.blocks[b] = slices.Delete(t.blocks[b], i, i+1)
	if counted || t.levelDB {
		t.count()
		hidden = byRow
	}
	return fmt.Sprintf(" %d of block %d", i, b), hidden
}

// dropRange removes a range tombstone.
func (t *table) dropRange(r *fixtures.Rand, counted bool) (what, hidden string) {
	if len(t.ranges) == 0 {
		return "", ""
	}
	at := r.Intn(len(t.ranges))
	t.ranges = slices.Delete(t.ranges, at, at+1)
	if counted {
		t.count()
		hidden = byRow
	}
	return fmt.Sprintf(" %d", at), hidden
}

// framed is a log or a MANIFEST split into records.
type framed struct {
	records [][]byte
	last    bool // no other log follows
}

// readFramed joins the fragments of a log; it returns false for recycled log files.
func readFramed(b []byte) (f framed, ok bool) {
	ok = true
	eachFragment(b, func(kind byte, payload []byte, _ int) {
		switch kind {
		case 1, 2:
			f.records = append(f.records, slices.Clone(payload))
		case 3, 4:
			if len(f.records) == 0 {
				ok = false
				return
			}
			f.records[len(f.records)-1] = append(f.records[len(f.records)-1], payload...)
		default:
			ok = false
		}
	})
	return f, ok && len(f.records) > 0
}

func (f *framed) write() ([]byte, error) {
	var out bytes.Buffer
	w := record.NewWriter(&out)
	for _, r := range f.records {
		if _, err := w.WriteRecord(r); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// shuffled returns forgeries of logs and MANIFESTs that keep records whole. end is the reason why the loss of the last
// record is undetectable.
func shuffled(end string) []forgery[*framed] {
	return []forgery[*framed]{
		{"record-drop", func(r *fixtures.Rand, f *framed) (string, string) {
			at, hidden := r.Intn(len(f.records)), ""
			if f.last && at == len(f.records)-1 {
				hidden = end
			}
			f.records = slices.Delete(f.records, at, at+1)
			return fmt.Sprintf(" %d", at), hidden
		}},
		{"record-twice", func(r *fixtures.Rand, f *framed) (string, string) {
			at, to := r.Intn(len(f.records)), r.Intn(len(f.records)+1)
			f.records = slices.Insert(f.records, to, f.records[at])
			return fmt.Sprintf(" %d at %d", at, to), ""
		}},
		{"records-swap", func(r *fixtures.Rand, f *framed) (string, string) {
			a, b := r.Intn(len(f.records)), r.Intn(len(f.records))
			if bytes.Equal(f.records[a], f.records[b]) {
				return "", ""
			}
			f.records[a], f.records[b] = f.records[b], f.records[a]
			return fmt.Sprintf(" %d and %d", a, b), ""
		}},
	}
}

// header changes a number in the header of a write: its sequence number or its count of entries.
func header(from, to int) func(*fixtures.Rand, *framed) (string, string) {
	return func(r *fixtures.Rand, f *framed) (string, string) {
		at := r.Intn(len(f.records))
		if len(f.records[at]) < 12 {
			return "", ""
		}
		b := from + r.Intn(to-from)
		f.records[at][b] ^= 1 << r.Intn(8)
		return fmt.Sprintf(" of record %d, byte %d", at, b), ""
	}
}

var logForgeries = append(shuffled(byLogEnd), forgery[*framed]{"write-sequence", header(0, 8)},
	forgery[*framed]{"write-count", header(8, 12)},
	forgery[*framed]{"entry-tag", func(r *fixtures.Rand, f *framed) (string, string) {
		at := r.Intn(len(f.records))
		if len(f.records[at]) < 13 {
			return "", ""
		}
		f.records[at][12] = fixtures.Pick(r, forgedKinds)
		return fmt.Sprintf(" of record %d: %#x", at, f.records[at][12]), byValue
	}},
	forgery[*framed]{"entry-byte", func(r *fixtures.Rand, f *framed) (string, string) {
		at := r.Intn(len(f.records))
		if len(f.records[at]) < 14 {
			return "", ""
		}
		b := 13 + r.Intn(len(f.records[at])-13)
		f.records[at][b] ^= 1 << r.Intn(8)
		return fmt.Sprintf(" %d of record %d", b, at), byValue
	}})

// fileEdit locates a table in a record of a MANIFEST.
type fileEdit struct {
	record          int
	start, end      int // of the whole field
	level, bounds   int
	number          uint64
	size, afterSize int
}

// fileEdits finds the tables that a MANIFEST adds.
func (f *framed) fileEdits() (out []fileEdit) {
	for n, rec := range f.records {
		p := &base.Fields{Buf: rec}
		for p.More() {
			e := fileEdit{record: n, start: p.Off}
			switch tag := p.Uvarint("tag"); tag {
			case manifest.TagComparator, manifest.TagColumnFamilyAdd:
				p.Prefixed("name")
			case manifest.TagCompactCursor:
				p.Uvarint("level")
				p.Prefixed("key")
			case manifest.TagDeletedFile:
				p.Uvarint("level")
				p.Uvarint("number")
			case manifest.TagColumnFamilyDel:
			case manifest.TagNewFile, manifest.TagNewFile2, manifest.TagNewFile4:
				e.level = p.Off
				p.Uvarint("level")
				e.number = p.Uvarint("number")
				e.size = p.Off
				p.Uvarint("size")
				e.afterSize, e.bounds = p.Off, p.Off
				p.Prefixed("smallest")
				p.Prefixed("largest")
				if tag != manifest.TagNewFile {
					p.Uvarint("sequence")
					p.Uvarint("sequence")
				}
				for tag == manifest.TagNewFile4 && p.More() && p.Uvarint("custom") != manifest.FileTerminate {
					p.Prefixed("value")
				}
				e.end = p.Off
				if p.Err == nil {
					out = append(out, e)
				}
			default:
				if tag < 300 {
					p.Uvarint("number")
				} else {
					p.Prefixed("ignorable")
				}
			}
		}
	}
	return out
}

// resize changes the size of a table; it returns false if the MANIFEST does not add the table.
func (f *framed) resize(number uint64, size int) (found bool) {
	edits := f.fileEdits()
	slices.Reverse(edits) // a change keeps the offsets before it
	for _, e := range edits {
		if e.number == number {
			rec := f.records[e.record]
			f.records[e.record] = slices.Replace(rec, e.size, e.afterSize, binary.AppendUvarint(nil, uint64(size))...)
			found = true
		}
	}
	return found
}

// inFile flips bits in a part of a random table's field.
func inFile(part func(e *fileEdit) (from, to int)) func(*fixtures.Rand, *framed) (string, string) {
	return func(r *fixtures.Rand, f *framed) (string, string) {
		edits := f.fileEdits()
		if len(edits) == 0 {
			return "", ""
		}
		e := fixtures.Pick(r, edits)
		from, to := part(&e)
		at := from + r.Intn(to-from)
		f.records[e.record][at] ^= 1 << r.Intn(8)
		return fmt.Sprintf(" of table %d, byte %d of record %d", e.number, at, e.record), ""
	}
}

var manifestForgeries = append(shuffled(byManifest),
	forgery[*framed]{"table-gone", func(r *fixtures.Rand, f *framed) (string, string) {
		edits := f.fileEdits()
		if len(edits) == 0 {
			return "", ""
		}
		e := fixtures.Pick(r, edits)
		f.records[e.record] = slices.Delete(f.records[e.record], e.start, e.end)
		return fmt.Sprintf(": %d", e.number), ""
	}}, forgery[*framed]{"table-level", inFile(func(e *fileEdit) (int, int) { return e.level, e.level + 1 })},
	forgery[*framed]{"table-bounds", inFile(func(e *fileEdit) (int, int) { return e.bounds, e.end })},
	forgery[*framed]{"edit-byte", func(r *fixtures.Rand, f *framed) (string, string) {
		at := r.Intn(len(f.records))
		if len(f.records[at]) == 0 {
			return "", ""
		}
		b := r.Intn(len(f.records[at]))
		f.records[at][b] ^= 1 << r.Intn(8)
		return fmt.Sprintf(" %d of record %d", b, at), ""
	}})

// forgeable reports whether there are forgeries of a file.
func forgeable(file string) bool {
	ext := filepath.Ext(file)
	return isLog(file) || ext == ".sst" || ext == ".ldb" || filepath.Base(file) == "data.mdb"
}

// forge applies a random forgery for the kind of the chosen file; ok is false if none applied.
func (p *patient) forge() (d damage, hidden string, ok bool, err error) {
	path := filepath.Join(p.dir, p.file)
	if p.data, err = os.ReadFile(path); err != nil {
		return d, "", false, err
	}
	d.file = p.file
	switch base, ext := filepath.Base(p.file), filepath.Ext(p.file); {
	case ext == ".sst" || ext == ".ldb":
		return p.forgeTable(path)
	case strings.HasPrefix(base, "MANIFEST-"):
		return p.forgeFramed(path, manifestForgeries)
	case ext == ".log":
		return p.forgeFramed(path, logForgeries)
	case base == "data.mdb":
		d.kind = "page"
		d.what, _ = p.flip(1 + p.r.Intn(3))
		return d, byLMDB, true, replace(path, p.data)
	}
	return d, "", false, nil
}

func (p *patient) forgeFramed(path string, kinds []forgery[*framed]) (d damage, hidden string, ok bool, err error) {
	f, ok := readFramed(p.data)
	if !ok {
		return d, "", false, nil
	}
	f.last = lastLog(p.s, p.file)
	kind := fixtures.Pick(p.r, kinds)
	d = damage{kind: kind.name, file: p.file}
	if d.what, hidden = kind.do(p.r, &f); d.what == "" {
		return d, "", false, nil
	}
	b, err := f.write()
	if err == nil {
		err = replace(path, b)
	}
	return d, hidden, true, err
}

func (p *patient) forgeTable(path string) (d damage, hidden string, ok bool, err error) {
	t, err := readTable(p.data)
	if err != nil {
		return d, "", false, nil
	}
	number, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), 10, 64)
	if err != nil {
		return d, "", false, nil
	}
	t.count()
	kind := fixtures.Pick(p.r, tableForgeries)
	d = damage{kind: kind.name, file: p.file}
	if d.what, hidden = kind.do(p.r, t); d.what == "" {
		return d, "", false, nil
	}
	b := t.write()
	name, err := os.ReadFile(filepath.Join(filepath.Dir(path), "CURRENT"))
	if err != nil {
		return d, "", false, nil
	}
	list := filepath.Join(filepath.Dir(path), strings.TrimSpace(string(name)))
	old, err := os.ReadFile(list)
	if err != nil {
		return d, "", false, nil
	}
	f, ok := readFramed(old)
	if !ok || !f.resize(number, len(b)) {
		return d, "", false, nil
	}
	now, err := f.write()
	if err == nil {
		err = replace(list, now)
	}
	if err == nil {
		err = replace(path, b)
	}
	return d, hidden, true, err
}
