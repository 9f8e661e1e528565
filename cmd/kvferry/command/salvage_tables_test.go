package command

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/sstable"
	"github.com/cockroachdb/pebble/vfs"

	"kvferry/cmd/kvferry/cli"
	"kvferry/nemo"
	"kvferry/record"
)

// cutHalf truncates a file to half its size.
func cutHalf(b []byte) []byte { return b[:len(b)/2] }

// flipNamed damages a block that the metaindex of a table names.
func flipNamed(name string) func([]byte) []byte {
	return func(b []byte) []byte {
		at := bytes.LastIndex(b, []byte(name))
		if at < 0 {
			panic("the table has no block " + name)
		}
		at += len(name)
		off, _ := binary.Uvarint(b[at:]) // the handle follows the name
		b[off+1] ^= 1
		return b
	}
}

// flipMetaindex damages the metaindex of a table.
func flipMetaindex(b []byte) []byte {
	footer := b[len(b)-48:]
	if binary.LittleEndian.Uint64(b[len(b)-8:]) == 0x88e241b785f4cff7 { // RocksDB's magic: a checksum type precedes the handles
		footer = b[len(b)-52:]
	}
	off, _ := binary.Uvarint(footer)
	b[off+1] ^= 1
	return b
}

// largestTable returns the largest table of a dataset, relative to it.
func largestTable(t *testing.T, dir string) (name string) {
	t.Helper()
	var size int64
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); err != nil || ext != ".sst" && ext != ".ldb" {
			return err
		}
		info, err := d.Info()
		if err == nil && info.Size() > size {
			size = info.Size()
			name, err = filepath.Rel(dir, path)
		}
		return err
	})
	if err != nil || name == "" {
		t.Fatal(name, err)
	}
	return name
}

// TestSalvageTables removes the largest table of datasets and damages every part needed to open a table: commands
// that salvage must read the rest, and convert must copy it if allowed.
func TestSalvageTables(t *testing.T) {
	t.Parallel()
	damages := []struct {
		kind, what string
		do         func(name string) func(*testing.T, string)
	}{
		{record.FindMissingFile, "missing", removeOne},
		{record.FindFileSize, "cut off", func(name string) func(*testing.T, string) { return edit(name, cutHalf) }},
		{record.FindDamagedBlock, "footer", func(name string) func(*testing.T, string) { return edit(name, flip(-1)) }},
		{record.FindDamagedBlock, "metaindex", func(name string) func(*testing.T, string) { return edit(name, flipMetaindex) }},
		{record.FindDamagedBlock, "properties", func(name string) func(*testing.T, string) { return edit(name, flipNamed("rocksdb.properties")) }},
	}
	for dst, name := range map[string]string{"nemo": "nemo-basic", "blackwidow": "bw-basic", "ardb+rocksdb": "ardb-rocksdb-basic",
		"ardb+leveldb": "ardb-leveldb-basic", "ssdb": "nemo-basic"} {
		whole := filepath.Join(fastDir(t), "whole")
		args := []string{"convert", "--expired", "keep", "--sample", "3", golden(t, name), dst + ":" + whole} // a third is enough
		if dst == "ssdb" {
			args = append(args, "--allow-loss", "collection-expiry,empty-key,name-length,score-precision,score-range,set")
		}
		ok(t, args...)
		truth := dumped(t, ok(t, "dump", "--expired", "keep", dst+":"+whole))
		table := largestTable(t, whole)
		for _, d := range damages {
			level := strings.HasSuffix(dst, "leveldb") || dst == "ssdb"
			if level && d.what == "properties" {
				continue // tables of LevelDB have no such block
			}
			t.Run(dst+"/"+d.what, func(t *testing.T) {
				src := filepath.Join(fastDir(t), "damaged")
				if err := os.CopyFS(src, os.DirFS(whole)); err != nil {
					t.Fatal(err)
				}
				d.do(table)(t, src)
				unchanged(t, src)
				if level && d.what == "metaindex" {
					testUnneeded(t, dst+":"+src, truth)
					return
				}
				testSalvage(t, dst, src, truth)
				testLostTable(t, dst+":"+src, d.kind, filepath.ToSlash(table))
			})
		}
	}
}

// testUnneeded checks that damage is found and loses no data.
func testUnneeded(t *testing.T, src string, truth map[string][]string) {
	t.Helper()
	for _, look := range []string{"auto", "always"} {
		if got := strings.Join(foundIn(t, src, "--files", look), ", "); got != "warning damaged-block" {
			t.Errorf("verify --files %s: found %q", look, got)
		}
	}
	if got := dumped(t, ok(t, "dump", "--expired", "keep", src)); fmt.Sprint(got) != fmt.Sprint(truth) {
		t.Errorf("%d records of %d", len(got), len(truth))
	}
}

