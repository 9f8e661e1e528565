package dataset

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/shared/hll"
	"kvferry/record"
)

// open are limits of a target that holds everything.
func open() format.Limits {
	return format.Limits{Types: record.AllTypes, EmptyKey: true, FieldExpiry: true, StreamGroups: true}
}

// trial is a record that some limit concerns.
type trial struct {
	name string
	record.Header
	elems []record.Element
}

func trials() []trial {
	k := []byte("k")
	group := record.AppendGroup(nil, &record.GroupState{Last: make([]byte, 16), Read: 3})
	pending := record.AppendPending(nil, &record.PendingEntry{ID: make([]byte, 16), Consumer: []byte("c"), Count: 1})
	list := []trial{
		{"plain", record.Header{Type: record.String, Key: k}, []record.Element{{Value: k}}},
		{"empty string", record.Header{Type: record.String}, nil},
		{"empty hash", record.Header{Type: record.Hash}, nil},
		{"empty list", record.Header{Type: record.List}, nil},
		{"long string", record.Header{Type: record.String, Key: make([]byte, 300)}, nil},
		{"long hash", record.Header{Type: record.Hash, Key: make([]byte, 300)}, nil},
		{"NUL", record.Header{Type: record.Hash, Key: []byte("a\x00b")}, nil},
		{"many", record.Header{Type: record.Hash, Key: k, Len: 1 << 33}, nil},
		{"many items", record.Header{Type: record.List, Key: k, Len: 1 << 33}, nil},
		{"set", record.Header{Type: record.Set, Key: k}, []record.Element{{Name: k}}},
		{"stream", record.Header{Type: record.Stream, Key: k, Len: 1, Added: 3, MaxDeleted: make([]byte, 16)}, []record.Element{
			{Kind: record.Group, Name: k, Value: group}, {Kind: record.Pending, Name: k, Value: pending}, {Kind: record.Group, Value: group}}},
		{"fields", record.Header{Type: record.Hash, Key: k}, []record.Element{{Name: k, ExpireMS: -1}, {}, {Name: k, Value: make([]byte, 1000)}}},
		{"members", record.Header{Type: record.ZSet, Key: k}, []record.Element{{Name: k, Score: 1e14}, {Name: make([]byte, 300), Score: 1}, {Name: k, Score: 1.5}}},
	}
	for _, ms := range []int64{-5000, -1, 1000, 1700000000001, 1 << 50} {
		for _, typ := range []record.Type{record.String, record.Stream} {
			list = append(list, trial{fmt.Sprintf("%s %d", typ, ms), record.Header{Type: typ, Key: k, ExpireMS: ms}, nil})
		}
	}
	return list
}

// losses lists the losses of all trials, with ! if data is dropped and ? for a note, and changed expiries.
func losses(l format.Limits) (out []string) {
	a := &Adapter{Limits: l, Engine: "X"}
	for _, x := range trials() {
		was, text := x.ExpireMS, x.name+":"
		report := func(l record.Loss) {
			text += " " + l.Kind
			if l.Drops {
				text += "!"
			}
			if l.Note {
				text += "?"
			}
		}
		for _, l := range a.Losses(&x.Header) {
			report(l)
		}
		n := len(x.elems)
		if left := len(a.ElementLosses(&x.Header, x.elems, report)); left < n {
			text += fmt.Sprintf(" -%d", n-left)
		}
		if x.ExpireMS != was {
			text += fmt.Sprintf(" ms=%d", x.ExpireMS)
		}
		if text != x.name+":" {
			out = append(out, text)
		}
	}
	return out
}

// elsewhere are limits that do not concern what a target holds of one record, or that whoever copies records applies.
var elsewhere = strings.Fields("Place SameName FieldExpiry StreamGroups FieldsRead MembersExpire Unowned NoBlankStream Opaque Unheld AnyOrder " +
	"NoTarget Databases Numbered MaxDBs DefaultDB DBPrefix Cluster SST Layouts Layout Instances Slots Stores Detail ScoreDetail OtherDetails Losses " +
	"Start StartDB Beside")

