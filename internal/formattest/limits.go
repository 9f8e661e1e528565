package formattest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/record"
)

// Limits compares what a format says it can hold with want: a line of "name" or "name=value" for every limit that is set, in
// the order of format.Limits, as in "Types=string,hash Seconds MaxExpireMS=2147483647000". Of a store it says what is read and
// written; text for people is left out.
func Limits(t testing.TB, f format.Format, want string) {
	t.Helper()
	var got []string
	v := reflect.ValueOf(f.Limits())
	for i := range v.NumField() {
		name, x := v.Type().Field(i).Name, v.Field(i)
		switch {
		case x.IsZero() || strings.HasSuffix(name, "Detail") || strings.HasSuffix(name, "Details") || name == "Databases" || name == "Losses":
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

// supports says what is done with stores, and demands a reason for what is not.
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

// Losses says what a target loses of a record: the kinds, with ! when something is dropped and ? when it is only told, and the
// expiry when that changes, as in "expiry-ms ms=1000".
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
