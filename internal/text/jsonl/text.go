package jsonl

import (
	"encoding/base64"
	"encoding/json"
)

// Text holds any bytes, and is encoded in JSON like AppendText does.
type Text string

// MarshalJSON writes the text.
func (t Text) MarshalJSON() ([]byte, error) {
	var e Encoder
	return e.AppendText(nil, []byte(t)), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Text) UnmarshalJSON(data []byte) error {
	var plain string
	err := json.Unmarshal(data, &plain)
	if err == nil {
		*t = Text(plain)
		return nil
	}
	var coded struct{ Base64 *string }
	if json.Unmarshal(data, &coded) != nil || coded.Base64 == nil {
		return err
	}
	b, err := base64.StdEncoding.DecodeString(*coded.Base64)
	*t = Text(b)
	return err
}