// TestEachLimit sets every limit alone: a target loses exactly what that limit says. A new limit needs a case here.
func TestEachLimit(t *testing.T) {
	if got := losses(open()); got != nil {
		t.Fatalf("a target without limits loses %q", got)
	}
	tested := slices.Clone(elsewhere)
	for _, c := range []struct {
		name string
		set  func(l *format.Limits)
		want string
	}{
		{"Types", func(l *format.Limits) { l.Types &^= record.Of(record.Set) }, "set: set!"},
		{"Types", func(l *format.Limits) { l.Types &^= record.Of(record.Stream) },
			"stream: stream!|stream -5000: stream!|stream -1: stream!|stream 1000: stream!|stream 1700000000001: stream!|stream 1125899906842624: stream!"},
		{"Seconds", func(l *format.Limits) { l.Seconds = true }, "string -1: expiry-ms|stream -1: expiry-ms|string 1700000000001: expiry-ms|" +
			"stream 1700000000001: expiry-ms|string 1125899906842624: expiry-ms|stream 1125899906842624: expiry-ms"},
		{"MaxExpireMS", func(l *format.Limits) { l.MaxExpireMS = LastSecond * 1000 },
			"string 1125899906842624: expiry-2038 ms=2147483647000|stream 1125899906842624: expiry-2038 ms=2147483647000"},
		{"MaxExpireMS", func(l *format.Limits) { l.MaxExpireMS, l.Seconds, l.FirstMS = math.MaxUint32*1000, true, 1000 },
			"fields: expiry-ms?|string -5000: expiry-ms? ms=1000|stream -5000: expiry-ms? ms=1000|string -1: expiry-ms? ms=1000|stream -1: expiry-ms? ms=1000|" +
				"string 1700000000001: expiry-ms ms=1700000001000|stream 1700000000001: expiry-ms ms=1700000001000|" +
				"string 1125899906842624: expiry-2106 ms=4294967295000|stream 1125899906842624: expiry-2106 ms=4294967295000"},
		{"MaxKey", func(l *format.Limits) { l.MaxKey = 299 }, "long hash: key-too-long!"},
		{"EmptyKey", func(l *format.Limits) { l.EmptyKey = false }, "empty hash: empty-key!|empty list: empty-key!"},
		{"EveryKey", func(l *format.Limits) { l.EveryKey = true }, "empty string: empty-key!|empty hash: empty-key!"},
		{"EveryKey", func(l *format.Limits) { l.EveryKey, l.MaxKey = true, 299 },
			"empty string: empty-key!|empty hash: empty-key!|long string: key-too-long!|long hash: key-too-long!"},
		{"NoInnerNUL", func(l *format.Limits) { l.NoInnerNUL = true }, "NUL: inner-nul!"},
		{"NoStreamExpiry", func(l *format.Limits) { l.NoStreamExpiry = true }, "stream -5000: stream-expiry ms=0|stream -1: stream-expiry ms=0|" +
			"stream 1000: stream-expiry ms=0|stream 1700000000001: stream-expiry ms=0|stream 1125899906842624: stream-expiry ms=0"},
		{"OnlyStrings", func(l *format.Limits) { l.OnlyStrings = true }, "stream -5000: collection-expiry ms=0|stream -1: collection-expiry ms=0|" +
			"stream 1000: collection-expiry ms=0|stream 1700000000001: collection-expiry ms=0|stream 1125899906842624: collection-expiry ms=0"},
		{"MinExpireMS", func(l *format.Limits) { l.MinExpireMS, l.OnlyStrings = 2000, true }, "string -5000: expiry-ms? ms=2000|stream -5000: collection-expiry ms=0|" +
			"string -1: expiry-ms? ms=2000|stream -1: collection-expiry ms=0|string 1000: expiry-ms? ms=2000|stream 1000: collection-expiry ms=0|" +
			"stream 1700000000001: collection-expiry ms=0|stream 1125899906842624: collection-expiry ms=0"},
		{"FirstMS", func(l *format.Limits) { l.FirstMS = 1 }, "fields: expiry-ms?|string -5000: expiry-ms? ms=1|stream -5000: expiry-ms? ms=1|" +
			"string -1: expiry-ms? ms=1|stream -1: expiry-ms? ms=1"},
		{"Signed", func(l *format.Limits) { l.Signed = record.AllTypes }, ""},
		{"Signed", func(l *format.Limits) { l.FirstMS, l.Signed = 1, record.Of(record.Stream) }, "fields: expiry-ms?|string -5000: expiry-ms? ms=1|" +
			"string -1: expiry-ms? ms=1|stream -1: expiry-ms? ms=1"},
		{"MaxName", func(l *format.Limits) { l.MaxName = 299 }, "fields: name-length! -1|members: name-length! -1"},
		{"MaxScore", func(l *format.Limits) { l.MaxScore = 1e13 }, "members: score-range! -1"},
		{"WholeScores", func(l *format.Limits) { l.WholeScores = true }, "members: score-precision"},
		{"MaxElements", func(l *format.Limits) { l.MaxElements = 1<<33 - 1 }, "many: too-many-elements!|many items: too-many-elements!"},
		{"Unbounded", func(l *format.Limits) { l.Unbounded = record.Of(record.List) }, ""},
		{"Unbounded", func(l *format.Limits) { l.MaxElements, l.Unbounded = 1<<33-1, record.Of(record.List) }, "many: too-many-elements!"},
		{"NamedGroups", func(l *format.Limits) { l.NamedGroups = true }, "stream: stream-groups! -1"},
		{"NoProgress", func(l *format.Limits) { l.NoProgress = true }, "stream: group-progress? group-progress?"},
		{"LargeValue", func(l *format.Limits) { l.LargeValue = 1000 }, "fields: large-value?"},
	} {
		l := open()
		c.set(&l)
		if got := strings.Join(losses(l), "|"); got != c.want {
			t.Errorf("%s: lost\n%s\nwant\n%s", c.name, got, c.want)
		}
		tested = append(tested, c.name)
		checkUnchanged(t, l)
	}
	for i := range reflect.TypeFor[format.Limits]().NumField() {
		if name := reflect.TypeFor[format.Limits]().Field(i).Name; !slices.Contains(tested, name) {
			t.Errorf("no case sets the limit %s", name)
		}
	}
}

