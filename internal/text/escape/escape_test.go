package escape

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		"":                            "",
		"plain ünï 中 \\x":             "plain ünï 中 \\x",
		"a\nb\tc\rd":                  `a\nb\tc\rd`,
		"\x1b[31m\x00\x7f":            `\x1b[31m\x00\x7f`,
		"c1 \u009b \u0085":            `c1 \u009b \u0085`,
		"bidi \u202e\u2066":           `bidi \u202e\u2066`,
		"marks \u200f\u061c":          `marks \u200f\u061c`,
		"no width \u200b\ufeff\u2060": `no width \u200b\ufeff\u2060`,
		"joined \u200c\u200d":         "joined \u200c\u200d",
		"lines \u2028":                `lines \u2028`,
		"bytes \xff\xc3":              `bytes \xff\xc3`,
		"\ufffd":                      "\ufffd",
	} {
		if got := Text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// TestWriter checks that the output does not depend on how the text is split.
func TestWriter(t *testing.T) {
	const text = "a\tb\n\x1b[2J\u202e中 é\r\n\xff\n"
	const want = "a\tb\n\\x1b[2J\\u202e中 é\\r\n\\xff\n"
	for cut := range len(text) + 1 {
		var b bytes.Buffer
		w := Writer(&b)
		for _, part := range []string{text[:cut], text[cut:]} {
			if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatal(n, err)
			}
		}
		if b.String() != want {
			t.Errorf("cut at %d: %q", cut, b.String())
		}
	}
}

func TestJSON(t *testing.T) {
	const in = "x\u202ey\u009b\x7f\u2028 中 \\ \" \n\x00"
	var b bytes.Buffer
	e := json.NewEncoder(JSONWriter(&b))
	e.SetEscapeHTML(false)
	if err := e.Encode(map[string]string{"k": in}); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsFunc(strings.TrimSuffix(b.String(), "\n"), Active) {
		t.Errorf("%q", b.String())
	}
	var got map[string]string
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || got["k"] != in {
		t.Errorf("%q, %v", got, err)
	}
	if plain := []byte(`{"a":"\u0001"}`); string(JSON(plain)) != string(plain) {
		t.Error("plain JSON was changed")
	}
}
