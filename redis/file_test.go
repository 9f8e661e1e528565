package redis

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/store"
)

// packedForms returns the compressed forms of a file.
func packedForms(t *testing.T, plain []byte) map[string][]byte {
	t.Helper()
	var gz, zs bytes.Buffer
	g := gzip.NewWriter(&gz)
	g.Write(plain)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(&zs)
	if err == nil {
		z.Write(plain)
		err = z.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"plain": plain, "gzip": gz.Bytes(), "zstd": zs.Bytes()}
}

// A file is the same dataset plain and compressed, by its name and on standard input, and is detected in every form.
func TestForms(t *testing.T) {
	dir := t.TempDir()
	src, want := write(t, filepath.Join(dir, "a.rdb"), formatOf(t, "9"), 12, fixtures.Clock)
	src.Close()
	plain, err := os.ReadFile(filepath.Join(dir, "a.rdb"))
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range packedForms(t, plain) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		formattest.CheckEqual(t, sumOfAll(t, openPath(t, path), true), want, false)
		in, err := New().Open(context.Background(), "-",
			&format.OpenOptions{Stdin: bytes.NewReader(b), Options: store.Options{TempDir: dir}})
		if err != nil {
			t.Fatal(err)
		}
		formattest.CheckEqual(t, sumOfAll(t, in, true), want, false)
		in.Close()
		head, err := Head(path)
		if err != nil {
			t.Fatal(err)
		}
		if v := New().Detect(&format.Evidence{Dir: path, Head: head}); v.Score != 100 {
			t.Errorf("%s: detected with %d", name, v.Score)
		}
		cut, err := New().Open(context.Background(), "-",
			&format.OpenOptions{Stdin: bytes.NewReader(b[:len(b)/2]), Options: store.Options{TempDir: dir}})
		if err == nil {
			cut.Close()
			t.Errorf("%s: half a stream is opened", name)
		}
		if err := os.WriteFile(path, b[:len(b)/2], 0o600); err != nil {
			t.Fatal(err)
		}
		var corrupt *record.CorruptError
		if _, err := New().Open(context.Background(), path, &format.OpenOptions{}); !errors.As(err, &corrupt) ||
			corrupt.File != path {
			t.Errorf("%s: half a file: %v", name, err)
		}
	}
	if v := New().Detect(&format.Evidence{Dir: dir}); v.Score != 0 {
		t.Errorf("a directory: %d", v.Score)
	}
	if v := New().Detect(&format.Evidence{Dir: dir, Head: []byte("something else")}); v.Score != 0 || len(v.Why) != 1 {
		t.Errorf("another file: %+v", v)
	}
	for place, part := range map[string]string{dir: "is a directory", filepath.Join(dir, "none"): "no such file", "-": "standard input"} {
		_, err := New().Open(context.Background(), place, &format.OpenOptions{})
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%s: %v", place, err)
		}
	}
}

