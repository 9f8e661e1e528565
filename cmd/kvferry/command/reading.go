package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/pass/filter"
	"kvferry/internal/text/escape"
	"kvferry/record"
	"kvferry/store"
)

// readMemory is the promise of --memory for commands that only read.
const readMemory = 256 << 20

// systemTemp is where those commands have temporary files.
const systemTemp = "the system's"

// ReadFlags are the flags of every command that reads records.
type ReadFlags struct {
	source   SourceFlags
	choice   SelectFlags
	workers  int
	salvage  bool
	progress ProgressFlags
	mapped   bool // --db has names of another dataset
}

// Register adds the flags to a command.
func (f *ReadFlags) Register(cmd *cobra.Command) {
	f.source.Register(cmd, readMemory, systemTemp)
	f.choice.Register(cmd)
	registerWorkers(cmd.Flags(), &f.workers)
	f.progress.Register(cmd)
}

// RegisterSalvage adds the flag of commands that are of use when a part of a dataset cannot be read.
func (f *ReadFlags) RegisterSalvage(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.salvage, "salvage", false, "read past what is damaged or missing, list it, and exit with 3")
}

// checkSalvage refuses --salvage where nothing can be skipped.
func (f *ReadFlags) checkSalvage(cmd *cobra.Command) error {
	if f.salvage && f.source.reader != readerNative && cmd.Flags().Changed("salvage") {
		return usagef("--salvage and --store %s do not go together", f.source.reader)
	}
	return nil
}

// hint names the flag that continues after an error.
func (f *ReadFlags) hint(err error) error {
	var block *store.BlockError
	if f.salvage || !errors.As(err, &block) {
		return err
	}
	return fmt.Errorf("%w; --salvage reads past it", err)
}

// Selection returns what the flags select for a command that works with a moment.
func (f *ReadFlags) Selection(now time.Time) (*filter.Selection, error) {
	s, err := f.choice.Selection(f.source.Memory())
	if err != nil {
		return nil, err
	}
	if err := s.Validate(now); err != nil {
		return nil, usagef("%w", err)
	}
	return s, nil
}

// Dataset is an open source with what the reading commands need of it.
type Dataset struct {
	*Opened
	Stores *inspect.Stores
	Scan   *inspect.Scan
	// salvage reads past what cannot be read.
	salvage bool
	reopen  func(context.Context, inspect.Opening) (format.Source, error)
	// prepares begins the step in which the source is made readable and returns what takes its progress; nil if there is none.
	prepares func() func(done, total, keys, of int64)
}

// dataset finds and opens a dataset and makes the scan that the flags describe. show is told how far a source is that is
// made readable first; nil where nothing is shown.
func (a *App) dataset(cmd *cobra.Command, location string, f *ReadFlags, show *progressView, report func(record.Finding)) (*Dataset, error) {
	d, err := a.unopened(cmd, location, f)
	if err == nil {
		err = tryOutputs(cmd)
	}
	if err != nil {
		return nil, err
	}
	if show != nil {
		show.preparing(readSteps, d)
	}
	return d, d.open(cmd.Context(), report)
}

// open opens the source.
func (d *Dataset) open(ctx context.Context, report func(record.Finding)) (err error) {
	d.Scan.Report = report
	d.Opened.Source, err = d.reopen(ctx, inspect.Opening{Salvage: d.salvage, Report: report, Wrap: d.Stores.Opener})
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
		options.Options.Report, options.Options.Salvage = how.Report, how.Salvage
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

// ordered calls do with the dataset, and once more with its tables sorted when they turn out not to be
// in order. What do writes must be able to start over.
func (d *Dataset) ordered(ctx context.Context, do func() error) error {
	err := do()
	var order *store.OrderError
	if !errors.As(err, &order) {
		return err
	}
	return d.resorted(ctx, do)
}

// orderedOnce calls do, whose output cannot be taken back once there is some, with the dataset's tables sorted where they
// have to be. Of the orders that servers changed every key is looked at first; of the others tables are not known to be
// out of order.
func (d *Dataset) orderedOnce(ctx context.Context, do func() error, written func() bool) error {
	err := d.checkOrder(ctx)
	var order *store.OrderError
	switch {
	case err == nil:
	case errors.As(err, &order):
		return d.resorted(ctx, do)
	case ctx.Err() != nil:
		return err // damage is for those who read
	}
	return d.unlessWritten(ctx, do, written)
}

// unlessWritten calls do, and once more with the tables sorted as long as nothing was written.
func (d *Dataset) unlessWritten(ctx context.Context, do func() error, written func() bool) error {
	err := do()
	var order *store.OrderError
	switch {
	case !errors.As(err, &order):
		return err
	case written():
		return fmt.Errorf("%w; run it again with --resort", err)
	}
	return d.resorted(ctx, do)
}

// checkOrder reads the keys whose order other versions of the server had differently.
func (d *Dataset) checkOrder(ctx context.Context) error {
	for _, ks := range d.Opened.Source.Keyspaces() {
		if d.Opened.options.Options.Resort || d.Found.Format.Name() != "ardb" || ks.Comparer().IsBytewise() {
			continue
		}
		it, err := ks.Rows(nil, nil)
		for n := 0; err == nil; n++ {
			if _, _, err = it.Next(); err == nil && n%1024 == 0 {
				err = ctx.Err()
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

// resorted calls do with the dataset opened anew, its tables sorted.
func (d *Dataset) resorted(ctx context.Context, do func() error) error {
	if err := d.Opened.Source.Close(); err != nil {
		return err
	}
	stores := &inspect.Stores{Root: d.Stores.Root}
	src, err := d.reopen(ctx, inspect.Opening{Salvage: d.salvage, Report: d.Scan.Report, Resort: true, Wrap: stores.Opener})
	if err != nil {
		return err
	}
	d.Stores, d.Opened.Source = stores, src
	d.Scan.Stores, d.Scan.Source = stores, src
	return do()
}

// whole returns the error of a command that has read the dataset, and has not published anything yet: that of the pass, or
// that a file of the dataset changed meanwhile.
func (d *Dataset) whole(err error) error { return d.Scan.Sources.Err(err) }

// tellNone says on standard error that the filters leave no record: one of them may be mistyped.
func (d *Dataset) tellNone(w io.Writer, records int64) {
	if records == 0 && !d.Scan.Selection.Everything() {
		fmt.Fprintln(w, "kvferry: no record passes the filter")
	}
}

// hasRows refuses formats that have no rows on disk, for commands that show these.
func (d *Dataset) hasRows() error {
	if d.Found.Format.Limits().Place == format.InFiles {
		return usagef("%s: an append-only file has commands and no rows; kvferry dump --match shows the record of a key", escape.Text(d.Found.Location.Path))
	}
	return nil
}
