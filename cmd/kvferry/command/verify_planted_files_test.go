package command

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	pebblerecord "github.com/cockroachdb/pebble/record"

	"kvferry/ardb"
	"kvferry/blackwidow"
	"kvferry/cmd/kvferry/cli"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/nemo"
	"kvferry/record"
	"kvferry/store"
)

// filePlant is damage to files of smallSet in nemo, with the expected findings.
type filePlant struct {
	name, want string
	args       []string // for verify
	do         func(t *testing.T, dir string)
}

// globOne returns the first file that matches.
func globOne(t *testing.T, dir, pattern string) string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(all) == 0 {
		t.Fatalf("%s: nothing (%v)", pattern, err)
	}
	return all[0]
}

// edit changes the bytes of a file.
func edit(pattern string, change func([]byte) []byte) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		name := globOne(t, dir, pattern)
		data, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(name, change(data), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func flip(at int) func([]byte) []byte {
	return func(b []byte) []byte {
		b[(at+len(b))%len(b)] ^= 0xFF
		return b
	}
}

func removeOne(pattern string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		if err := os.Remove(globOne(t, dir, pattern)); err != nil {
			t.Fatal(err)
		}
	}
}

// copyOne copies a file within the dataset.
func copyOne(pattern, to string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		data, err := os.ReadFile(globOne(t, dir, pattern))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, to), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// addEdit appends a version edit to the MANIFEST of the hashes.
func addEdit(version []byte) func(*testing.T, string) { return addEditTo("hash", version) }

// addEditTo appends a version edit to the MANIFEST of a store.
func addEditTo(dir string, version []byte) func(*testing.T, string) {
	return edit(dir+"/MANIFEST-*", func(data []byte) []byte {
		var out bytes.Buffer
		r, w := pebblerecord.NewReader(bytes.NewReader(data), 0), pebblerecord.NewWriter(&out)
		for {
			rec, err := r.Next()
			var b []byte
			if err == nil {
				b, err = io.ReadAll(rec)
			}
			if err != nil {
				break
			}
			if _, err := w.WriteRecord(b); err != nil {
				panic(err)
			}
		}
		if _, err := w.WriteRecord(version); err != nil {
			panic(err)
		}
		if err := w.Close(); err != nil {
			panic(err)
		}
		return out.Bytes()
	})
}

// neverWritten sets the last sequence number of a store to 0, as early versions of kvferry wrote it.
func neverWritten(store string) func(*testing.T, string) {
	return edit(store+"/MANIFEST-*", func(data []byte) []byte {
		last := 0
		for at := 0; at < len(data); at += 7 + int(binary.LittleEndian.Uint16(data[at+4:])) {
			last = at
		}
		rec := data[last+6:]
		rec[bytes.LastIndex(rec, []byte{tagLastSequence, 1})+1] = 0
		c := crc32.Checksum(rec, crc32.MakeTable(crc32.Castagnoli))
		binary.LittleEndian.PutUint32(data[last:], (c>>15|c<<17)+0xa282ead8)
		return data
	})
}

// TestLastSequenceIsMended checks that converting such a dataset to its own format repairs it.
func TestLastSequenceIsMended(t *testing.T) {
	for _, c := range []struct {
		format format.Format
		rows   []small
		stores string
	}{{nemo.New(), smallSet(), "kv hash list set zset"}, {blackwidow.New(), smallSet(), "strings hashes lists sets zsets"},
		{ardb.New(), ardbSet(), "rocksdb"}} {
		dir := buildSmall(t, c.format, c.rows...)
		stores := strings.Fields(c.stores)
		for _, s := range stores {
			neverWritten(s)(t, dir)
		}
		src, dst := c.format.Name()+":"+dir, c.format.Name()+":"+filepath.Join(t.TempDir(), "mended")
		if got := strings.Join(foundIn(t, src), ", "); !strings.HasPrefix(got, "warning last-sequence") {
			t.Errorf("found %q", got)
		}
		if r := kvferry(t, "verify", "--fail-on", "warning", src); r.code != cli.ExitFindings || !strings.Contains(r.stdout, "loses every row") {
			t.Errorf("exit %d\n%s", r.code, r.stdout)
		}
		ok(t, "convert", src, dst)
		if got := strings.Join(foundIn(t, dst), ", "); got != "" {
			t.Errorf("after a conversion, found %q", got)
		}
		ok(t, "diff", src, dst)
	}
}

// Tags of version edits in LevelDB and RocksDB.
const (
	tagLogNumber    = 2
	tagNextFile     = 3
	tagLastSequence = 4
	tagNewFile2     = 100
)

