package lmdb

import (
	"io"
	"strings"
	"testing"

	"kvferry/internal/sys/bufpool"
	"kvferry/store"
)

// TestLargeValues: the buffer of a large value fits its size and is freed afterwards.
func TestLargeValues(t *testing.T) {
	rows := []kv{{"a", strings.Repeat("1", 3<<20)}, {"b", "small"}, {"c", strings.Repeat("23", bigStep/2+1<<20)},
		{"d", strings.Repeat("4", 2<<20)}, {"e", "small"}}
	im := newImage(4096)
	im.database("db", rows)
	it, err := find(t, openTest(t, writeImage(t, im.finish()), &store.Options{}), "db").Rows(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	big := &it.(*iterator).w.c.big
	for _, want := range rows {
		key, value, err := it.Next()
		if err != nil || string(key) != want.key || string(value) != want.value {
			t.Fatalf("%s: %q and other %d bytes, %v", want.key, key, len(value), err)
		}
		if most := max(bufpool.Large, len(want.value)); want.key != "d" && cap(*big) > most { // that of c has room for d
			t.Errorf("%s: a buffer of %d bytes for %d", key, cap(*big), len(value))
		}
	}
	if _, _, err := it.Next(); err != io.EOF {
		t.Error(err)
	}
}
