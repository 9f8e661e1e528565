package redis

import (
	"bytes"
	"context"
	"testing"

	"kvferry/format"
	"kvferry/record"
	"kvferry/store"
)

// TestSorting: a file that was sorted while it was opened has the same records in the same order, as a whole and key by key,
// with memory for all of its keys and with little.
func TestSorting(t *testing.T) {
	for name, path := range goldens(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := lines(t, openPath(t, path), truthTime, false, nil)
			for _, memory := range []int64{16 << 10, 16 << 20} {
				src, err := New().Open(context.Background(), path,
					&format.OpenOptions{Lookups: true, Options: store.Options{TempDir: t.TempDir(), Memory: memory}})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { src.Close() })
				if got := lines(t, src, truthTime, false, nil); !bytes.Equal(got, want) {
					t.Errorf("%d bytes of memory: the records differ", memory)
				}
				single(t, src)
			}
		})
	}
}

// single reads some keys by themselves.
func single(t *testing.T, src format.Source) {
	t.Helper()
	env := &format.Env{Now: truthTime, Memory: 1 << 20, TempDir: t.TempDir(), Lookups: true}
	for _, db := range src.Databases() {
		all, err := src.Records(context.Background(), db, record.AllTypes, format.Span{}, env)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for w := record.Walk(all); ; n++ {
			h, err := w.Next()
			if err != nil {
				break
			}
			if n%29 != 0 {
				continue
			}
			one, err := src.Records(context.Background(), db, record.Of(h.Type), format.KeySpan(h.Key), env)
			if err != nil {
				t.Fatal(err)
			}
			v := record.Walk(one)
			got, err := v.Next()
			if err != nil || !bytes.Equal(got.Key, h.Key) || got.Type != h.Type || got.ExpireMS != h.ExpireMS ||
				got.Len != h.Len {
				t.Errorf("%q: %v, %v", h.Key, got, err)
			} else if want, err := w.Peek(); err == nil {
				have, err := v.Peek()
				if err != nil || !bytes.Equal(want[0].Name, have[0].Name) || !bytes.Equal(want[0].Value, have[0].Value) {
					t.Errorf("%q: %v, want %v, %v", h.Key, have, want[0], err)
				}
			}
			if err := one.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := all.Close(); err != nil {
			t.Error(err)
		}
	}
}
