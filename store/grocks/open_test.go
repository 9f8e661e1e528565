//go:build rocksdb

package grocks

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/linxGnu/grocksdb"
	"golang.org/x/sys/unix"

	"kvferry/store"
)

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Fatalf("error %q lacks %q", err, p)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	r := random(t)
	ctx := context.Background()
	_, err := Open(ctx, t.TempDir(), &store.Options{})
	if !errors.Is(err, store.ErrNotStore) {
		t.Errorf("an empty directory: %v", err)
	}
	dir := buildFamilies(t, r, []family{{"default", orders[1], randomRows(r, orders[1], 100)}}, 0)
	_, err = Open(ctx, dir, &store.Options{})
	wantError(t, err, dir, `"default"`, `"blackwidow.ListsDataKeyComparator"`)
	_, err = Open(ctx, dir, &store.Options{Comparers: comparers(), Resort: true})
	wantError(t, err, dir, "out of order")
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err = Open(canceled, dir, &store.Options{Comparers: comparers()}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context: %v", err)
	}
	must(t, os.Remove(filepath.Join(dir, "000002.sst")))
	_, err = Open(ctx, dir, &store.Options{Comparers: comparers()})
	wantError(t, err, dir, "000002.", "No such file")
	must(t, os.Truncate(filepath.Join(dir, "MANIFEST-000001"), 0))
	_, err = Open(ctx, dir, &store.Options{Comparers: comparers()})
	wantError(t, err, dir)
}

func TestFiles(t *testing.T) {
	r := random(t)
	rows := randomRows(r, orders[1], 2000)
	dir := buildFamilies(t, r, []family{{"default", orders[0], nil}, {"data_cf", orders[1], rows}}, 1<<14)
	d := openRocks(t, dir, &store.Options{Comparers: comparers()})
	var size int64
	kinds := map[string]int{}
	for _, f := range d.Files() {
		kinds[f.Kind]++
		st, err := os.Stat(filepath.Join(dir, f.Path))
		must(t, err)
		if st.Size() != f.Size {
			t.Errorf("%s: size %d, has %d", f.Path, f.Size, st.Size())
		}
		if f.Kind == "table" {
			size += f.Size
			if f.Keyspace != "data_cf" || f.Level != 6 || f.Entries != -1 {
				t.Errorf("%+v", f)
			}
		}
	}
	if kinds["current"] != 1 || kinds["manifest"] != 1 || kinds["table"] < 3 {
		t.Errorf("files %v", kinds)
	}
	k := d.Keyspaces()[1]
	if k.Size() != size || d.Keyspaces()[0].Size() != 0 {
		t.Errorf("size %d, want %d", k.Size(), size)
	}
	sample, err := k.Sample(10)
	must(t, err)
	var weight int64
	for _, w := range sample {
		weight += w.Bytes
	}
	if weight != size {
		t.Errorf("the sample weighs %d, want %d", weight, size)
	}
	if _, err := k.Entries(nil, nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Entries: %v", err)
	}
	if err := k.Unordered(nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("Unordered: %v", err)
	}
}

// TestDamagedTable: RocksDB's message about a damaged block becomes an error of the iterator.
func TestDamagedTable(t *testing.T) {
	r := random(t)
	rows := randomRows(r, orders[0], 5000)
	dir := buildFamilies(t, r, []family{{"default", orders[0], rows}}, 0)
	path := filepath.Join(dir, "000002.sst")
	data, err := os.ReadFile(path)
	must(t, err)
	data[len(data)/3] ^= 1
	must(t, os.WriteFile(path, data, 0o644))
	d := openRocks(t, dir, &store.Options{})
	it, err := d.spaces[0].Rows(nil, nil)
	must(t, err)
	defer it.Close()
	n := 0
	for err == nil {
		_, _, err = it.Next()
		n++
	}
	if err == io.EOF || n > len(rows) {
		t.Fatalf("%d rows, %v", n, err)
	}
	wantError(t, err, dir, "default", "checksum")
	if _, _, again := it.Next(); again == nil || it.SeekGE([]byte("zzz")) == nil {
		t.Error("the iterator goes on after an error")
	}
}

