package result

import (
	"encoding/json"
	"maps"
	"slices"

	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// Database names may be any bytes, but JSON strings must be UTF-8. In journals and reports other names are written
// like keys in dumps: {"base64":"…"}.

// Tallies holds the tally of each keyspace. Keyspace names contain database names, and so may be any bytes.
type Tallies map[string]record.Tally

type namedTally struct {
	Keyspace jsonl.Text `json:"keyspace"`
	record.Tally
}

// MarshalJSON writes the tallies in order.
func (t Tallies) MarshalJSON() ([]byte, error) {
	out := []namedTally{}
	for _, name := range slices.Sorted(maps.Keys(t)) {
		out = append(out, namedTally{jsonl.Text(name), t[name]})
	}
	return json.Marshal(out)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Tallies) UnmarshalJSON(data []byte) error {
	var in []namedTally
	err := json.Unmarshal(data, &in)
	*t = make(Tallies, len(in))
	for _, n := range in {
		(*t)[string(n.Keyspace)] = n.Tally
	}
	return err
}
