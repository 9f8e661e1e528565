package ardb

import (
	"kvferry/ardb/codec"
	"kvferry/format"
	"kvferry/internal/shared/deleted"
	"kvferry/record"
)

// pastRows returns how to split a namespace into records, including deleted rows.
func pastRows(sp *space) *deleted.Rows {
	r := &deleted.Rows{Keyspace: sp.Keyspace, Merger: Merger()}
	r.Make = func(user, raw []byte) (key, value []byte, ok bool) { return makeMeta(sp, user, raw) }
	r.Split = func(raw []byte) (user []byte, meta, ok bool) {
		off, end, ok := codec.SplitUser(raw, sp.Named)
		if !ok {
			return nil, false, false
		}
		return raw[off:end], codec.Kind(raw[end]) == codec.KindMeta, true
	}
	r.Bounds = func(user []byte) (lo, hi []byte) { return sp.Bounds(format.Span{Lo: user}) }
	return r
}

// metaKinds are the kinds of values of META rows.
var metaKinds = map[record.Type]codec.Kind{record.Hash: codec.KindHash, record.List: codec.KindList, record.Set: codec.KindSet,
	record.ZSet: codec.KindZSet}

// makeMeta makes a META row from the kind of an element row. Streams are not possible: the field names that
// entries leave to META are unknown.
func makeMeta(sp *space, user, raw []byte) (key, value []byte, ok bool) {
	_, end, _ := codec.SplitUser(raw, sp.Named)
	kind, ok := metaKinds[codec.Kind(raw[end]).Type()]
	if !ok {
		return nil, nil, false
	}
	return codec.AppendKey(nil, sp.NS, user, codec.KindMeta), codec.AppendValue(nil, &codec.Value{Kind: kind, Size: sizeLost}),
		true
}

// sizeLost is the size in a META row that Past made.
const sizeLost = codec.SizeUnknown - 1
