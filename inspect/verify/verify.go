package verify

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"

	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/store"
)

// Options control Run.
type Options struct {
	// Scan configures the pass over the records. Run sets its Source, Ledger, Report and Deep.
	Scan inspect.Scan
	Root string // directory of the dataset
	Open func(context.Context, inspect.Opening) (format.Source, error)
	// Keyspaces returns the keyspaces of the store at a directory that cannot be opened.
	Keyspaces func(dir string) []format.KeyspaceEvidence
	// MaxFindings is the number of findings to keep; all are counted.
	MaxFindings int
	// Files decides on a second pass over the files: every block, in physical order, against their
	// properties and bounds. Blocks without rows, such as filters, are checked unless it is Never.
	Files Look
	// Read are the rows of a pass that has checked all records and found nothing; Run does not read them again. nil:
	// there was none.
	Read *record.Ledger
}

// Look controls the second pass over the files.
type Look uint8

// Automatic runs the second pass if the first one gives a reason: damage, or a number of entries that differs from
// the properties of the files.
const (
	Automatic Look = iota
	Always
	Never
)

// Outcome is the result of Run.
type Outcome struct {
	Format    string
	Databases []string
	Records   int64 // including expired ones
	Expired   int64
	Elements  int64
	Rows      int64 // classified visible rows
	Entries   int64 // physical entries read
	Files     int
	Bytes     int64 // size of all files
	Data      int64 // size of what has rows: tables, logs, or all files of a source without stores
	Findings  []record.Finding
	Gravest   []record.Finding // the first findings in order, however few Findings are asked for
	Counts    []KindCount
	Groups    []Group // of findings that may follow from others
	// Skipped is the number of unreadable tables, blocks and pages. They may cause other findings.
	Skipped int64
	// Unread lists the parts that could not be read completely.
	Unread []string
}

// Total returns the number of findings with a severity of least or higher.
func (v *Outcome) Total(least record.Severity) (n int64) {
	for _, c := range v.Counts {
		if c.Severity >= least {
			n += c.Count
		}
	}
	return n
}

// Run reads a whole dataset and lists its faults. It continues after a finding. An error means that it could not
// verify the dataset, for example because a file cannot be accessed.
func Run(ctx context.Context, o *Options) (*Outcome, error) {
	v := newVerifier(o)
	if err := v.run(ctx); err != nil {
		return nil, err
	}
	return v.result(), nil
}

func newVerifier(o *Options) *verifier {
	v := &verifier{o: o, found: newCollector(o.MaxFindings), ledger: new(record.Ledger)}
	v.stores.Root = o.Root
	return v
}

// run reads the source, or the part of it that is the share of the scan.
func (v *verifier) run(ctx context.Context) error {
	src, err := v.open(ctx)
	if src != nil {
		err = errors.Join(v.all(ctx, src), src.Close())
	}
	return v.o.Scan.Sources.Err(err)
}

// verifier runs a verification.
type verifier struct {
	o       *Options
	stores  inspect.Stores
	found   *collector
	ledger  *record.Ledger
	damage  []record.Finding // damage that stopped the reading of records
	mu      sync.Mutex
	passed  int64          // tables, blocks and pages that were skipped
	skipped []fileDamage   // their places, of a part
	reading bool           // the source is open
	tasks   []inspect.Part // of the whole source
	listed  int64          // entries by the properties of the files; or unlisted or unknown
	looked  bool           // the files were checked
	rows    int            // findings about files before those of blocks without rows
	res     Outcome
}

// fromStore adds a finding of an open store.
func (v *verifier) fromStore(f record.Finding) {
	v.count(f)
	v.mu.Lock()
	defer v.mu.Unlock()
	if placeOf(&f).file == "" && !v.reading && v.o.Scan.Share.K > 1 {
		return // every part finds it when it opens the source: it belongs to the first
	}
	if v.found.addFinding(f) && f.Skipped() {
		v.passed++
		if v.found.split {
			v.skipped = append(v.skipped, placeOf(&f))
		}
	}
}

// count adds error findings to the progress.
func (v *verifier) count(f record.Finding) {
	if f.Severity == record.Error {
		v.o.Scan.Meter.Error()
	}
}

