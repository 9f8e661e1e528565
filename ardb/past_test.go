package ardb

import (
	"bytes"
	"testing"

	"kvferry/ardb/codec"
	"kvferry/internal/testkit/memstore"
)

// TestPast: Split finds the user key of rows and recognizes META; Make makes META rows with the type of the
// element's row, but not for streams.
func TestPast(t *testing.T) {
	st := memstore.New().Dir("d")
	if err := st.Keyspace("0", codec.Comparer()); err != nil {
		t.Fatal(err)
	}
	user := []byte("k")
	r := pastRows(&space{Keyspace: st.Keyspaces()[0]})
	meta := codec.AppendKey(nil, nil, user, codec.KindMeta)
	for kind, want := range map[codec.Kind]codec.Kind{codec.KindField: codec.KindHash, codec.KindElement: codec.KindList,
		codec.KindMember: codec.KindSet,
		codec.KindSort:   codec.KindZSet, codec.KindScore: codec.KindZSet, codec.KindEntry: 0, codec.KindPending: 0} {
		raw := codec.AppendKey(nil, nil, user, kind, codec.IntData(1))
		if got, isMeta, ok := r.Split(raw); !bytes.Equal(got, user) || isMeta || !ok {
			t.Errorf("%s: %q %v %v", kind, got, isMeta, ok)
		}
		key, value, ok := r.Make(user, raw)
		if ok != (want != 0) {
			t.Errorf("%s: made %v", kind, ok)
		}
		v, err := codec.SplitValue(value)
		if ok && (!bytes.Equal(key, meta) || v.Kind != want || v.Size != sizeLost || err != nil) {
			t.Errorf("%s: %x with %+v: %v", kind, key, v, err)
		}
	}
	if got, isMeta, ok := r.Split(meta); !bytes.Equal(got, user) || !isMeta || !ok {
		t.Errorf("META: %q %v %v", got, isMeta, ok)
	}
	if _, _, ok := r.Split([]byte{9}); ok {
		t.Error("a key cut short has a user key")
	}
	if lo, hi := r.Bounds(user); !bytes.Equal(lo, codec.Bound(nil, user)) || hi != nil {
		t.Errorf("from %x to %x", lo, hi)
	}
}
