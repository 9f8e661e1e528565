package convert

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"kvferry/convert/work"
	"kvferry/internal/sys/disk"
	"kvferry/internal/testkit/fake"
)

// files lists the files below a directory of a bench.
func (b *bench) files(dir string) (out []string) {
	b.t.Helper()
	list, err := work.List(filepath.Join(b.dir, dir))
	if err != nil || len(list) == 0 {
		b.t.Fatal(list, err)
	}
	for _, f := range list {
		out = append(out, f.Path)
	}
	return out
}

// TestProofReadsTheDisk checks that every file of a target is durable and dropped from memory before the proof reads it,
// and that the report says where that failed.
func TestProofReadsTheDisk(t *testing.T) {
	for _, refused := range []bool{false, true} {
		b := newBench(t, fake.Dataset(1))
		b.write("src/info", []byte("3s\n"))
		b.from.Wrap = func(s *fake.Source) { s.Files = []string{"info"} }
		var mu sync.Mutex
		var synced, dropped []string
		b.t.Cleanup(disk.Inject(func(op, path string) error {
			rel, err := filepath.Rel(filepath.Join(b.dir, "dst.kvferry", "data"), path)
			if err != nil || strings.HasPrefix(rel, "..") {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			switch {
			case op == "sync":
				synced = append(synced, rel)
			case op == "drop":
				dropped = append(dropped, rel)
				if !slices.Contains(synced, rel) {
					t.Errorf("%s is dropped before it is durable", rel)
				}
				if refused {
					return syscall.ENOSYS
				}
			}
			return nil
		}))
		rep := b.run()
		slices.Sort(dropped)
		if want := b.files("dst"); len(want) < 2 || !slices.Equal(dropped, want) {
			t.Errorf("dropped %q of %q", dropped, want)
		}
		if got := rep.Proof.Cached; (got != "") != refused || refused && !strings.Contains(got, syscall.ENOSYS.Error()) {
			t.Errorf("refused %t: the report says %q", refused, got)
		}
	}
}

// TestChangedBehindTheProof checks that a file of the target that is written to between proof and publication is noticed
// by its ctime, although size and modification time are as before.
func TestChangedBehindTheProof(t *testing.T) {
	for _, resumed := range []bool{false, true} {
		b := newBench(t, fake.Dataset(1))
		if resumed {
			b.killed("proved")
			b.o.Resume = true
		}
		b.o.crash = func(step string) {
			if step != "noted" {
				return
			}
			path := filepath.Join(b.dir, "dst.kvferry", "data", b.files("dst.kvferry/data")[0])
			st, err := os.Stat(path)
			var data []byte
			if err == nil {
				data, err = os.ReadFile(path)
			}
			if err == nil {
				data[len(data)/2] ^= 1
				err = os.WriteFile(path, data, 0o644)
			}
			if err = errors.Join(err, os.Chtimes(path, st.ModTime(), st.ModTime())); err != nil {
				t.Error(err)
			}
		}
		_, err := Run(context.Background(), &b.o)
		if err == nil || !strings.Contains(err.Error(), "was written to, or its attributes were changed") {
			t.Errorf("resumed %t: %v", resumed, err)
		}
		if _, err := os.Stat(filepath.Join(b.dir, "dst")); !os.IsNotExist(err) {
			t.Errorf("resumed %t: published, %v", resumed, err)
		}
	}
}