// open opens the source. It returns a nil source if that fails and a finding gives the reason.
func (v *verifier) open(ctx context.Context) (format.Source, error) {
	failing := standIns{stores: &v.stores, report: func(f record.Finding) {
		if v.found.addFinding(f) && f.Kind != record.FindMissingFile { // which result adds
			v.res.Data += f.Unread
		}
	}, unread: v.unreadStore, keyspaces: v.o.Keyspaces}
	hasStores := false
	how := inspect.Opening{Salvage: true, Report: v.fromStore, Wrap: func(open store.Opener) store.Opener {
		open = failing.opener(v.stores.Opener(open))
		return func(ctx context.Context, dir string, o *store.Options) (store.Store, error) {
			hasStores = true
			return open(ctx, dir, o)
		}
	}}
	src, err := v.o.Open(ctx, how)
	var order *store.OrderError
	if errors.As(err, &order) { // of rows that it looks at while it is opened, as namespaces
		v.damage = append(v.damage, orderFinding(order, v.stores.File(order.File), -1))
		how.Resort = true
		src, err = v.o.Open(ctx, how)
	}
	if err == nil {
		return src, nil
	}
	if disk.IsAccess(err) {
		return nil, err
	}
	if v.found.failed() && ctx.Err() == nil {
		return nil, nil
	}
	var c *record.CorruptError
	if ctx.Err() == nil && errors.As(err, &c) && c.File != "" {
		v.res.Unread = append(v.res.Unread, "all")
		f := v.corrupt(c)
		if !hasStores && f.Kind != record.FindNewer { // a file without blocks
			f.Kind = record.FindDamagedFile
		}
		if st, none := disk.Stat(c.File); none == nil && st.Mode().IsRegular() {
			f.Unread, v.res.Data = st.Size(), st.Size()
		}
		v.found.report(f)
		return nil, nil
	}
	return nil, err
}

// corrupt reports damage in a file as a finding.
func (v *verifier) corrupt(c *record.CorruptError) record.Finding {
	f := record.Finding{Kind: record.FindDamagedBlock, Severity: record.Error, Keyspace: c.Keyspace,
		Place: c.Place(v.stores.File(c.File)), Detail: c.Reason()}
	if record.IsNewer(c) {
		f.Kind = record.FindNewer
	}
	return f
}

func (v *verifier) all(ctx context.Context, src format.Source) error {
	v.res.Format, v.res.Databases = src.Format().Name(), src.Databases()
	v.reading = true
	scan := v.scan(src, &v.stores)
	if v.o.Read != nil {
		v.ledger.Merge(v.o.Read)
		return v.rest(ctx, src, scan)
	}
	parts, err := scan.Parts()
	var c *record.CorruptError
	switch {
	case errors.As(err, &c) && v.o.Scan.Share.K > 1: // the first part reports it
	case errors.As(err, &c):
		v.unread(inspect.Part{Types: record.AllTypes}, err)
	case err != nil:
		return err
	}
	v.tasks = parts
	again, err := v.records(ctx, scan, scan.Share.Of(parts), false)
	if err != nil {
		return err
	}
	if len(again) > 0 {
		if err := v.resorted(ctx, again); err != nil {
			return err
		}
	}
	return v.rest(ctx, src, scan)
}

// rest checks the files.
func (v *verifier) rest(ctx context.Context, src format.Source, scan *inspect.Scan) error {
	v.res.Skipped = v.passed
	scan.Meter.Begin("files", 0, 0, 0)
	if err := v.files(ctx, src); err != nil {
		return err
	}
	v.rows = len(v.found.all)
	if v.found.split {
		return v.blocks(ctx, src)
	}
	v.leftover()
	if err := v.blocks(ctx, src); err != nil {
		return err
	}
	v.accounts()
	return nil
}

// scan returns the pass over a source and its stores, including expired records.
func (v *verifier) scan(src format.Source, stores *inspect.Stores) *inspect.Scan {
	scan := v.o.Scan
	scan.Stores = stores
	sel := *scan.Selected()
	sel.KeepExpired = true
	scan.Source, scan.Deep, scan.Selection = src, true, &sel
	return &scan
}

// records reads parts. It returns the parts whose rows are out of order.
func (v *verifier) records(ctx context.Context, scan *inspect.Scan, parts []inspect.Part,
	resort bool) (again []inspect.Part, err error) {
	err = scan.RunParts(ctx, parts, func(ctx context.Context, p inspect.Part) (func(), error) {
		found, ledger := newCollector(v.o.MaxFindings), new(record.Ledger)
		s := *scan
		s.Ledger, s.Report = ledger, func(f record.Finding) {
			v.count(f)
			found.report(f)
		}
		c := &countVisitor{}
		err := s.Visit(ctx, p, c)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if disk.IsAccess(err) {
			return nil, err
		}
		return func() {
			var order *store.OrderError
			if errors.As(err, &order) {
				v.damage = append(v.damage, orderFinding(order, v.stores.File(order.File), -1))
				if !resort {
					again = append(again, p)
					return
				}
			}
			v.found.merge(found)
			v.res.Records += c.records
			v.res.Expired += c.expired
			v.res.Elements += c.count
			if err != nil {
				v.unread(p, err)
				return
			}
			v.ledger.Merge(ledger)
		}, nil
	})
	return again, err
}

