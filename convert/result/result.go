package result

import (
	"cmp"
	"slices"

	"kvferry/internal/text/jsonl"
	"kvferry/record"
	"kvferry/store"
)

// Result is the outcome of a finished task, as stored in the journal.
type Result struct {
	N        int           `json:"n"`
	Tables   []store.Table `json:"tables"`
	Parts    []PartDigest  `json:"parts"`
	Skipped  []PartDigest  `json:"skipped,omitempty"`  // records left out because their keys exist on the server
	Expiring []Expiring    `json:"expiring,omitempty"` // the part of Parts that expires soon
	Ledger   Tallies       `json:"ledger"`
	Losses   []LossKind    `json:"losses"`
	Findings []FindingKind `json:"findings"`
	// Stores are the findings of the source's stores since the previous journal entry, from any task.
	Stores []record.Finding `json:"stores,omitempty"`
}

// PartDigest is the fingerprint of one database and type.
type PartDigest struct {
	Type string `json:"type"`
	record.Digest
	DB jsonl.Text `json:"db"`
}

// Parts lists the digests of a fingerprint by database and type.
func Parts(f *record.Fingerprint) []PartDigest {
	digests := f.Parts()
	keys := make([]record.Part, 0, len(digests))
	for p := range digests {
		keys = append(keys, p)
	}
	slices.SortFunc(keys, func(a, b record.Part) int {
		return cmp.Or(record.CompareNames(a.DB, b.DB), cmp.Compare(a.Type, b.Type))
	})
	out := []PartDigest{}
	for _, p := range keys {
		out = append(out, PartDigest{p.Type.String(), digests[p], jsonl.Text(p.DB)})
	}
	return out
}

// addParts adds a list of digests to a fingerprint.
func addParts(f *record.Fingerprint, list []PartDigest) error {
	for _, p := range list {
		t, err := record.ParseType(p.Type)
		if err != nil {
			return err
		}
		f.Add(record.Part{DB: string(p.DB), Type: t}, p.Digest)
	}
	return nil
}

// Totals is the outcome of all tasks.
type Totals struct {
	Fingerprint record.Fingerprint
	Skipped     record.Fingerprint
	Ledger      record.Ledger
	Losses      Losses
	Findings    Findings
	Expiring    []Expiring
}

// Sum adds up results, in the order of the tasks.
func Sum(results []*Result) (*Totals, error) {
	t := &Totals{Losses: Losses{}}
	for _, r := range results {
		if r == nil {
			continue
		}
		if err := addParts(&t.Fingerprint, r.Parts); err != nil {
			return nil, err
		}
		if err := addParts(&t.Skipped, r.Skipped); err != nil {
			return nil, err
		}
		t.Expiring = append(t.Expiring, r.Expiring...)
		for name, tally := range r.Ledger {
			t.Ledger.Add(name, &tally)
		}
		t.Losses.Merge(r.Losses)
		t.Findings.Merge(r.Findings)
	}
	return t, nil
}
