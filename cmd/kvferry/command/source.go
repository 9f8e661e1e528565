package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kvferry/convert"
	"kvferry/format"
	"kvferry/internal/disk"
	"kvferry/internal/visible"
	"kvferry/record"
	"kvferry/store"
)

// The values of --store.
const (
	readerNative  = "native"
	readerRocksDB = "rocksdb"
)

// SourceFlags are the flags of every command that reads a dataset.
type SourceFlags struct {
	walDir    string
	walFlag   string // what gives walDir
	allowLive bool
	resort    bool
	verbose   bool
	reader    string
	tempDir   string
	memory    memoryFlag
	now       timeFlag
	maxBitmap sizeFlag
}

// Register adds the flags to a command that promises so many bytes of memory and has its temporary
// files at temp unless it is told otherwise.
func (f *SourceFlags) Register(cmd *cobra.Command, memory sizeFlag, temp string) {
	f.memory, f.walFlag = memoryFlag{memory}, "wal-dir"
	fs := cmd.Flags()
	fs.StringVar(&f.walDir, f.walFlag, "", "`directory` of the write-ahead logs (*.log), when they are not beside the tables; of several stores, each has its own in it, named as in the dataset")
	fs.BoolVar(&f.allowLive, "allow-live", false, "read a database that a running process holds; what it writes meanwhile may be missed, or be in the way")
	fs.BoolVar(&f.resort, "resort", false, "distrust the order of rows in table files and sort those that are not in order")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "show the evidence that the format was detected by")
	choose(fs, &f.reader, "store", plain(readerNative, readerRocksDB), "what reads RocksDB files: kvferry's own code, or RocksDB's library in a build with it")
	fs.StringVar(&f.tempDir, "temp-dir", "", "`directory` for what does not fit into memory (default: "+temp+")")
	fs.Var(&f.maxBitmap, "max-bitmap", "longest bitmap of Kvrocks that is read as a string, zeros and all; a longer one is a value of its server's own; 0 takes 16MiB (default 16MiB)")
	least := sizeFlag(minMemory)
	fs.Var(&f.memory, "memory", "resident memory to stay below, "+least.String()+" or more")
	fs.Var(&f.now, "now", "`time` that expiry is decided by: RFC 3339 or Unix seconds (default: the clock)")
}

// Memory returns the bytes of --memory.
func (f *SourceFlags) Memory() int64 { return int64(f.memory.sizeFlag) }

// TempDir returns the directory of --temp-dir, "" for the system's.
func (f *SourceFlags) TempDir() string { return f.tempDir }

// Clock returns the one moment that the whole command works with.
func (f *SourceFlags) Clock(a *App) time.Time {
	if !f.now.IsZero() {
		return f.now.Time
	}
	return a.Now()
}

// Opened is an open source and how it was found.
type Opened struct {
	format.Source
	// Location names the format and store that were detected.
	Location Location
	given    string // the location as the command line has it
	driver   *Driver
	options  format.OpenOptions
	format   format.Format
	evidence *format.Evidence
}

// prepare finds the dataset at a location, detecting its format unless the location names it, and makes ready to open
// it. report takes findings about the files; nil drops them. --memory is promised to the runtime here.
func (a *App) prepare(cmd *cobra.Command, location string, f *SourceFlags, report func(record.Finding)) (*Opened, error) {
	o, err := a.locate(cmd, location, f)
	if err != nil {
		return nil, err
	}
	if a.LimitMemory != nil {
		a.LimitMemory(f.Memory())
	}
	open, err := a.opener(o, f.reader)
	if err != nil {
		return nil, err
	}
	o.options = format.OpenOptions{
		Store:  open,
		Kind:   o.driver.Name,
		WALDir: f.walDir,
		Stdin:  cmd.InOrStdin(),

		MaxBitmap: int64(f.maxBitmap),
		Options: store.Options{
			AllowLive: f.allowLive,
			Resort:    f.resort,
			Memory:    f.Memory() / 8 / o.crowd(),
			TempDir:   f.tempDir,
			Report:    report,
		},
	}
	return o, nil
}

