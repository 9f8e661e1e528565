package build_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"kvferry/internal/sys/disk"
	"kvferry/store"
	"kvferry/store/rocks/build"
)

// newBuilder starts a database in a directory that the test removes.
func newBuilder(t *testing.T, o store.BuildOptions) (store.Builder, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "db")
	b, err := build.Create(dir, o)
	must(t, err)
	return b, dir
}

// wantError checks that an error contains all of the given texts.
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

// readTree reads a directory, name by name.
func readTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	entries, err := os.ReadDir(dir)
	must(t, err)
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		must(t, err)
		out[e.Name()] = string(data)
	}
	return out
}

func wantSameTree(t *testing.T, a, b map[string]string) {
	t.Helper()
	for name := range a {
		if a[name] != b[name] {
			t.Errorf("%s differs", name)
		}
	}
	if len(a) != len(b) {
		t.Errorf("%d files and %d", len(a), len(b))
	}
}

// TestBuildIsDeterministic writes the same runs in order by one goroutine and shuffled by eight.
func TestBuildIsDeterministic(t *testing.T) {
	rows := testRows(rand.New(rand.NewSource(3)), 8000, store.Bytewise)
	build := func(workers int, order []int) map[string]string {
		b, dir := newBuilder(t, store.BuildOptions{TableSize: 10_000, Buffer: 1 << 10 * workers})
		must(t, b.Keyspace("data_cf", store.Bytewise))
		jobs := make(chan int)
		var wg sync.WaitGroup
		for range workers {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for i := range jobs {
					for _, cf := range []string{"data_cf", "default"} {
						r, err := b.Run(cf, i/4, uint64(i%4))
						if err != nil {
							t.Error(err)
							return
						}
						for _, row := range rows[i*500 : i*500+500] {
							if err := r.Append(row.key, row.value); err != nil {
								t.Error(err)
							}
						}
						if err := r.Close(); err != nil {
							t.Error(err)
						}
					}
				}
			}()
		}
		for _, i := range order {
			jobs <- i
		}
		close(jobs)
		wg.Wait()
		must(t, b.Finish())
		return readTree(t, dir)
	}
	inOrder := make([]int, 16)
	for i := range inOrder {
		inOrder[i] = i
	}
	want := build(1, inOrder)
	if len(want) < 40 {
		t.Fatalf("only %d files", len(want))
	}
	wantSameTree(t, want, build(8, rand.New(rand.NewSource(4)).Perm(16)))
}

func TestAppendOutOfOrder(t *testing.T) {
	nearlyEqual := store.Comparer{Name: "test.FirstByte", Compare: func(a, b []byte) int { return bytes.Compare(a[:1], b[:1]) }}
	for _, tc := range []struct {
		name      string
		cmp       store.Comparer
		tableSize int64
		keys      []string
	}{
		{"descending", store.Bytewise, 0, []string{"b", "a"}},
		{"equal", store.Bytewise, 0, []string{"a", "a"}},
		{"ascending under a reversed comparer", reversed, 0, []string{"a", "b"}},
		{"equal to the comparer alone", nearlyEqual, 0, []string{"a1", "a2"}},
		{"across tables", store.Bytewise, 1, []string{"b", strings.Repeat("c", 5000), "d", "c"}},
		{"equal across tables", store.Bytewise, 1, []string{"b", strings.Repeat("c", 5000), "d", "d"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, dir := newBuilder(t, store.BuildOptions{TableSize: tc.tableSize})
			must(t, b.Keyspace("cf", tc.cmp))
			r, err := b.Run("cf", 0, 0)
			must(t, err)
			last := len(tc.keys) - 1
			for _, k := range tc.keys[:last] {
				must(t, r.Append([]byte(k), bytes.Repeat([]byte{'v'}, 5000)))
			}
			err = r.Append([]byte(tc.keys[last]), nil)
			wantError(t, err, fmt.Sprintf("%q", tc.keys[last]), fmt.Sprintf("%q", tc.keys[last-1]), tc.cmp.Name, dir)
			if again := r.Append([]byte("zzz"), nil); again == nil {
				t.Error("a run goes on after an error")
			}
			if err := r.Close(); err == nil {
				t.Error("a broken run closes")
			}
			r.Abort()
			b.Abort()
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("after Abort: %v", err)
			}
		})
	}
}

