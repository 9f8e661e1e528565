package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"kvferry/convert/plan"
	"kvferry/convert/result"
	"kvferry/convert/transfer"
	"kvferry/convert/work"
	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/object"
	"kvferry/internal/text/escape"
	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// Report describes a conversion. It is published as JSON next to the target.
type Report struct {
	// File is the path of the published report.
	File   string `json:"-"`
	Tool   string `json:"tool"`
	DryRun bool   `json:"dry_run,omitempty"`
	// Sampled is true if a dry run read only a sample. All counts are of the sample then.
	Sampled bool `json:"sampled,omitempty"`
	// Unseen lists types that the source may have, but of which the sample has no record.
	Unseen  []string          `json:"unseen_types,omitempty"`
	Source  Dataset           `json:"source"`
	Target  Dataset           `json:"target"`
	Options map[string]string `json:"options"`
	Now     time.Time         `json:"now"` // the time at which keys counted as expired
	Tasks   int               `json:"tasks"`
	Workers int               `json:"workers"`
	// InParts is the number of parts that processes converted; 0: it was one run.
	InParts int `json:"in_parts,omitempty"`

	Parts []result.PartDigest `json:"fingerprint"`
	// Skipped are the records that were left out because their keys exist on the server. Parts, Skipped and the lost
	// records add up to all selected records.
	Skipped []result.PartDigest `json:"skipped,omitempty"`
	// Before is the number of keys that the databases of a server had before.
	Before   map[string]int64     `json:"keys_before,omitempty"`
	Proof    Proof                `json:"proof"`
	Ledger   []Account            `json:"ledger"`
	Losses   []result.LossKind    `json:"losses"`
	Findings []result.FindingKind `json:"findings"`
	// Traffic is that with the object store of the source, and with that of the target before the upload; nil if there
	// was none. A run that was resumed reports that of its last process.
	Traffic *object.Counts `json:"object_store,omitempty"`
	// Follow describes how new servers can continue to replicate from the old ones, from the end of the dump on; nil
	// if they cannot.
	Follow *Following `json:"follow,omitempty"`
	// Estimate is set by a dry run only.
	Estimate *Estimate `json:"estimate,omitempty"`
	Timings  Timings   `json:"timings"`
	// Rows are the rows that were read.
	Rows *record.Ledger `json:"-"`
	// Shape describes the source. Cluster is the mode of the target.
	Shape   format.Shape `json:"-"`
	Cluster bool         `json:"-"`
	// Back is what a plan knows of the way back to the source's format; nil if there is none.
	Back *transfer.Back `json:"-"`
	// Earlier is the new path of the report of an earlier conversion to the same path; "" if none was found.
	Earlier string `json:"-"`
}

