package inspect

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"kvferry/internal/pass"
	"kvferry/internal/pass/filter"
	"kvferry/record"
)

// partVersion is the version of the reports of parts.
const partVersion = 2

// PartFile is the report of one part of a command that reads a source. Reports are added up only if all that identifies
// the run is equal, which is everything but the part and its result.
type PartFile struct {
	Version int `json:"kvferry_part"`
	Part    int `json:"part"`
	Parts   int `json:"parts"`
	// Command are the words of the command line without --part and the output.
	Command []string          `json:"command"`
	Tool    string            `json:"tool"`
	Source  string            `json:"source"`
	Files   string            `json:"files"` // hash of the names, sizes and times of the source's files
	Plan    string            `json:"plan"`  // hash of all tasks
	Now     int64             `json:"now_ms"`
	Filters filter.Conditions `json:"filters"`
	// Tasks measures the part, AllTasks the plan.
	Tasks    int `json:"tasks"`
	AllTasks int `json:"all_tasks"`
	// Errors is true if the part met findings of severity error, so its sums lack records.
	Errors bool            `json:"errors"`
	Result json.RawMessage `json:"result"` // of the command

	Path string `json:"-"` // of the report
}

// Fill completes the report of the scan's part of some tasks.
func (f *PartFile) Fill(s *Scan, tasks []Part, result any) (err error) {
	f.Version, f.Part, f.Parts = partVersion, s.Share.K, s.Share.N
	f.Now, f.Filters = s.Now.UnixMilli(), s.Selected().Conditions(s.Now)
	f.Tasks, f.AllTasks = len(s.Share.Of(tasks)), len(tasks)
	if f.Plan, err = HashJSON(tasks); err == nil {
		f.Result, err = json.Marshal(result)
	}
	return err
}

// Fingerprint computes the sums of the scan's part.
func (f *PartFile) Fingerprint(ctx context.Context, s *Scan) (*FingerprintFile, error) {
	sum, tasks, err := s.fingerprint(ctx)
	if err != nil {
		return nil, err
	}
	out := s.File(sum)
	return out, f.Fill(s, tasks, out)
}

// HashJSON returns the hash of a value's JSON.
func HashJSON(v any) (string, error) {
	data, err := json.Marshal(v)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), err
}

// ReadPart reads the report of a part.
func ReadPart(r io.Reader) (*PartFile, error) {
	f := new(PartFile)
	d := json.NewDecoder(r)
	if err := d.Decode(f); err != nil {
		return nil, fmt.Errorf("not the report of a part: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("not the report of a part: something follows it")
	}
	part := pass.Part{K: f.Part, N: f.Parts}
	switch {
	case f.Version == 0:
		return nil, fmt.Errorf("not the report of a part: it has no kvferry_part")
	case f.Version != partVersion:
		return nil, fmt.Errorf("report of version %d: this program knows %d", f.Version, partVersion)
	case len(f.Command) == 0:
		return nil, fmt.Errorf("not the report of a part: it has no command")
	}
	_, err := pass.ParsePart(part.String())
	return f, err
}

// Together returns the reports of one run, each part once and in order, and lists the parts without a report.
func Together(files []*PartFile) (parts []*PartFile, missing []int, err error) {
	first := files[0]
	seen := make(map[int]*PartFile)
	for _, f := range files {
		if err := first.fits(f); err != nil {
			return nil, nil, err
		}
		if twin := seen[f.Part]; twin == nil {
			seen[f.Part] = f
		} else if twin.Errors != f.Errors || jsonText(twin.Result) != jsonText(f.Result) {
			return nil, nil, fmt.Errorf("%s and %s: both are part %d/%d, with different results", twin.Path, f.Path, f.Part,
				f.Parts)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(seen)) {
		parts = append(parts, seen[k])
	}
	return parts, pass.Missing(first.Parts, func(p pass.Part) bool { return seen[p.K] != nil }), nil
}

// MergeFingerprints adds up the fingerprints of all parts.
func MergeFingerprints(parts []*PartFile) (*FingerprintFile, error) {
	var out FingerprintFile
	var all record.Fingerprint
	for i, f := range parts {
		sum, err := ReadFingerprint(bytes.NewReader(f.Result))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
		if i == 0 {
			out = *sum
		}
		out.Version = max(out.Version, sum.Version)
		for p, d := range sum.Digests() {
			all.Add(p, d)
		}
	}
	out.Parts = []FingerprintPart{}
	out.put(&all)
	return &out, nil
}

// fits returns an error if g is not of the run of f.
func (f *PartFile) fits(g *PartFile) error {
	for _, field := range []struct {
		name string
		f, g any
	}{
		{"source", f.Source, g.Source},
		{"version of kvferry", f.Tool, g.Tool},
		{"number of parts", f.Parts, g.Parts},
		{"--now in milliseconds", f.Now, g.Now},
		{"set of filters", jsonText(f.Filters), jsonText(g.Filters)},
		{"command line", jsonText(f.Command), jsonText(g.Command)},
		{"state of the source's files", f.Files, g.Files},
		{"plan", f.Plan + strconv.Itoa(f.AllTasks), g.Plan + strconv.Itoa(g.AllTasks)},
	} {
		if field.f != field.g {
			return fmt.Errorf("%s and %s: not parts of one run: another %s: %v and %v", f.Path, g.Path, field.name, field.f,
				field.g)
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
