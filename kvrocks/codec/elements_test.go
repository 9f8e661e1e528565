package codec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"kvferry/record"
)

// TestPart: parts come back unchanged; every strict prefix of their lengths is refused, and no length is trusted.
func TestPart(t *testing.T) {
	for _, p := range []Part{{Meta: true, Size: 1 << 40}, {Meta: true, Size: 3, Value: []byte("extras")},
		{Sub: []byte{}, Value: []byte{}},
		{Sub: []byte("sub"), Value: []byte("value")}, {Sub: bytes.Repeat([]byte("s"), 300), Value: []byte{0}}} {
		b := AppendPart([]byte("x"), p)[1:]
		got, err := DecodePart(b)
		if err != nil || got.Meta != p.Meta || got.Size != p.Size || !bytes.Equal(got.Sub, p.Sub) ||
			!bytes.Equal(got.Value, p.Value) {
			t.Errorf("%+v: %+v, %v", p, got, err)
		}
		for n := range len(b) - len(p.Value) {
			if _, err := DecodePart(b[:n]); !errors.Is(err, errPart) {
				t.Errorf("%+v cut to %d bytes: %v", p, n, err)
			}
		}
	}
	for _, b := range []string{"", "\x02abc", "\x01\x05abcd", "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		if p, err := DecodePart([]byte(b)); err == nil {
			t.Errorf("%q: %+v", b, p)
		}
	}
}

func TestModuleKind(t *testing.T) {
	for k := Kind(1); k < NumKinds; k++ {
		for _, cbor := range []bool{false, true} {
			if kind, c := ModuleKind(string(AppendModule(nil, k, cbor))); kind != k || c != cbor {
				t.Errorf("%s, cbor %v: %s, %v", k, cbor, kind, c)
			}
		}
	}
	for _, name := range []string{"", "ReJSON-RL", "kvrocks:", "kvrocks:none", "kvrocks:+cbor"} {
		if kind, _ := ModuleKind(name); kind != 0 {
			t.Errorf("%q is %s", name, kind)
		}
	}
}

// TestIsDocument: extras are exactly one document: any byte cut off or added is noticed, and no length is trusted.
func TestIsDocument(t *testing.T) {
	for _, doc := range []string{
		"\x00{\"a\":[1,2.5,null,\"b\"]}", "\x00\"text\"", "\x01\xa1\x61a\x84\x01\xfb\x40\x04\x00\x00\x00\x00\x00\x00\xf6\x61b",
		"\x01\x9f\x01\x7f\x61a\xff\xff", "\x01\xc1\x1a\x00\x01\x02\x03", "\x01\x38\x63",
		"\x01\xbf\x61a\x01\xff",
	} {
		if !IsDocument([]byte(doc)) {
			t.Errorf("%q is none", doc)
		}
		for n := 1; n < len(doc); n++ {
			if IsDocument([]byte(doc[:n])) {
				t.Errorf("%q cut to %d bytes is one", doc, n)
			}
		}
		if IsDocument([]byte(doc + "\x00")) {
			t.Errorf("%q with a byte more is one", doc)
		}
	}
	for _, doc := range []string{"\x01\x9b\xff\xff\xff\xff\xff\xff\xff\xff", "\x01\xbb\x80\x00\x00\x00\x00\x00\x00\x00", "\x01\x5b\xff\xff\xff\xff\xff\xff\xff\xff",
		"\x01\x1c", "\x01\x1f", "\x01\xff", "\x01" + strings.Repeat("\x81", 1<<20)} {
		if IsDocument([]byte(doc)) {
			t.Errorf("%.20q is one", doc)
		}
	}
}

func be2(n [2]uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, n[0]), n[1])
}

