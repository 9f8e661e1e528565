package kvrocks

import (
	"bytes"
	"testing"

	"kvferry/kvrocks/codec"
)

// TestDeadRows: a version whose rows all have no value is a set; rows before the first of a version do not count.
func TestDeadRows(t *testing.T) {
	for _, c := range []struct {
		values string // one a row, '-' is none
		empty  bool
	}{{"-", true}, {"--", true}, {"v", false}, {"-v", false}, {"v-", false}} {
		f := &deadFamily{src: new(source), indexes: false}
		for i, v := range []byte(c.values) {
			raw := codec.AppendSubKey(nil, codec.SubKey{Namespace: []byte("ns"), Slot: codec.NoSlot, Key: []byte("k"), Version: 7,
				Sub: []byte{'m', byte(i)}})
			f.Row(i == 0, raw, bytes.Trim([]byte{v}, "-"))
		}
		if f.empty != c.empty || f.indexes || !bytes.Equal(f.first, []byte{'m', 0}) ||
			!bytes.Equal(f.last, []byte{'m', byte(len(c.values) - 1)}) {
			t.Errorf("%q: %+v", c.values, f)
		}
	}
}

// TestDeadStreamOfOld: the metadata of a deleted stream is kept, even from an older server.
func TestDeadStreamOfOld(t *testing.T) {
	extras := bytes.Repeat([]byte{0, 0, 0, 0, 0, 0, 0, 1}, codec.OldStreamExtras/8)
	old := codec.AppendMeta(nil, codec.Meta{Wide: true, Kind: codec.KindStream, Version: 7, Extras: extras})
	value, _ := (&deadFamily{src: new(source)}).Revived(nil, old, 7, 3)
	if m, err := codec.DecodeMeta(value); err != nil || m.Size != 3 || !bytes.Equal(m.Extras, extras) {
		t.Errorf("%+v, %v", m, err)
	}
}
