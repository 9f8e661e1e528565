// Package kvferry reads, verifies, fingerprints and converts Redis data on disk: databases of Pika (nemo, blackwidow,
// floyd), Ardb and Kvrocks, RDB files and append-only files. It is what the program kvferry does, for Go programs.
//
// A location is [format[+store]:]path, as on the command line: /data/dump, nemo:/data/dump, rdb:/data/dump.rdb. The
// format of a source is detected unless the location names it; that of a target is named. The name of a server may
// stand in place of the format: pika4:/data/new.
//
// Sources are never written to. A target appears complete or not at all.
package kvferry

import (
	"context"
	"io"
	"time"

	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/catalog"
	"kvferry/internal/filter"
	"kvferry/record"
	"kvferry/store"
)

// defaultMemory is what may be buffered when Options leave it open.
const defaultMemory = 256 << 20

// Options say how a dataset is read. The zero value is that of the command line.
type Options struct {
	// Now is the moment that expiry is decided by; zero is that of the call.
	Now time.Time
	// Workers is how many parts of a dataset are read at once; 0 means 1. Results do not depend on it.
	Workers int
	// Memory bounds the bytes that are buffered; 0 means 256 MiB. What does not fit goes to files in TempDir, ""
	// for the system's.
	Memory  int64
	TempDir string
	// WALDir is where the write-ahead logs are, "" when they are beside the tables.
	WALDir string
	// AllowLive reads a database that a running process holds.
	AllowLive bool
	// Resort sorts tables whose rows are out of order, as those of early servers of Ardb. Without it they are a
	// *store.OrderError.
	Resort bool
	// Salvage goes on past tables, blocks and pages that cannot be read. Each is an error finding.
	Salvage bool
	// Findings is told what is wrong with the dataset, by several goroutines at once; nil drops it.
	Findings func(record.Finding)
}

func (o *Options) orDefault() Options {
	var out Options
	if o != nil {
		out = *o
	}
	if out.Now.IsZero() {
		out.Now = time.Now()
	}
	if out.Memory <= 0 {
		out.Memory = defaultMemory
	}
	return out
}

// Dataset is an open dataset. Its methods may be called by several goroutines at once.
type Dataset struct {
	found  *catalog.Found
	source format.Source
	stores *inspect.Stores
	o      Options
}

// Open finds and opens the dataset at a location.
func Open(ctx context.Context, location string, o *Options) (*Dataset, error) {
	d, err := find(catalog.Default(), location, o)
	if err != nil {
		return nil, err
	}
	d.source, err = d.open(ctx, inspect.Opening{Salvage: d.o.Salvage, Report: d.o.Findings, Wrap: d.stores.Opener})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// find finds the dataset at a location, which is still to be opened.
func find(c catalog.Catalog, location string, o *Options) (*Dataset, error) {
	place, err := c.Source(location)
	if err != nil {
		return nil, err
	}
	found, err := c.Find(place, io.Discard)
	if err != nil {
		return nil, err
	}
	return &Dataset{found: found, stores: &inspect.Stores{Root: found.Location.Path}, o: o.orDefault()}, nil
}

func (d *Dataset) open(ctx context.Context, how inspect.Opening) (format.Source, error) {
	o := d.openOptions()
	o.Store = how.Wrap(o.Store)
	o.Options.Report, o.Options.Salvage = how.Report, how.Salvage
	o.Options.Resort = o.Options.Resort || how.Resort
	return d.found.Open(ctx, &o)
}

func (d *Dataset) openOptions() format.OpenOptions {
	return format.OpenOptions{Store: d.found.Driver.Open, Kind: d.found.Driver.Name, WALDir: d.o.WALDir,
		Options: store.Options{AllowLive: d.o.AllowLive, Resort: d.o.Resort, Memory: d.o.Memory / 8 / d.found.Crowd(), TempDir: d.o.TempDir}}
}

// Close releases the dataset's files.
func (d *Dataset) Close() error { return d.source.Close() }

// Format names the format that was found: nemo, blackwidow, floyd, ardb, kvrocks, rdb or aof.
func (d *Dataset) Format() string { return d.source.Format().Name() }

// Databases names the databases in their order.
func (d *Dataset) Databases() []string { return d.source.Databases() }

// Files returns how many files the dataset has, those of its stores where it has such, and their bytes.
func (d *Dataset) Files() (n int, bytes int64) { return d.stores.FilesOf(d.source) }

// Fingerprint returns counts and digests of the selected records. They are the same for the same records in any
// format. A nil filter selects all records that have not expired.
func (d *Dataset) Fingerprint(ctx context.Context, f *Filter) (*record.Fingerprint, error) {
	scan, err := d.scan(f)
	if err != nil {
		return nil, err
	}
	return inspect.Fingerprint(ctx, scan)
}

func (d *Dataset) scan(f *Filter) (*inspect.Scan, error) {
	sel, err := f.selection(d.o.Now)
	if err != nil {
		return nil, err
	}
	return d.scanOf(sel), nil
}

func (d *Dataset) scanOf(sel *filter.Selection) *inspect.Scan {
	return &inspect.Scan{Source: d.source, Selection: sel, Now: d.o.Now, Workers: d.o.Workers, Memory: d.o.Memory / 2,
		TempDir: d.o.TempDir, Report: d.o.Findings, Stores: d.stores}
}

// Verify reads every row of the dataset at a location and lists what is wrong with it. An error means that it could not
// be verified; findings are in the result.
func Verify(ctx context.Context, location string, f *Filter, o *Options) (*inspect.Verification, error) {
	d, err := find(catalog.Default(), location, o)
	if err != nil {
		return nil, err
	}
	scan, err := d.scan(f)
	if err != nil {
		return nil, err
	}
	return inspect.Verify(ctx, &inspect.VerifyOptions{Scan: *scan, Root: d.found.Location.Path, Open: d.open,
		Keyspaces: d.found.KeyspacesOf, MaxFindings: maxFindings})
}

// maxFindings is how many findings of a verification are kept; all are counted.
const maxFindings = 10_000

// UsageError is about a request that no dataset could meet: a location, a filter or a target that makes no sense.
type UsageError = format.UsageError
