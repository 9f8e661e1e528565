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

// MarshalJSON writes the digest.
func (p PartDigest) MarshalJSON() ([]byte, error) {
	type fields PartDigest
	return json.Marshal(struct {
		fields
		DB jsonl.Text `json:"db"`
	}{fields(p), jsonl.Text(p.DB)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *PartDigest) UnmarshalJSON(data []byte) error {
	type fields PartDigest
	var f struct {
		*fields
		DB jsonl.Text `json:"db"`
	}
	f.fields = (*fields)(p)
	err := json.Unmarshal(data, &f)
	p.DB = string(f.DB)
	return err
}

// MarshalJSON writes the digest with its time.
func (e Expiring) MarshalJSON() ([]byte, error) {
	type fields PartDigest
	return json.Marshal(struct {
		Until int64 `json:"until"`
		fields
		DB     jsonl.Text `json:"db"`
		Fields int64      `json:"fields,omitempty"`
	}{e.Until, fields(e.PartDigest), jsonl.Text(e.DB), e.Fields})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *Expiring) UnmarshalJSON(data []byte) error {
	var own struct{ Until, Fields int64 }
	err := json.Unmarshal(data, &own)
	e.Until, e.Fields = own.Until, own.Fields
	if err != nil {
		return err
	}
	return json.Unmarshal(data, &e.PartDigest)
}

// MarshalJSON writes the sample.
func (s Sample) MarshalJSON() ([]byte, error) {
	type fields Sample
	return json.Marshal(struct {
		fields
		DB jsonl.Text `json:"db"`
	}{fields(s), jsonl.Text(s.DB)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Sample) UnmarshalJSON(data []byte) error {
	type fields Sample
	var f struct {
		*fields
		DB jsonl.Text `json:"db"`
	}
	f.fields = (*fields)(s)
	err := json.Unmarshal(data, &f)
	s.DB = string(f.DB)
	return err
}

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
