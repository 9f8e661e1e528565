package convert

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"kvferry/format"
	"kvferry/internal/disk"
	"kvferry/internal/jsonl"
	"kvferry/record"
)

// Report says what a conversion did. It is published as JSON beside the target.
type Report struct {
	// File is where the report is published.
	File   string `json:"-"`
	Tool   string `json:"tool"`
	DryRun bool   `json:"dry_run,omitempty"`
	// Sampled says that a dry run read a sample only: all that is counted is counted in it.
	Sampled bool              `json:"sampled,omitempty"`
	Source  Dataset           `json:"source"`
	Target  Dataset           `json:"target"`
	Options map[string]string `json:"options"`
	Now     time.Time         `json:"now"` // the moment that expiry was decided by
	Tasks   int               `json:"tasks"`
	Workers int               `json:"workers"`

	Parts    []PartDigest  `json:"fingerprint"`
	Proof    Proof         `json:"proof"`
	Ledger   []Account     `json:"ledger"`
	Losses   []LossKind    `json:"losses"`
	Findings []FindingKind `json:"findings"`
	// Follow is how new servers can follow the old ones from where the dump ends; nil when they cannot.
	Follow *Following `json:"follow,omitempty"`
	// Estimate is what the conversion would take; only a dry run has it.
	Estimate *Estimate `json:"estimate,omitempty"`
	Timings  Timings   `json:"timings"`
	// Earlier is where the report of an earlier conversion to the same path is kept; "" when there is none.
	Earlier string `json:"-"`
}

// Dataset is the source or the target.
type Dataset struct {
	Path   string `json:"path"`
	Format string `json:"format"`
	Store  string `json:"store"`
	// DBs are the databases converted, in the same order in source and target.
	DBs names `json:"databases,omitempty"`
	// Files are those that are read as a part of the dataset, as verify and inspect count them.
	Files int   `json:"files"`
	Bytes int64 `json:"bytes"`
}

// Proof says how it is known that the target holds what the source does.
type Proof struct {
	Done bool `json:"done"`
	// Unit is that of the expiries that were compared.
	Unit string `json:"unit,omitempty"`
	// Expired is how many records were left out of it: a server drops what expires, and by its clock they may have expired
	// when it was read back, or were about to.
	Expired int64 `json:"expired,omitempty"`
	// Counted says that a server's own counts were compared instead; Why has what they are.
	Counted bool `json:"counted,omitempty"`
	// Why says why there is no proof.
	Why string `json:"why,omitempty"`
}

// Account is what became of the rows of one keyspace of the source.
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

// Timings are seconds that the phases took.
type Timings struct {
	Run     float64 `json:"run"`
	Finish  float64 `json:"finish"`
	Prove   float64 `json:"prove"`
	Total   float64 `json:"total"`
	Resumed bool    `json:"resumed,omitempty"` // part of the work was done by an earlier process
}

// Records and Elements count what was converted.
func (r *Report) Records() (n int64) {
	for _, p := range r.Parts {
		n += p.Records
	}
	return n
}

// Elements counts the elements that were converted.
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
	for _, name := range slices.Sorted(maps.Keys(snap)) {
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

// report sums the run up.
func (a *attempt) report(t *totals) *Report {
	o := a.o
	rep := &Report{
		File:    ReportPath(o.Target.Path),
		Tool:    o.Tool,
		Source:  Dataset{Path: o.Source.Path, Format: o.Source.Format.Name(), Store: o.Source.Store, DBs: a.id.Plan.DBs},
		Target:  Dataset{Path: cmp.Or(o.Target.Address, o.Target.Path), Format: o.Target.Format.Name(), Store: o.Target.Store, DBs: a.id.Plan.TargetDBs},
		Options: a.id.Options,
		Now:     o.Now,
		Tasks:   len(a.id.Plan.Tasks),
		Workers: o.Workers,
		Parts:   parts(&t.fingerprint),
		Ledger:  accounts(&t.ledger),
		Losses:  t.losses.list(),
	}
	rep.Findings = t.findings.list()
	if f, ok := a.src.(format.Filed); ok {
		rep.Source.Files, rep.Source.Bytes = f.Files()
	}
	return rep
}

// measure counts files.
func (d *Dataset) measure(files []sourceFile) {
	for _, f := range files {
		d.Files++
		d.Bytes += f.Size
	}
}

// write puts the report on disk, whole, and returns it.
func (r *Report) write(path string) ([]byte, error) {
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}
	data = append(data, '\n')
	f, err := disk.Create(path + halfSuffix)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	return data, disk.Rename(path+halfSuffix, path)
}

// maxReport is more than any report has: ledgers go by keyspace, and samples are few.
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

// checkReport refuses what is in the place of the report, unless it is one: that of an earlier
// conversion, whose target is gone, is set aside when there is a new one.
func checkReport(path string) error {
	if _, err := disk.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if _, err := ReadReport(path); err != nil {
		return &existsError{path: path, todo: ": move it away; this conversion writes its report there"}
	}
	return nil
}

// setAside renames the report of an earlier conversion to the first free number and returns its new path, ""
// when there is none: dst.kvferry-report.json becomes dst.kvferry-report.1.json.
func setAside(path string) (string, error) {
	for n := 1; ; n++ {
		to := fmt.Sprintf("%s.%d.json", strings.TrimSuffix(path, ".json"), n)
		err := disk.RenameNew(path, to)
		switch {
		case err == nil:
			return to, nil
		case errors.Is(err, fs.ErrNotExist):
			return "", nil
		case !errors.Is(err, fs.ErrExist):
			return "", err
		}
	}
}