// opener chooses what reads the stores of a dataset.
func (a *App) opener(o *Opened, reader string) (store.Opener, error) {
	switch {
	case reader == readerNative && o.driver == noStores:
		return noStore, nil
	case reader == readerNative:
		return o.driver.Open, nil
	case a.Fallback == nil:
		return nil, usagef("--store %s: this build has no RocksDB library: make one with go build -tags rocksdb ./cmd/kvferry", reader)
	case o.driver.Name != "rocksdb":
		return nil, usagef("--store %s: %s is a %s store", reader, o.Location.Path, o.driver.Name)
	}
	return a.Fallback, nil
}

// apart refuses places to write to that would change what is read.
func (f *SourceFlags) apart(cmd *cobra.Command, path string) error {
	for _, dir := range []string{path, f.walDir} {
		if dir == "" {
			continue
		}
		if err := convert.CheckTemp(dir, f.tempDir); err != nil {
			return usagef("--temp-dir %w", err)
		}
		for _, name := range []string{"output", "html"} {
			if flag := cmd.Flags().Lookup(name); flag != nil {
				if err := convert.CheckOutput(dir, flag.Value.String()); err != nil {
					return usagef("--%s %w", name, err)
				}
			}
		}
	}
	return nil
}

// locate finds out what is at a location.
func (a *App) locate(cmd *cobra.Command, location string, f *SourceFlags) (*Opened, error) {
	loc, err := ParseLocation(location)
	if err != nil {
		return nil, usagef("%w", err)
	}
	named, err := a.named(&loc)
	if err != nil {
		return nil, err
	}
	if named != nil && named.Limits().NoSource != "" {
		return nil, usagef("%s: %s", visible.Text(loc.Path), named.Limits().NoSource)
	}
	if err := checkPlace(named, loc.Path); err != nil {
		return nil, err
	}
	if f.walDir != "" {
		if err := checkDirectory(f.walDir); err != nil {
			return nil, usagef("--%s %w", f.walFlag, err)
		}
	}
	if err := f.apart(cmd, loc.Path); err != nil {
		return nil, err
	}
	ev, err := a.evidenceOf(loc.Path)
	if err != nil {
		return nil, err
	}
	if named == nil {
		verbose := io.Discard
		if f.verbose {
			verbose = cmd.ErrOrStderr()
		}
		if named, err = a.detect(ev, verbose); err != nil {
			return nil, err
		}
		loc.Format = named.Name()
	} else if err := a.isServers(named, ev); err != nil {
		return nil, err
	}
	if f, ok := named.(format.Finder); ok {
		named = f.Found(ev)
	}
	if named.Limits().Place != format.InDirectory {
		return &Opened{Location: loc, given: location, driver: noStores, format: named, evidence: ev}, nil
	}
	driver, err := a.storeOf(&loc, ev)
	if err != nil {
		return nil, err
	}
	return &Opened{Location: loc, given: location, driver: driver, format: named, evidence: ev}, nil
}

// crowd is by what the memory of a store is divided when a dataset has many: five is usual.
func (o *Opened) crowd() int64 { return max(1, int64(len(o.evidence.Stores))/5) }

// named finds the format that a location names, nil when it names none, and checks its store.
func (a *App) named(loc *Location) (format.Format, error) {
	if loc.Format == "" {
		return nil, nil
	}
	if loc.Store != "" {
		if _, err := a.driver(loc.Store); err != nil {
			return nil, err
		}
	}
	return a.format(loc.Format)
}

// storeOf returns the driver of the named store, or of the kind of all stores that were found.
func (a *App) storeOf(loc *Location, ev *format.Evidence) (*Driver, error) {
	if loc.Store != "" {
		return a.driver(loc.Store)
	}
	if len(ev.Stores) == 0 {
		return nil, notADatabase(loc.Path)
	}
	var kinds []string
	for _, s := range ev.Stores {
		if len(kinds) == 0 || kinds[len(kinds)-1] != s.Kind {
			kinds = append(kinds, s.Kind)
		}
	}
	if len(kinds) > 1 {
		return nil, fmt.Errorf("%s: found stores of several kinds (%s): name one, %s+%s:%s",
			loc.Path, strings.Join(kinds, ", "), loc.Format, kinds[0], loc.Path)
	}
	return a.driver(kinds[0])
}

// checkDirectory says in plain words why a source cannot be one.
func checkDirectory(path string) error {
	st, err := disk.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: no such directory", path)
	case err != nil:
		return err
	case !st.IsDir():
		return fmt.Errorf("%s: not a directory", path)
	}
	return nil
}