// Rows are the items of a file, at their offsets; each is described by its type, expiry and elements.
func TestRows(t *testing.T) {
	src, _ := write(t, filepath.Join(t.TempDir(), "a.rdb"), formatOf(t, "9"), 40, fixtures.Clock)
	rows, expiring, elements := 0, 0, int64(0)
	for _, ks := range src.Keyspaces() {
		n := 0
		if err := ks.Keyspace.(interface {
			Unordered(func(*store.Entry) error) error
		}).Unordered(func(e *store.Entry) error {
			n++
			row := src.Describe(ks.DB, ks.Name, e.Key, e.Value)
			if row.Err != nil || row.Type == 0 || !row.Meta || len(row.Fields) < 2 {
				t.Errorf("key %q: %+v", e.Key, row)
			}
			if row.ExpireMS != 0 {
				expiring++
			}
			elements += max(row.Count, 0)
			rows++
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		it, err := ks.Rows(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		key, _, err := it.Next()
		if err != nil {
			t.Fatal(err)
		}
		where := src.Where(ks.DB, bytes.Clone(key))[0]
		one, err := ks.Rows(where.Lo, where.Hi)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := one.Next(); err != nil || !bytes.Equal(got, where.Lo) || one.Place().Off == 0 {
			t.Errorf("key %q: %q at %+v, %v", where.Lo, got, one.Place(), err)
		}
		if _, _, err := one.Next(); err != io.EOF {
			t.Errorf("behind it: %v", err)
		}
		var tally record.Tally
		one.Tally(&tally)
		if tally.Entries != 1 || ks.Size() == 0 || ks.Comparer() == nil {
			t.Errorf("%+v, %d bytes", tally, ks.Size())
		}
	}
	if rows < 60 || expiring == 0 || elements == 0 {
		t.Errorf("%d rows, %d expire, %d elements", rows, expiring, elements)
	}
	if row := src.Describe("0", Keyspace, []byte("k"), []byte{99}); row.Err == nil {
		t.Error("bytes that are no item are described")
	}
	if n, size := src.(format.Filed).Files(); n != 1 || size == 0 || src.Layout() != format.LayoutDB || src.Extra() != nil {
		t.Errorf("%d files, %d bytes, layout %v", n, size, src.Layout())
	}
	if _, err := src.Records(context.Background(), "7", record.AllTypes, format.Span{}, &format.Env{}); err == nil {
		t.Error("a database that is not there is read")
	}
}

// A section that an earlier process finished is adopted unchanged, and rejected if it differs.
func TestAdopt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "t")
	create := func(version string) format.Target {
		dst, err := formatOf(t, version).Create(context.Background(), dir,
			&format.CreateOptions{DBs: []string{"0"}, Now: fixtures.Clock, Reopen: &format.OpenOptions{}})
		if err != nil {
			t.Fatal(err)
		}
		return dst
	}
	first := create("9")
	w, err := first.Shard(0, "0", record.RedisTypes, 0)
	if err == nil {
		err = fixtures.Pump(
			w, fixtures.Records(1, 10, fixtures.Options{Limits: format.Limits{Types: record.Of(record.Hash), EmptyKey: true}}))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	tables, err := first.Tables(0)
	if err != nil || len(tables) != 1 {
		t.Fatal(tables, err)
	}
	if none, err := first.Tables(5); err != nil || none != nil {
		t.Errorf("tables of a section that is not there: %v, %v", none, err)
	}
	if err := create("10").Adopt(0, "0", tables); err == nil {
		t.Error("a section of another version is adopted")
	}
	if err := create("9").Adopt(1, "0", tables); err == nil {
		t.Error("another section is adopted")
	}
	again := create("9")
	if err := again.Adopt(0, "0", tables); err != nil {
		t.Fatal(err)
	}
	src, err := again.Finish(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if n := sumOfAll(t, src, true).Parts()[record.Part{DB: "0", Type: record.Hash}].Records; n == 0 {
		t.Error("nothing was adopted")
	}
	if _, err := New().Create(context.Background(), dir+"2", &format.CreateOptions{DBs: []string{"a"}}); err == nil {
		t.Error("a database that is no number is created")
	}
	gone := filepath.Join(t.TempDir(), "gone")
	dst, err := New().Create(context.Background(), gone, &format.CreateOptions{DBs: []string{"0"}})
	if err != nil {
		t.Fatal(err)
	}
	if w, err = dst.Shard(0, "0", record.RedisTypes, 0); err != nil {
		t.Fatal(err)
	}
	w.Abort()
	dst.Abort()
	if _, err := os.Stat(gone); !os.IsNotExist(err) {
		t.Errorf("left behind: %v", err)
	}
}

// A truncated or damaged compressed file yields its readable part and a finding. A read error is not damage.
func TestPackedDamage(t *testing.T) {
	dir := t.TempDir()
	src, want := write(t, filepath.Join(dir, "a.rdb"), formatOf(t, "9"), 12, fixtures.Clock)
	src.Close()
	plain, err := os.ReadFile(filepath.Join(dir, "a.rdb"))
	if err != nil {
		t.Fatal(err)
	}
	open := func(in io.Reader, salvage bool) (format.Source, []record.Finding, error) {
		var found []record.Finding
		src, err := New().Open(context.Background(), "-",
			&format.OpenOptions{Stdin: in, Options: store.Options{TempDir: dir, Salvage: salvage,
				Report: func(f record.Finding) { found = append(found, f) }}})
		return src, found, err
	}
	for name, b := range packedForms(t, plain) {
		if name == "plain" {
			continue
		}
		damaged := [][]byte{bytes.Clone(b), append(bytes.Clone(b), "rest"...)}
		damaged[0][len(b)/2] ^= 0xff
		for n := len(b) - 1; n > 16; n -= max(1, len(b)/50) {
			damaged = append(damaged, b[:n])
		}
		opened := 0
		for i, b := range damaged {
			if src, _, err := open(bytes.NewReader(b), false); err == nil || !strings.Contains(err.Error(), "-: offset ") {
				t.Errorf("%s, damage %d: without salvage: %v, %v", name, i, src, err)
			}
			src, found, err := open(bytes.NewReader(b), true)
			if err != nil {
				continue // not even the header
			}
			opened++
			if len(found) != 1 || found[0].Kind != record.FindDamagedFile || !strings.HasPrefix(found[0].Detail, "compressed bytes: ") {
				t.Errorf("%s, damage %d: %v", name, i, found)
			}
			sum := sumOfAll(t, src, true)
			if i == 1 {
				formattest.CheckEqual(t, sum, want, false)
			}
			src.Close()
		}
		if opened < 10 {
			t.Errorf("%s: only %d of %d were opened", name, opened, len(damaged))
		}
		if src, _, err := open(io.MultiReader(bytes.NewReader(b[:len(b)/2]), iotest.ErrReader(io.ErrClosedPipe)),
			true); err == nil {
			src.Close()
			t.Errorf("%s: a stream that fails is taken for damage", name)
		}
	}
}

// TestPrepared: opening a file shows how far it is.
func TestPrepared(t *testing.T) {
	var items []string
	for i := range 3 * record.CheckEvery {
		items = append(items, fmt.Sprintf("\x00\x06k%05d\x01v", i))
	}
	b := file("REDIS0009\xfe\x00", items...)
	var at []int64
	copied := func(done, total, _, _ int64) {
		if total != int64(len(b)) || done <= 0 || done > total || len(at) > 0 && done <= at[len(at)-1] {
			t.Errorf("%d of %d after %v", done, total, at)
		}
		at = append(at, done)
	}
	path := filepath.Join(t.TempDir(), "a.rdb")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	src, err := New().Open(context.Background(), path, &format.OpenOptions{Options: store.Options{Copied: copied}})
	if err != nil || len(at) != 3 {
		t.Fatal(at, err)
	}
	if err := src.Close(); err != nil {
		t.Error(err)
	}
}
