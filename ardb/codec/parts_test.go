package codec

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"kvferry/record"
)

// TestWiden: the bounds are the least and the greatest element so far, in the server's order.
func TestWiden(t *testing.T) {
	var least, most []byte
	for _, tt := range []struct{ d, least, most Data }{
		{IntData(5), IntData(5), IntData(5)},
		{text("b"), IntData(5), text("b")},
		{IntData(7), IntData(5), text("b")},
		{FloatData(0.5), FloatData(0.5), text("b")},
		{text("ba"), FloatData(0.5), text("ba")},
	} {
		least, most = Widen(least, most, tt.d)
		if !bytes.Equal(least, AppendData(nil, tt.least)) || !bytes.Equal(most, AppendData(nil, tt.most)) {
			t.Errorf("with %v: %x to %x", tt.d, least, most)
		}
	}
}

// TestKeyParts: keys appended in parts equal whole keys, and their parts are found again.
func TestKeyParts(t *testing.T) {
	user := []byte("u")
	prefix := AppendPrefix(nil, nil, user)
	for typ, kind := range map[record.Type]Kind{record.Hash: KindField, record.List: KindElement, record.Set: KindMember,
		record.ZSet: KindScore, record.Stream: KindEntry} {
		if got := ElementKind(typ); got != kind || got.Type() != typ {
			t.Errorf("elements of a %v are of kind %s", typ, got)
		}
		if got := AppendTail(bytes.Clone(prefix), kind, text("e")); !bytes.Equal(got, AppendKey(nil, nil, user, kind, text("e"))) {
			t.Errorf("%s: %x", kind, got)
		}
	}
	if !IsMeta(AppendKey(nil, nil, user, KindMeta)[len(prefix):]) ||
		IsMeta(AppendKey(nil, nil, user, KindMember, text("e"))[len(prefix):]) {
		t.Error("META rows are not known from others")
	}
	index := AppendText(nil, []byte(TTLNamespace))
	k, err := DecodeKey(AppendTTLKey(nil, index, 1700000000000, text("3"), user), true)
	if err != nil || k.Kind != KindTTL || string(k.Namespace.Text) != TTLNamespace || len(k.User) != 0 ||
		k.Elems[0].Int != 1700000000000 || string(k.Elems[1].Text) != "3" || string(k.Elems[2].Text) != "u" {
		t.Errorf("TTL row: %+v, %v", k, err)
	}
}

func TestSplitSort(t *testing.T) {
	tail := func(elems ...Data) []byte { return AppendKey(nil, nil, nil, KindSort, elems...)[2:] }
	for want, score := range map[float64]Data{-2.5: FloatData(-2.5), 7: IntData(7)} {
		if got, member, ok := SplitSort(tail(score, text("m"))); !ok || got != want || string(member.Text) != "m" {
			t.Errorf("%v: score %v, member %v, %t", score, got, member, ok)
		}
	}
	whole := tail(IntData(7), text("m"))
	for _, b := range [][]byte{nil, {2}, {2, 9}, tail(IntData(7)), tail(text("7"), text("m")), whole[:len(whole)-1],
		append(bytes.Clone(whole), 0)} {
		if _, _, ok := SplitSort(b); ok {
			t.Errorf("%x is a sort row", b)
		}
	}
}

// TestLastID: a stream's last id is never before its last entry, and exists in an empty stream.
func TestLastID(t *testing.T) {
	id := func(n byte) []byte { return append(make([]byte, IDSize-1), n) }
	for _, tt := range []struct{ last, entry, want []byte }{
		{id(3), id(2), id(3)},
		{id(2), id(3), id(3)},
		{nil, id(3), id(3)},
		{id(3), nil, id(3)},
		{nil, nil, id(0)},
	} {
		if got := LastID(tt.last, tt.entry); !bytes.Equal(got, tt.want) {
			t.Errorf("%x and %x: %x", tt.last, tt.entry, got)
		}
	}
}

