package testsst

import (
	"bytes"
	"strings"

	"kvferry/store"
)

// JoinMerger joins base and operands with commas. A key that ends in 7 does not exist.
var JoinMerger = &store.Merger{Name: "join", Fold: func(dst, key, base []byte, ops [][]byte) ([]byte, bool, error) {
	if strings.HasSuffix(string(key), "7") {
		return nil, false, nil
	}
	if base != nil {
		dst = append(append(dst, base...), ',')
	}
	return append(dst, bytes.Join(ops, []byte(","))...), true, nil
}}
