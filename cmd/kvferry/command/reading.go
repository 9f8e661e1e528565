package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"kvferry/cmd/kvferry/cli"
	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/pass/filter"
	"kvferry/internal/pass/progress"
	"kvferry/internal/text/escape"
	"kvferry/record"
	"kvferry/store"
)

// readMemory is the default of --memory for commands that only read.
const readMemory = 256 << 20

// systemTemp describes their default directory for temporary files.
const systemTemp = "the system's"

// ReadFlags are the flags of every command that reads records.
type ReadFlags struct {
	source   SourceFlags
	choice   SelectFlags
	workers  int
	salvage  bool
	progress cli.ProgressFlags
	mapped   bool            // --db names databases of another dataset
	steps    []progress.Step // of the command; nil: readSteps
	salvages bool            // the command has --salvage
}

// Register adds the flags to a command.
func (f *ReadFlags) Register(cmd *cobra.Command) {
	f.source.Register(cmd, readMemory, systemTemp)
	f.choice.Register(cmd)
	cli.RegisterWorkers(cmd.Flags(), &f.workers)
	f.progress.Register(cmd)
}

// RegisterSalvage adds --salvage, for commands whose output is useful without the unreadable parts.
func (f *ReadFlags) RegisterSalvage(cmd *cobra.Command) {
	f.salvages = true
	cmd.Flags().BoolVar(&f.salvage, "salvage", false, "skip damaged or missing data, list it, and exit with 3")
}

// checkSalvage refuses --salvage with a reader that cannot skip damage.
func (f *ReadFlags) checkSalvage(cmd *cobra.Command) error {
	if f.salvage && f.source.reader != readerNative && cmd.Flags().Changed("salvage") {
		return cli.Usagef("--salvage and --store %s do not go together", f.source.reader)
	}
	return nil
}

// readSteps returns the steps of the command.
func (f *ReadFlags) readSteps() []progress.Step {
	if f.steps != nil {
		return f.steps
	}
	return readSteps
}

// hint names the flag that skips the damage.
func (f *ReadFlags) hint(err error) error {
	var block *store.BlockError
	if !f.salvages || f.salvage || !errors.As(err, &block) {
		return err
	}
	return &pastError{err}
}

// Selection returns the selection as of now.
func (f *ReadFlags) Selection(now time.Time) (*filter.Selection, error) {
	s, err := f.choice.Selection(f.source.Memory())
	if err != nil {
		return nil, err
	}
	if err := s.Validate(now); err != nil {
		return nil, cli.Usagef("%w", err)
	}
	return s, nil
}

// Dataset is an open source with the state that reading commands share.
type Dataset struct {
	*Opened
	Stores *inspect.Stores
	Scan   *inspect.Scan
	// salvage skips unreadable parts.
	salvage bool
	// sorted is set once the source has sorted its tables, which were out of order.
	sorted bool
	reopen func(context.Context, inspect.Opening) (format.Source, error)
	// prepares begins the step that makes the source readable and returns its progress function. nil: the source has
	// no such step.
	prepares func() store.Copied
}

// dataset finds and opens a dataset and creates the scan that the flags describe. show displays the preparation of
// the source; it may be nil.
func (a *App) dataset(cmd *cobra.Command, location string, f *ReadFlags, show *cli.ProgressView,
	report func(record.Finding)) (*Dataset, error) {
	d, err := a.unopened(cmd, location, f)
	if err == nil {
		err = tryOutputs(cmd)
	}
	if err != nil {
		return nil, err
	}
	if show != nil {
		preparing(show, f.readSteps(), d)
	}
	return d, d.open(cmd.Context(), report)
}

// reading is one pass of a command over a dataset.
type reading struct {
	*Dataset
	show  *cli.ProgressView
	notes *noted
	warn  io.Writer
}

// read opens a dataset, shows the progress of do, and closes the dataset.
func (a *App) read(cmd *cobra.Command, location string, f *ReadFlags, do func(*reading) error) (r *reading, err error) {
	r = &reading{show: cli.NewProgress(cmd, &f.progress, a.Terminal), warn: cmd.ErrOrStderr()}
	defer func() { r.show.End(err) }()
	r.notes = &noted{w: r.show, cmd: cmd, of: []string{location}}
	if r.Dataset, err = a.dataset(cmd, location, f, r.show, r.notes.report); err != nil {
		return r, f.hint(err)
	}
	watch(r.show, r.Scan, f.readSteps())
	err = do(r)
	r.show.End(err)
	r.notes.sum()
	return r, f.hint(errors.Join(err, r.Opened.Source.Close()))
}