// TestMerge folds operands on reading, also to no row and with an error.
func TestMerge(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	m := &store.Merger{Name: "test.append", Fold: func(dst, _, base []byte, operands [][]byte) ([]byte, bool, error) {
		dst = append(dst, base...)
		for _, o := range operands {
			switch string(o) {
			case "drop":
				return nil, false, nil
			case "bad":
				return nil, false, errors.New("no good")
			}
			dst = append(append(dst, '+'), o...)
		}
		return dst, true, nil
	}}
	write := func(key string, base string, operands ...string) {
		o := grocksdb.NewDefaultOptions() // not destroyed: see Close
		o.SetCreateIfMissing(true)
		o.SetMergeOperator(&merger{m: m})
		o.SetDisableAutoCompactions(true)
		db, err := grocksdb.OpenDb(o, dir)
		must(t, err)
		defer db.Close()
		wo := grocksdb.NewDefaultWriteOptions()
		defer wo.Destroy()
		must(t, db.Put(wo, []byte(key), []byte(base)))
		for _, op := range operands {
			must(t, db.Merge(wo, []byte(key), []byte(op)))
		}
	}
	write("a", "1", "2", "3")
	write("b", "1", "drop")
	write("c", "", "x")
	want := []row{{"a", "1+2+3"}, {"c", "+x"}}
	before := snapshot(t, dir)
	d := openRocks(t, dir, &store.Options{Merger: m})
	wantRows(t, "merged", scan(t, d.spaces[0], nil, nil), want)
	wantUnchanged(t, dir, before)

	write("d", "1", "bad")
	d = openRocks(t, dir, &store.Options{Merger: m})
	it, err := d.spaces[0].Rows([]byte("d"), nil)
	must(t, err)
	defer it.Close()
	_, _, err = it.Next()
	wantError(t, err, dir, `key "d"`, "no good")
}

// TestWALDir reads a database whose logs were moved away.
func TestWALDir(t *testing.T) {
	dir, logs := filepath.Join(t.TempDir(), "db"), t.TempDir()
	o := grocksdb.NewDefaultOptions()
	defer o.Destroy()
	o.SetCreateIfMissing(true)
	o.SetWalDir(logs)
	db, err := grocksdb.OpenDb(o, dir)
	must(t, err)
	wo := grocksdb.NewDefaultWriteOptions()
	defer wo.Destroy()
	must(t, db.Put(wo, []byte("k"), []byte("v")))
	db.Close()
	before := snapshot(t, dir)
	d := openRocks(t, dir, &store.Options{WALDir: logs})
	wantRows(t, "with --wal-dir", scan(t, d.spaces[0], nil, nil), []row{{"k", "v"}})
	wantUnchanged(t, dir, before)
}

// TestLive runs itself as the process that holds the database.
func TestLive(t *testing.T) {
	if lock := os.Getenv("KVFERRY_HOLD_LOCK"); lock != "" {
		holdLock(t, lock)
		return
	}
	r := random(t)
	dir := buildFamilies(t, r, []family{{"default", orders[0], randomRows(r, orders[0], 10)}}, 0)
	must(t, os.WriteFile(filepath.Join(dir, "LOCK"), nil, 0o644))
	openRocks(t, dir, &store.Options{}) // a LOCK file that no process holds

	holder := exec.Command(os.Args[0], "-test.run=^TestLive$")
	holder.Env = append(os.Environ(), "KVFERRY_HOLD_LOCK="+filepath.Join(dir, "LOCK"))
	in, err := holder.StdinPipe()
	must(t, err)
	out, err := holder.StdoutPipe()
	must(t, err)
	must(t, holder.Start())
	defer holder.Wait()
	defer in.Close()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("%q, %v", line, err)
	}
	_, err = Open(context.Background(), dir, &store.Options{})
	var live *store.LiveError
	if !errors.As(err, &live) || live.PID != holder.Process.Pid {
		t.Fatalf("%v, want one that names process %d", err, holder.Process.Pid)
	}
	openRocks(t, dir, &store.Options{AllowLive: true})
}

// holdLock locks a file as RocksDB does until its standard input ends.
func holdLock(t *testing.T, path string) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	must(t, unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}))
	fmt.Println("held")
	io.Copy(io.Discard, os.Stdin)
}
