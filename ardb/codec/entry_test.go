package codec

import (
	"bytes"
	"strings"
	"testing"

	"kvferry/record"
)

func pairs(texts ...string) (out []byte) {
	for i := 0; i < len(texts); i += 2 {
		out = record.AppendPair(out, []byte(texts[i]), []byte(texts[i+1]))
	}
	return out
}

// TestEntries checks the packed form of the rows of a stream that the server wrote.
func TestEntries(t *testing.T) {
	var meta Fields
	names := []Data{text("temp"), text("hum")}
	if err := meta.Encode(pairs("temp", "20", "hum", "h0")); err != nil || meta.N != 2 || !bytes.Equal(meta.Names, unhex(t, "0404 74656d70 0403 68756d")) {
		t.Fatalf("%+v, %v", meta, err)
	}
	for name, c := range map[string]struct {
		pairs []byte
		val   string
	}{
		"the names of META":     {pairs("temp", "20", "hum", "h0"), "0d 03 0104 0128 0402 6830"},
		"names of its own":      {pairs("temp", "20", "wind", "n"), "0d 05 0104 0128 0401 6e 0404 74656d70 0404 77696e64"},
		"fewer fields":          {pairs("hum", "h0"), "0d 03 0102 0402 6830 0403 68756d"},
		"no field":              {nil, "0d 01 0100"},
		"values that are empty": {pairs("temp", "", "hum", ""), "0d 03 0104 0400 0400"},
	} {
		var f Fields
		if err := f.Encode(c.pairs); err != nil || f.N != CountPairs(c.pairs) {
			t.Fatal(f.N, err)
		}
		got, behind := AppendEntryHead([]byte("x"), &f, &meta)
		if got = append(append(got, f.Values...), behind...); !bytes.Equal(got[1:], unhex(t, c.val)) {
			t.Errorf("%s: encodes to %x, want %s", name, got[1:], c.val)
		}
		if got, err := AppendPairs([]byte("x"), unhex(t, c.val), names); err != nil || !bytes.Equal(got[1:], c.pairs) {
			t.Errorf("%s: decodes to %q, want %q: %v", name, got[1:], c.pairs, err)
		}
	}
	if err := meta.Encode([]byte{9}); err == nil {
		t.Error("half a pair is encoded")
	}
	// Numeric names and values are returned as text.
	if got, err := AppendPairs(nil, unhex(t, "0d 03 0102 0128 010a"), nil); err != nil || !bytes.Equal(got, pairs("5", "20")) {
		t.Errorf("%q, %v", got, err)
	}
}

func TestEntryErrors(t *testing.T) {
	names := []Data{text("temp"), text("hum")}
	for val, want := range map[string]string{
		"0d":                      "count",
		"0d 00":                   "field count",
		"04 01 0102":              "a stream entry row with a value of kind hash field",
		"0d 03 0401 61 0128 0128": "a field count that is not a number",
		"0d 03 0103 0128 0128":    "a field count that is not a number",
		"0d 03 0106 0128 0128":    "3 fields with 2 data, META names 2",
		"0d 04 0104 01280128":     "2 fields with 3 data",
		"0d 03 0104 0128":         "field value",
		"0d 05 0104 0128":         "field value",
		"0d 05 0104 0128 0128 04": "field name",
		"0d 03 0104 0128 0128 00": "1 bytes after the last datum",
		"0d 05 0104 0128 0128 0401 61 0401 62 00": "1 bytes after the last datum",
	} {
		if _, err := AppendPairs(nil, unhex(t, val), names); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", val, err, want)
		}
	}
}