// printed returns the error of a command that has printed what it read, or else the verdict on the dataset.
func (r *reading) printed(err error, records int64) error {
	if err != nil {
		return err
	}
	r.tellNone(r.warn, records)
	return r.notes.verdict()
}

// open opens the source.
func (d *Dataset) open(ctx context.Context, report func(record.Finding)) (err error) {
	d.Scan.Report = report
	how := inspect.Opening{Salvage: d.salvage, Report: report, Wrap: d.Stores.Opener}
	d.Opened.Source, err = d.reopen(ctx, how)
	if _, ok := errors.AsType[*store.OrderError](err); ok { // of rows that it looks at while it is opened, as namespaces
		how.Resort, d.sorted = true, true
		d.Opened.Source, err = d.reopen(ctx, how)
	}
	d.Scan.Source = d.Opened.Source
	return err
}

// unopened finds a dataset without opening it.
func (a *App) unopened(cmd *cobra.Command, location string, f *ReadFlags) (*Dataset, error) {
	locations := append(cmd.Flags().Args(), location)
	if against := cmd.Flag("against"); against != nil {
		locations = append(locations, against.Value.String())
	}
	if err := unused(cmd.Flags(), connectNames, locations...); err != nil {
		return nil, err
	}
	now := f.source.Clock(a)
	sel, err := f.Selection(now)
	if err != nil {
		return nil, err
	}
	o, err := a.prepare(cmd, location, &f.source, nil)
	if err != nil {
		return nil, err
	}
	if err := f.checkSalvage(cmd); err != nil {
		return nil, err
	}
	d := &Dataset{Opened: o, salvage: f.salvage, Stores: &inspect.Stores{Root: o.Found.Location.Path}}
	d.Scan = &inspect.Scan{Selection: sel, Now: now, Workers: f.workers, Memory: f.source.Memory() / 2,
		TempDir: f.source.TempDir(), Stores: d.Stores, Sources: o.options.Options.Sources}
	d.reopen = func(ctx context.Context, how inspect.Opening) (format.Source, error) {
		options := o.options
		options.Options.Report, options.Options.Salvage, options.Options.Now = how.Report, how.Salvage, now
		options.Options.HalfImported = sel.KeepExpired
		options.Options.Resort = options.Options.Resort || how.Resort
		options.Store = how.Wrap(options.Store)
		if d.prepares != nil {
			options.Options.Copied = d.prepares()
		}
		options.Pass = f.choice.places.pass(f.mapped)
		src, err := o.Found.Open(ctx, &options)
		if err != nil {
			err = options.Options.Sources.Err(err)
		}
		return src, err
	}
	return d, nil
}

// again opens the dataset once more, in another way; the source that is open stays.
func (d *Dataset) again(ctx context.Context, how inspect.Opening) (format.Source, error) {
	how.Resort, how.Wrap = how.Resort || d.sorted, (&inspect.Stores{Root: d.Stores.Root}).Opener
	return d.reopen(ctx, how)
}

// ordered calls do. If the tables turn out to be out of order, it sorts them and calls do again, so the output of do
// must be discardable.
func (d *Dataset) ordered(ctx context.Context, do func() error) error {
	err := d.heldBack(do)
	var order *store.OrderError
	if !errors.As(err, &order) {
		return err
	}
	return d.resorted(ctx, do)
}

// orderedOnce is ordered for a do whose output cannot be taken back. It first checks every key of keyspaces whose
// order differs between server versions; tables of other keyspaces are not known to be out of order. A lookup of keys
// does not read others.
func (d *Dataset) orderedOnce(ctx context.Context, do func() error, written func() bool) error {
	var err error
	if !format.Lookups(d.Scan.Selection.Spans()) {
		err = d.checkOrder(ctx)
	}
	var order *store.OrderError
	switch {
	case err == nil:
	case errors.As(err, &order):
		return d.resorted(ctx, do)
	case ctx.Err() != nil:
		return err // do will report damage
	}
	return d.unlessWritten(ctx, do, written)
}

