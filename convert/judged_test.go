package convert

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"

	"kvferry/record"
)

// TestIsBroken: of what lies in a work directory missing, odd and damaged files are not as an earlier process left them; a file
// that cannot be read now, or one elsewhere, says nothing.
func TestIsBroken(t *testing.T) {
	dir := filepath.Join("work", "dir")
	in, out := filepath.Join(dir, "a", "000001.sst"), filepath.Join("work", "dir2", "000001.sst")
	at := func(path string, err error) error {
		return fmt.Errorf("opening: %w", &fs.PathError{Op: "open", Path: path, Err: err})
	}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{at(in, fs.ErrNotExist), true}, {at(in, syscall.ENOENT), true}, {at(in, fs.ErrExist), true}, {at(in, syscall.ENOTDIR), true}, {at(in, syscall.EISDIR), true},
		{at(in, syscall.EACCES), false}, {at(in, syscall.EIO), false}, {at(out, fs.ErrNotExist), false}, {at(dir, fs.ErrNotExist), false},
		{fmt.Errorf("reading: %w", &record.CorruptError{File: in, Err: record.ErrShort}), true}, {&record.CorruptError{File: out, Err: record.ErrShort}, false},
		{errors.New("another"), false}, {nil, false},
	} {
		if isBroken(c.err, dir) != c.want {
			t.Errorf("%v: broken %v", c.err, !c.want)
		}
	}
}

// TestIsPath: standard input and addresses are no paths, unless there is such a file.
func TestIsPath(t *testing.T) {
	t.Chdir(t.TempDir())
	for source, want := range map[string]bool{"-": false, "redis://host": false, "/data": true, "data": true, "dir:/x": true} {
		if isPath(source) != want {
			t.Errorf("%s is a path: %v", source, !want)
		}
	}
}

// TestAtOnce: as many tasks as there are workers run at once, at worst the largest.
func TestAtOnce(t *testing.T) {
	tasks := []*Task{{N: 0, Bytes: 1}, {N: 1, Bytes: 5}, {N: 2, Bytes: 4}, {N: 3, Bytes: 2}}
	for workers, want := range map[int]float64{1: 5, 2: 9, 3: 11, 4: 12, 9: 12} {
		if got := atOnce(tasks, workers); got != want {
			t.Errorf("%d workers: %v bytes, want %v", workers, got, want)
		}
	}
}

// TestSampleBudget: what the user says goes before what is usual, bytes before a part, and a part is never too little to tell.
func TestSampleBudget(t *testing.T) {
	const all = 1 << 40
	for _, c := range []struct {
		o    Options
		want int64
	}{
		{Options{}, fullBudget(all)}, {Options{Estimate: true}, quickBudget(all)}, {Options{SampleEvery: 1}, all}, {Options{SampleEvery: 16, Estimate: true}, all / 16},
		{Options{SampleEvery: all}, leastBudget}, {Options{SampleBytes: 1}, 1}, {Options{SampleBytes: 9, SampleEvery: 2, Estimate: true}, 9},
	} {
		if got := c.o.sampleBudget(all); got != c.want {
			t.Errorf("%d, every %d, estimate %v: %d, want %d", c.o.SampleBytes, c.o.SampleEvery, c.o.Estimate, got, c.want)
		}
	}
	if fullBudget(all) == quickBudget(all) {
		t.Error("a quick estimate takes as much")
	}
}
