package command

import (
	"math"
	"slices"
	"testing"

	"kvferry/ardb"
	"kvferry/record"
)

// ardbSet is a record of each type; Ardb has one type a name.
func ardbSet() []small {
	return []small{
		smallRecord(record.String, "s", "v"), smallRecord(record.Hash, "h", "a=1", "b=2"),
		smallRecord(record.List, "l", "x", "y", "z"), smallRecord(record.Set, "m", "a", "b"),
		smallRecord(record.ZSet, "z", "a", "b"),
	}
}

// meta changes the META row of a key: its head and the data after it.
func (r *rows) meta(key string, change func(v *ardb.Value, data []ardb.Data) []ardb.Data) {
	raw := ardb.AppendKey(nil, nil, []byte(key), ardb.KindMeta)
	v, data, err := ardb.DecodeValue(r.get("0", raw))
	if err != nil {
		r.t.Fatal(err)
	}
	data = change(&v, slices.Clone(data))
	r.put("0", raw, ardb.AppendValue(nil, &v, data...))
}

// ardbPlants are damages of rows of ardbSet in Ardb on RocksDB.
func ardbPlants() []plant {
	key, text, value := ardbKey, ardbText, ardbValue
	return []plant{
		{"nothing", "rocksdb", func(*rows) {}, ""},
		{"orphans", "rocksdb", func(r *rows) { r.del("0", key("h", ardb.KindMeta)) }, "warning orphan-rows"},
		{"size", "rocksdb", func(r *rows) {
			r.meta("z", func(v *ardb.Value, d []ardb.Data) []ardb.Data { v.Size = 9; return d })
		}, "warning size-mismatch"},
		{"bounds", "rocksdb", func(r *rows) {
			r.meta("l", func(v *ardb.Value, _ []ardb.Data) []ardb.Data { return []ardb.Data{ardb.IntData(0), ardb.IntData(1)} })
		}, "warning list-bounds"},
		{"no sort row", "rocksdb", func(r *rows) { r.del("0", key("z", ardb.KindSort, ardb.FloatData(1), text("b"))) }, "error zset-twin"},
		{"no number", "rocksdb", func(r *rows) {
			nan := ardb.FloatData(math.NaN())
			r.del("0", key("z", ardb.KindSort, ardb.FloatData(1), text("b")))
			r.put("0", key("z", ardb.KindSort, nan, text("b")), value(ardb.KindSort))
			r.put("0", key("z", ardb.KindScore, text("b")), value(ardb.KindScore, nan))
		}, "warning score-nan"},
		{"value", "rocksdb", func(r *rows) { r.put("0", key("s", ardb.KindMeta), []byte{2, 0, 0, 1, 9}) }, "error malformed-value"},
		{"key", "rocksdb", func(r *rows) { r.put("0", key("h", ardb.KindField), value(ardb.KindField, text("x"))) }, "error malformed-key"},
		{"expiry", "rocksdb", func(r *rows) {
			r.meta("s", func(v *ardb.Value, d []ardb.Data) []ardb.Data { v.ExpireMS = -5; return d })
		}, "warning bad-expiry"},
		{"empty", "rocksdb", func(r *rows) { r.put("0", key("none", ardb.KindMeta), nil) }, "warning empty-value"},
		{"integer as text", "rocksdb", func(r *rows) {
			r.put("0", key("h", ardb.KindField, text("5")), value(ardb.KindField, text("x")))
			r.meta("h", func(v *ardb.Value, d []ardb.Data) []ardb.Data { v.Size = -1; return d })
		}, "warning not-canonical"},
		{"unused", "rocksdb", func(r *rows) { r.put("default", key("x", ardb.KindMeta), value(ardb.KindString, text("v"))) }, "warning unused-rows"},
		{"operand", "rocksdb", func(r *rows) {
			r.put("0", key("s", ardb.KindMeta), ardb.AppendValue(nil, &ardb.Value{Kind: ardb.KindOperand, Op: 111}, ardb.IntData(1)))
		}, "error unmerged-operand"},
		{"twice", "rocksdb", func(r *rows) {
			for _, d := range []ardb.Data{text("5"), ardb.IntData(5)} {
				r.put("0", key("h", ardb.KindField, d), value(ardb.KindField, text("x")))
			}
			r.meta("h", func(v *ardb.Value, d []ardb.Data) []ardb.Data { v.Size = -1; return d })
		}, "error member-twice"},
		{"circle", "rocksdb", func(r *rows) {
			for _, i := range []int64{5e18, -5e18} {
				r.put("0", key("m", ardb.KindMember, ardb.IntData(i)), value(ardb.KindMember))
			}
			r.meta("m", func(v *ardb.Value, d []ardb.Data) []ardb.Data { v.Size = -1; return d })
		}, "warning circular-order"},
		{"groups", "rocksdb", func(r *rows) {
			r.put("0", key("x", ardb.KindMeta), ardb.AppendValue(nil, &ardb.Value{Kind: ardb.KindStream, Last: text("0123456789abcdef")}))
			r.put("0", key("x", ardb.KindPending, text("group"), ardb.Data{}), value(ardb.KindPending, text("0123456789abcdef")))
		}, "warning stream-groups"},
	}
}

func TestVerifyPlantedArdb(t *testing.T) {
	for _, p := range ardbPlants() {
		t.Run(p.name, func(t *testing.T) { p.check(t, build(t, ardb.New(), ardbSet()...)) })
	}
}
