package inspect

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"

	"kvferry/internal/pass"
	"kvferry/record"
)

// partVersion is the version of the reports of parts.
const partVersion = 1

// PartFile is the report of one part of a fingerprint. Reports are added up only if all that identifies the run is
// equal, which is everything but the part and its sums.
type PartFile struct {
	Version int `json:"kvferry_part"`
	Part    int `json:"part"`
	Parts   int `json:"parts"`
	// Command are the words of the command line without --part and the output.
	Command []string `json:"command"`
	Tool    string   `json:"tool"`
	Source  string   `json:"source"`
	Files   string   `json:"files"` // hash of the names, sizes and times of the source's files
	Plan    string   `json:"plan"`  // hash of all tasks
	// Tasks measures the part, AllTasks the plan.
	Tasks    int `json:"tasks"`
	AllTasks int `json:"all_tasks"`
	// Errors is true if the part met findings of severity error, so its sums lack records.
	Errors      bool             `json:"errors"`
	Fingerprint *FingerprintFile `json:"fingerprint"`

	Path string `json:"-"` // of the report
}

// Read computes the sums of the scan's part.
func (f *PartFile) Read(ctx context.Context, s *Scan) error {
	sum, tasks, err := s.fingerprint(ctx)
	if err == nil {
		f.Plan, err = HashJSON(tasks)
	}
	if err != nil {
		return err
	}
	f.Version, f.Part, f.Parts, f.Fingerprint = partVersion, s.Share.K, s.Share.N, s.File(sum)
	f.Tasks, f.AllTasks = len(s.Share.Of(tasks)), len(tasks)
	return nil
}

// HashJSON returns the hash of a value's JSON.
func HashJSON(v any) (string, error) {
	data, err := json.Marshal(v)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), err
}

// ReadPart reads the report of a part.
func ReadPart(r io.Reader) (*PartFile, error) {
	type fields PartFile
	var in struct {
		fields
		Fingerprint json.RawMessage `json:"fingerprint"`
	}
	d := json.NewDecoder(r)
	if err := d.Decode(&in); err != nil {
		return nil, fmt.Errorf("not the report of a part: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("not the report of a part: something follows it")
	}
	f := PartFile(in.fields)
	part := pass.Part{K: f.Part, N: f.Parts}
	switch {
	case f.Version == 0:
		return nil, fmt.Errorf("not the report of a part: it has no kvferry_part")
	case f.Version != partVersion:
		return nil, fmt.Errorf("report of version %d: this program knows %d", f.Version, partVersion)
	case len(f.Command) == 0:
		return nil, fmt.Errorf("not the report of a part: it has no command")
	}
	if _, err := pass.ParsePart(part.String()); err != nil {
		return nil, err
	}
	var err error
	f.Fingerprint, err = ReadFingerprint(bytes.NewReader(in.Fingerprint))
	return &f, err
}

// MergeParts adds up the reports of parts of one run. missing are the parts without a report.
func MergeParts(files []*PartFile) (sum *FingerprintFile, missing []int, err error) {
	first := files[0]
	seen := make(map[int]*PartFile)
	var all record.Fingerprint
	out := *first.Fingerprint
	out.Parts = []FingerprintPart{}
	for _, f := range files {
		if err := first.fits(f); err != nil {
			return nil, nil, err
		}
		if twin := seen[f.Part]; twin != nil {
			if !reflect.DeepEqual(twin.Fingerprint, f.Fingerprint) || twin.Errors != f.Errors {
				return nil, nil, fmt.Errorf("%s and %s: both are part %d/%d, with different sums", twin.Path, f.Path, f.Part, f.Parts)
			}
			continue
		}
		seen[f.Part] = f
		out.Version = max(out.Version, f.Fingerprint.Version)
		for p, d := range f.Fingerprint.Digests() {
			all.Add(p, d)
		}
	}
	missing = pass.Missing(first.Parts, func(p pass.Part) bool { return seen[p.K] != nil })
	out.put(&all)
	return &out, missing, nil
}

// fits returns an error if g is not of the run of f.
func (f *PartFile) fits(g *PartFile) error {
	a, b := f.Fingerprint, g.Fingerprint
	for _, field := range []struct {
		name string
		f, g any
	}{
		{"source", f.Source, g.Source},
		{"version of kvferry", f.Tool, g.Tool},
		{"number of parts", f.Parts, g.Parts},
		{"format", a.Format + " in " + a.Unit, b.Format + " in " + b.Unit},
		{"--now in milliseconds", a.Now, b.Now},
		{"--expired", a.Expired, b.Expired},
		{"set of filters", jsonText(a.Filters), jsonText(b.Filters)},
		{"command line", jsonText(f.Command), jsonText(g.Command)},
		{"state of the source's files", f.Files, g.Files},
		{"list of databases", jsonText(a.Databases), jsonText(b.Databases)},
		{"plan", f.Plan + strconv.Itoa(f.AllTasks), g.Plan + strconv.Itoa(g.AllTasks)},
	} {
		if field.f != field.g {
			return fmt.Errorf("%s and %s: not parts of one run: another %s: %v and %v", f.Path, g.Path, field.name, field.f, field.g)
		}
	}
	return nil
}

func jsonText(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
