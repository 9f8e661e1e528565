package transfer

import (
	"strings"
	"testing"

	"kvferry/convert/internal/fake"
	"kvferry/format"
	"kvferry/record"
)

// TestKeyspacesOf checks that rows of the record's type and rows shared by all types are found.
func TestKeyspacesOf(t *testing.T) {
	src := &fake.Source{Ranges: []format.Range{{Keyspace: "meta"}, {Keyspace: "hash", Type: record.Hash}, {Keyspace: "set", Type: record.Set}}}
	if got := strings.Join(keyspacesOf(src, "0", &record.Header{Type: record.Hash}), " "); got != "meta hash" {
		t.Error(got)
	}
}