// newTable returns a version edit that adds a table to a level, with the sequence numbers of its first and last row.
// Tables of fixtures are in level 6.
func newTable(level byte, number, size int, smallest, largest []byte, first, last uint64) []byte {
	out := binary.AppendUvarint([]byte{tagNextFile}, uint64(number)+1)
	out = binary.AppendUvarint(append(out, tagNewFile2, level), uint64(number))
	out = binary.AppendUvarint(out, uint64(size))
	for i, k := range [][]byte{smallest, largest} {
		k = binary.LittleEndian.AppendUint64(k[:len(k):len(k)], []uint64{first, last}[i]<<8|1) // a put
		out = append(binary.AppendUvarint(out, uint64(len(k))), k...)
	}
	return binary.AppendUvarint(binary.AppendUvarint(out, min(first, last)), max(first, last))
}

// recount changes a one-byte count in the properties of a table, whose name ends in tail, and updates the checksum of
// the block.
func recount(tail string) func([]byte) []byte {
	return func(b []byte) []byte {
		at := bytes.Index(b, []byte(tail)) + len(tail)
		table := crc32.MakeTable(crc32.Castagnoli)
		mask := func(c uint32) uint32 { return (c>>15 | c<<17) + 0xa282ead8 }
		for lo := at - len(tail); lo >= 0; lo-- {
			sum := crc32.Checksum(b[lo:at+1], table)
			for hi := at + 1; hi+4 <= len(b); hi++ {
				if mask(sum) == binary.LittleEndian.Uint32(b[hi:]) {
					b[at] += 3
					binary.LittleEndian.PutUint32(b[hi:], mask(crc32.Checksum(b[lo:hi], table)))
					return b
				}
				sum = crc32.Update(sum, table, b[hi:hi+1])
			}
		}
		panic(tail + " is not in the table")
	}
}

