package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"kvferry/internal/pass/filter"
	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// Versions of the fingerprint file. Version 2 is for datasets with data that version 1 does not define: field
// expiries, consumer groups, records of type other.
const (
	fingerprintVersion = 1
	fingerprintNew     = 2
)

// FingerprintFile is the file that kvferry fingerprint writes and --check reads. See
// docs/fingerprint.md.
type FingerprintFile struct {
	Version int    `json:"kvferry_fingerprint"`
	Format  string `json:"format"`
	// Unit is the unit of expiries in the format: "ms" or "s". Two files are compared in seconds if
	// either has "s".
	Unit string `json:"expiry_unit"`
	Now  int64  `json:"now_ms"` // time at which keys counted as expired
	// Expired is drop or keep. Older files have neither this field nor the filters.
	Expired string            `json:"expired,omitempty"`
	Filters filter.Conditions `json:"filters"`
	// Databases lists all databases of the dataset, also empty ones and those not selected.
	Databases []jsonl.Text      `json:"databases"`
	Parts     []FingerprintPart `json:"parts"`
}

// Records returns the number of records of all parts.
func (f *FingerprintFile) Records() (n int64) {
	for _, p := range f.Parts {
		n += p.Records
	}
	return n
}

// FingerprintPart is the digest of one database and type.
type FingerprintPart struct {
	DB   jsonl.Text `json:"db"`
	Type string     `json:"type"`
	record.Digest
}

// Fingerprint computes the fingerprint of the records of a scan. It does not check the indexes of
// zsets.
func Fingerprint(ctx context.Context, s *Scan) (*record.Fingerprint, error) {
	f, _, err := s.fingerprint(ctx)
	return f, err
}

// fingerprint also returns all tasks, of which the scan's share was read.
func (s *Scan) fingerprint(ctx context.Context) (*record.Fingerprint, []Part, error) {
	bare := *s
	bare.hashOnly, bare.RedisStrings = true, true
	f := new(record.Fingerprint)
	tasks, err := bare.Run(ctx, func(p Part) Visitor {
		return &hashVisitor{db: p.DB, sum: f, hasher: record.Hasher{PlainZero: s.PlainZero, ExactScores: s.ExactScores}}
	})
	if err != nil {
		return nil, nil, err
	}
	return f, tasks, nil
}

// hashVisitor hashes records.
type hashVisitor struct {
	db      string
	hasher  record.Hasher
	digests [record.NumTypes]record.Digest
	sum     *record.Fingerprint
}

// Batch hashes records.
func (v *hashVisitor) Batch(b *record.Batch) { v.hasher.Batch(&v.digests, b) }

// Merge adds the part to the sum.
func (v *hashVisitor) Merge() {
	for t, d := range v.digests {
		v.sum.Add(record.Part{DB: v.db, Type: record.Type(t)}, d)
	}
}

// File returns the file for a fingerprint of a scan.
func (s *Scan) File(f *record.Fingerprint) *FingerprintFile {
	out := &FingerprintFile{Version: fingerprintVersion, Format: s.Source.Format().Name(), Unit: "ms",
		Now: s.Now.UnixMilli(), Expired: "drop", Filters: s.Selected().Conditions(s.Now), Databases: []jsonl.Text{},
		Parts: []FingerprintPart{}}
	if s.Source.Format().Limits().Seconds {
		out.Unit = "s"
	}
	if s.Selected().KeepExpired {
		out.Expired = "keep"
	}
	for _, db := range s.Source.Databases() {
		out.Databases = append(out.Databases, jsonl.Text(db))
	}
	out.put(f)
	return out
}

// put adds digests to a file, in the order of its databases.
func (f *FingerprintFile) put(sums *record.Fingerprint) {
	order := make(map[jsonl.Text]int)
	for i, db := range f.Databases {
		order[db] = i
	}
	parts := sums.Parts()
	keys := make([]record.Part, 0, len(parts))
	for p := range parts {
		keys = append(keys, p)
	}
	slices.SortFunc(keys, func(a, b record.Part) int {
		return cmp.Or(cmp.Compare(order[jsonl.Text(a.DB)], order[jsonl.Text(b.DB)]), cmp.Compare(a.Type, b.Type))
	})
	for _, p := range keys {
		d := parts[p]
		if d.New {
			f.Version, d.New = fingerprintNew, false
		}
		f.Parts = append(f.Parts, FingerprintPart{jsonl.Text(p.DB), p.Type.String(), d})
	}
}

// ErrNotFingerprint reports a file that is not a fingerprint.
var ErrNotFingerprint = errors.New("not a fingerprint")

// ReadFingerprint reads a file written by kvferry fingerprint.
func ReadFingerprint(r io.Reader) (*FingerprintFile, error) {
	var f FingerprintFile
	d := json.NewDecoder(r)
	if err := d.Decode(&f); err == io.EOF {
		return nil, fmt.Errorf("%w: it is empty", ErrNotFingerprint)
	} else if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotFingerprint, err)
	}
	if _, err := d.Token(); err == nil {
		return nil, fmt.Errorf("%w: something follows it", ErrNotFingerprint)
	} else if err != io.EOF { // such as damage at the end of a compressed file
		return nil, fmt.Errorf("%w: trailing data: %w", ErrNotFingerprint, err)
	}
	switch {
	case f.Version == 0:
		return nil, fmt.Errorf("%w: it has no kvferry_fingerprint", ErrNotFingerprint)
	case f.Version != fingerprintVersion && f.Version != fingerprintNew:
		return nil, fmt.Errorf("fingerprint of version %d: this program knows %d and %d", f.Version, fingerprintVersion,
			fingerprintNew)
	case f.Unit != "ms" && f.Unit != "s":
		return nil, fmt.Errorf("fingerprint: expiry_unit %q: want ms or s", f.Unit)
	case f.Expired != "" && f.Expired != "drop" && f.Expired != "keep":
		return nil, fmt.Errorf("fingerprint: expired %q: want drop or keep", f.Expired)
	}
	seen := make(map[record.Part]bool)
	for _, p := range f.Parts {
		t, err := record.ParseType(p.Type)
		if err != nil {
			return nil, fmt.Errorf("fingerprint: database %q: %w", p.DB, err)
		}
		part := record.Part{DB: string(p.DB), Type: t}
		if seen[part] {
			return nil, fmt.Errorf("fingerprint: database %q: %s occurs twice", p.DB, t)
		}
		seen[part] = true
	}
	return &f, nil
}

// DatabaseNames lists the databases of the dataset, or only the selected ones. For an older file it lists databases
// with records.
func (f *FingerprintFile) DatabaseNames(selected bool) (out []string) {
	chosen := filter.Filter{DBs: f.Filters["db"]}
	for _, name := range f.Databases {
		if db := string(name); !selected || chosen.DB(db) {
			out = append(out, db)
		}
	}
	for _, p := range f.Parts {
		if db := string(p.DB); !slices.Contains(out, db) {
			out = append(out, db)
		}
	}
	return out
}

// Digests returns the digests of the parts. It skips unknown types.
func (f *FingerprintFile) Digests() map[record.Part]record.Digest {
	out := make(map[record.Part]record.Digest)
	for _, p := range f.Parts {
		if t, err := record.ParseType(p.Type); err == nil {
			out[record.Part{DB: string(p.DB), Type: t}] = p.Digest
		}
	}
	return out
}
