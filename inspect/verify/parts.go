package verify

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"kvferry/inspect"
	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// Partial is the result of one part of a verification. Merge adds up those of all parts.
//
// The records of a part are its own. Every process opens the whole source, and several may read one block: so findings
// about files are listed in full, and count once for each place. Each store is checked by one part, including
// its blocks without rows. Merge decides what depends on all parts: whether the files need a second look, which damage
// that look explains, and the sums of rows.
type Partial struct {
	Format    string
	Databases []jsonl.Text
	Records   int64
	Expired   int64
	Elements  int64
	Entries   int64 // read by the look at the files
	Files     int   // of the source
	Bytes     int64
	Data      int64
	// Look controls the second look at the files. Looked is true if the parts have taken it.
	Look        Look
	Whole       bool  // all rows are read
	Listed      int64 // entries by the properties of the files
	Looked      bool
	MaxFindings int
	Unread      []jsonl.Text
	Counts      []KindCount
	Kept        []wireFinding
	Groups      []wireGroup
	InFiles     []wireFinding
	InBlocks    []wireFinding // in blocks without rows
	Seen        []wireFile    // other places in files with findings
	Skipped     []wireFile
	Damage      []wireFinding // that stopped the reading of records
	Ledger      []wireTally
}

// The names in these types may be no text.
type (
	wireFinding struct {
		record.Finding
		DB, Keyspace, Detail, File jsonl.Text
	}
	wireGroup struct {
		Group
		DB, Store jsonl.Text
	}
	wireFile struct {
		Kind string
		File jsonl.Text
		Off  int64
	}
	wireTally struct {
		Keyspace jsonl.Text
		record.Tally
	}
)

// LookError means that the reports of parts give a reason to look at the files again, which needs the source.
type LookError struct{}

func (*LookError) Error() string {
	return "the records give a reason to check the table files again: run the parts with --files always"
}

// RunPart is Run for the share of the scan, and returns all tasks, too.
func RunPart(ctx context.Context, o *Options) (*Partial, []inspect.Part, error) {
	v := newVerifier(o)
	v.found.split = true
	if err := v.run(ctx); err != nil {
		return nil, nil, err
	}
	return v.partial(), v.tasks, nil
}

// Failed reports whether the part alone has a finding of a severity.
func (p *Partial) Failed(least record.Severity) bool {
	of := func(f wireFinding) bool { return f.Severity >= least }
	return slices.ContainsFunc(p.Counts, func(c KindCount) bool { return c.Severity >= least }) ||
		slices.ContainsFunc(p.InFiles, of) || slices.ContainsFunc(p.InBlocks, of) || slices.ContainsFunc(p.Damage, of)
}

// partial returns the result of the part.
func (v *verifier) partial() *Partial {
	r := &v.res
	p := &Partial{Format: r.Format, Records: r.Records, Expired: r.Expired, Elements: r.Elements, Entries: r.Entries,
		Files: r.Files, Bytes: r.Bytes, Data: r.Data, Look: v.o.Files, Whole: v.readsAll(), Listed: v.listed, Looked: v.looked,
		MaxFindings: v.o.MaxFindings, Databases: texts(r.Databases), Unread: texts(r.Unread),
		InFiles: wire(v.found.all[:v.rows]), InBlocks: wire(v.found.all[v.rows:]), Damage: wire(v.damage)}
	_, kept, counts := v.found.findings()
	p.Counts = counts
	p.Kept = wire(kept)
	for _, g := range v.found.groups.list() {
		p.Groups = append(p.Groups, wireGroup{g, jsonl.Text(g.DB), jsonl.Text(g.Store)})
	}
	for d := range v.found.files {
		p.Seen = append(p.Seen, wireFile{d.kind, jsonl.Text(d.file), d.off})
	}
	slices.SortFunc(p.Seen, compareFiles)
	for i := range r.Skipped { // the look at the files skips more
		d := &v.skipped[i]
		p.Skipped = append(p.Skipped, wireFile{d.kind, jsonl.Text(d.file), d.off})
	}
	slices.SortFunc(p.Skipped, compareFiles)
	for name, t := range v.ledger.Snapshot() {
		p.Ledger = append(p.Ledger, wireTally{jsonl.Text(name), t})
	}
	slices.SortFunc(p.Ledger, func(a, b wireTally) int { return cmp.Compare(a.Keyspace, b.Keyspace) })
	return p
}

func compareFiles(a, b wireFile) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Off, b.Off), cmp.Compare(a.Kind, b.Kind))
}

func texts(of []string) (out []jsonl.Text) {
	for _, s := range of {
		out = append(out, jsonl.Text(s))
	}
	return out
}

func wire(of []record.Finding) (out []wireFinding) {
	for _, f := range of {
		out = append(out, wireFinding{f, jsonl.Text(f.DB), jsonl.Text(f.Keyspace), jsonl.Text(f.Detail),
			jsonl.Text(f.Place.File)})
	}
	return out
}

func (f *wireFinding) finding() record.Finding {
	out := f.Finding
	out.DB, out.Keyspace, out.Detail, out.Place.File = string(f.DB), string(f.Keyspace), string(f.Detail), string(f.File)
	return out
}

// Merge returns the outcome of one run from that of all its parts.
func Merge(parts []*Partial) (*Outcome, error) {
	if len(parts) == 0 {
		return nil, errors.New("no parts")
	}
	first := parts[0]
	v := newVerifier(&Options{MaxFindings: first.MaxFindings, Files: first.Look})
	skipped := make(map[wireFile]bool)
	for _, p := range parts {
		v.addPart(p)
		for _, s := range p.Skipped {
			skipped[s] = true
		}
	}
	v.res.Format, v.res.Files, v.res.Bytes, v.res.Data, v.res.Skipped = first.Format, first.Files, first.Bytes, first.Data,
		int64(len(skipped))
	for _, db := range first.Databases {
		v.res.Databases = append(v.res.Databases, string(db))
	}
	v.listed = first.Listed
	if first.Look == Automatic && !first.Looked && v.suspicious(first.Whole) {
		return nil, &LookError{}
	}
	v.leftover()
	for _, p := range parts {
		for i := range p.InBlocks {
			v.found.addFinding(p.InBlocks[i].finding())
		}
	}
	v.accounts()
	return v.result(), nil
}

// addPart adds a part.
func (v *verifier) addPart(p *Partial) {
	r := &v.res
	r.Records, r.Expired, r.Elements, r.Entries = r.Records+p.Records, r.Expired+p.Expired, r.Elements+p.Elements,
		r.Entries+p.Entries
	for _, text := range p.Unread {
		if !slices.Contains(r.Unread, string(text)) {
			r.Unread = append(r.Unread, string(text))
		}
	}
	for i := range p.InFiles {
		v.found.addFinding(p.InFiles[i].finding())
	}
	for i := range p.Counts {
		v.found.count(&p.Counts[i])
	}
	for i := range p.Kept {
		v.found.keep(p.Kept[i].finding())
	}
	for _, g := range p.Groups {
		g.Group.DB, g.Group.Store = string(g.DB), string(g.Store)
		v.found.groups.of(g.GroupID).merge(&g.Group)
	}
	for _, s := range p.Seen {
		v.found.see(fileDamage{s.Kind, string(s.File), s.Off})
	}
	for i := range p.Damage {
		v.damage = append(v.damage, p.Damage[i].finding())
	}
	for _, t := range p.Ledger {
		v.ledger.Add(string(t.Keyspace), &t.Tally)
	}
}
