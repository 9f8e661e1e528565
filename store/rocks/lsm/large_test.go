package lsm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/internal/testkit/testsst"
	"kvferry/store"
	"kvferry/store/rocks"
	"kvferry/store/rocks/base"
)

// largeLog makes a log of large and small values, some of them written over.
func largeLog(d *testsst.DB) (want map[string]string) {
	want = map[string]string{}
	var records [][]byte
	put := func(key string, n int) {
		v := strings.Repeat(fmt.Sprintf("%03d", len(records)), n/3)
		records = append(records, testsst.Batch(uint64(10+len(records)), testsst.Op(base.KindPut, key, v)))
		want[key] = v
	}
	for i := range 6 {
		put(fmt.Sprint("k", i), 30)
		put(fmt.Sprint("large", i%4), rocks.LargeValue+rocks.LargeValue/2+i)
		put(fmt.Sprint("edge", i), rocks.LargeValue/3*3+3*(i%2))
	}
	put("large0", 3)
	d.Log(7, records...)
	return want
}

// TestLargeValues: values that bypass the sorter are returned whole, from memory and from disk.
func TestLargeValues(t *testing.T) {
	d := testsst.NewDB(t)
	want := largeLog(d)
	dir, temp := d.Finish(), t.TempDir()
	for _, memory := range []int64{64 << 10, 1 << 30} {
		db := openTest(t, dir, store.Options{Memory: memory, TempDir: temp})
		rows, n := testsst.ReadRows(t, db.Keyspaces()[0], nil, nil)
		if len(rows) != len(want) || n.Superseded != 3 {
			t.Errorf("%d rows, %+v", len(rows), n)
		}
		for _, r := range rows {
			if want[string(r.Key)] != string(r.Value) {
				t.Errorf("%s has another value", r.Key)
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

// TestLargeValueTwice: the same large entry in two logs counts once, another one is an error.
func TestLargeValueTwice(t *testing.T) {
	large := strings.Repeat("v", rocks.LargeValue+1)
	for other, same := range map[string]bool{large: true, large[1:] + "w": false, large + "v": false, "v": false} {
		d := testsst.NewDB(t)
		d.Log(6, testsst.Batch(5, testsst.Op(base.KindPut, "k", large)))
		d.Log(7, testsst.Batch(5, testsst.Op(base.KindPut, "k", other)))
		err := rowsError(d.Finish(), store.Options{})
		if same && err != nil || !same && (err == nil || !strings.Contains(err.Error(), "sequence number 5")) {
			t.Errorf("%d bytes: error %v", len(other), err)
		}
	}
}

// TestHugeBatch: values of one batch of a log are never in memory together, nor one of them whole while it is opened.
func TestHugeBatch(t *testing.T) {
	const each = 5 << 20
	value := func(c string) string { return strings.Repeat(c, each) }
	first := testsst.Batch(10, testsst.Op(base.KindPut, "small", "1"), testsst.Op(base.KindPut, "b", value("b")),
		testsst.OpCF(base.KindCFPut, 1, "other", value("o")),
		testsst.OpCF(base.KindCFPut, 2, "dropped", value("d")), testsst.Op(base.KindPut, "a", value("a")),
		testsst.Op(base.KindPut, "b", value("B")))
	last := testsst.Batch(20, testsst.Op(base.KindPut, "torn", value("t")))
	log := testsst.Log(7, true, testsst.Batch(9, testsst.Op(base.KindPut, "before", "0")), first,
		testsst.Batch(16, testsst.Op(base.KindPut, "after", "2")), last)
	d := testsst.NewDB(t)
	d.Family(1, "one", testsst.BytewiseName)
	d.Drop(2)
	d.LastSeq = 8
	dir, temp := d.Finish(), t.TempDir()
	d.File("000007.log", log[:len(log)-each/2])
	before := totalAlloc()
	db, found := openFindings(t, dir, store.Options{Memory: 1 << 20, TempDir: temp})
	if n := totalAlloc() - before; n > each {
		t.Errorf("%d bytes were allocated to open a log of values of %d", n, each)
	}
	if len(*found) != 1 || (*found)[0].Kind != "torn-log" {
		t.Errorf("findings %+v", *found)
	}
	wantValues(t, db.Keyspaces()[0], "a a 5242880, after 2 1, b B 5242880, before 0 1, small 1 1")
	wantValues(t, db.Keyspaces()[1], "other o 5242880")
	n := 0
	err := db.Keyspaces()[0].Unordered(func(e *store.Entry) error {
		n++
		if len(e.Value) > 1 && (len(e.Value) != each || e.Value[0] != e.Value[each-1]) {
			t.Errorf("%s has %d bytes", e.Key, len(e.Value))
		}
		return nil
	})
	if err != nil || n != 6 {
		t.Errorf("%d entries, %v", n, err)
	}
	// Damage in the middle of the batch loses all of it.
	log[len(log)/2] ^= 1
	d.File("000007.log", log)
	wantCorrupt(t, rowsError(dir, store.Options{TempDir: temp}), "000007.log")
}

// wantValues compares rows by key, the first byte of the value and its length.
func wantValues(t *testing.T, ks store.Keyspace, want string) {
	t.Helper()
	rows, _ := testsst.ReadRows(t, ks, nil, nil)
	var got []string
	for _, r := range rows {
		if strings.Trim(string(r.Value), string(r.Value[:1])) != "" {
			t.Errorf("the value of %s is mixed up", r.Key)
		}
		got = append(got, fmt.Sprintf("%s %c %d", r.Key, r.Value[0], len(r.Value)))
	}
	if s := strings.Join(got, ", "); s != want {
		t.Errorf("rows %s, want %s", s, want)
	}
}
