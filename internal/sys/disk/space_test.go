package disk

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestFreeSpace(t *testing.T) {
	dir := t.TempDir()
	s, err := FreeSpace(dir)
	other, err2 := FreeSpace(filepath.Dir(dir))
	if err != nil || err2 != nil || s.Free <= 0 || s.Device != other.Device {
		t.Errorf("%+v, %v; %+v, %v", s, err, other, err2)
	}
	if _, err := FreeSpace(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("of a directory that is not there: %v", err)
	}
}

// TestUsage checks that the bytes of files count from creation until Close.
func TestUsage(t *testing.T) {
	dir := t.TempDir()
	before, err := CreateTemp(dir, "before-")
	if err != nil {
		t.Fatal(err)
	}
	u := Watch(dir)
	before.Write(make([]byte, 1000))
	f, err := CreateTemp(dir, "f-")
	if err != nil {
		t.Fatal(err)
	}
	f.Write(make([]byte, 100))
	f.WriteAt(make([]byte, 100), 50)
	if u.Now() != 150 {
		t.Errorf("%d bytes", u.Now())
	}
	elsewhere, _ := Create(filepath.Join(t.TempDir(), "f"))
	elsewhere.Write(make([]byte, 1000))
	f.Truncate(0)
	if u.Now() != 0 || u.Peak() != 150 {
		t.Errorf("%d bytes, %d at most", u.Now(), u.Peak())
	}
	u.Reset()
	f.Seek(0, 0)
	f.Write(make([]byte, 10))
	f.Close()
	if u.Now() != 0 || u.Peak() != 10 {
		t.Errorf("%d bytes, %d at most", u.Now(), u.Peak())
	}
	u.Stop()
	f, _ = CreateTemp(dir, "f-")
	f.Write(make([]byte, 10))
	if u.Peak() != 10 {
		t.Error("counts on")
	}
	f.Close()
	before.Close()
	elsewhere.Close()
}