func TestFinishRefusesOverlap(t *testing.T) {
	rows := func(keys ...string) (out []testRow) {
		for _, k := range keys {
			out = append(out, testRow{key: []byte(k)})
		}
		return out
	}
	for _, tc := range []struct {
		name    string
		a, b    []testRow
		overlap bool
	}{
		{"apart", rows("a", "b"), rows("c", "d"), false},
		{"touching", rows("a", "b"), rows("b", "c"), true},
		{"nested", rows("a", "d"), rows("b", "c"), true},
		{"same start", rows("a", "b"), rows("a", "c"), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b, dir := newBuilder(t, store.BuildOptions{})
			must(t, b.Keyspace("other", store.Bytewise))
			writeRun(t, b, "other", 0, 0, tc.a)
			writeRun(t, b, "default", 1, 7, tc.b)
			writeRun(t, b, "default", 0, 5, tc.a)
			err := b.Finish()
			if !tc.overlap {
				must(t, err)
				return
			}
			wantError(t, err, dir, fmt.Sprintf("%q", tc.a[1].key), fmt.Sprintf("%q", tc.b[0].key), "lane 0x5", "lane 0x7")
			if _, err := os.Stat(filepath.Join(dir, "CURRENT")); err == nil {
				t.Error("CURRENT exists")
			}
		})
	}
}

// TestAdopt stops a build halfway, as a killed process does, and finishes it with a new Builder.
func TestAdopt(t *testing.T) {
	rows := testRows(rand.New(rand.NewSource(5)), 4000, store.Bytewise)
	opts := store.BuildOptions{TableSize: 20_000, Sync: true}
	straight, want := newBuilder(t, opts)
	writeRun(t, straight, "default", 0, 0, rows[:2000])
	writeRun(t, straight, "default", 1, 0, rows[2000:])
	must(t, straight.Finish())

	killed, dir := newBuilder(t, opts)
	writeRun(t, killed, "default", 0, 0, rows[:2000])
	half, err := killed.Run("default", 1, 0)
	must(t, err)
	for _, row := range rows[2000:3999] {
		must(t, half.Append(row.key, row.value))
	}
	journal := tablesOf(t, killed, 0)
	if len(journal) < 3 || len(tablesOf(t, killed, 1)) != 0 {
		t.Fatalf("%d tables of shard 0, %d of shard 1, whose run is open", len(journal), len(tablesOf(t, killed, 1)))
	}

	resumed, err := build.Create(dir, opts)
	must(t, err)
	must(t, resumed.Adopt(journal))
	if got := tablesOf(t, resumed, 0); len(got) != len(journal) {
		t.Fatalf("%d tables of the adopted shard, want %d", len(got), len(journal))
	}
	writeRun(t, resumed, "default", 1, 0, rows[2000:])
	must(t, resumed.Finish())
	wantSameTree(t, readTree(t, want), readTree(t, dir))
}

// TestRunBesideAdopted starts a run that has the name of an adopted one.
func TestRunBesideAdopted(t *testing.T) {
	b, dir := newBuilder(t, store.BuildOptions{})
	writeRun(t, b, "default", 0, 0, []testRow{{key: []byte("a")}})
	resumed, err := build.Create(dir, store.BuildOptions{})
	must(t, err)
	must(t, resumed.Adopt(tablesOf(t, b, 0)))
	writeRun(t, resumed, "default", 0, 0, []testRow{{key: []byte("b")}})
	must(t, resumed.Finish())
	rows := []testRow{{key: []byte("a")}, {key: []byte("b")}}
	checkFamily(t, dir, parseDB(t, dir, ".sst").families[0], store.Bytewise, rows, false)
}

