package record

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
)

func groupID(n byte) []byte { return append(make([]byte, 15), n) }

// TestGroupCoding encodes and decodes groups, consumers and pending entries. Every prefix is an error.
func TestGroupCoding(t *testing.T) {
	g := GroupState{Last: groupID(7), Read: -1}
	packed := AppendGroup([]byte("x"), &g)[1:]
	if got, err := DecodeGroup(packed); err != nil || !bytes.Equal(got.Last, g.Last) || got.Read != -1 {
		t.Errorf("%+v, %v", got, err)
	}
	refuses(t, packed, "offset 0: group: need 24 bytes, have 0: ", func(b []byte) error { _, err := DecodeGroup(b); return err })
	c := ConsumerState{Name: []byte("alice"), SeenMS: 12, ActiveMS: -1}
	packed = AppendConsumer(nil, &c)
	if got, err := DecodeConsumer(packed); err != nil || string(got.Name) != "alice" || got.SeenMS != 12 || got.ActiveMS != -1 {
		t.Errorf("%+v, %v", got, err)
	}
	refuses(t, packed, "offset 0: consumer: need 16 bytes, have 0: ", func(b []byte) error {
		_, err := DecodeConsumer(b)
		return err
	})
	p := PendingEntry{ID: groupID(3), Consumer: []byte("bob"), DeliveredMS: 99, Count: 4}
	packed = AppendPending(nil, &p)
	got, err := DecodePending(packed)
	if err != nil || !bytes.Equal(got.ID, p.ID) || string(got.Consumer) != "bob" || got.DeliveredMS != 99 || got.Count != 4 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := DecodePending(slices.Insert(slices.Clone(packed), len(packed)-16, 'x')); !errors.Is(err, ErrTrailing) {
		t.Errorf("a byte after the consumer: %v", err)
	}
	// 32 bytes decode as an entry without a consumer
	refuses(t, packed[:32], "offset 0: pending entry: need 32 bytes, have 0: ",
		func(b []byte) error { _, err := DecodePending(b); return err })
}

// refuses checks that no strict prefix decodes, and the start of the error for empty input.
func refuses(t *testing.T, whole []byte, want string, decode func([]byte) error) {
	t.Helper()
	if err := decode(nil); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	for n := range whole {
		if decode(whole[:n]) == nil {
			t.Errorf("%d of %d bytes decode", n, len(whole))
		}
	}
	if decode(append(slices.Clone(whole), 0)) == nil {
		t.Errorf("%d bytes and one more decode", len(whole))
	}
}

// TestElementOrder sorts the elements of a stream with groups: entries by id, then each group with its consumers and
// its pending entries.
func TestElementOrder(t *testing.T) {
	consumer := func(name string) []byte { return AppendConsumer(nil, &ConsumerState{Name: []byte(name)}) }
	pending := func(n byte) []byte { return AppendPending(nil, &PendingEntry{ID: groupID(n), Consumer: []byte("c")}) }
	want := []Element{
		{Name: groupID(1)}, {Name: groupID(2)}, {Kind: Group, Name: nil},
		{Kind: Group, Name: []byte("a")}, {Kind: Consumer, Name: []byte("a"), Value: consumer("c")}, {Kind: Consumer, Name: []byte("a"), Value: consumer("d")},
		{Kind: Pending, Name: []byte("a"), Value: pending(1)}, {Kind: Pending, Name: []byte("a"), Value: pending(2)},
		{Kind: Group, Name: []byte("b")}, {Kind: Consumer, Name: []byte("b"), Value: consumer("c")},
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, func(x, y Element) int { return CompareElements(&x, &y) })
	for i := range want {
		if CompareElements(&got[i], &want[i]) != 0 || !EqualElements(&got[i], &want[i]) {
			t.Errorf("place %d: %+v, want %+v", i, got[i], want[i])
		}
	}
	a, b := Element{Value: []byte("v")}, Element{Value: []byte("v"), ExpireMS: 5}
	if EqualElements(&a, &b) {
		t.Error("a field that expires equals one that does not")
	}
	seen := Element{Kind: Consumer, Name: []byte("a"), Value: AppendConsumer(nil, &ConsumerState{Name: []byte("c"), SeenMS: 9})}
	if !EqualElements(&want[4], &seen) {
		t.Error("when a consumer was seen is no difference")
	}
}

func TestSmallWords(t *testing.T) {
	if q := Quote(make([]byte, maxQuoted)); q != `"`+strings.Repeat(`\x00`, 64)+`"` || Quote(make([]byte, maxQuoted+1)) != q+"…" {
		t.Errorf("64 bytes are shown as %s", q)
	}
	if Count(1, "file") != "1 file" || Count(2, "file") != "2 files" {
		t.Errorf("%q, %q", Count(1, "file"), Count(2, "file"))
	}
	for typ, want := range map[Type][2]int64{Hash: {2, 4}, ZSet: {2, 20}, Stream: {2, 4}} {
		n, bytes := Measure(typ, []Element{{Name: []byte("ab"), Value: []byte("c")}, {Name: []byte("m")},
			{Kind: Group, Name: []byte("g")}})
		if n != want[0] || bytes != want[1] {
			t.Errorf("%s: %d elements of %d bytes", typ, n, bytes)
		}
	}
	kinds := map[string]bool{}
	for _, info := range LossInfos() {
		if info.Text == "" || kinds[info.Kind] {
			t.Errorf("%+v", info)
		}
		kinds[info.Kind] = true
	}
}
