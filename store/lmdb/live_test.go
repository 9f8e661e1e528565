//go:build unix

package lmdb

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"kvferry/store"
)

// TestHoldLock is the other process of TestLive: it locks a file as LMDB does and waits.
func TestHoldLock(t *testing.T) {
	path := os.Getenv("KVFERRY_TEST_LOCK")
	if path == "" {
		t.Skip("run by TestLive")
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_RDLCK, Len: 1}); err != nil {
		t.Fatal(err)
	}
	os.Stdout.WriteString("held\n")
	io.Copy(io.Discard, os.Stdin)
}

func TestLive(t *testing.T) {
	dir := writeImage(t, smallImage())
	cmd := exec.Command(os.Args[0], "-test.run=TestHoldLock")
	cmd.Env = append(os.Environ(), "KVFERRY_TEST_LOCK="+filepath.Join(dir, lockFile))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 5)
	if _, err := io.ReadFull(out, buf); err != nil {
		t.Fatal(err)
	}
	var live *store.LiveError
	if _, err := Open(context.Background(), dir, nil); !errors.As(err, &live) || live.PID != cmd.Process.Pid {
		t.Errorf("held by %d: %v", cmd.Process.Pid, err)
	}
	if _, err := Open(context.Background(), dir, &store.Options{AllowLive: true}); err == nil || !strings.Contains(err.Error(), "mdb_copy") {
		t.Errorf("with --allow-live: %v", err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	openTest(t, dir, nil)
}

// TestLockUnreadable: if the lock cannot be queried, its holder is unknown; the user may accept this risk.
func TestLockUnreadable(t *testing.T) {
	dir := writeImage(t, smallImage())
	if err := os.Symlink(lockFile, filepath.Join(dir, lockFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), dir, nil); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("error %v, want that of the lock file", err)
	}
	openTest(t, dir, &store.Options{AllowLive: true})
}
