package build_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/golang/snappy"
)

// An independent parser of databases, which shares no code with the reader or the writer: it only knows the formats of
// the original engines, and fails at anything that they would not accept.

const (
	magicRocksDB = 0x88e241b785f4cff7
	magicLevelDB = 0xdb4775248b80fb57
)

// parsedTable is a table parsed from its bytes.
type parsedTable struct {
	keys, values [][]byte // internal keys
	props        map[string]string
	meta         []string // names in the metaindex
}

// parsedFile is a file that the MANIFEST names.
type parsedFile struct {
	level, number, size uint64
	smallest, largest   []byte
	minSeq, maxSeq      uint64
}

// parsedFamily is a column family of the MANIFEST.
type parsedFamily struct {
	name, comparator string
	files            []parsedFile
}

// parsedDB is a database as listed in the MANIFEST.
type parsedDB struct {
	families                   map[uint64]*parsedFamily
	nextFile, lastSeq, maxCF   uint64
	haveNext, haveLog, haveSeq bool
	tags                       map[uint64]int
}

// cursor reads a byte string and notes when it ends too early.
type cursor struct {
	t *testing.T
	b []byte
}

func (c *cursor) uvarint() uint64 {
	c.t.Helper()
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		c.t.Fatalf("bad varint in % x", c.b)
	}
	c.b = c.b[n:]
	return v
}

func (c *cursor) take(n uint64) []byte {
	c.t.Helper()
	if uint64(len(c.b)) < n {
		c.t.Fatalf("need %d bytes, have %d", n, len(c.b))
	}
	out := c.b[:n]
	c.b = c.b[n:]
	return out
}