// checkUnchanged checks that Unchanged accepts strings without losses and no others.
func checkUnchanged(t *testing.T, l format.Limits) {
	t.Helper()
	sparse := append([]byte("HYLL\x01"), make([]byte, hll.HeaderSize)...)
	a := &Adapter{Limits: l, Engine: "X", Counts: hll.Raw}
	for _, x := range trials() {
		for _, value := range [][]byte{nil, []byte("HYLL"), sparse, make([]byte, hll.RawSize)} {
			h, elems := x.Header, []record.Element{{Value: []byte("v")}, {Value: value}, {Value: []byte("w")}}
			if h.Type != record.String {
				continue
			}
			batch := []record.Record{{Header: record.Header{Type: record.String, Key: []byte("k")}}, {Header: h, First: 1},
				{Header: record.Header{Type: record.String, Key: []byte("l")}, First: 2}}
			n := a.Unchanged(batch, elems)
			losses := len(a.Losses(&h))
			a.ElementLosses(&h, elems[1:2], func(record.Loss) { losses++ })
			if n != 3 && losses == 0 || n != 1 && losses > 0 || batch[1].ExpireMS != x.ExpireMS {
				t.Errorf("%s, %d bytes: %d losses, but %d of 3 strings are kept unchanged", x.name, len(value), losses, n)
			}
		}
	}
}

