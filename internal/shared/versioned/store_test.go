package versioned

import (
	"strings"
	"testing"

	"kvferry/record"
	"kvferry/store"
)

// TestTypeWithoutCodec: a type that a layout can name but has no codec for is unknown, and the error names it.
func TestTypeWithoutCodec(t *testing.T) {
	l := &Layout{Codecs: []*Codec{{Type: record.Set}}, TypeOf: func(value []byte) (record.Type, error) {
		return record.Type(value[0]), nil
	}}
	s := NewStore(l, "0", "", func(string) store.Keyspace { return nil }, nil)
	if typ, err := s.typeOf([]byte{byte(record.Set)}); typ != record.Set || err != nil {
		t.Errorf("a set: %v, %v", typ, err)
	}
	if _, err := s.typeOf([]byte{byte(record.Stream)}); !record.IsNewer(err) || !strings.Contains(err.Error(), "stream") {
		t.Errorf("a stream: %v", err)
	}
}