// testLostTable checks the output of commands about a table that cannot be opened.
func testLostTable(t *testing.T, src, kind, table string) {
	t.Helper()
	for _, look := range []string{"auto", "always", "never"} {
		r := kvferry(t, "verify", "--files", look, src)
		if r.code != cli.ExitFindings || skippedLines(r.stdout) != 1 || !strings.Contains(r.stdout, "error "+kind+": ") ||
			strings.Contains(r.stdout, "not all records") || strings.Contains(r.stdout, "-count-mismatch") {
			t.Errorf("verify --files %s: exit %d\n%s%s", look, r.code, r.stdout, r.stderr)
		}
	}
	r := kvferry(t, "explain", src, "no such key")
	if r.code != cli.ExitFindings || !strings.Contains(r.stdout, "error "+kind+": ") || !strings.Contains(r.stdout, table) {
		t.Errorf("explain: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for _, args := range [][]string{{"dump", src}, {"inspect", src}, {"fingerprint", src}, {"diff", src, src}} {
		r := kvferry(t, args...)
		hint := strings.Contains(r.stderr, "--salvage reads past it")
		if r.code != cli.ExitFailed || strings.Count(r.stderr, filepath.Base(table)) != 1 ||
			hint != (args[0] == "dump" || args[0] == "inspect") {
			t.Errorf("%s: exit %d: %s", args[0], r.code, r.stderr)
		}
	}
}

// addRangeTombstone adds a table with a tombstone of [lo, hi) above all other tables of a store.
func addRangeTombstone(t *testing.T, dir, storeDir, lo, hi string) {
	t.Helper()
	path := filepath.Join(dir, storeDir, "000899.sst")
	f, err := vfs.Default.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := sstable.NewWriter(objstorageprovider.NewFileWritable(f), sstable.WriterOptions{TableFormat: sstable.TableFormatRocksDBv2,
		Checksum: sstable.ChecksumTypeCRC32c, MergerName: "nullptr"})
	if err := errors.Join(w.DeleteRange([]byte(lo), []byte(hi)), w.Close()); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	// It is newer than all rows, the last of which has a small sequence number above 0.
	const seq = 1000
	last := binary.AppendUvarint([]byte{tagLastSequence}, seq)
	addEditTo(storeDir, append(last, newTable(0, 899, int(info.Size()), []byte(lo), []byte(hi), seq, seq)...))(t, dir)
}

// TestSalvageRangeTombstones checks that rows deleted by damaged range tombstones reappear, and that every command
// that continues reports it; the others stop.
func TestSalvageRangeTombstones(t *testing.T) {
	dir := buildSmall(t, nemo.New(), smallSet()...)
	truth := dumped(t, ok(t, "dump", "nemo:"+dir))
	addRangeTombstone(t, dir, "kv", "a", "z")
	src := "nemo:" + dir
	if left := dumped(t, ok(t, "dump", src)); len(left) != len(truth)-1 {
		t.Fatalf("%d records of %d beside the tombstone", len(left), len(truth))
	}
	ok(t, "verify", "--files", "always", src)
	edit("kv/000899.sst", flipNamed("rocksdb.range_del2"))(t, dir)
	unchanged(t, dir)
	const said = `the range tombstones of this table are missing, so rows that they deleted reappear: keys from "a" up to "z"; older tables with such keys: 1; rows `
	testLostTable(t, src, record.FindDamagedBlock, "kv/000899.sst")
	r := kvferry(t, "dump", "--salvage", src)
	if got := dumped(t, r.stdout); r.code != cli.ExitFindings || !strings.Contains(r.stderr, said) ||
		fmt.Sprint(got) != fmt.Sprint(truth) {
		t.Errorf("exit %d: %v\n%s", r.code, got, r.stderr)
	}
	dst := filepath.Join(t.TempDir(), "dst")
	args := []string{"convert", src, "blackwidow:" + dst}
	refused(t, record.LossDamaged, args)
	ok(t, append(args, "--allow-loss", record.LossDamaged)...)
	rep := reportOf(t, dst)
	if n, samples := skippedIn(rep); n != 1 || !strings.Contains(samples[0], said) || !rep.Proof.Done {
		t.Errorf("%d, %q", n, samples)
	}
	if got := dumped(t, ok(t, "dump", "blackwidow:"+dst)); fmt.Sprint(got) != fmt.Sprint(truth) {
		t.Errorf("the target has %v", got)
	}
}

// TestSalvageNothing reads a dataset whose databases are found by their rows, which cannot be read: the error must be
// about the damage.
func TestSalvageNothing(t *testing.T) {
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src"), "ardb+leveldb:"+filepath.Join(dir, "dst")
	ok(t, "convert", "--type", "set", golden(t, "nemo-basic"), "ardb+leveldb:"+src)
	if err := os.Remove(filepath.Join(src, largestTable(t, src))); err != nil {
		t.Fatal(err)
	}
	const lost = "missing-file: the MANIFEST lists this file, but it does not exist; its rows are missing: keys from "
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"", cli.ExitLossy, "loss damaged: 1 error in the source (not allowed)\n  (" + lost},
		{"--dry-run", cli.ExitLossy, "loss damaged: 1 error in the source (not allowed)\n  (" + lost},
		{"--resume", cli.ExitLossy, "loss damaged: 1 error in the source (not allowed)\n  (" + lost},
		{"--allow-loss damaged", cli.ExitFailed, "nothing to convert: the source has no databases; some data is unreadable: " + lost},
		{"--db 0", cli.ExitUsage, `no database "0" in the source: there is none; some data is unreadable: ` + lost},
	} {
		r := kvferry(t, append(append([]string{"convert"}, strings.Fields(c.args)...), src, dst)...)
		if r.code != c.code || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%s: exit %d: %s", c.args, r.code, r.stderr)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "dst*")); left != nil {
		t.Errorf("left: %q", left)
	}
}
