package rocksfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/store"
)

// largeLog makes a log of large and small values, some of them written over.
func largeLog(d *handDB) (want map[string]string) {
	want = map[string]string{}
	var records [][]byte
	put := func(key string, n int) {
		v := strings.Repeat(fmt.Sprintf("%03d", len(records)), n/3)
		records = append(records, batch(uint64(10+len(records)), op(kindPut, key, v)))
		want[key] = v
	}
	for i := range 6 {
		put(fmt.Sprint("k", i), 30)
		put(fmt.Sprint("large", i%4), largeValue+largeValue/2+i)
		put(fmt.Sprint("edge", i), largeValue/3*3+3*(i%2))
	}
	put("large0", 3)
	d.log(7, records...)
	return want
}

// TestLargeValues: values that pass by the sorter come out whole, in memory and on disk.
func TestLargeValues(t *testing.T) {
	d := newHandDB(t)
	want := largeLog(d)
	dir, temp := d.finish(), t.TempDir()
	for _, memory := range []int64{64 << 10, 1 << 30} {
		db := openTest(t, dir, store.Options{Memory: memory, TempDir: temp})
		rows, n := readRows(t, db.Keyspaces()[0], nil, nil)
		if len(rows) != len(want) || n.Superseded != 3 {
			t.Errorf("%d rows, %+v", len(rows), n)
		}
		for _, r := range rows {
			if want[string(r.key)] != string(r.value) {
				t.Errorf("%s has another value", r.key)
			}
		}
		it, err := db.Keyspaces()[0].Rows([]byte("large1"), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := it.Next(); err != nil || it.Place().File != "000007.log" || it.Place().Off == 0 {
			t.Errorf("place %+v, %v", it.Place(), err)
		}
		it.Close()
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("%d files in sight", len(left))
	}
	if err := rowsError(dir, store.Options{TempDir: filepath.Join(temp, "missing")}); err == nil {
		t.Error("no error without a place for large values")
	}
}

// TestLargeRecord: the buffer of a large record is made once, and no larger than the record.
func TestLargeRecord(t *testing.T) {
	for _, reuse := range []bool{false, true} {
		want := [][]byte{bytes.Repeat([]byte("a"), 5*largeRecord), []byte("b"), bytes.Repeat([]byte("c"), 7*largeRecord+77)}
		log := logBytes(7, reuse, want...)
		r := newLogReader(bytes.NewReader(log), 7)
		for _, w := range want {
			rec, _, err := r.next()
			if err != nil || !bytes.Equal(rec, w) {
				t.Fatalf("record of %d bytes, want %d: %v", len(rec), len(w), err)
			}
			if n := cap(rec); n > 7*largeRecord+logBlock {
				t.Errorf("%d bytes for a record of %d", n, len(w))
			}
		}
		for _, cut := range []int{len(log) - 1, len(log) - logBlock, 3 * logBlock, 40*logBlock + 3} {
			r := newLogReader(bytes.NewReader(log[:cut]), 7)
			var err error
			for err == nil {
				_, _, err = r.next()
			}
			if err != errTorn {
				t.Errorf("cut to %d bytes: %v", cut, err)
			}
		}
	}
}

// TestLargeValueTwice: the same large entry in two logs counts once, another one is an error.
func TestLargeValueTwice(t *testing.T) {
	large := strings.Repeat("v", largeValue+1)
	for other, same := range map[string]bool{large: true, large[1:] + "w": false, large + "v": false, "v": false} {
		d := newHandDB(t)
		d.log(6, batch(5, op(kindPut, "k", large)))
		d.log(7, batch(5, op(kindPut, "k", other)))
		err := rowsError(d.finish(), store.Options{})
		if same && err != nil || !same && (err == nil || !strings.Contains(err.Error(), "sequence number 5")) {
			t.Errorf("%d bytes: error %v", len(other), err)
		}
	}
}

// TestLargeValueChanges: what is read back is checked.
func TestLargeValueChanges(t *testing.T) {
	var l largeValues
	r, err := l.put(t.TempDir(), bytes.Repeat([]byte("x"), 1000))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.copy(&spoolWriter{w: io.Discard}, []byte("key 12345"), r, origin{}); err != nil {
		t.Error(err)
	}
	if _, err := l.f.WriteAt([]byte("y"), 500); err != nil {
		t.Fatal(err)
	}
	if err := l.copy(&spoolWriter{w: io.Discard}, []byte("key 12345"), r, origin{}); !errors.Is(err, errChecksum) {
		t.Errorf("error %v", err)
	}
	if err := l.f.Truncate(400); err != nil {
		t.Fatal(err)
	}
	if err := l.copy(&spoolWriter{w: io.Discard}, []byte("key 12345"), r, origin{}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v", err)
	}
	if err := errors.Join(l.close(), l.close()); err != nil {
		t.Error(err)
	}
}
