package convert

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"kvferry/internal/sys/disk"
)

// TestVolumes checks that the target and temporary files share a disk, or use one each.
func TestVolumes(t *testing.T) {
	free := map[string]disk.Space{"/a": {Free: 100, Device: 1}, "/b": {Free: 10, Device: 2}, "/a/tmp": {Free: 100, Device: 1},
		"/full": {Free: 0, Device: 3}, "/just": {Free: 70, Device: 4}}
	defer disk.FakeSpace(func(dir string) (disk.Space, error) {
		s, ok := free[dir]
		if !ok {
			return s, errors.New("unknown")
		}
		return s, nil
	})()
	for _, c := range []struct {
		target, temp string
		want         string
		fits         bool
	}{
		{"/a/dst", "", "[{/a true true 70 100}]", true},
		{"/a/dst", "/a/tmp", "[{/a true true 70 100}]", true},
		{"/a/dst", "/b", "[{/a true false 50 100} {/b false true 20 10}]", false},
		{"/b/dst", "/a", "[{/b true false 50 10} {/a false true 20 100}]", false},
		{"/a/dst", "/full", "[{/a true false 50 100} {/full false true 20 0}]", false},
		{"/full/dst", "/a", "[{/full true false 50 0} {/a false true 20 100}]", false},
		{"/just/dst", "", "[{/just true true 70 70}]", true},
		{"/c/dst", "", "[{/c true true 70 -1}]", true},
	} {
		e := &Estimate{DiskBytes: 50, TempBytes: 20}
		e.volumes(&Options{Target: Output{Path: c.target}, TempDir: c.temp})
		if got := fmt.Sprint(e.Volumes); got != c.want || e.Fits != c.fits {
			t.Errorf("%s, %s: %s, fits %v", c.target, c.temp, got, e.Fits)
		}
		text := (&SpaceError{Estimate: e}).Error()
		if c.fits {
			continue
		}
		other := strings.Contains(text, "another one for temporary files")
		if other != (c.temp == "/b" || c.temp == "/full") ||
			!strings.Contains(text, " has 10 B free") && !strings.Contains(text, " has 0 B free") {
			t.Error(text)
		}
	}
}

// TestNoAdviceForNothing checks that --temp-dir is advised only if temporary files need space.
func TestNoAdviceForNothing(t *testing.T) {
	for temp, want := range map[int64]bool{0: false, 1: true} {
		e := &Estimate{DiskBytes: 500, TempBytes: temp, Volumes: []Volume{{Path: "/a", Temp: true, Needed: 500, Free: 10}}}
		if text := (&SpaceError{Estimate: e}).Error(); strings.Contains(text, "--temp-dir") != want {
			t.Errorf("%d bytes of temporary files: %s", temp, text)
		}
	}
}

// TestSpaceOfASample checks the error for disks without room for a sample, and what volumes are said to be for.
func TestSpaceOfASample(t *testing.T) {
	full := &fs.PathError{Op: "write", Path: "/t/x", Err: syscall.ENOSPC}
	err := &SpaceError{Err: full}
	wanted := "not enough space: not even a sample fits: write /t/x: no space left on device; --force-space starts anyway"
	if err.Error() != wanted || !disk.IsFull(err) {
		t.Errorf("%v, want %s", err, wanted)
	}
	for want, v := range map[string]Volume{"the target": {Target: true}, "temporary files": {Temp: true},
		"the target and temporary files": {Target: true, Temp: true}} {
		if got := v.Use(); got != want {
			t.Errorf("%+v: %s", v, got)
		}
	}
}