// TestBeyond: each limit of a target makes its losses possible, unless the source has the same limit.
func TestBeyond(t *testing.T) {
	for _, c := range []struct {
		set  func(l *format.Limits)
		want string
	}{
		{func(l *format.Limits) { l.MaxKey = 254 }, record.LossKeyTooLong},
		{func(l *format.Limits) { l.EmptyKey = false }, record.LossEmptyKey},
		{func(l *format.Limits) { l.NoInnerNUL = true }, record.LossInnerNUL},
		{func(l *format.Limits) { l.MaxElements = math.MaxInt32 }, record.LossTooManyElements},
		{func(l *format.Limits) { l.NoStreamExpiry = true }, record.LossStreamExpiry},
		{func(l *format.Limits) { l.OnlyStrings = true }, LossCollectionExpiry},
		{func(l *format.Limits) { l.Seconds = true }, record.LossExpiryMS},
		{func(l *format.Limits) { l.MinExpireMS = 2e9 }, record.LossExpiryMS},
		{func(l *format.Limits) { l.MaxExpireMS = LastSecond * 1000 }, record.LossExpiry2038},
		{func(l *format.Limits) { l.MaxExpireMS = math.MaxUint32 * 1000 }, record.LossExpiry2106},
		{func(l *format.Limits) { l.MaxScore = 1e13 }, record.LossScoreRange},
	} {
		from, to := open(), open()
		c.set(&to)
		kinds := Beyond(&from, &to)
		slices.Sort(kinds)
		if got := strings.Join(slices.Compact(kinds), " "); got != c.want && got != c.want+" "+record.LossExpiryMS {
			t.Errorf("possible are %q, want %s", got, c.want)
		}
		if kinds := Beyond(&to, &to); len(kinds) > 0 {
			t.Errorf("%s: from a source with this limit %q are possible", c.want, kinds)
		}
	}
	from, to := open(), open()
	from.MaxElements, from.Unbounded, to.MaxElements = math.MaxInt32, record.Of(record.List), math.MaxInt32
	if !slices.Contains(Beyond(&from, &to), record.LossTooManyElements) {
		t.Error("an endless list fits a list that ends")
	}
}

// TestAdapterAllocates: records and elements without losses are adapted without an allocation.
func TestAdapterAllocates(t *testing.T) {
	l := open()
	l.Seconds, l.MaxExpireMS, l.MaxKey, l.NoInnerNUL, l.NoStreamExpiry, l.EveryKey = true, LastSecond*1000, 254, true, true, true
	l.MaxName, l.MaxScore, l.MaxElements, l.FirstMS, l.NoProgress, l.LargeValue = 255, 1e13, 1<<31, 1000, true, 1000
	l.WholeScores, l.NamedGroups = true, true
	a := &Adapter{Limits: l, Engine: "X", Counts: hll.Raw}
	key, ms := []byte("k"), int64(1700000000000)
	elems := []record.Element{{Name: key, Value: key, Score: 2}, {Name: key, Value: key, Score: -3}}
	strs := []record.Record{{Header: record.Header{Type: record.String, Key: key, ExpireMS: ms}, N: 1}}
	report := func(l record.Loss) { t.Errorf("%+v", l) }
	for _, typ := range record.AllTypes.Types() {
		h := &record.Header{Type: typ, Key: key, ExpireMS: ms, Len: 2}
		if typ == record.Stream {
			h.ExpireMS = 0
		}
		n := testing.AllocsPerRun(10, func() {
			if out := a.Losses(h); out != nil || len(a.ElementLosses(h, elems, report)) != 2 || a.Unchanged(strs, elems) != 1 {
				t.Errorf("%s: %+v", typ, out)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations", typ, n)
		}
	}
}

// TestOwn: a target of its source's format keeps names that only earlier servers made.
func TestOwn(t *testing.T) {
	l := open()
	l.EveryKey, l.MaxKey, l.MaxName = true, 255, 255
	for _, c := range []struct {
		h    record.Header
		want string
	}{
		{record.Header{Type: record.String}, ""}, {record.Header{Type: record.String, Key: make([]byte, 300)}, ""},
		{record.Header{Type: record.String, ExpireMS: 5000}, record.LossEmptyKey},
		{record.Header{Type: record.Hash}, record.LossEmptyKey}, {record.Header{Type: record.Hash, Key: make([]byte, 300)}, record.LossKeyTooLong},
	} {
		a := &Adapter{Limits: l, Own: true, Engine: "X"}
		var loss record.Loss
		a.limit(&c.h, &loss)
		if loss.Kind != c.want {
			t.Errorf("%s of %d bytes, %d: %q, want %q", c.h.Type, len(c.h.Key), c.h.ExpireMS, loss.Kind, c.want)
		}
		for typ, n := range map[record.Type]int{record.Hash: 1, record.ZSet: 0} {
			got := a.ElementLosses(&record.Header{Type: typ}, []record.Element{{}}, func(record.Loss) {})
			if len(got) != n {
				t.Errorf("%s: %d elements without a name are kept", typ, len(got))
			}
		}
	}
}