// TestGroupElements: rows of consumer groups become elements that sort by group, its row first, with the rows' counts.
func TestGroupElements(t *testing.T) {
	rows := []struct {
		k      GroupKey
		value  []byte
		want   []byte // after the counts
		counts [2]uint64
	}{
		{GroupKey{Kind: KindGroup, Group: []byte("a")}, AppendGroup(nil, Group{Consumers: 2, Pending: 1, EntriesRead: -1}),
			record.AppendGroup(nil, &record.GroupState{Last: make([]byte, idLen), Read: -1}), [2]uint64{2, 1}},
		{GroupKey{Kind: KindConsumer, Group: []byte("a"), Consumer: []byte("c")}, AppendConsumer(nil, Consumer{Pending: 1, LastAttempt: 7, LastSuccess: 6}),
			record.AppendConsumer(nil, &record.ConsumerState{Name: []byte("c"), SeenMS: 7, ActiveMS: 6}), [2]uint64{1, 0}},
		{GroupKey{Kind: KindPending, Group: []byte("a"), ID: StreamID{1}}, AppendPending(nil, Pending{Delivered: 5, Count: 3, Consumer: []byte("c")}),
			record.AppendPending(nil, &record.PendingEntry{ID: append([]byte{1}, make([]byte, idLen-1)...), Consumer: []byte("c"), DeliveredMS: 5, Count: 3}), [2]uint64{}},
		{GroupKey{Kind: KindGroup, Group: []byte("aa")}, AppendGroup(nil, Group{}), record.AppendGroup(nil, &record.GroupState{Last: make([]byte, idLen)}), [2]uint64{}},
	}
	var orders [][]byte
	for _, r := range rows {
		got, err := GroupElement(&r.k, r.value)
		if err != nil || !bytes.Equal(got[GroupCounts:], r.want) || !bytes.Equal(got[:GroupCounts], be2(r.counts)) {
			t.Errorf("%+v: %x, %v, want %x", r.k, got, err, r.want)
		}
		for _, old := range []bool{false, true} {
			k := r.k
			k.Old = old
			if keyErr, valueErr := CheckStreamRow(AppendGroupKey(nil, k), r.value); keyErr != nil || valueErr != nil {
				t.Errorf("%+v: %v, %v", k, keyErr, valueErr)
			}
			if keyErr, valueErr := CheckStreamRow(AppendGroupKey(nil, k), r.value[:len(r.value)-1]); keyErr != nil ||
				valueErr == nil {
				t.Errorf("%+v, the value cut: %v, %v", k, keyErr, valueErr)
			}
		}
		order := GroupOrder(nil, &r.k)
		_, rest := SplitGroupOrder(order)
		if !bytes.Equal(rest[1:], append(bytes.Clone(r.k.Consumer), r.k.ID[:len(bytes.Trim(r.k.ID[:], "\x00"))*idLen]...)) {
			t.Errorf("%+v is sorted by %x", r.k, rest)
		}
		orders = append(orders, order)
		if group, _ := SplitGroupOrder(orders[len(orders)-1]); !bytes.Equal(group, r.k.Group) {
			t.Errorf("group %q of %q", group, r.k.Group)
		}
	}
	if !slices.IsSortedFunc(orders, CompareGroups) || CompareGroups(orders[1], orders[1]) != 0 ||
		CompareGroups(orders[3], orders[2]) <= 0 {
		t.Errorf("%q are not in order", orders)
	}
	if keyErr, _ := CheckStreamRow(groupsMark, nil); keyErr == nil {
		t.Error("a key without a kind")
	}
	if keyErr, valueErr := CheckStreamRow(make([]byte, idLen), []byte{5}); keyErr != nil || valueErr == nil {
		t.Errorf("an entry whose field is cut: %v, %v", keyErr, valueErr)
	}
}

// TestSpace: keys of a namespace are within it, decode, and are sampled correctly even if truncated.
func TestSpace(t *testing.T) {
	for _, s := range []Space{{Namespace: []byte("ns")}, {Namespace: []byte(DefaultNamespace), Slotted: true},
		{Namespace: bytes.Repeat([]byte{0xff}, MaxNamespace)}} {
		prefix, upper := s.Prefix()
		key := []byte("a{tag}")
		meta, row := s.AppendMetaKey(nil, key), AppendSubKey(nil,
			SubKey{Namespace: s.Namespace, Slot: s.slotOf(key), Key: key, Version: 9, Sub: []byte("f")})
		for _, raw := range [][]byte{meta, row} {
			if !bytes.HasPrefix(raw, prefix) || upper != nil && bytes.Compare(raw, upper) >= 0 ||
				upper == nil && s.Namespace[0] != 0xff {
				t.Errorf("%q is not from %q to %q", raw, prefix, upper)
			}
		}
		k, err := DecodeMetaKey(meta, s.Slotted)
		if err != nil || !bytes.Equal(k.Key, key) || s.Slotted && k.Slot != Slot([]byte("tag")) {
			t.Errorf("%+v, %v", k, err)
		}
		lo, hi := s.Below(key)
		if !bytes.HasPrefix(row, s.AppendVersion(nil, key, 9)) || bytes.Compare(row, lo) < 0 || bytes.Compare(row, hi) >= 0 {
			t.Errorf("%q is not from %q to %q", row, lo, hi)
		}
		for n := range len(row) {
			if got := s.Sampled(true)(row[:n]); !bytes.HasPrefix(key, got) {
				t.Errorf("%q: user key %q", row[:n], got)
			}
		}
		if got := s.Sampled(false)(meta[:len(meta)-1]); string(got) != "a{tag" {
			t.Errorf("%q", got)
		}
		if got := s.Sampled(true)(row); !bytes.Equal(got, key) {
			t.Errorf("%q", got)
		}
		if s.Slotted {
			continue
		}
		if got, ok := s.Lanes().UserKey(row); !ok || !bytes.Equal(got, key) ||
			!bytes.HasPrefix(row, s.Lanes().AppendPrefix(nil, len(key))) {
			t.Errorf("%q, %v", got, ok)
		}
	}
}

// TestSized: names may be empty, and errors of truncated names have the missing length.
func TestSized(t *testing.T) {
	for _, name := range []string{"", "n", "name"} {
		b := AppendSized(nil, []byte(name))
		if v, rest, err := cutSized(b, "name", len(b)); err != nil || string(v) != name || len(rest) != 0 {
			t.Errorf("%q: %q and %q are left, %v", name, v, rest, err)
		}
		for n := range b {
			if _, _, err := cutSized(b[:n], "name", n); err == nil {
				t.Errorf("%d of %d bytes are whole", n, len(b))
			}
		}
	}
}

// TestLanes: every length of a key that Go can hold has a lane.
func TestLanes(t *testing.T) {
	l := Space{Namespace: []byte("ns")}.Lanes()
	for klen, want := range map[int]bool{0: true, 7: true, math.MaxInt32: true, math.MaxInt32 + 1: false, math.MaxUint32: false} {
		if n, ok := l.Parse(l.AppendPrefix(nil, klen)); ok != want || ok && n != klen {
			t.Errorf("klen %d: %d, %t", klen, n, ok)
		}
	}
}
