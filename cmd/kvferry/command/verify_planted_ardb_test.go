package command

import (
	"math"
	"slices"
	"testing"

	"kvferry/ardb"
	"kvferry/ardb/codec"
	"kvferry/record"
)

// ardbSet has a record of each type under its own name, as Ardb has one type per name.
func ardbSet() []small {
	return []small{
		smallRecord(record.String, "s", "v"), smallRecord(record.Hash, "h", "a=1", "b=2"),
		smallRecord(record.List, "l", "x", "y", "z"), smallRecord(record.Set, "m", "a", "b"),
		smallRecord(record.ZSet, "z", "a", "b"),
	}
}

// meta changes the META row of a key: its head and the data after it.
func (r *rows) meta(key string, change func(v *codec.Value, data []codec.Data) []codec.Data) {
	raw := codec.AppendKey(nil, nil, []byte(key), codec.KindMeta)
	v, data, err := codec.DecodeValue(r.get("0", raw))
	if err != nil {
		r.t.Fatal(err)
	}
	data = change(&v, slices.Clone(data))
	r.put("0", raw, codec.AppendValue(nil, &v, data...))
}

// ardbPlants are kinds of damage to rows of ardbSet in Ardb on RocksDB.
func ardbPlants() []plant {
	key, text, value := ardbKey, ardbText, ardbValue
	return []plant{
		{"nothing", "rocksdb", func(*rows) {}, ""},
		{"orphans", "rocksdb", func(r *rows) { r.del("0", key("h", codec.KindMeta)) }, "warning orphan-rows"},
		{"size", "rocksdb", func(r *rows) {
			r.meta("z", func(v *codec.Value, d []codec.Data) []codec.Data { v.Size = 9; return d })
		}, "warning size-mismatch"},
		{"bounds", "rocksdb", func(r *rows) {
			r.meta("l", func(v *codec.Value, _ []codec.Data) []codec.Data {
				return []codec.Data{codec.IntData(0), codec.IntData(1)}
			})
		}, "warning list-bounds"},
		{"no sort row", "rocksdb", func(r *rows) { r.del("0", key("z", codec.KindSort, codec.FloatData(1), text("b"))) }, "error zset-twin"},
		{"no number", "rocksdb", func(r *rows) {
			nan := codec.FloatData(math.NaN())
			r.del("0", key("z", codec.KindSort, codec.FloatData(1), text("b")))
			r.put("0", key("z", codec.KindSort, nan, text("b")), value(codec.KindSort))
			r.put("0", key("z", codec.KindScore, text("b")), value(codec.KindScore, nan))
		}, "warning score-nan"},
		{"value", "rocksdb", func(r *rows) { r.put("0", key("s", codec.KindMeta), []byte{2, 0, 0, 1}) }, "error malformed-value"},
		{"format", "rocksdb", func(r *rows) { r.put("0", key("s", codec.KindMeta), []byte{2, 1, 0, 1, 1, 2}) }, "error newer"},
		{"type", "rocksdb", func(r *rows) { r.put("0", key("h", codec.KindMeta), []byte{40, 0, 0, 0, 0}) }, "error newer"},
		{"operand", "rocksdb", func(r *rows) { r.put("0", key("s", codec.KindMeta), []byte{30, 0, 99, 0}) }, "error newer"},
		{"key", "rocksdb", func(r *rows) { r.put("0", key("h", codec.KindField), value(codec.KindField, text("x"))) }, "error malformed-key"},
		{"expiry", "rocksdb", func(r *rows) {
			r.meta("s", func(v *codec.Value, d []codec.Data) []codec.Data { v.ExpireMS = -5; return d })
		}, "warning bad-expiry"},
		{"empty", "rocksdb", func(r *rows) { r.put("0", key("none", codec.KindMeta), nil) }, "warning empty-value"},
		{"integer as text", "rocksdb", func(r *rows) {
			r.put("0", key("h", codec.KindField, text("5")), value(codec.KindField, text("x")))
			r.meta("h", func(v *codec.Value, d []codec.Data) []codec.Data { v.Size = -1; return d })
		}, "warning not-canonical"},
		{"unused", "rocksdb", func(r *rows) { r.put("default", key("x", codec.KindMeta), value(codec.KindString, text("v"))) }, "warning unused-rows"},
		{"operand", "rocksdb", func(r *rows) {
			r.put("0", key("s", codec.KindMeta), codec.AppendValue(nil, &codec.Value{Kind: codec.KindOperand, Op: 111},
				codec.IntData(1)))
		}, "error unmerged-operand"},
		{"twice", "rocksdb", func(r *rows) {
			for _, d := range []codec.Data{text("5"), codec.IntData(5)} {
				r.put("0", key("h", codec.KindField, d), value(codec.KindField, text("x")))
			}
			r.meta("h", func(v *codec.Value, d []codec.Data) []codec.Data { v.Size = -1; return d })
		}, "error member-twice"},
		{"circle", "rocksdb", func(r *rows) {
			for _, i := range []int64{5e18, -5e18} {
				r.put("0", key("m", codec.KindMember, codec.IntData(i)), value(codec.KindMember))
			}
			r.meta("m", func(v *codec.Value, d []codec.Data) []codec.Data { v.Size = -1; return d })
		}, "warning circular-order"},
		{"groups", "rocksdb", func(r *rows) {
			r.put("0", key("x", codec.KindMeta), codec.AppendValue(nil, &codec.Value{Kind: codec.KindStream, Last: text("0123456789abcdef")}))
			r.put("0", key("x", codec.KindPending, text("group"), codec.Data{}), value(codec.KindPending, text("0123456789abcdef")))
		}, "warning stream-groups"},
	}
}

func TestVerifyPlantedArdb(t *testing.T) {
	for _, p := range ardbPlants() {
		t.Run(p.name, func(t *testing.T) { p.check(t, buildSmall(t, ardb.New(), ardbSet()...)) })
	}
}