// TestFinishMissesATable removes a table behind the builder's back.
func TestFinishMissesATable(t *testing.T) {
	b, dir := newBuilder(t, store.BuildOptions{})
	writeRun(t, b, "default", 0, 0, []testRow{{key: []byte("a")}})
	gone := filepath.Join(dir, tablesOf(t, b, 0)[0].File)
	must(t, os.Remove(gone))
	wantError(t, b.Finish(), gone)
	b.Abort()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after Abort: %v", err)
	}
}

func TestAdoptRefuses(t *testing.T) {
	b, dir := newBuilder(t, store.BuildOptions{})
	writeRun(t, b, "default", 0, 0, []testRow{{key: []byte("a")}})
	good := tablesOf(t, b, 0)[0]
	for _, tc := range []struct {
		name string
		edit func(*store.Table)
		want string
	}{
		{"missing", func(t *store.Table) { t.File = "run-0-000009-0000000000000000-000000.tmp" }, "no such file"},
		{"another size", func(t *store.Table) { t.Bytes++ }, "in the journal"},
		{"outside", func(t *store.Table) { t.File = "run-/../../x.tmp" }, "not the name"},
		{"other file", func(t *store.Table) { t.File = "CURRENT" }, "not the name"},
		{"unknown family", func(t *store.Table) { t.Keyspace = "nope" }, `"nope"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			resumed, err := build.Create(dir, store.BuildOptions{})
			must(t, err)
			bad := good
			tc.edit(&bad)
			wantError(t, resumed.Adopt([]store.Table{bad}), tc.want)
		})
	}
}

func TestAbortLeavesNothing(t *testing.T) {
	before := runtime.NumGoroutine()
	parent := t.TempDir()
	dir := filepath.Join(parent, "db")
	b, err := build.Create(dir, store.BuildOptions{TableSize: 1000})
	must(t, err)
	rows := testRows(rand.New(rand.NewSource(6)), 500, store.Bytewise)
	writeRun(t, b, "default", 0, 0, rows[:100])
	for lane := range uint64(5) {
		r, err := b.Run("default", 1, lane)
		must(t, err)
		for _, row := range rows[100:] {
			must(t, r.Append(row.key, row.value))
		}
	}
	b.Abort()
	if left, _ := os.ReadDir(parent); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	wantGoroutines(t, before)
	if _, err := b.Run("default", 9, 9); err == nil {
		t.Error("a run starts after Abort")
	}
}

// TestFinishFails: whichever write, sync or close of a file fails while a database is finished, the error is returned.
func TestFinishFails(t *testing.T) {
	failed := map[string]int{}
	for n := 0; ; n++ {
		b, _ := newBuilder(t, store.BuildOptions{})
		writeRun(t, b, "default", 0, 0, []testRow{{key: []byte("a")}})
		calls, refused := 0, ""
		restore := disk.Inject(func(op, _ string) error {
			if op != "write" && op != "sync" && op != "close" {
				return nil
			}
			if calls++; calls == n+1 {
				refused = op
				return syscall.ENOSPC
			}
			return nil
		})
		err := b.Finish()
		restore()
		if refused == "" {
			must(t, err)
			break
		}
		failed[refused]++
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("call %d, %s: error %v", n, refused, err)
		}
	}
	if failed["write"] < 2 || failed["sync"] < 2 || failed["close"] < 2 {
		t.Errorf("calls that failed: %v", failed)
	}
}

// TestTablesOfShard: the tables of a shard come from all its runs, in any order of closing.
func TestTablesOfShard(t *testing.T) {
	b, _ := newBuilder(t, store.BuildOptions{})
	for i, shard := range []int{0, 1, 0, 2, 1, 1} {
		writeRun(t, b, "default", shard, uint64(i), []testRow{{key: []byte{byte(i)}}})
	}
	for shard, want := range []string{"02", "145", "3", ""} {
		got := ""
		for _, tab := range tablesOf(t, b, shard) {
			got += fmt.Sprint(tab.Lane)
		}
		if got != want {
			t.Errorf("shard %d: tables of lanes %s, want %s", shard, got, want)
		}
	}
	must(t, b.Finish())
}

// TestStaleTableStays: a file that cannot be removed is an error of the build.
func TestStaleTableStays(t *testing.T) {
	b, dir := newBuilder(t, store.BuildOptions{})
	writeRun(t, b, "default", 0, 0, []testRow{{key: []byte("a")}})
	stale := filepath.Join(dir, "run-9.tmp")
	if err := os.WriteFile(stale, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	restore := disk.Inject(func(op, path string) error {
		if path == stale && op == "remove" {
			return syscall.EPERM
		}
		return nil
	})
	err := b.Finish()
	restore()
	if !errors.Is(err, syscall.EPERM) {
		t.Errorf("error %v", err)
	}
}

// wantGoroutines waits until the table writers' goroutines have ended.
func wantGoroutines(t *testing.T, n int) {
	t.Helper()
	for range 100 {
		if runtime.NumGoroutine() <= n {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d goroutines, were %d", runtime.NumGoroutine(), n)
}

func TestAbortKeepsADirectoryOfOthers(t *testing.T) {
	dir := t.TempDir()
	b, err := build.Create(dir, store.BuildOptions{})
	must(t, err)
	writeRun(t, b, "default", 0, 0, []testRow{{key: []byte("a")}})
	b.Abort()
	if left := readTree(t, dir); len(left) != 0 {
		t.Errorf("left behind: %d files", len(left))
	}
}

func TestRunAbort(t *testing.T) {
	b, dir := newBuilder(t, store.BuildOptions{TableSize: 1000})
	rows := testRows(rand.New(rand.NewSource(7)), 500, store.Bytewise)
	r, err := b.Run("default", 0, 0)
	must(t, err)
	for _, row := range rows {
		must(t, r.Append(row.key, row.value))
	}
	if err := b.Finish(); err == nil {
		t.Fatal("Finish with an open run")
	}
	r.Abort()
	r.Abort()
	if left := readTree(t, dir); len(left) != 0 {
		t.Errorf("%d tables are left of an aborted run", len(left))
	}
	if err := r.Append([]byte("x"), nil); err == nil {
		t.Error("an aborted run takes rows")
	}
	writeRun(t, b, "default", 0, 0, rows)
	must(t, b.Finish())
	r.Abort() // no effect on a run that ended
	if db := parseDB(t, dir, ".sst"); len(db.families[0].files) < 3 {
		t.Errorf("%d tables", len(db.families[0].files))
	}
}

// TestFullDisk sends a table to /dev/full.
func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("no /dev/full here")
	}
	for _, size := range []int{1, 100, 100_000} { // noticed at Close, while writing, with one row
		dir := filepath.Join(t.TempDir(), "db")
		must(t, os.Mkdir(dir, 0o755))
		name := "run-0-000000-0000000000000000-000000.tmp"
		must(t, os.Symlink("/dev/full", filepath.Join(dir, name)))
		b, err := build.Create(dir, store.BuildOptions{Buffer: 4096})
		must(t, err)
		r, err := b.Run("default", 0, 0)
		must(t, err)
		for i := 0; i < 100 && err == nil; i++ {
			err = r.Append(fmt.Appendf(nil, "%03d", i), bytes.Repeat([]byte{byte(i)}, size))
		}
		if err == nil {
			err = r.Close()
		}
		wantError(t, err, filepath.Join(dir, name), "no space left on device")
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%v is not ENOSPC", err)
		}
		b.Abort()
		if left := readTree(t, dir); len(left) != 0 {
			t.Errorf("left behind: %d files", len(left))
		}
	}
}

// tablesOf returns the tables of a shard.
func tablesOf(t *testing.T, b store.Builder, shard int) []store.Table {
	t.Helper()
	tables, err := b.Tables(shard)
	must(t, err)
	return tables
}

// TestSyncFails writes a table where the kernel takes bytes but cannot make them durable.
func TestSyncFails(t *testing.T) {
	if f, err := os.Create(os.DevNull); err != nil || f.Sync() == nil {
		t.Skip("no device here that refuses to sync")
	}
	dir := filepath.Join(t.TempDir(), "db")
	must(t, os.Mkdir(dir, 0o755))
	name := "run-0-000000-0000000000000000-000000.tmp"
	must(t, os.Symlink(os.DevNull, filepath.Join(dir, name)))
	b, err := build.Create(dir, store.BuildOptions{Sync: true})
	must(t, err)
	writeRun(t, b, "default", 0, 0, []testRow{{key: []byte("a")}})
	writeRun(t, b, "default", 0, 1, []testRow{{key: []byte("b")}})
	if got, err := b.Tables(0); err == nil || !strings.Contains(err.Error(), name) {
		t.Errorf("the journal gets %+v: %v", got, err)
	}
	wantError(t, b.Finish(), filepath.Join(dir, name), "sync")
	b.Abort()
}

func TestCreateRefuses(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "CURRENT"), nil, 0o644))
	_, err := build.Create(dir, store.BuildOptions{})
	wantError(t, err, dir, "not empty", "CURRENT")
	_, err = build.Create(filepath.Join(dir, "CURRENT", "db"), store.BuildOptions{})
	wantError(t, err, "not a directory")
	_, err = build.Create(filepath.Join(dir, "CURRENT"), store.BuildOptions{})
	wantError(t, err, "CURRENT")
}

func TestKeyspaceRefuses(t *testing.T) {
	b, _ := newBuilder(t, store.BuildOptions{})
	must(t, b.Keyspace("cf", store.Bytewise))
	wantError(t, b.Keyspace("cf", store.Bytewise), "twice")
	wantError(t, b.Keyspace("x", store.Comparer{Name: "y"}), "no compare function")
	_, err := b.Run("nope", 0, 0)
	wantError(t, err, `"nope"`)
	must(t, b.Finish())
	wantError(t, b.Finish(), "already finished")
	_, err = b.Run("cf", 0, 0)
	wantError(t, err, "already finished")

	l, err := build.CreateLevelDB(filepath.Join(t.TempDir(), "l"), store.BuildOptions{})
	must(t, err)
	wantError(t, l.Keyspace("cf", store.Bytewise), "LevelDB")
}

// TestLargeRows writes rows far beyond blocks and buffers.
func TestLargeRows(t *testing.T) {
	rnd := rand.New(rand.NewSource(8))
	noise := make([]byte, 20<<20)
	rnd.Read(noise)
	rows := []testRow{
		{[]byte{}, noise[:1]},
		{[]byte("a"), noise},
		{append([]byte("b"), noise[:3<<20]...), nil},
		{append([]byte("b"), noise[:3<<20+1]...), bytes.Repeat([]byte("z"), 5<<20)},
		{[]byte("c"), nil},
	}
	b, dir := newBuilder(t, store.BuildOptions{TableSize: 1 << 20})
	writeRun(t, b, "default", 0, 0, rows)
	must(t, b.Finish())
	checkFamily(t, dir, parseDB(t, dir, ".sst").families[0], store.Bytewise, rows, false)
}

func TestRowTooLarge(t *testing.T) {
	b, dir := newBuilder(t, store.BuildOptions{})
	defer b.Abort()
	r, err := b.Run("default", 0, 0)
	must(t, err)
	wantError(t, r.Append([]byte("k"), make([]byte, 1<<30)), dir, `"k"`, "1,073,741,825 bytes")
}

// TestAppendAllocates checks that the hot path does not allocate per row; blocks and tables may allocate.
func TestAppendAllocates(t *testing.T) {
	b, _ := newBuilder(t, store.BuildOptions{TableSize: 1 << 30})
	defer b.Abort()
	r, err := b.Run("default", 0, 0)
	must(t, err)
	key, value := make([]byte, 28), make([]byte, 100)
	i := 0
	got := testing.AllocsPerRun(200_000, func() {
		i++
		key[24], key[25], key[26], key[27] = byte(i>>24), byte(i>>16), byte(i>>8), byte(i)
		if err := r.Append(key, value); err != nil {
			t.Fatal(err)
		}
	})
	if got > 0 {
		t.Errorf("%v allocations a row", got)
	}
}
