package transfer

import (
	"bytes"
	"cmp"

	"kvferry/record"
)

// byPreference orders records by key, then by the preference of their types. If the target holds a name under one
// type only, the first record with elements keeps it. Types not in prefer come last, in dump order.
func byPreference(prefer []record.Type) func(a, b *record.Header) int {
	rank := make([]int, record.NumTypes)
	for _, t := range record.AllTypes.Types() {
		rank[t] = int(t)
	}
	for i, t := range prefer {
		rank[t] = i - len(prefer)
	}
	return func(a, b *record.Header) int {
		return cmp.Or(bytes.Compare(a.Key, b.Key), cmp.Compare(rank[a.Type], rank[b.Type]))
	}
}
