// Package kvferry reads, verifies, fingerprints and converts Redis data on disk: databases of Pika (nemo, blackwidow,
// floyd), Ardb and Kvrocks, RDB files and append-only files. It offers the functions of the program kvferry to Go
// programs.
//
// A location is [format[+store]:]path, as on the command line: /data/dump, nemo:/data/dump, rdb:/data/dump.rdb. The
// location of a target must name the format; otherwise the format of a source is detected. The name of a server
// also names a format: pika4:/data/new.
//
// The package never writes to a source. A target appears complete or not at all.
package kvferry

import (
	"context"
	"io"
	"runtime"
	"time"

	"kvferry/catalog"
	"kvferry/format"
	"kvferry/inspect"
	"kvferry/inspect/verify"
	"kvferry/internal/pass/filter"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/object"
	"kvferry/record"
	"kvferry/store"
)

// Memory limits if Options sets no other, as on the command line.
const (
	readMemory    = 256 << 20
	convertMemory = 512 << 20
)

// maxWorkers is the most that Workers may be by default.
const maxWorkers = 256

// Options control how a dataset is read. The zero value has the defaults of the command line.
type Options struct {
	// Now is the time at which keys count as expired; zero means the time of the call.
	Now time.Time
	// Workers is the number of parts read in parallel; 0 means one per CPU. Results do not depend on it.
	Workers int
	// Memory limits the bytes that are buffered; 0 means 256 MiB, for a conversion 512 MiB. Anything that does not
	// fit is written to files in TempDir; "" means the system's directory for temporary files, for a conversion that
	// of the target.
	Memory  int64
	TempDir string
	// WALDir is the directory of the write-ahead logs; "" means that they are next to the tables.
	WALDir string
	// AllowLive permits reading a database that a process has open.
	AllowLive bool
	// Resort sorts tables whose rows are out of order, as early Ardb servers wrote them. Without it, such
	// tables cause a *store.OrderError.
	Resort bool
	// Salvage skips unreadable tables, blocks and pages. Each is an error finding.
	Salvage bool
	// Findings is called for each problem found, from several goroutines at once; nil ignores
	// problems.
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
		out.Memory = readMemory
	}
	if out.Workers <= 0 {
		out.Workers = min(runtime.GOMAXPROCS(0), maxWorkers)
	}
	return out
}

// Dataset is an open dataset. It is safe for concurrent use.
type Dataset struct {
	found  *catalog.Found
	source format.Source
	stores *inspect.Stores
	files  *disk.Sources // files that the dataset reads
	o      Options
	unused func() // ends access to an object store; nil if there is none
}

// Open finds and opens the dataset at a location.
func Open(ctx context.Context, location string, o *Options) (*Dataset, error) {
	d, err := find(catalog.Default(), location, o)
	if err != nil {
		return nil, err
	}
	d.source, err = d.open(ctx, inspect.Opening{Salvage: d.o.Salvage, Report: d.o.Findings, Wrap: d.stores.Opener})
	if err != nil {
		d.unmount()
		return nil, err
	}
	return d, nil
}

// find finds the dataset at a location without opening it.
func find(c catalog.Catalog, location string, o *Options) (*Dataset, error) {
	d := &Dataset{files: new(disk.Sources), o: o.orDefault()}
	c.Objects = d.mount
	place, err := c.Source(location)
	if err == nil {
		d.found, err = c.Find(place, io.Discard)
	}
	if err != nil {
		d.unmount()
		return nil, err
	}
	d.stores = &inspect.Stores{Root: d.found.Location.Path}
	return d, nil
}

// mount makes an address in an object store readable until the dataset is closed.
func (d *Dataset) mount(address string) (path string, err error) {
	path, d.unused, err = object.Mount(context.Background(), address, object.Options{Memory: d.o.Memory / 8})
	return path, err
}

func (d *Dataset) unmount() {
	if d.unused != nil {
		d.unused()
	}
}

func (d *Dataset) open(ctx context.Context, how inspect.Opening) (format.Source, error) {
	o := d.openOptions()
	o.Store = how.Wrap(o.Store)
	o.Options.Report, o.Options.Salvage = how.Report, how.Salvage
	o.Options.Resort = o.Options.Resort || how.Resort
	src, err := d.found.Open(ctx, &o)
	if err != nil {
		err = d.files.Err(err)
	}
	return src, err
}

func (d *Dataset) openOptions() format.OpenOptions {
	return format.OpenOptions{Store: d.found.Driver.Open, Kind: d.found.Driver.Name, WALDir: d.o.WALDir,
		Options: store.Options{AllowLive: d.o.AllowLive, Resort: d.o.Resort, Memory: d.o.Memory / 8 / d.found.Crowd(),
			TempDir: d.o.TempDir, Sources: d.files, Now: d.o.Now}}
}

// Close releases the dataset's files.
func (d *Dataset) Close() error {
	defer d.unmount()
	return d.source.Close()
}

// Format returns the name of the format: nemo, blackwidow, floyd, ardb, kvrocks, keydbflash, parquet, rdb or aof.
func (d *Dataset) Format() string { return d.source.Format().Name() }

// Databases returns the names of the databases, in order.
func (d *Dataset) Databases() []string { return d.source.Databases() }

// Files returns the number of files that the dataset consists of, and their size.
func (d *Dataset) Files() (n int, bytes int64) { return d.stores.FilesOf(d.source) }

// Fingerprint returns counts and digests of the selected records. Equal records have equal fingerprints in every
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
		TempDir: d.o.TempDir, Report: d.o.Findings, Stores: d.stores, Sources: d.files}
}

// Verify reads every row of the dataset at a location and lists its faults. Findings are in the result; an error
// means that the dataset could not be verified.
func Verify(ctx context.Context, location string, f *Filter, o *Options) (*verify.Outcome, error) {
	d, err := find(catalog.Default(), location, o)
	if err != nil {
		return nil, err
	}
	defer d.unmount()
	scan, err := d.scan(f)
	if err != nil {
		return nil, err
	}
	return verify.Run(ctx, &verify.Options{Scan: *scan, Root: d.found.Location.Path, Open: d.open,
		Keyspaces: d.found.KeyspacesOf, MaxFindings: maxFindings})
}

// maxFindings is the number of findings that a verification keeps; it counts all of them.
const maxFindings = 10_000

// UsageError reports an invalid location, filter or target.
type UsageError = format.UsageError
