package ardb

import (
	"testing"

	"kvferry/ardb/codec"
	"kvferry/internal/testkit/memstore"
)

// TestSeeksInts looks at the integers of a collection once, and at no other rows.
func TestSeeksInts(t *testing.T) {
	st := memstore.New().Dir("d")
	if err := st.Keyspace(defaultCF, codec.LevelDBComparer()); err != nil {
		t.Fatal(err)
	}
	ns := codec.AppendData(nil, text("0"))
	put := func(key string, member codec.Data) {
		st.Put(defaultCF, codec.AppendKey(nil, ns, []byte(key), codec.KindSet, member), nil)
	}
	for _, v := range []int64{-4e18, 0, 4e18} {
		put("far", codec.IntData(v))
	}
	for _, key := range []string{"far", "near", "other"} {
		put(key, codec.IntData(7))
		put(key, text("t"))
	}
	st.Put(defaultCF, codec.AppendKey(nil, ns, []byte("far"), codec.KindMeta), []byte("v"))
	spaces, err := findSpaces(st.Keyspaces()[0])
	if err != nil || len(spaces) != 1 {
		t.Fatal(spaces, err)
	}
	sp := spaces[0]
	seeks := func(key string, want bool) {
		t.Helper()
		if got, err := sp.SeeksInts([]byte(key), codec.KindSet); got != want || err != nil {
			t.Errorf("%s: %t, %v", key, got, err)
		}
	}
	seeks("near", true)
	seeks("far", true) // 8e18 apart, which is no circle
	put("circle", codec.IntData(-5e18))
	put("circle", codec.IntData(5e18))
	seeks("circle", false)
	put("near", codec.IntData(-9e18))
	seeks("near", true) // remembered
	sp.Keyspace = failing{sp.Keyspace}
	seeks("circle", false)
	if _, err := sp.SeeksInts([]byte("other"), codec.KindSet); err != errFail {
		t.Error(err)
	}
}