func filePlants() []filePlant {
	var (
		fieldOf = func(s string) []byte { return nemo.AppendHashKey(nil, nemo.HashKey{Key: nk, Field: []byte(s)}) }
		plain   = nemo.AppendPlain(nil, nemo.Plain{Bytes: nk, Suffix: nv1})
	)
	overlap := func(t *testing.T, dir string) {
		copyOne("hash/*.sst", "hash/000899.sst")(t, dir)
		info, err := os.Stat(filepath.Join(dir, "hash/000899.sst"))
		if err != nil {
			t.Fatal(err)
		}
		addEdit(newTable(6, 899, int(info.Size()), []byte("Hk"), []byte("Hk"), 0, 0))(t, dir)
	}
	log := func(t *testing.T, dir string) string {
		return appendLog(t, filepath.Join(dir, "hash"), (&writes{seq: 2}).add("put", fieldOf("a"), plain))
	}
	again := func(seq uint64) *writes { return (&writes{seq: seq}).add("put", fieldOf("a"), plain) }
	return []filePlant{
		{name: "block", want: "error damaged-block, warning orphan-rows", do: edit("hash/*.sst", flip(10))}, // the meta row's block
		{name: "footer", want: "error damaged-block", do: edit("kv/*.sst", flip(-1))},
		{name: "metaindex", want: "error damaged-block", do: edit("kv/*.sst", flipMetaindex)},
		{name: "properties", want: "error damaged-block", do: edit("kv/*.sst", flipNamed("rocksdb.properties"))},
		{name: "range tombstones", want: "error damaged-block", do: func(t *testing.T, dir string) {
			addRangeTombstone(t, dir, "kv", "l", "m")
			edit("kv/000899.sst", flipNamed("rocksdb.range_del2"))(t, dir)
		}},
		{name: "whole range tombstones", do: func(t *testing.T, dir string) { addRangeTombstone(t, dir, "kv", "l", "m") }},
		{name: "cut table", want: "error file-size-mismatch", do: edit("kv/*.sst", cutHalf)},
		{name: "long table", want: "error file-size-mismatch", do: edit("kv/*.sst", func(b []byte) []byte { return append(b, 0) })},
		{name: "no table", want: "error missing-file", do: removeOne("kv/*.sst")},
		{name: "no table of a meta row", want: "error missing-file, warning orphan-rows", do: removeOne("hash/*.sst")},
		{name: "no CURRENT", want: "error missing-file", do: removeOne("hash/CURRENT")},
		{name: "no MANIFEST", want: "error missing-file", do: removeOne("hash/MANIFEST-*")},
		{name: "MANIFEST", want: "error damaged-file", do: edit("hash/MANIFEST-*", flip(12))},
		{name: "group of edits", want: "error torn-manifest", do: addEdit(binary.AppendUvarint(binary.AppendUvarint(nil, 300), 1))},
		{name: "torn MANIFEST", want: "warning torn-manifest", do: edit("hash/MANIFEST-*", func(b []byte) []byte { return append(b, b[:5]...) })},
		{name: "orphan", want: "note unreferenced-table", do: copyOne("hash/*.sst", "hash/000001.sst")},
		{name: "MANIFEST behind", want: "error manifest-behind, error unknown-row", do: copyOne("set/*.sst", "hash/999999.sst")},
		{name: "MANIFEST behind, or a table never finished", want: "warning manifest-behind", do: func(t *testing.T, dir string) {
			copyOne("set/*.sst", "hash/999999.sst")(t, dir)
			edit("hash/999999.sst", cutHalf)(t, dir)
		}},
		{name: "no store", want: "error missing-store", do: func(t *testing.T, dir string) {
			if err := os.RemoveAll(filepath.Join(dir, "zset")); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "comparator", want: "error unreadable-store", do: func(t *testing.T, dir string) {
			alter(t, filepath.Join(dir, "hash"), func(r *rows) {
				r.order["default"] = store.Comparer{Name: "nobody.knows", Compare: bytes.Compare}
			})
		}},
		{name: "overlap", want: "warning overlapping-tables", do: overlap},
		{name: "whole log", do: func(t *testing.T, dir string) { log(t, dir) }},
		{name: "torn log", want: "warning torn-log", do: func(t *testing.T, dir string) {
			name := log(t, dir)
			info, err := os.Stat(name)
			if err == nil {
				err = os.Truncate(name, info.Size()-1)
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
		{name: "zeros after a log", want: "note torn-log", do: func(t *testing.T, dir string) {
			if err := os.Truncate(log(t, dir), 64<<10); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "zeros instead of a log", want: "warning torn-log", do: func(t *testing.T, dir string) {
			name := log(t, dir)
			if err := errors.Join(os.Truncate(name, 0), os.Truncate(name, 100)); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "gap in a log", want: "error log-gap", do: func(t *testing.T, dir string) {
			appendLog(t, filepath.Join(dir, "hash"), again(2), again(100))
		}},
		{name: "never written to", want: "warning last-sequence", do: neverWritten("hash")},
		{name: "a log twice", want: "error foreign-log", do: func(t *testing.T, dir string) {
			appendLog(t, filepath.Join(dir, "hash"), again(2))
			copyOne("hash/*.log", "hash/000901.log")(t, dir)
		}},
		{name: "no log", want: "warning no-log", do: addEdit([]byte{tagLogNumber, 1})},
		{name: "no log of a server", want: "error no-log", do: func(t *testing.T, dir string) {
			addEdit([]byte{tagLogNumber, 1})(t, dir)
			for _, name := range []string{"LOCK", "IDENTITY"} {
				if err := os.WriteFile(filepath.Join(dir, "hash", name), nil, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{name: "entries", want: "error entry-count-mismatch", do: edit("hash/*.sst", recount("entries"))},
		{name: "tombstones", want: "error delete-count-mismatch", do: edit("hash/*.sst", recount("eleted.keys"))},
		{name: "foreign table", want: "error foreign-table", do: func(t *testing.T, dir string) {
			other := buildSmall(t, nemo.New(), smallRecord(1, "l", "v")) // same size as the table of k
			data, err := os.ReadFile(globOne(t, other, "kv/*.sst"))
			if err == nil {
				err = os.WriteFile(globOne(t, dir, "kv/*.sst"), data, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}},
		{name: "backup", want: "note kept-beside", do: func(t *testing.T, dir string) {
			if err := os.CopyFS(filepath.Join(dir, "dump", "20260101", "set"), os.DirFS(filepath.Join(dir, "set"))); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "beside", want: "error store-not-read", do: func(t *testing.T, dir string) {
			if err := os.CopyFS(filepath.Join(dir, "more"), os.DirFS(filepath.Join(dir, "set"))); err != nil {
				t.Fatal(err)
			}
		}},
	}
}

// TestVerifyPlantedFiles checks that damage to files is found once and the rest of the dataset is verified.
func TestVerifyPlantedFiles(t *testing.T) {
	for _, c := range filePlants() {
		t.Run(c.name, func(t *testing.T) {
			dir := buildSmall(t, nemo.New(), smallSet()...)
			c.do(t, dir)
			if got := strings.Join(foundIn(t, "nemo:"+dir, c.args...), ", "); got != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
			if !strings.Contains(c.want, "error") {
				return
			}
			// The damage is in one store: records of the others are read.
			out := kvferry(t, "verify", "nemo:"+dir).stdout
			if !strings.Contains(out, ": 4 records") && !strings.Contains(out, ": 5 records") {
				t.Errorf("the rest was not verified:\n%s", out)
			}
		})
	}
}

// cutManifest removes the last edit from the MANIFEST of a store that the engine wrote.
func cutManifest(t *testing.T) string {
	t.Helper()
	src := fixtures.Unpack(t, "nemo-basic")
	path := filepath.Join(src, "kv", "MANIFEST-000006")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	for at := 0; at < len(whole); at += 7 + int(binary.LittleEndian.Uint16(whole[at+4:])) {
		last = at // a record of one fragment: checksum, length, type
	}
	if err := os.WriteFile(path, whole[:last], 0o644); err != nil {
		t.Fatal(err)
	}
	return src
}

// TestManifestCutBetweenEdits cuts a MANIFEST between two edits, so that it looks like an intact older one. Tables of
// the removed edits have rows that exist nowhere else: verify must report that as damage, and convert must refuse it
// unless allowed.
func TestManifestCutBetweenEdits(t *testing.T) {
	src := cutManifest(t)
	if got := strings.Join(foundIn(t, "nemo:"+src), ", "); got != "error manifest-behind" {
		t.Errorf("found %q", got)
	}
	if r := kvferry(t, "verify", "nemo:"+src); r.code != cli.ExitFindings {
		t.Errorf("verify: exit %d", r.code)
	}
	args := []string{"convert", "nemo:" + src, "blackwidow:" + filepath.Join(t.TempDir(), "out")}
	refused(t, record.LossDamaged, args)
	ok(t, append(args, "--allow-loss", record.LossDamaged)...)
}

// TestVerifyFilter checks that a damaged filter block is found once and loses no row: verify warns, and convert
// copies all records.
func TestVerifyFilter(t *testing.T) {
	t.Parallel()
	src := fixtures.Unpack(t, "bw-basic")
	tables, err := filepath.Glob(filepath.Join(src, "hashes", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	data, err := os.ReadFile(tables[0])
	if err != nil {
		t.Fatal(err)
	}
	const name = "filter.rocksdb.BuiltinBloomFilter"
	at := bytes.Index(data, []byte(name))
	if at < 0 {
		t.Fatalf("%s has no filter", tables[0])
	}
	off, _ := binary.Uvarint(data[at+len(name):]) // the handle follows the name in the metaindex
	data[off] ^= 1
	if err := os.WriteFile(tables[0], data, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, look := range []string{"auto", "always"} {
		if got := strings.Join(foundIn(t, src, "--files", look), ", "); got != "warning damaged-block" {
			t.Errorf("--files %s: found %q", look, got)
		}
	}
	if got := foundIn(t, src, "--files", "never"); len(got) != 0 {
		t.Errorf("--files never: found %q", got)
	}
	ok(t, "verify", src)
	ok(t, "convert", src, "blackwidow:"+filepath.Join(t.TempDir(), "out"))
}

// TestCommandsAgreeOnTables checks faults that checksums cannot detect: every command ends with the one error that
// verify lists, and no command reports success.
func TestCommandsAgreeOnTables(t *testing.T) {
	for name, sub := range map[string]string{"index-entry-gone": "db0", "restart-not-at-entry": "db0", "block-twice": "",
		"leveldb-first-block-empty": ""} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(fixtures.UnpackFile(t, "../../../fixtures/found/"+name+".tar.gz", name), sub)
			for _, workers := range []string{"1", "4"} {
				r := kvferry(t, "verify", dir, "--workers", workers)
				if r.code != cli.ExitFindings || !strings.Contains(r.stdout, ": 1 error") {
					t.Errorf("verify: exit %d\n%s%s", r.code, r.stdout, r.stderr)
				}
				target := "rdb:" + filepath.Join(t.TempDir(), "target.rdb")
				for _, args := range [][]string{{"dump", dir}, {"inspect", dir}, {"fingerprint", dir}, {"diff", dir, dir}} {
					r := kvferry(t, append(args, "--workers", workers)...)
					if r.code != cli.ExitFailed || !strings.Contains(r.stderr, "kvferry verify") {
						t.Errorf("%s: exit %d\n%s", args[0], r.code, r.stderr)
					}
				}
				r = kvferry(t, "convert", dir, target, "--workers", workers)
				if r.code != cli.ExitLossy || !strings.Contains(r.stderr, "damaged: 1 error") {
					t.Errorf("convert: exit %d\n%s%s", r.code, r.stdout, r.stderr)
				}
				if r := kvferry(t, "convert", dir, target, "--allow-loss", "damaged", "--workers",
					workers); r.code != cli.ExitOK {
					t.Errorf("convert the rest: exit %d\n%s%s", r.code, r.stdout, r.stderr)
				}
			}
		})
	}
}
