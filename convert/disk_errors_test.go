package convert

import (
	"context"
	"errors"
	"os"
	"runtime"
	"syscall"
	"testing"

	"kvferry/internal/testkit/fake"
)

func TestParentNotWritable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write anywhere")
	}
	b := newBench(t, fake.Dataset(1))
	if err := os.Chmod(b.dir, 0o555); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(b.dir, 0o755)
	b.fails("permission denied")
}

func TestReadOnlyParent(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("/proc cannot be written to on Linux")
	}
	b := newBench(t, fake.Dataset(1))
	b.o.Target.Path = "/proc/dst"
	if _, err := Run(context.Background(), &b.o); err == nil || errors.Is(err, os.ErrExist) {
		t.Errorf("got %v", err)
	}
	b.leaves("src")
}

func TestErrorsAreKept(t *testing.T) {
	if err := closingBoth(errors.New("first"), syscall.ENOSPC); !errors.Is(err, syscall.ENOSPC) || err.Error() != "first\nno space left on device" {
		t.Errorf("%v", err)
	}
}

func closingBoth(first, second error) (err error) {
	defer closing(&err, func() error { return second })
	return first
}
