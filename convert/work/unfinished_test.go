package work

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"syscall"
	"testing"

	"kvferry/internal/sys/disk"
	"kvferry/record"
)

// TestIsBroken checks that missing, unexpected and damaged files in a work directory count as broken, but not a
// temporary read error or a file elsewhere.
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
		if IsBroken(c.err, dir) != c.want {
			t.Errorf("%v: broken %v", c.err, !c.want)
		}
	}
}

// TestUnfinished checks that the error of an unfinished run gives the cause and the state of its work, and the advice
// for a full disk only once.
func TestUnfinished(t *testing.T) {
	boom := errors.New("boom")
	full := fmt.Errorf("task 7: %w", &fs.PathError{Op: "write", Path: "/t/x", Err: syscall.ENOSPC})
	const advice = "; free some space or use another disk: the target is built next to its final location, and --temp-dir sets the directory for temporary files"
	for _, c := range []struct {
		e     UnfinishedError
		want  string
		again bool
	}{
		{UnfinishedError{Dir: "/d", Err: boom}, "boom", false},
		{UnfinishedError{Dir: "/d", Err: boom, Kept: true}, "boom; the work so far is kept in /d", true},
		{UnfinishedError{Dir: "/d", Err: boom, Stuck: syscall.EBUSY}, "boom; unusable work is left in /d: " + syscall.EBUSY.Error() + "; remove it", false},
		{UnfinishedError{Dir: "/d", Err: &ResumeError{Dir: "/d", Err: boom}, Kept: true}, "/d: cannot be resumed: boom; start over with --discard", false},
		{UnfinishedError{Dir: "/d", Err: full}, "write /t/x: no space left on device" + advice + "; this conversion left no files behind", false},
		{UnfinishedError{Dir: "/d", Err: full, Kept: true}, "write /t/x: no space left on device" + advice + "; the work so far is kept in /d", true},
		{UnfinishedError{Dir: "/d", Err: fmt.Errorf("no room: %w", &FullError{Err: full})}, "no room: write /t/x: no space left on device" + advice + "; this conversion left no files behind", false},
	} {
		if got := c.e.Error(); got != c.want || c.e.CanGoOn() != c.again {
			t.Errorf("%s, want %s; goes on %t", got, c.want, c.e.CanGoOn())
		}
		if !errors.Is(&c.e, boom) && !disk.IsFull(&c.e) {
			t.Errorf("%v has no cause", &c.e)
		}
	}
}

// TestMissing checks that the errors of runs in parts say what is missing, and how to start over.
func TestMissing(t *testing.T) {
	boom := errors.New("boom")
	for want, err := range map[string]error{
		"/t: it is not assembled yet":                            &MissingError{Target: "/t", Assemble: true, Parts: 2},
		"/t: no part of it has run":                              &MissingError{Target: "/t"},
		"/t: 2 of 3 parts are missing":                           &MissingError{Target: "/t", Missing: []int{1, 3}, Parts: 3},
		"/t: 1 of 4 parts of the proof are missing":              &MissingError{Target: "/t", Missing: []int{2}, Parts: 4, Proofs: true},
		"/d: cannot be resumed: boom; start over with --discard": &ResumeError{Dir: "/d", Err: boom},
		"/d: belongs to other parts: boom; to start over, remove it once no part is running, and run all parts again": &ResumeError{Dir: "/d", Parts: true, Err: boom},
	} {
		if got := err.Error(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		var refused *ResumeError
		if errors.As(err, &refused) && !errors.Is(err, boom) {
			t.Errorf("%v has no cause", err)
		}
	}
}