func (c *cursor) bytes() []byte { c.t.Helper(); return c.take(c.uvarint()) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is the CRC as all these files store it.
func masked(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// parseBlock checks the trailer of a block and splits its entries.
func parseBlock(t *testing.T, file []byte, off, size uint64) (keys, values [][]byte) {
	t.Helper()
	raw := file[off : off+size+1]
	if got, want := binary.LittleEndian.Uint32(file[off+size+1:]), masked(raw); got != want {
		t.Fatalf("block at %d: checksum %#x, want CRC32c %#x", off, got, want)
	}
	body := raw[:size]
	switch raw[size] {
	case 0:
	case 1:
		var err error
		if body, err = snappy.Decode(nil, body); err != nil {
			t.Fatalf("block at %d: %v", off, err)
		}
	default:
		t.Fatalf("block at %d: compression %d is neither none nor snappy", off, raw[size])
	}
	restarts := uint64(binary.LittleEndian.Uint32(body[len(body)-4:]))
	c := cursor{t, body[:uint64(len(body))-4-4*restarts]}
	var prev []byte
	for len(c.b) > 0 {
		shared, unshared, vlen := c.uvarint(), c.uvarint(), c.uvarint()
		key := append(append([]byte{}, prev[:shared]...), c.take(unshared)...)
		keys, values = append(keys, key), append(values, c.take(vlen))
		prev = key
	}
	return keys, values
}

// parseTable checks a whole table file.
func parseTable(t *testing.T, path string, levelDB bool) *parsedTable {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := len(file)
	magic := binary.LittleEndian.Uint64(file[n-8:])
	var handles []byte
	if levelDB {
		if magic != magicLevelDB {
			t.Fatalf("%s: magic %#x is not LevelDB's", path, magic)
		}
		handles = file[n-48 : n-8]
	} else {
		if magic != magicRocksDB {
			t.Fatalf("%s: magic %#x is not RocksDB's", path, magic)
		}
		if v := binary.LittleEndian.Uint32(file[n-12:]); v > 2 {
			t.Fatalf("%s: footer version %d, RocksDB 5.0.1 knows up to 2", path, v)
		}
		if ck := file[n-53]; ck != 1 {
			t.Fatalf("%s: checksum type %d, want 1 (CRC32c)", path, ck)
		}
		handles = file[n-52 : n-12]
	}
	c := cursor{t, handles}
	metaOff, metaSize, indexOff, indexSize := c.uvarint(), c.uvarint(), c.uvarint(), c.uvarint()
	out := &parsedTable{props: map[string]string{}}
	mk, mv := parseBlock(t, file, metaOff, metaSize)
	for i := range mk {
		out.meta = append(out.meta, string(mk[i]))
		if string(mk[i]) == "rocksdb.properties" {
			h := cursor{t, mv[i]}
			off, size := h.uvarint(), h.uvarint()
			pk, pv := parseBlock(t, file, off, size)
			for j := range pk {
				out.props[string(pk[j])] = string(pv[j])
			}
		}
	}
	// A single-level index points right at data blocks, which tile the file from its start.
	_, handlesOfData := parseBlock(t, file, indexOff, indexSize)
	at := uint64(0)
	for _, v := range handlesOfData {
		h := cursor{t, v}
		off, size := h.uvarint(), h.uvarint()
		if off != at || len(h.b) != 0 {
			t.Fatalf("%s: index entry % x: data block at %d, want %d and nothing more", path, v, off, at)
		}
		at = off + size + 5
		k, vals := parseBlock(t, file, off, size)
		out.keys, out.values = append(out.keys, k...), append(out.values, vals...)
	}
	return out
}

// parseLog joins the records of a log file in 32 KiB blocks.
func parseLog(t *testing.T, file []byte) (records [][]byte) {
	t.Helper()
	var rec []byte
	for off := 0; off < len(file); {
		if left := 32768 - off%32768; left < 7 {
			off += left
			continue
		}
		h := file[off:]
		n := int(binary.LittleEndian.Uint16(h[4:]))
		if got, want := binary.LittleEndian.Uint32(h), masked(h[6:7+n]); got != want {
			t.Fatalf("log record at %d: checksum %#x, want %#x", off, got, want)
		}
		rec = append(rec, h[7:7+n]...)
		if typ := h[6]; typ == 1 || typ == 4 { // full, last
			records = append(records, rec)
			rec = nil
		} else if typ != 2 && typ != 3 { // first, middle
			t.Fatalf("log record at %d: type %d", off, typ)
		}
		off += 7 + n
	}
	if rec != nil {
		t.Fatal("the last record of the log is incomplete")
	}
	return records
}

// parseDB reads CURRENT and the MANIFEST and checks them against the existing files.
func parseDB(t *testing.T, dir string, ext string) *parsedDB {
	t.Helper()
	current, err := os.ReadFile(filepath.Join(dir, "CURRENT"))
	if err != nil {
		t.Fatal(err)
	}
	name, ok := strings.CutSuffix(string(current), "\n")
	if !ok {
		t.Fatalf("CURRENT %q does not end in a newline", current)
	}
	file, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	db := &parsedDB{families: map[uint64]*parsedFamily{0: {name: "default"}}, tags: map[uint64]int{}}
	for _, rec := range parseLog(t, file) {
		db.apply(t, rec)
	}
	if !db.haveNext || !db.haveLog || !db.haveSeq {
		t.Fatal("the MANIFEST lacks the next file, the log number or the last sequence")
	}
	db.checkFiles(t, dir, name, ext)
	return db
}

// apply reads one version edit.
func (db *parsedDB) apply(t *testing.T, rec []byte) {
	t.Helper()
	c := cursor{t, rec}
	var f parsedFamily
	var cf uint64
	var added, haveComparator bool
	for len(c.b) > 0 {
		tag := c.uvarint()
		db.tags[tag]++
		switch tag {
		case 1:
			f.comparator, haveComparator = string(c.bytes()), true
		case 2:
			c.uvarint()
			db.haveLog = true
		case 3:
			db.nextFile, db.haveNext = c.uvarint(), true
		case 4:
			db.lastSeq, db.haveSeq = c.uvarint(), true
		case 9:
			c.uvarint()
		case 7, 100:
			p := parsedFile{level: c.uvarint(), number: c.uvarint(), size: c.uvarint(), smallest: c.bytes(), largest: c.bytes()}
			if tag == 100 {
				p.minSeq, p.maxSeq = c.uvarint(), c.uvarint()
			}
			f.files = append(f.files, p)
		case 200:
			cf = c.uvarint()
		case 201:
			f.name, added = string(c.bytes()), true
		case 203:
			db.maxCF = c.uvarint()
		default:
			t.Fatalf("version edit tag %d", tag)
		}
	}
	if added {
		if db.families[cf] != nil {
			t.Fatalf("column family %d is added twice", cf)
		}
		db.families[cf] = &parsedFamily{name: f.name}
	}
	have := db.families[cf]
	if have == nil {
		t.Fatalf("an edit names column family %d before it is added", cf)
	}
	if haveComparator {
		have.comparator = f.comparator
	}
	have.files = append(have.files, f.files...)
}

// checkFiles checks that the directory has exactly the files that the MANIFEST lists.
func (db *parsedDB) checkFiles(t *testing.T, dir, manifest, ext string) {
	t.Helper()
	want := []string{"CURRENT", manifest}
	for _, f := range db.families {
		for i := range f.files {
			p := &f.files[i]
			name := fmt.Sprintf("%06d%s", p.number, ext)
			want = append(want, name)
			st, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if uint64(st.Size()) != p.size {
				t.Fatalf("%s: %d bytes, the MANIFEST says %d", name, st.Size(), p.size)
			}
			if p.number >= db.nextFile {
				t.Fatalf("%s: the next file number is %d", name, db.nextFile)
			}
		}
	}
	var have []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		have = append(have, e.Name())
	}
	sort.Strings(want)
	if fmt.Sprint(have) != fmt.Sprint(want) {
		t.Fatalf("directory holds %v, want %v", have, want)
	}
}