// TestSpans: the integers of one record are tracked across batches, but not across records.
func TestSpans(t *testing.T) {
	var x Spans
	h := &record.Header{Type: record.Set, DB: "0", Key: []byte("a")}
	if !x.Of(h).Take(1, 10) || !x.Of(h).Take(10, 10) || x.Of(h).Take(11, 10) || x.Of(h).Take(math.MinInt64, 10) ||
		!x.Of(h).Take(5, 10) {
		t.Errorf("integers of one set: %+v", x.Of(h).ints)
	}
	if other := (&record.Header{Type: record.Set, DB: "0", Key: []byte("a")}); !x.Of(other).Take(1000, 10) {
		t.Error("two passes share their integers")
	}
	h.Key = []byte("b")
	if !x.Of(h).Take(1000, 10) || x.Of(h).Take(1, 10) {
		t.Errorf("integers of the next set: %+v", x.Of(h).ints)
	}
}

// wants reports whether err has a text; "" matches nil.
func wants(err error, want string) bool {
	if want == "" || err == nil {
		return want == "" && err == nil
	}
	return strings.Contains(err.Error(), want)
}

// TestRowValues: rows of elements have one datum or are empty; other values are errors that name the field.
func TestRowValues(t *testing.T) {
	field := AppendValue(nil, &Value{Kind: KindField}, text("v"))
	none := AppendValue(nil, &Value{Kind: KindMember})
	for _, tt := range []struct {
		value            []byte
		only, none, pend string
	}{
		{field, "", "a set member row with a value of kind hash field", "a stream group row with a value of kind hash field"},
		{none, "a hash field row with a value of kind set member", "", "a stream group row with a value of kind set member"},
		{nil, "a hash field row with", "a set member row without a value", "a stream group row with"},
		{[]byte{byte(KindField), 0}, "a hash field row without a value", "value of kind hash field", "value of kind hash field"},
		{field[:len(field)-1], "have", "have", "have"},
		{AppendValue(nil, &Value{Kind: KindPending}, text("id")), "value of kind stream group", "value of kind stream group", ""},
		{AppendValue(nil, &Value{Kind: KindPending}, text("c"), IntData(1), IntData(2)), "value of kind stream group", "value of kind stream group", ""},
		{AppendValue(nil, &Value{Kind: KindPending}, text("c"), IntData(1)), "value of kind stream group", "value of kind stream group", "a stream group row with 2 values"},
	} {
		d, err := DecodeOnly(KindField, tt.value)
		if !wants(err, tt.only) || err == nil && string(d.Text) != "v" {
			t.Errorf("%x: only datum %v, %v", tt.value, d, err)
		}
		if err := DecodeNone(KindMember, tt.value); !wants(err, tt.none) || (err == nil) != IsNone(KindMember, tt.value) {
			t.Errorf("%x: no datum: %v", tt.value, err)
		}
		key := AppendKey(nil, nil, []byte("s"), KindPending, text("g"), text("id"))
		if err := CheckPending(key, tt.value, false); !wants(err, tt.pend) {
			t.Errorf("%x: of a group: %v", tt.value, err)
		}
		if err := CheckPending(key[:len(key)-1], tt.value, false); !isCorrupt(err) {
			t.Errorf("cut key: %v", err)
		}
	}
}

// TestAppendString: counters stay numbers, and the row gets the expiry.
func TestAppendString(t *testing.T) {
	for s, want := range map[string]Data{"12": IntData(12), "0.5": FloatData(0.5), "012": text("012")} {
		v, data, err := DecodeValue(AppendString(nil, []byte(s), 99))
		if err != nil || v.Kind != KindString || v.ExpireMS != 99 || len(data) != 1 || !sameData(data[0], want) {
			t.Errorf("%s: %+v, %v, %v", s, v, data, err)
		}
	}
}
