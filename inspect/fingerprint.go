package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"kvferry/record"
)

// fingerprintVersion is the version of the file that fingerprint writes.
const fingerprintVersion = 1

// FingerprintFile is what `kvferry fingerprint` writes and --check reads: docs/fingerprint.md.
type FingerprintFile struct {
	Version int    `json:"kvferry_fingerprint"`
	Format  string `json:"format"`
	// Unit is the unit that the format keeps expiries in: "ms" or "s". Two files are compared in
	// seconds when either says "s".
	Unit  string            `json:"expiry_unit"`
	Now   int64             `json:"now_ms"` // moment that expiry was decided by
	Parts []FingerprintPart `json:"parts"`
}

// FingerprintPart is the digest of one database and type.
type FingerprintPart struct {
	DB   string `json:"db"`
	Type string `json:"type"`
	record.Digest
}

// Fingerprint takes the fingerprint of what a scan reads. It does not check the indexes of zsets.
func Fingerprint(ctx context.Context, s *Scan) (*record.Fingerprint, error) {
	var f record.Fingerprint
	bare := *s
	bare.recordsOnly = true
	err := bare.run(ctx, func(p Part) visitor { return &hashVisitor{db: p.DB, sum: &f} })
	if err != nil {
		return nil, err
	}
	return &f, nil
}

// hashVisitor hashes records.
type hashVisitor struct {
	db      string
	hasher  record.Hasher
	digests [record.NumTypes]record.Digest
	sum     *record.Fingerprint
}

func (v *hashVisitor) record(h *record.Header, e *elements) error {
	v.hasher.Begin(h)
	batch, err := e.next()
	for ; len(batch) > 0 && err == nil; batch, err = e.more(h.Type) {
		v.hasher.Elements(batch)
	}
	v.hasher.AddTo(&v.digests[h.Type], h)
	return err
}

func (v *hashVisitor) merge() {
	for t, d := range v.digests {
		v.sum.Add(record.Part{DB: v.db, Type: record.Type(t)}, d)
	}
}

// File makes the file of a fingerprint that a scan took.
func (s *Scan) File(f *record.Fingerprint) *FingerprintFile {
	out := &FingerprintFile{Version: fingerprintVersion, Format: s.Source.Format().Name(), Unit: "ms",
		Now: s.Now.UnixMilli(), Parts: []FingerprintPart{}}
	if s.Source.Format().Limits().Seconds {
		out.Unit = "s"
	}
	order := make(map[string]int)
	for i, db := range s.Source.Databases() {
		order[db] = i
	}
	parts := f.Parts()
	keys := make([]record.Part, 0, len(parts))
	for p := range parts {
		keys = append(keys, p)
	}
	slices.SortFunc(keys, func(a, b record.Part) int {
		return cmp.Or(cmp.Compare(order[a.DB], order[b.DB]), cmp.Compare(a.Type, b.Type))
	})
	for _, p := range keys {
		out.Parts = append(out.Parts, FingerprintPart{p.DB, p.Type.String(), parts[p]})
	}
	return out
}

// ReadFingerprint reads a file that `kvferry fingerprint` wrote.
func ReadFingerprint(r io.Reader) (*FingerprintFile, error) {
	var f FingerprintFile
	d := json.NewDecoder(r)
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("not a fingerprint: %w", err)
	}
	switch {
	case f.Version == 0:
		return nil, fmt.Errorf("not a fingerprint: it has no kvferry_fingerprint")
	case f.Version != fingerprintVersion:
		return nil, fmt.Errorf("fingerprint of version %d: this program knows %d", f.Version, fingerprintVersion)
	case f.Unit != "ms" && f.Unit != "s":
		return nil, fmt.Errorf("fingerprint: expiry_unit %q: want ms or s", f.Unit)
	}
	for _, p := range f.Parts {
		if _, err := record.ParseType(p.Type); err != nil {
			return nil, fmt.Errorf("fingerprint: database %q: %w", p.DB, err)
		}
	}
	return &f, nil
}

// PartDifference is a part in which two fingerprints are not equal.
type PartDifference struct {
	DB   string        `json:"db"`
	Type string        `json:"type"`
	A    record.Digest `json:"a"`
	B    record.Digest `json:"b"`
}

// String says how the part differs.
func (d PartDifference) String() string {
	s := fmt.Sprintf("database %s %s: ", d.DB, d.Type)
	if d.A.Records != d.B.Records || d.A.Elements != d.B.Elements {
		return s + fmt.Sprintf("%d records and %d elements against %d and %d", d.A.Records, d.A.Elements, d.B.Records, d.B.Elements)
	}
	if d.A.Seconds == d.B.Seconds {
		return s + "expiries differ below the second"
	}
	return s + fmt.Sprintf("digest %s against %s", d.A.Seconds, d.B.Seconds)
}

// Compare lists the parts in which f and g differ, in the order of f and then of g.
func (f *FingerprintFile) Compare(g *FingerprintFile) []PartDifference {
	type key struct{ db, typ string }
	seconds := f.Unit == "s" || g.Unit == "s"
	other := make(map[key]record.Digest)
	for _, p := range g.Parts {
		other[key{p.DB, p.Type}] = p.Digest
	}
	var out []PartDifference
	for _, p := range f.Parts {
		k := key{p.DB, p.Type}
		if d := other[k]; !p.Equal(d, seconds) {
			out = append(out, PartDifference{p.DB, p.Type, p.Digest, d})
		}
		delete(other, k)
	}
	for _, p := range g.Parts {
		if d, ok := other[key{p.DB, p.Type}]; ok && d.Records > 0 {
			out = append(out, PartDifference{p.DB, p.Type, record.Digest{}, d})
		}
	}
	return out
}
