package sst

import "testing"

// TestCacheOfIndexes: a block without users is idle, and excess idle blocks are dropped.
func TestCacheOfIndexes(t *testing.T) {
	c := &Cache{Max: 150}
	r := &Reader{opts: &Options{Cache: c}}
	a := &cachedBlock{r: r, off: 1, b: make([]byte, 100), users: 1}
	c.put(a)
	if c.use(r, 1) != a || c.use(r, 2) != nil {
		t.Fatal("another block")
	}
	state := func(what string, bytes int64, users, idle int) {
		t.Helper()
		if b, u := c.InUse(); b != bytes || u != users || c.idle.Len() != idle {
			t.Errorf("%s: %d bytes, %d users, %d idle, want %d, %d, %d", what, b, u, c.idle.Len(), bytes, users, idle)
		}
	}
	state("two users", 100, 2, 0)
	a.drop()
	state("one user", 100, 1, 0)
	a.drop()
	state("no user", 100, 0, 1)
	b := &cachedBlock{r: r, off: 2, b: make([]byte, 100), users: 1}
	c.put(b)
	state("beside another", 200, 1, 1)
	b.drop()
	state("too many", 100, 0, 1)
	if c.use(r, 1) != nil || c.use(r, 2) != b {
		t.Error("the block that was used last went first")
	}
}

func TestFilterNames(t *testing.T) {
	for name, want := range map[string]bool{"filter.rocksdb.BuiltinBloomFilter": true,
		"fullfilter.rocksdb.BuiltinBloomFilter":        true,
		"partitionedfilter.rocksdb.BuiltinBloomFilter": true, "rocksdb.properties": false, "filters": false, "": false} {
		if isFilter(name) != want {
			t.Errorf("%q is a filter: %t", name, !want)
		}
	}
}
