package testsst

import (
	"bytes"
	"io"
	"slices"
	"testing"

	"kvferry/store"
)

// ReadAll exercises every read operation of a store and returns the first error. Rows out of order fail the test.
func ReadAll(t testing.TB, s store.Store) error {
	s.Files()
	var first error
	note := func(err error) {
		if first == nil && err != io.EOF {
			first = err
		}
	}
	for _, ks := range s.Keyspaces() {
		note(WalkRows(t, ks))
		walkBatches(t, ks)
		lookUp(t, ks)
		if it, err := ks.Entries([]byte("key0010"), []byte("key0080")); err == nil {
			for err == nil {
				_, err = it.Next()
			}
			note(err)
			it.Close()
		} else {
			note(err)
		}
		note(ks.Unordered(func(*store.Entry) error { return nil }))
		_, err := ks.Sample(5)
		note(err)
	}
	return first
}

// lookUp checks that lookups of rows, and of keys without one, find what an iterator does, unless it finds damage.
func lookUp(t testing.TB, ks store.Keyspace) {
	g, ok := ks.(store.Getter)
	it, err := ks.Rows(nil, nil)
	if !ok || err != nil {
		return
	}
	keys := [][]byte{nil, []byte("key0003"), []byte("key0055"), []byte("none")}
	for err == nil && len(keys) < 8 {
		var key []byte
		if key, _, err = it.Next(); err == nil {
			keys = append(keys, bytes.Clone(key))
		}
	}
	it.Close()
	for _, key := range keys {
		value, found, ok := g.Get(key)
		if !ok {
			continue
		}
		it, err := ks.Rows(store.KeyRange(key))
		if err != nil {
			continue
		}
		_, want, err := it.Next()
		if err == nil && (!found || !bytes.Equal(value, want)) || err == io.EOF && found {
			t.Errorf("lookup of %q: %q, found %t; want %q, %v", key, value, found, want, err)
		}
		it.Close()
	}
}

// walkBatches checks that reading in batches returns the same rows and the same error as reading one by one.
func walkBatches(t testing.TB, ks store.Keyspace) {
	one, oneErr := ks.Rows(nil, nil)
	it, err := ks.Rows(nil, nil)
	if err != nil || oneErr != nil {
		return // WalkRows reports it
	}
	defer one.Close()
	defer it.Close()
	batch := make([]store.Row, 16)
	for err == nil {
		var n int
		n, err = it.(store.Batcher).NextBatch(batch)
		for i, b := range batch[:n] {
			k, v, err := one.Next()
			if err != nil || !bytes.Equal(k, b.Key) || !bytes.Equal(v, b.Value) {
				t.Fatalf("row %q = %q of a batch, want %q = %q, %v", b.Key, b.Value, k, v, err)
			}
			it.(store.Batcher).PlaceAt(i)
		}
	}
	if _, _, want := one.Next(); want.Error() != err.Error() {
		t.Fatalf("batches end with %v, rows with %v", err, want)
	}
}

// WalkRows reads and seeks through all rows and checks their order.
func WalkRows(t testing.TB, ks store.Keyspace) error {
	it, err := ks.Rows(nil, nil)
	if err != nil {
		return err
	}
	defer it.Close()
	var last []byte
	for n := 0; ; n++ {
		k, _, err := it.Next()
		if err != nil {
			return err
		}
		if n > 0 && ks.Comparer().Compare(last, k) >= 0 {
			t.Fatalf("row %q after %q", k, last)
		}
		last = append(last[:0], k...)
		it.Place()
		if n%5 == 4 {
			if err := it.SeekGE(append(slices.Clone(last), '5')); err != nil {
				return err
			}
		}
	}
}
