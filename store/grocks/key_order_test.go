//go:build rocksdb

package grocks

import (
	"slices"
	"sort"
)

func sortKeys(keys [][]byte, compare func(a, b []byte) int) { slices.SortFunc(keys, compare) }

// search finds the first row at or after key.
func search(rows []row, key string, compare func(a, b []byte) int) int {
	return sort.Search(len(rows), func(i int) bool { return compare([]byte(rows[i].key), []byte(key)) >= 0 })
}
