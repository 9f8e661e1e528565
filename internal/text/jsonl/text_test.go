package jsonl

import (
	"encoding/json"
	"kvferry/internal/text/escape"
	"kvferry/record"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for text, want := range map[Text]string{
		"": `""`, "bar": `"bar"`, "a\"b\n<ü>": "\"a\\\"b\\n<ü>\"", "\xff\x00": `{"base64":"/wA="}`,
	} {
		got, err := text.MarshalJSON()
		if err != nil || string(got) != want {
			t.Errorf("%q: %s, %v; want %s", text, got, err, want)
		}
		back := Text("before")
		if err := json.Unmarshal(got, &back); err != nil || back != text {
			t.Errorf("%s: read back as %q, %v", got, back, err)
		}
	}
	for _, bad := range []string{`5`, `{}`, `{"base64":5}`, `{"base64":"?"}`, `["a"]`} {
		var text Text
		if err := json.Unmarshal([]byte(bad), &text); err == nil {
			t.Errorf("%s: read as %q", bad, text)
		}
	}
}

// TestActiveCharacters checks that active characters are escaped in strings and read back unchanged, and that
// database names that are not UTF-8 are encoded like keys.
func TestActiveCharacters(t *testing.T) {
	var e Encoder
	for _, s := range []string{"\u009b31m", "\x7f", "a\u202eb\u2066", "é\u0085ü", "\u061c\u060c", "\u2028\u2030\u20ac",
		"\xc2\xa0", "中\x1b"} {
		got := e.AppendText(nil, []byte(s))
		if strings.ContainsFunc(string(got), escape.Active) {
			t.Errorf("%q is written %q", s, got)
		}
		var back string
		if err := json.Unmarshal(got, &back); err != nil || back != s {
			t.Errorf("%q is written %s and read %q, %v", s, got, back, err)
		}
	}
	if got := string(AppendName(nil, "ns\xff")); got != `{"base64":"bnP/"}` {
		t.Error(got)
	}
	if got := string(e.AppendBegin(nil, &record.Header{DB: "\xff", Type: record.Hash, Key: []byte("k")})); !json.Valid(
		[]byte(got[:strings.Index(got, `,"type"`)] + "}")) {
		t.Error(got)
	}
}
