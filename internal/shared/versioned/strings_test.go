package versioned_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kvferry/blackwidow"
	"kvferry/floyd"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/kvrocks"
	"kvferry/nemo"
	"kvferry/record"
	"kvferry/store/rocks"
)

// someStrings are strings in order, two of them large, some with an expiry.
func someStrings() (out []record.StringRecord) {
	for i := range 900 {
		s := record.StringRecord{DB: "0", Key: fmt.Appendf(nil, "key:%05d", i), Value: bytes.Repeat([]byte{byte(i)}, i%300)}
		if i%5 == 0 {
			s.ExpireMS = formattest.Now.UnixMilli() + int64(i+1)*1000
		}
		if i == 444 {
			s.Value = bytes.Repeat([]byte("large"), 60<<10)
		}
		if i == 555 { // has a block of its own
			s.Value = bytes.Repeat([]byte("larger"), 200<<10)
		}
		out = append(out, s)
	}
	return out
}

// written returns the files of a target with one shard, filled by write.
func written(t *testing.T, f format.Format, write func(record.Writer) error) (map[string]string, error) {
	dir := t.TempDir()
	dst := formattest.Create(t, f, dir, &format.CreateOptions{Create: rocks.Create, DBs: []string{"0"}, Now: time.Unix(1e9, 0),
		Reopen: &format.OpenOptions{Store: rocks.Open}, TempDir: t.TempDir()})
	group := record.TypeSet(0)
	for _, g := range dst.Groups() {
		if g.Has(record.String) {
			group = g
		}
	}
	w, err := dst.Shard(0, "0", group, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(w); err != nil {
		w.Abort()
		dst.Abort()
		return nil, err
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	src, err := dst.Finish(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	src.Close()
	files := map[string]string{}
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			b, err := os.ReadFile(path)
			files[strings.TrimPrefix(path, dir)] = string(b)
			return err
		}
		return err
	})
	return files, nil
}

// TestWriteStrings writes strings in batches and one by one: the files are the same.
func TestWriteStrings(t *testing.T) {
	for _, f := range []format.Format{nemo.New(), blackwidow.New(), floyd.New(), kvrocks.New()} {
		one, err := written(t, f, func(w record.Writer) error { return record.WriteStrings(w, someStrings()) })
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewSource(1))
		many, err := written(t, f, func(w record.Writer) error {
			for rest := someStrings(); len(rest) > 0; {
				n := min(len(rest), 1+rng.Intn(100))
				if sw, ok := w.(record.StringWriter); !ok {
					return fmt.Errorf("%T takes no strings at once", w)
				} else if err := sw.WriteStrings(rest[:n]); err != nil {
					return err
				}
				rest = rest[n:]
			}
			return nil
		})
		if err != nil || !maps.Equal(one, many) {
			t.Errorf("%s: %d files at once, %d one by one, or others; %v", f.Name(), len(many), len(one), err)
		}
		_, err = written(t, f, func(w record.Writer) error {
			s := someStrings()[:20]
			slices.Reverse(s)
			return w.(record.StringWriter).WriteStrings(s)
		})
		if err == nil || !strings.Contains(err.Error(), `after`) {
			t.Errorf("%s: strings out of order: %v", f.Name(), err)
		}
	}
}
