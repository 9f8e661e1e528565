package lsm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/internal/sys/object"
	"kvferry/internal/testkit/s3test"
	"kvferry/internal/testkit/testsst"
	"kvferry/store"
	"kvferry/store/rocks/base"
)

// TestSample: samples are existing keys, account for all bytes, and are reproducible.
func TestSample(t *testing.T) {
	d := testsst.NewDB(t)
	var entries []testsst.Entry
	for i := range 2000 {
		entries = append(entries, testsst.Put(fmt.Sprintf("k%05d", i), 1, strings.Repeat("v", 50)))
	}
	d.Table(0, 1, testsst.Spec{BlockSize: 500}, entries...)
	d.Log(7, testsst.Batch(5, testsst.Op(base.KindPut, "zlog", strings.Repeat("x", 5000))))
	dir := d.Finish()
	db := openTest(t, dir, store.Options{})
	ks := db.Keyspaces()[0]
	a, err := ks.Sample(50)
	if err != nil {
		t.Fatal(err)
	}
	mounted, unmount, err := object.Mount(t.Context(), s3test.NewFake(t).PutTree(t, dir), object.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer unmount()
	if few, err := openTest(t, mounted, store.Options{}).Keyspaces()[0].Sample(50); err != nil || len(few) > 20 || len(few) < 8 {
		t.Errorf("%d samples in an object store, want about a quarter, %v", len(few), err)
	}
	if len(a) < 40 || len(a) > 60 {
		t.Errorf("%d samples, want about 50", len(a))
	}
	var sum int64
	keys := map[string]bool{}
	for _, e := range entries {
		keys[e.Key] = true
	}
	keys["zlog"] = true
	for _, w := range a {
		if !keys[string(w.Key)] {
			t.Errorf("sampled %q, which is no key", w.Key)
		}
		sum += w.Bytes
	}
	if size := ks.Size(); sum > size*11/10 || sum < size*8/10 {
		t.Errorf("samples stand for %d bytes of %d", sum, size)
	}
	if b, _ := ks.Sample(50); fmt.Sprint(a) != fmt.Sprint(b) {
		t.Error("samples differ from call to call")
	}
	if one, _ := ks.Sample(0); len(one) > 2 {
		t.Errorf("%d samples of none", len(one))
	}
}

// TestSpilledLog: logs larger than the memory are sorted on disk, in invisible files.
func TestSpilledLog(t *testing.T) {
	d := testsst.NewDB(t)
	d.Family(1, "one", testsst.BytewiseName)
	var records [][]byte
	for i := range 5000 {
		records = append(
			records, testsst.Batch(uint64(10+2*i), testsst.Op(base.KindPut, fmt.Sprint("k", i%3000), strings.Repeat("v", 50)),
				testsst.OpCF(base.KindCFPut, 1, fmt.Sprint("k", i%7), fmt.Sprint(i))))
	}
	d.Log(7, records...)
	dir, temp := d.Finish(), t.TempDir()
	db := openTest(t, dir, store.Options{Memory: 64 << 10, TempDir: temp})
	rows, n := testsst.ReadRows(t, db.Keyspaces()[0], nil, nil)
	if len(rows) != 3000 || n.Superseded != 2000 {
		t.Errorf("%d rows, %+v", len(rows), n)
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		t.Errorf("%d files in sight", len(left))
	}
	if db.spaces[0].Env.NumSpools() == 0 {
		t.Error("nothing was spilled")
	}
	wantRows(t, db, 1, "k0=4998 k1=4999 k2=4993 k3=4994 k4=4995 k5=4996 k6=4997")
	if err := rowsError(dir, store.Options{Memory: 64 << 10, TempDir: filepath.Join(temp, "missing")}); err == nil {
		t.Error("no error without a place for spools")
	}
}
