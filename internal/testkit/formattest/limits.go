package formattest

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/shared/hll"
	"kvferry/record"
)

// Limits compares the limits of a format with want: a "name" or "name=value" for each limit that is set, in the order
// of format.Limits, as in "Types=string,hash Seconds MaxExpireMS=2147483647000". A store is listed with r if it is
// read and w if it is written. Texts for users are left out.
func Limits(t testing.TB, f format.Format, want string) {
	t.Helper()
	var got []string
	v := reflect.ValueOf(f.Limits())
	for i := range v.NumField() {
		name, x := v.Type().Field(i).Name, v.Field(i)
		switch {
		case x.IsZero() || strings.HasSuffix(name, "Detail") || strings.HasSuffix(name, "Details") || name == "Databases" ||
			name == "Losses" || strings.HasPrefix(name, "Start"):
		case name == "Stores":
			got = append(got, supports(f.Limits().Stores)...)
		case x.Kind() == reflect.Bool:
			got = append(got, name)
		default:
			got = append(got, fmt.Sprintf("%s=%v", name, x.Interface()))
		}
	}
	if text := strings.Join(got, " "); text != want {
		t.Errorf("%s says\n%s, want\n%s", f.Name(), text, want)
	}
}

// supports formats the support of stores. Unsupported operations must have a reason.
func supports(stores []format.StoreSupport) (out []string) {
	for _, s := range stores {
		text := s.Store + ":"
		if s.Read {
			text += "r"
		}
		if s.Write {
			text += "w"
		}
		if (s.Read && s.Write) == (s.Why != "") {
			text += " for no reason"
		}
		out = append(out, text)
	}
	return out
}

// Losses formats the losses of a record in a target: their kinds, with ! if data is dropped and ? for a note, and the
// new expiry if it changes, as in "expiry-ms ms=1000".
func Losses(t testing.TB, dst format.Target, h record.Header) string {
	t.Helper()
	was := h.ExpireMS
	var out []string
	for _, l := range dst.Losses(&h) {
		text := l.Kind
		if l.Drops {
			text += "!"
		}
		if l.Note {
			text += "?"
		}
		if l.Detail == "" {
			t.Errorf("%s has no detail", l.Kind)
		}
		out = append(out, text)
	}
	if h.ExpireMS != was {
		out = append(out, fmt.Sprintf("ms=%d", h.ExpireMS))
	}
	return strings.Join(out, " ")
}

// Unchanged checks that a target's Unchanged accepts only strings without losses, and accepts a plain string.
func Unchanged(t testing.TB, dst format.Target) {
	t.Helper()
	plain := stringOf("k", []byte("v"), 0)
	if one := dst.Unchanged(together(plain)); one != 1 {
		t.Errorf("a plain string is not held as it is")
	}
	sparse := append([]byte("HYLL\x01"), make([]byte, hll.HeaderSize)...)
	dense, _ := hll.Dense(nil, append([]byte("HYLL\x00"), make([]byte, hll.DenseSize-5)...))
	for _, key := range []string{"", "k", "k\x00", "a\x00b"} {
		for _, value := range [][]byte{nil, []byte("HYLL"), sparse, dense, make([]byte, hll.RawSize)} {
			for _, ms := range []int64{0, -5000, -1, 1, 1000, 1700000000001, math.MaxInt32 * 1000, math.MaxInt32*1000 + 1000,
				math.MaxUint32 * 1000, math.MaxUint32*1000 + 1000, 1 << 50} {
				checkUnchanged(t, dst, plain, stringOf(key, value, ms))
			}
		}
	}
}

// text is a string and its element.
type text struct {
	record.Record
	record.Element
}

func stringOf(key string, value []byte, ms int64) text {
	return text{record.Record{Header: record.Header{Type: record.String, Key: []byte(key), ExpireMS: ms, Len: 1}, N: 1},
		record.Element{Value: value}}
}

// together puts strings into a batch.
func together(list ...text) (records []record.Record, elems []record.Element) {
	for i, s := range list {
		s.First = i
		records, elems = append(records, s.Record), append(elems, s.Element)
	}
	return records, elems
}

func checkUnchanged(t testing.TB, dst format.Target, plain, s text) {
	t.Helper()
	ms := s.Header.ExpireMS
	n := dst.Unchanged(together(plain, s, plain))
	if n != 1 && n != 3 {
		t.Errorf("%d of 3 strings are held as they are, the second with key %q, a value of %d bytes, expiry %d", n, s.Key,
			len(s.Value), ms)
	}
	if n == 1 {
		return
	}
	h := s.Header
	losses := dst.Losses(&h)
	elems := dst.ElementLosses(&h, []record.Element{{Value: s.Value}}, func(l record.Loss) { losses = append(losses, l) })
	if len(losses) > 0 || h.ExpireMS != ms || len(elems) != 1 || !bytes.Equal(elems[0].Value, s.Value) {
		t.Errorf("key %q, a value of %d bytes, expiry %d: said to be held as it is, but it loses %v", s.Key, len(s.Value), ms,
			losses)
	}
}
