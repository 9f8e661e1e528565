package convert

import (
	"cmp"
	"slices"

	"kvferry/record"
	"kvferry/store"
)

// taskResult is what a finished task leaves, as the journal keeps it.
type taskResult struct {
	N        int              `json:"n"`
	Tables   []store.Table    `json:"tables"`
	Parts    []PartDigest     `json:"parts"`
	Expiring []expiringDigest `json:"expiring,omitempty"` // of Parts
	Ledger   tallies          `json:"ledger"`
	Losses   []LossKind       `json:"losses"`
	Findings []FindingKind    `json:"findings"`
	// Stores are findings of the source's stores that the journal does not have before, whoever came to them.
	Stores []record.Finding `json:"stores,omitempty"`
}

// PartDigest is the fingerprint of one database and type.
type PartDigest struct {
	DB   string `json:"db"`
	Type string `json:"type"`
	record.Digest
}

// parts lists the digests of a fingerprint by database and type.
func parts(f *record.Fingerprint) []PartDigest {
	digests := f.Parts()
	keys := make([]record.Part, 0, len(digests))
	for p := range digests {
		keys = append(keys, p)
	}
	slices.SortFunc(keys, func(a, b record.Part) int {
		return cmp.Or(cmp.Compare(a.DB, b.DB), cmp.Compare(a.Type, b.Type))
	})
	out := []PartDigest{}
	for _, p := range keys {
		out = append(out, PartDigest{p.DB, p.Type.String(), digests[p]})
	}
	return out
}

// addParts adds what parts listed.
func addParts(f *record.Fingerprint, list []PartDigest) error {
	for _, p := range list {
		t, err := record.ParseType(p.Type)
		if err != nil {
			return err
		}
		f.Add(record.Part{DB: p.DB, Type: t}, p.Digest)
	}
	return nil
}

// totals is what all tasks leave together.
type totals struct {
	fingerprint record.Fingerprint
	ledger      record.Ledger
	losses      lossSet
	findings    findingSet
	expiring    []expiringDigest
}

// sum adds up results, in the order of the tasks.
func sum(results []*taskResult) (*totals, error) {
	t := &totals{losses: lossSet{}}
	for _, r := range results {
		if r == nil {
			continue
		}
		if err := addParts(&t.fingerprint, r.Parts); err != nil {
			return nil, err
		}
		t.expiring = append(t.expiring, r.Expiring...)
		for name, tally := range r.Ledger {
			t.ledger.Add(name, &tally)
		}
		t.losses.merge(r.Losses)
		t.findings.merge(r.Findings)
	}
	return t, nil
}