// unlessWritten calls do. If the tables are out of order and no output was written yet, it sorts them and calls do
// again.
func (d *Dataset) unlessWritten(ctx context.Context, do func() error, written func() bool) error {
	err := d.heldBack(do)
	var order *store.OrderError
	switch {
	case !errors.As(err, &order):
		return err
	case written():
		return fmt.Errorf("%w; run it again with --resort", err)
	}
	return d.resorted(ctx, do)
}

// maxHeld is how many findings wait until it is known whether tables are in order.
const maxHeld = 1000

// heldBack calls do and keeps what it finds until it is done: where tables turn out not to be in order, rows seem to miss that
// do not, and all is read again.
func (d *Dataset) heldBack(do func() error) error {
	report := d.Scan.Report
	if report == nil {
		return do()
	}
	var mu sync.Mutex
	var held []record.Finding
	flush := func() {
		for _, f := range held {
			report(f)
		}
		held = nil
	}
	d.Scan.Report = func(f record.Finding) {
		mu.Lock()
		defer mu.Unlock()
		if held = append(held, f); len(held) > maxHeld {
			flush()
		}
	}
	err := do()
	d.Scan.Report = report
	if order := (*store.OrderError)(nil); !errors.As(err, &order) {
		flush()
	}
	return err
}

// checkOrder reads the keys whose order other versions of the server had differently.
func (d *Dataset) checkOrder(ctx context.Context) error {
	for _, ks := range d.Opened.Source.Keyspaces() {
		if d.Opened.options.Options.Resort || d.Found.Format.Name() != "ardb" || ks.Comparer().IsBytewise() {
			continue
		}
		it, err := ks.Rows(nil, nil)
		for n := 0; err == nil; n++ {
			if _, _, err = it.Next(); err == nil {
				err = record.Stopped(ctx, n)
			}
		}
		if it != nil {
			err = errors.Join(err, it.Close())
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	return nil
}

// resorted reopens the dataset with its tables sorted and calls do.
func (d *Dataset) resorted(ctx context.Context, do func() error) error {
	if err := d.Opened.Source.Close(); err != nil {
		return err
	}
	stores := &inspect.Stores{Root: d.Stores.Root}
	src, err := d.reopen(ctx, inspect.Opening{Salvage: d.salvage, Report: d.Scan.Report, Resort: true, Wrap: stores.Opener})
	if err != nil {
		return err
	}
	d.Stores, d.Opened.Source, d.sorted = stores, src, true
	d.Scan.Stores, d.Scan.Source = stores, src
	return do()
}

// checkUnchanged returns err or, if a file of the dataset changed during the pass, an error about the change. Commands call it
// before they publish a result.
func (d *Dataset) checkUnchanged(err error) error { return d.Scan.Sources.Err(err) }

// tellNone reports on standard error if no record passes the filters: one may be mistyped.
func (d *Dataset) tellNone(w io.Writer, records int64) {
	if records == 0 && !d.Scan.Selection.Everything() {
		fmt.Fprintln(w, "kvferry: no record passes the filter")
	}
}

// hasRows refuses formats without rows on disk, for commands that show rows.
func (d *Dataset) hasRows() error {
	if d.Found.Format.Limits().Place == format.InFiles {
		return cli.Usagef("%s: an append-only file has commands and no rows; kvferry dump --match shows the record of a key",
			escape.Text(d.Found.Location.Path))
	}
	return nil
}

// readSteps are the steps of a command that reads one dataset once.
var readSteps = []progress.Step{{Name: "read", Weight: 1}}

// preparingWeight is the duration of a step that makes a source readable, relative to that which reads it.
const preparingWeight = 0.5

// preparing adds a step for each source that must be prepared when opened, before the steps that read it: a server is
// copied, an append-only file replayed.
func preparing(v *cli.ProgressView, steps []progress.Step, sets ...*Dataset) {
	var before []progress.Step
	for i, d := range sets {
		step := progress.Step{Name: d.Found.Format.Limits().Place.Preparation(), Weight: preparingWeight}
		if step.Name == "" {
			continue
		}
		if len(sets) > 1 {
			step.Name += " " + string(rune('A'+i))
		}
		before = append(before, step)
		d.prepares = func() store.Copied {
			v.Meter.Enter(step.Name)
			return v.Meter.Copied
		}
	}
	if len(before) > 0 {
		v.Plan(append(before, steps...))
	}
}

// watch shows the progress of a scan.
func watch(v *cli.ProgressView, s *inspect.Scan, steps []progress.Step) {
	s.Meter, s.Step = v.Plan(steps), steps[0].Name
}
