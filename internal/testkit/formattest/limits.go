package formattest

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"kvferry/format"
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
