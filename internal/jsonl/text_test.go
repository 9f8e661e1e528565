package jsonl

import (
	"encoding/json"
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
