package codec

import (
	"fmt"
	"testing"

	"kvferry/format"
)

// show formats a described row, field by field.
func show(r format.Row) string {
	s := fmt.Sprintf("%s type=%s user=%q meta=%v count=%d expire=%d:", r.Kind, r.Type, r.UserKey, r.Meta, r.Count, r.ExpireMS)
	for _, f := range r.Fields {
		v := f.Value
		if b, ok := v.([]byte); ok {
			v = fmt.Sprintf("%q", b)
		}
		s += fmt.Sprintf(" %s[%d+%d] %s=%v", f.Where, f.Off, f.Len, f.Name, v)
	}
	if r.Err != nil {
		s += " ERROR " + r.Err.Error()
	}
	return s
}

func TestDescribe(t *testing.T) {
	for _, r := range goldenRows {
		key, val := unhex(t, r.key), unhex(t, r.val)
		d := Describe("0", key, val, r.named)
		if d.Err != nil {
			t.Errorf("%s: %v", r.name, d.Err)
		}
		covered := map[string]int{}
		for _, f := range d.Fields {
			if f.Off != covered[f.Where] {
				t.Errorf("%s: %s at %d of the %s, want %d", r.name, f.Name, f.Off, f.Where, covered[f.Where])
			}
			covered[f.Where] += f.Len
		}
		if covered["key"] != len(key) || covered["value"] != len(val) {
			t.Errorf("%s: %d of %d bytes of the key, %d of %d of the value\n%s", r.name, covered["key"], len(key),
				covered["value"], len(val), show(d))
		}
		for i := range key {
			Describe("0", key[:i], val, r.named)
		}
		for i := range val {
			Describe("0", key, val[:i], r.named)
		}
	}
	for _, tt := range []struct{ key, val, want string }{
		{"01 61 01 00", "05 00 04 04 01 02 0101 0100", `list meta type=list user="a" meta=true count=2 expire=2: key[0+1] key length=1 key[1+1] key="a" key[2+1] type=meta key[3+1] count=0 ` +
			`value[0+1] type=list value[1+1] format=0 value[2+1] expiry=1970-01-01 00:00:00.002 +0000 UTC value[3+1] size=2 value[4+1] sequential=1 value[5+1] count=2 value[6+2] min=-1 value[8+2] max=0`},
		{"01 61 01 00", "1e 3700 01 0104", `unmerged operand type=invalid user="a" meta=true count=-1 expire=0: key[0+1] key length=1 key[1+1] key="a" key[2+1] type=meta key[3+1] count=0 ` +
			`value[0+1] type=merge operand value[1+2] command=55 value[3+1] count=1 value[4+2] argument 1=2`},
		{"01 61 01 00", "", `meta without a value type=invalid user="a" meta=true count=-1 expire=0: key[0+1] key length=1 key[1+1] key="a" key[2+1] type=meta key[3+1] count=0`},
		{"05 61", "04", `unknown row type=invalid user="" meta=false count=-1 expire=0: key[0+2] key="\x05a" value[0+1] type=hash field value[1+0] rest="" ERROR offset 1: key: need 5 bytes, have 1: too short`},
	} {
		if got := show(Describe("0", unhex(t, tt.key), unhex(t, tt.val), false)); got != tt.want {
			t.Errorf("%s\nwant %s", got, tt.want)
		}
	}
	if d := Describe(LMDBNamespace, []byte("ns:0"), []byte("0"), false); d.Kind != "namespace" || len(d.Fields) != 2 {
		t.Errorf("%+v", d)
	}
}
