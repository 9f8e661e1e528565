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
	"kvferry/store/rocks/build"
)

// someStrings are strings in order, two of them large, some with an expiry.
func someStrings() (out record.Batch) {
	for i := range 900 {
		s := record.Record{Header: record.Header{DB: "0", Type: record.String, Key: fmt.Appendf(nil, "key:%05d", i), Len: 1},
			First: i, N: 1, Class: record.Copied}
		value := bytes.Repeat([]byte{byte(i)}, i%300)
		if i%5 == 0 {
			s.ExpireMS = formattest.Now.UnixMilli() + int64(i+1)*1000
		}
		if i == 444 {
			value = bytes.Repeat([]byte("large"), 60<<10)
		}
		if i == 555 { // has a block of its own
			value = bytes.Repeat([]byte("larger"), 200<<10)
		}
		out.Records, out.Elems = append(out.Records, s), append(out.Elems, record.Element{Value: value})
	}
	return out
}

// written returns the files of a target with one shard, filled by write.
func written(t *testing.T, f format.Format, write func(record.Writer) error) (map[string]string, error) {
	dir := t.TempDir()
	dst := formattest.Create(t, f, dir, &format.CreateOptions{Create: build.Create, DBs: []string{"0"}, Now: time.Unix(1e9, 0),
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
		one, err := written(t, f, func(w record.Writer) error {
			all := someStrings()
			for i := range all.Records {
				if err := w.Write(&record.Batch{Records: all.Records[i : i+1], Elems: all.Elems}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewSource(1))
		many, err := written(t, f, func(w record.Writer) error {
			all := someStrings()
			for rest := all.Records; len(rest) > 0; {
				n := min(len(rest), 1+rng.Intn(100))
				if err := w.Write(&record.Batch{Records: rest[:n], Elems: all.Elems}); err != nil {
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
			all := someStrings()
			some := all.Records[:20]
			slices.Reverse(some)
			return w.Write(&record.Batch{Records: some, Elems: all.Elems})
		})
		if err == nil || !strings.Contains(err.Error(), `after`) {
			t.Errorf("%s: strings out of order: %v", f.Name(), err)
		}
	}
}