// resorted reads parts again with all tables sorted.
func (v *verifier) resorted(ctx context.Context, parts []inspect.Part) (err error) {
	report := func(f record.Finding) {
		if f.Kind != record.FindUnorderedTable { // a key-order finding reports it
			v.fromStore(f)
		}
	}
	stores := &inspect.Stores{Root: v.o.Root}
	known := standIns{stores: stores, report: func(record.Finding) {}, unread: func(string) {}, keyspaces: v.o.Keyspaces}
	src, err := v.o.Open(ctx, inspect.Opening{Resort: true, Salvage: true, Report: report,
		Wrap: func(open store.Opener) store.Opener {
			return known.opener(stores.Opener(open))
		}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	_, err = v.records(ctx, v.scan(src, stores), parts, true)
	return err
}

// unreadStore notes that a store could not be read.
func (v *verifier) unreadStore(dir string) {
	part := "all of " + dir
	if dir == "." {
		part = "all"
	}
	if !slices.Contains(v.res.Unread, part) {
		v.res.Unread = append(v.res.Unread, part)
	}
}

// unread notes that a part could not be read completely.
func (v *verifier) unread(p inspect.Part, err error) {
	v.res.Unread = append(v.res.Unread, p.String())
	f := record.Finding{Kind: record.FindUnreadRows, Severity: record.Error, DB: p.DB, Place: record.Place{Level: -1},
		Detail: fmt.Sprintf("%s: %v", p, err)}
	var c *record.CorruptError
	if errors.As(err, &c) && c.File != "" {
		f = v.corrupt(c)
		f.DB = p.DB
	}
	v.damage = append(v.damage, f)
}

// leftover reports damage that stopped the reading of records, unless the pass over the files has found it, too.
func (v *verifier) leftover() {
	for _, f := range v.damage {
		same := func(file string) bool { return file == f.Place.File }
		if f.Kind == record.FindKeyOrder { // a MANIFEST can also show it
			same = func(file string) bool { return path.Dir(file) == path.Dir(f.Place.File) }
		}
		known := v.found.damaged(f.Kind, same)
		switch f.Kind {
		case record.FindUnreadRows:
			known = false
		case record.FindKeyOrder: // readers trust a table's bounds: a row outside them is out of order
			known = known || v.found.damaged(record.FindFileBounds, same)
		case record.FindDamagedBlock:
			known = known || v.found.damaged(record.FindDamagedPage, same)
		}
		if !known {
			v.found.report(f)
		}
	}
}

// accounts sums up the ledger and checks that every row read was classified.
func (v *verifier) accounts() {
	var entries int64
	for _, t := range v.ledger.Snapshot() {
		v.res.Rows += t.Total()
		entries += t.Entries
	}
	v.res.Entries = max(v.res.Entries, entries)
	if err := v.ledger.Check(); err != nil {
		v.found.report(record.Finding{Kind: record.FindLedger, Severity: record.Error,
			Place: record.Place{Level: -1}, Detail: err.Error()})
	}
}

func (v *verifier) result() *Outcome {
	v.res.Findings, v.res.Gravest, v.res.Counts = v.found.findings()
	v.res.Groups = v.found.groups.list()
	for _, c := range v.res.Counts {
		if c.Kind == record.FindMissingFile { // no store lists it among its files
			v.res.Data += c.Unread
		}
	}
	return &v.res
}

// countVisitor counts records that were read completely.
type countVisitor struct {
	records, expired, count int64
	open                    int64 // elements of the last record
}

// Batch counts records.
func (v *countVisitor) Batch(b *record.Batch) {
	for i := range b.Records {
		r := &b.Records[i]
		if b.Begins(i) {
			v.open = 0
		}
		v.open += int64(r.N)
		if r.Out() || !b.Ends(i) || v.open == 0 && r.Type != record.Stream {
			continue
		}
		v.records++
		v.count += v.open
		if r.Expired {
			v.expired++
		}
	}
}

// Merge is empty: records adds up the counts of each part.
func (v *countVisitor) Merge() {}
