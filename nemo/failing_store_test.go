package nemo_test

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"

	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/nemo"
	"kvferry/record"
)

func openFaulty(t testing.TB, m *memory, f *formattest.Faults) format.Source {
	t.Helper()
	src, err := nemo.New().Open(context.Background(), m.Dir, &format.OpenOptions{Store: f.Opener(m.FS)})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// readWith reads everything and returns the error, if any.
func readWith(src format.Source, e *format.Env) error {
	r, err := formattest.Walk(src.Records(context.Background(), "0", record.AllTypes, format.Span{}, e))
	if err != nil {
		return err
	}
	elems := make([]record.Element, 1)
	for err == nil {
		if _, err = r.Next(); err != nil {
			break
		}
		for err == nil {
			_, err = r.Read(elems)
		}
		if err == io.EOF {
			err = nil
		}
	}
	if err == io.EOF {
		err = nil
	}
	return errors.Join(err, r.Close())
}

// TestReadErrors makes the store fail at every row of a damaged dataset: the error is returned, all files are
// closed and the spools removed. (Failed lookups of a place for a finding are exempt.)
func TestReadErrors(t *testing.T) {
	m := whole(t)
	m.Store("zset").Delete("default", indexKey("k", "b", 1))
	m.Store("set").Put("default", []byte("Sdead"), nemo.AppendMeta(nil, nemo.Meta{}))
	m.Store("set").Put("default", []byte("s\x04deadx"), nemo.AppendPlain(nil, nemo.Plain{}))
	m.Store("hash").Put("default", []byte("Hodd"), nil)
	m.nineNodes("258")
	for _, memory := range []int64{0, 1, 400} {
		for at := 1; ; at++ {
			f := &formattest.Faults{Left: at}
			src, temp := openFaulty(t, m, f), t.TempDir()
			found, nowhere := 0, 0
			err := readWith(src, &format.Env{Now: formattest.Now, Memory: memory, TempDir: temp, Report: func(x record.Finding) {
				found++
				if x.Place.File == "" {
					nowhere++
				}
			}})
			if f.Open != 0 {
				t.Fatalf("memory %d, row %d: %d iterators left open", memory, at, f.Open)
			}
			if left, _ := os.ReadDir(temp); len(left) > 0 {
				t.Fatalf("memory %d, row %d: %v is left", memory, at, left)
			}
			src.Close()
			if f.Left > 0 {
				if err != nil || found == 0 {
					t.Errorf("memory %d: %v without a failure, %d findings", memory, err, found)
				}
				break
			}
			if !errors.Is(err, formattest.ErrDisk) && nowhere == 0 {
				t.Errorf("memory %d, row %d: %v", memory, at, err)
			}
		}
	}
}

func TestSplitFails(t *testing.T) {
	src := openFaulty(t, whole(t), &formattest.Faults{})
	defer src.Close()
	if _, err := src.Split("0", record.AllTypes, 4); !errors.Is(err, formattest.ErrDisk) {
		t.Errorf("error %v", err)
	}
	if s, err := src.Split("0", record.AllTypes, 1); err != nil || len(s) != 1 {
		t.Errorf("one span: %v, %v", s, err)
	}
}

// TestSpoolFails has no directory for spools.
func TestSpoolFails(t *testing.T) {
	src := whole(t).Open(t)
	e := &format.Env{Now: formattest.Now, Memory: 1, TempDir: t.TempDir() + "/gone"}
	if err := readWith(src, e); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}
