package lmdb

import (
	"errors"
	"slices"
	"syscall"
	"testing"

	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
)

// TestRefusedReads: a read error that a retry does not repeat is no damage; a repeated one is damage and stays it; a
// failure of access is an error.
func TestRefusedReads(t *testing.T) {
	dir := writeImage(t, salvageImage())
	open := func() (store.Keyspace, *[]record.Finding) {
		var found []record.Finding
		o := store.Options{Salvage: true, Report: func(f record.Finding) { found = append(found, f) }}
		return find(t, openTest(t, dir, &o), "0"), &found
	}
	k, found := open()
	all, err := scan(k, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	fail := func(err error, which func(n int) bool) (restore func()) {
		n := 0
		return disk.Inject(func(op, _ string) error {
			if n++; op == "read" && which(n) {
				return err
			}
			return nil
		})
	}
	restore := fail(syscall.EIO, func(n int) bool { return n%2 == 0 })
	rows, err := scan(k, nil, nil)
	restore()
	if err != nil || !slices.Equal(rows, all) || len(*found) > 0 {
		t.Errorf("refused once: %d rows, want %d, %v, findings %+v", len(rows), len(all), err, *found)
	}
	restore = fail(syscall.EIO, func(n int) bool { return n > 20 && n <= 26 })
	less, err := scan(k, nil, nil)
	restore()
	if err != nil || len(less) >= len(all) || len(*found) == 0 || (*found)[0].Kind != record.FindDamagedPage {
		t.Errorf("refused: %d rows of %d, %v, findings %+v", len(less), len(all), err, *found)
	}
	if again, err := scan(k, nil, nil); err != nil || !slices.Equal(again, less) {
		t.Errorf("%d rows came back, %v", len(again)-len(less), err)
	}
	k, found = open()
	restore = fail(syscall.ESTALE, func(n int) bool { return n > 20 })
	_, err = scan(k, nil, nil)
	unordered := k.Unordered(func(*store.Entry) error { return nil })
	restore()
	if !errors.Is(err, syscall.ESTALE) || !errors.Is(unordered, syscall.ESTALE) || len(*found) > 0 {
		t.Errorf("out of reach: %v, %v, findings %+v", err, unordered, *found)
	}
}
