package convert

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"kvferry/internal/sys/disk"
	"kvferry/internal/testkit/fake"
)

// TestEveryCallFails makes each system call of a conversion fail in turn, once or permanently. Either the target is
// complete, with its report, or it does not exist. The source is unchanged, and the error describes the result
// correctly.
func TestEveryCallFails(t *testing.T) {
	whole := newBench(t, fake.Dataset(1))
	whole.o.Workers = 1
	whole.run()
	tree := whole.tree()
	faults := 0
	for _, fault := range []error{syscall.EIO, syscall.ENOSPC} {
		for _, stays := range []bool{false, true} {
			for n := int64(1); ; n++ {
				done := failAt(t, n, fault, stays, tree)
				if done {
					break
				}
				faults++
				if testing.Short() {
					n += 6
				}
			}
		}
	}
	t.Logf("%d faults", faults)
}

// failAt converts while call number n fails, and reports whether the conversion makes fewer calls.
func failAt(t *testing.T, n int64, fault error, stays bool, tree string) bool {
	t.Helper()
	b := newBench(t, fake.Dataset(1))
	b.o.Workers = 1
	var calls atomic.Int64
	var what string
	restore := disk.Inject(func(op, path string) error {
		if !strings.HasPrefix(path, b.dir) {
			return nil
		}
		if at := calls.Add(1); at == n || stays && at > n {
			if at == n {
				what = fmt.Sprintf("%s %s", op, strings.TrimPrefix(path, b.dir))
			}
			return fault
		}
		return nil
	})
	rep, err := Run(context.Background(), &b.o)
	restore()
	name := fmt.Sprintf("call %d (%s) %v, stays %t", n, what, fault, stays)
	_, missing := os.Stat(b.o.Target.Path)
	published := missing == nil
	var after *PublishedError
	switch {
	case err == nil && !published, errors.As(err, &after) && !published:
		t.Errorf("%s: no target: %v", name, err)
	case err != nil && published && after == nil:
		t.Errorf("%s: the target is there: %v", name, err)
	case err != nil && published && strings.Contains(err.Error(), "left no files behind"):
		t.Errorf("%s: says %v", name, err)
	}
	if published {
		if b.tree() != tree {
			t.Errorf("%s: another target", name)
		}
		read, err := ReadReport(ReportPath(b.o.Target.Path))
		if err != nil || read.Records() != 60 || rep == nil && after == nil {
			t.Errorf("%s: the report: %v", name, err)
		}
	} else if _, err := os.Lstat(ReportPath(b.o.Target.Path)); err == nil && !stays {
		t.Errorf("%s: a report without a target", name)
	}
	if left, err := filepath.Glob(filepath.Join(b.dir, "src", "*")); err != nil || len(left) != 2 {
		t.Errorf("%s: the source has %q", name, left)
	}
	return calls.Load() < n
}
