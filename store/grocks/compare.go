//go:build rocksdb

package grocks

// #include "compare.h"
import "C"

import (
	"unsafe"

	"github.com/linxGnu/grocksdb"

	"kvferry/store"
)

// native are the comparators that exist in C.
var native = map[string]C.int{
	"blackwidow.ListsDataKeyComparator":  C.KVF_LISTS,
	"blackwidow.ZSetsScoreKeyComparator": C.KVF_ZSETS,
	"ardb.comparator":                    C.KVF_ARDB,
	"floyd.ListsDataKeyComparator":       C.KVF_FLOYD_LISTS,
	"floyd.ZSetsScoreKeyComparator":      C.KVF_FLOYD_ZSETS,
}

// setComparator gives a column family its order. Orders that have no native form are called back.
func setComparator(o *grocksdb.Options, c *store.Comparer) {
	if c.IsBytewise() {
		return
	}
	if which, ok := native[c.Name]; ok {
		o.SetNativeComparator(unsafe.Pointer(C.kvf_comparator(which)))
		return
	}
	o.SetComparator(grocksdb.NewComparator(c.Name, c.Compare))
}

// compareNative compares as the native comparator of that name does.
func compareNative(name string, a, b []byte) int {
	p := func(b []byte) *C.char { return (*C.char)(unsafe.Pointer(unsafe.SliceData(b))) }
	return int(C.kvf_compare(native[name], p(a), C.size_t(len(a)), p(b), C.size_t(len(b))))
}
