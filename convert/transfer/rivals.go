package transfer

import (
	"bytes"
	"cmp"

	"kvferry/record"
)

// byPreference orders the records of a key by the types that are preferred to keep a name: where it may stand under
// one type only, the first that has elements keeps it. Types that are not named come last, in dump order.
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