// Dataset is the source or the target. Files have its location without secrets.
type Dataset struct {
	Path   string `json:"path"`
	Format string `json:"format"`
	Store  string `json:"store"`
	// DBs are the converted databases, in the same order in source and target.
	DBs plan.Names `json:"databases,omitempty"`
	// Files is the number of files that the dataset consists of, as verify and inspect count them.
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// MarshalJSON writes the dataset.
func (d Dataset) MarshalJSON() ([]byte, error) {
	type plain Dataset
	d.Path = object.Shown(d.Path)
	return json.Marshal(plain(d))
}

// Proof describes how the target was compared with the source.
type Proof struct {
	Done bool `json:"done"`
	// Parts is the number of parts that other processes have proved.
	Parts int `json:"parts,omitempty"`
	// Unit is the unit of the compared expiries.
	Unit string `json:"unit,omitempty"`
	// Expired is the number of records not compared, because a server drops expired keys: by its clock they may have
	// expired when it was read back, or were about to.
	Expired int64 `json:"expired,omitempty"`
	// Cached is the reason why the proof may have read memory instead of the disk.
	Cached string `json:"cached,omitempty"`
	// ExpiredFields is the number of fields of hashes not compared for the same reason.
	ExpiredFields int64 `json:"expired_fields,omitempty"`
	// Counted is true if the key counts of a server were compared instead; Why gives them.
	Counted bool `json:"counted,omitempty"`
	// Why explains a missing proof.
	Why string `json:"why,omitempty"`
}

// Account lists the rows of one keyspace of the source by outcome.
type Account struct {
	Keyspace jsonl.Text       `json:"keyspace"`
	Rows     int64            `json:"rows"`
	Classes  map[string]int64 `json:"classes"`
	Entries  Entries          `json:"entries"`
	// Check is "ok": a ledger that does not add up fails the conversion.
	Check string `json:"check"`
}

// Entries accounts for the physical entries behind the rows.
type Entries struct {
	Read         int64 `json:"read"`
	Visible      int64 `json:"visible"`
	Superseded   int64 `json:"superseded"`
	Tombstones   int64 `json:"tombstones"`
	RangeDeleted int64 `json:"range_deleted"`
	Folded       int64 `json:"folded"`
}

// Timings are the durations of the phases, in seconds.
type Timings struct {
	// Prepare is the time needed to make the source readable. Preparation names the step: "scan" of a file, "replay" of
	// an append-only file or "copy" of a server. Other sources need none.
	Prepare     float64 `json:"prepare,omitempty"`
	Preparation string  `json:"preparation,omitempty"`
	Run         float64 `json:"run"`
	Finish      float64 `json:"finish"`
	Prove       float64 `json:"prove"`
	Total       float64 `json:"total"`
	Resumed     bool    `json:"resumed,omitempty"` // an earlier process did part of the work
}

// Records returns the number of converted records.
func (r *Report) Records() (n int64) {
	for _, p := range r.Parts {
		n += p.Records
	}
	return n
}

// SkippedRecords returns the number of records that were left out because their keys exist on the server, and of their
// elements.
func (r *Report) SkippedRecords() (records, elements int64) {
	for _, p := range r.Skipped {
		records, elements = records+p.Records, elements+p.Elements
	}
	return records, elements
}

// Elements returns the number of converted elements.
func (r *Report) Elements() (n int64) {
	for _, p := range r.Parts {
		n += p.Elements
	}
	return n
}

// accounts lists a ledger by keyspace.
func accounts(l *record.Ledger) []Account {
	snap := l.Snapshot()
	out := []Account{}
	for _, name := range slices.SortedFunc(maps.Keys(snap), record.CompareNames) {
		t := snap[name]
		a := Account{Keyspace: jsonl.Text(name), Rows: t.Total(), Classes: map[string]int64{}, Check: "ok",
			Entries: Entries{t.Entries, t.Visible, t.Superseded, t.Tombstones, t.RangeDeleted, t.Folded}}
		for c, n := range t.Rows {
			if n != 0 {
				a.Classes[record.Class(c).String()] = n
			}
		}
		if err := t.Check(); err != nil {
			a.Check = err.Error()
		}
		out = append(out, a)
	}
	return out
}

// measure counts files.
func (d *Dataset) measure(files []work.File) {
	for _, f := range files {
		d.Files++
		d.Bytes += f.Size
	}
}

// encode returns the report as it is published.
func (r *Report) encode() ([]byte, error) { return escape.Document(r) }

// maxReport is larger than any report: ledgers are by keyspace, and samples are few.
const maxReport = 64 << 20

// ReadReport reads a published report.
func ReadReport(path string) (*Report, error) {
	st, err := disk.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > maxReport {
		return nil, fmt.Errorf("%s: not a kvferry report", path)
	}
	data, err := disk.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &Report{File: path}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: not a kvferry report: %w", path, err)
	}
	if r.Source.Format == "" || r.Target.Format == "" {
		return nil, fmt.Errorf("%s: not a kvferry report: it names no formats", path)
	}
	return r, nil
}

// checkReport refuses a file in the place of the report that is not a report. The report of an
// earlier conversion is renamed when the new one is published.
func checkReport(path string) error {
	if _, err := disk.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if _, err := ReadReport(path); err != nil {
		return &work.ExistsError{Path: path, Todo: ": move it away; this conversion writes its report there"}
	}
	return nil
}
