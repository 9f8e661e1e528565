package command

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"kvferry/format"
	"kvferry/inspect"
	"kvferry/record"
	"kvferry/store"
)

// readMemory is the promise of --memory for commands that only read.
const readMemory = 256 << 20

// ReadFlags are the flags of every command that reads records.
type ReadFlags struct {
	source      SourceFlags
	filter      FilterFlags
	expired     string
	ttlFrom     string
	ttlTo       string
	minBytes    sizeFlag
	minElements int64
	sample      uint64
	workers     int
}

// Register adds the flags to a command.
func (f *ReadFlags) Register(cmd *cobra.Command) {
	f.source.Register(cmd)
	f.source.memory = readMemory
	cmd.Flags().Lookup("memory").DefValue = f.source.memory.String()
	f.filter.Register(cmd)
	fs := cmd.Flags()
	fs.StringVar(&f.expired, "expired", "drop", "what becomes of expired keys: drop or keep")
	fs.StringVar(&f.ttlFrom, "ttl-from", "", "only keys that expire at a `time` (RFC 3339 or Unix seconds) or that far ahead (90m, 7d), or later")
	fs.StringVar(&f.ttlTo, "ttl-to", "", "only keys that expire before a `time` or sooner than that far ahead")
	fs.Var(&f.minBytes, "min-bytes", "only records of at least so many logical bytes")
	fs.Int64Var(&f.minElements, "min-elements", 0, "only records of at least `n` elements")
	fs.Uint64Var(&f.sample, "sample", 0, "only one key in `n`, chosen by its hash: the same ones everywhere")
	fs.IntVar(&f.workers, "workers", runtime.GOMAXPROCS(0), "how many parts of the dataset are read at once")
}

// Selection returns what the flags select.
func (f *ReadFlags) Selection(now time.Time) (*inspect.Selection, error) {
	base, err := f.filter.Filter()
	if err != nil {
		return nil, err
	}
	s := &inspect.Selection{Filter: *base, MinBytes: int64(f.minBytes), MinElements: f.minElements, Sample: f.sample}
	if s.KeepExpired, err = keepExpired(f.expired); err != nil {
		return nil, err
	}
	if s.ExpireFrom, err = parseTTL("--ttl-from", f.ttlFrom, now); err != nil {
		return nil, err
	}
	if s.ExpireTo, err = parseTTL("--ttl-to", f.ttlTo, now); err != nil {
		return nil, err
	}
	if f.workers < 1 {
		return nil, usagef("--workers %d: want at least 1", f.workers)
	}
	if err := s.Validate(); err != nil {
		return nil, usagef("%w", err)
	}
	return s, nil
}

// parseTTL reads a moment or a time from now; 0 when it is not given.
func parseTTL(flag, text string, now time.Time) (int64, error) {
	if text == "" {
		return 0, nil
	}
	if d, ok := parseDuration(text); ok {
		return now.Add(d).UnixMilli(), nil
	}
	var t timeFlag
	if err := t.Set(text); err != nil {
		return 0, usagef("%s %q: want a time (RFC 3339 or Unix seconds) or how far ahead (90m, 12h, 7d)", flag, text)
	}
	return t.UnixMilli(), nil
}

// parseDuration reads a duration as Go has it, or a number of days.
func parseDuration(s string) (time.Duration, bool) {
	if n := len(s); n > 1 && s[n-1] == 'd' {
		days, err := strconv.ParseFloat(s[:n-1], 64)
		return time.Duration(days * float64(24*time.Hour)), err == nil
	}
	d, err := time.ParseDuration(s)
	return d, err == nil
}

// Dataset is an open source with what the reading commands need of it.
type Dataset struct {
	*Opened
	Stores *inspect.Stores
	Scan   *inspect.Scan
	reopen func(context.Context, inspect.Opening) (format.Source, error)
}

// dataset finds and opens a dataset and makes the scan that the flags describe.
func (a *App) dataset(ctx context.Context, cmd *cobra.Command, location string, f *ReadFlags,
	report func(record.Finding)) (*Dataset, error) {

	d, err := a.unopened(cmd, location, f)
	if err != nil {
		return nil, err
	}
	d.Scan.Report = report
	d.Opened.Source, err = d.reopen(ctx, inspect.Opening{Report: report, Wrap: d.Stores.Opener})
	if err != nil {
		return nil, err
	}
	d.Scan.Source = d.Opened.Source
	return d, nil
}

// unopened finds a dataset without opening it.
func (a *App) unopened(cmd *cobra.Command, location string, f *ReadFlags) (*Dataset, error) {
	now := f.source.Clock(a)
	sel, err := f.Selection(now)
	if err != nil {
		return nil, err
	}
	o, err := a.prepare(cmd, location, &f.source, nil)
	if err != nil {
		return nil, err
	}
	d := &Dataset{Opened: o, Stores: &inspect.Stores{Root: o.Location.Path}}
	d.Scan = &inspect.Scan{Selection: sel, Now: now, Workers: f.workers, Memory: f.source.Memory() / 2,
		TempDir: f.source.TempDir()}
	d.reopen = func(ctx context.Context, how inspect.Opening) (format.Source, error) {
		options := o.options
		options.Options.Report, options.Options.Resort = how.Report, how.Resort
		options.Store = how.Wrap(options.Store)
		return o.open(ctx, &options)
	}
	return d, nil
}

// ordered calls do with the dataset, and once more with its tables sorted when they turn out not to be
// in order. do must not have written anything then: it returns that it has by written.
func (d *Dataset) ordered(ctx context.Context, do func() error, written func() bool) error {
	err := do()
	var order *store.OrderError
	if !errors.As(err, &order) {
		return err
	}
	if written() {
		return fmt.Errorf("%w; write to a file with -o, then what was written is started over with the tables sorted", err)
	}
	if err := d.Opened.Source.Close(); err != nil {
		return err
	}
	stores := &inspect.Stores{Root: d.Stores.Root}
	src, err := d.reopen(ctx, inspect.Opening{Report: d.Scan.Report, Resort: true, Wrap: stores.Opener})
	if err != nil {
		return err
	}
	d.Stores, d.Opened.Source, d.Scan.Source = stores, src, src
	return do()
}

// never is for commands that write when they are done.
func never() bool { return false }

// keyspacesOf returns what detection saw of the store at a directory.
func (o *Opened) keyspacesOf(dir string) []format.KeyspaceEvidence {
	for _, s := range o.evidence.Stores {
		if samePath(o.Location.Path, s.Path, dir) {
			return s.Keyspaces
		}
	}
	return nil
}
