package lsm

import (
	"errors"
	"io"
	"kvferry/store/rocks/base"
	"strings"
	"testing"
)

// TestLargeValueChanges: values read back are verified.
func TestLargeValueChanges(t *testing.T) {
	var l largeValues
	r, err := l.put(t.TempDir(), 1000, strings.NewReader(strings.Repeat("x", 1000)))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.copy(&spoolWriter{w: io.Discard}, []byte("key 12345"), r, Origin{}); err != nil {
		t.Error(err)
	}
	if _, err := l.f.WriteAt([]byte("y"), 500); err != nil {
		t.Fatal(err)
	}
	if err := l.copy(&spoolWriter{w: io.Discard}, []byte("key 12345"), r, Origin{}); !errors.Is(err, base.ErrChecksum) {
		t.Errorf("error %v", err)
	}
	if err := l.f.Truncate(400); err != nil {
		t.Fatal(err)
	}
	if err := l.copy(&spoolWriter{w: io.Discard}, []byte("key 12345"), r, Origin{}); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error %v", err)
	}
	if err := errors.Join(l.close(), l.close()); err != nil {
		t.Error(err)
	}
}
