package compare

import (
	"fmt"

	"kvferry/inspect"
	"kvferry/record"
)

// PartDifference is a part in which a dataset differs from a fingerprint file.
type PartDifference struct {
	DB            DBPair // A is the name in the file
	Type          record.Type
	File, Dataset record.Digest
}

// counted formats the numbers of records and elements.
func counted(d *record.Digest) string {
	return record.Count(d.Records, "record") + " and " + record.Count(d.Elements, "element")
}

// String describes the difference.
func (d PartDifference) String() string {
	s := fmt.Sprintf("database %s %s: ", d.DB, d.Type)
	if d.File.Records != d.Dataset.Records || d.File.Elements != d.Dataset.Elements {
		return s + fmt.Sprintf("file: %s, dataset: %s", counted(&d.File), counted(&d.Dataset))
	}
	if d.File.Seconds == d.Dataset.Seconds {
		return s + fmt.Sprintf("expiries differ below the second: file: digest_ms %s, dataset: digest_ms %s", d.File.Millis,
			d.Dataset.Millis)
	}
	return s + fmt.Sprintf("file: digest_s %s, dataset: digest_s %s", d.File.Seconds, d.Dataset.Seconds)
}

// Match matches the databases of a fingerprint file with a scan's, like Diff. It translates the scan's selection from
// names in the file to names in the dataset.
func Match(f *inspect.FingerprintFile, s *inspect.Scan, m DBMap) ([]DBPair, error) {
	if err := m.fits(f.DatabaseNames(false), s.Source.Databases(), DBNames{"the file", "the dataset"}); err != nil {
		return nil, err
	}
	scan, err := m.scan(s)
	if err != nil {
		return nil, err
	}
	s.Selection = scan.Selection
	return m.pairs(f.DatabaseNames(true), someDBs(s))
}

// Fingerprints lists the parts in which g differs from the file f. g is the fingerprint of a dataset whose databases
// Match has paired.
func Fingerprints(f, g *inspect.FingerprintFile, pairs []DBPair) []PartDifference {
	seconds := f.Unit == "s" || g.Unit == "s"
	file, dataset := f.Digests(), g.Digests()
	var out []PartDifference
	for _, p := range pairs {
		for _, t := range record.AllTypes.Types() {
			d := PartDifference{DB: p, Type: t}
			if p.InA {
				d.File = file[record.Part{DB: p.A, Type: t}]
			}
			if p.InB {
				d.Dataset = dataset[record.Part{DB: p.B, Type: t}]
			}
			if !d.File.Equal(d.Dataset, seconds) {
				out = append(out, d)
			}
		}
	}
	return out
}
