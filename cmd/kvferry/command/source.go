package command

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kvferry/catalog"
	"kvferry/cmd/kvferry/cli"
	"kvferry/convert"
	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/object"
	"kvferry/parquet"
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
	walFlag   string // name of the flag for walDir
	allowLive bool
	resort    bool
	verbose   bool
	reader    string
	tempDir   string
	memory    cli.MemoryFlag
	now       cli.TimeFlag
	maxBitmap cli.SizeFlag
	maxBlock  cli.SizeFlag
	connect   connectFlags
	objects   objectFlags
	shared    bool     // processes share the output, which may be there: they check where it lies
	columns   []string // of Parquet files of other programs
}

// Register adds the flags to a command with its defaults for --memory and --temp-dir.
func (f *SourceFlags) Register(cmd *cobra.Command, memory cli.SizeFlag, temp string) {
	f.walFlag = "wal-dir"
	fs := cmd.Flags()
	fs.StringVar(&f.walDir, f.walFlag, "", "`directory` of the write-ahead logs (*.log), if they are not next to the tables; one subdirectory per store of the dataset")
	fs.BoolVar(&f.allowLive, "allow-live", false, "read a database that a process has open; concurrent writes may be missed or cause errors")
	fs.BoolVar(&f.resort, "resort", false, "sort tables whose rows are out of order before reading, even if the command would not notice or stop; verify then reports a warning instead of an error")
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "show why the format was chosen")
	cli.Choose(fs, &f.reader, "store", cli.Plain(readerNative, readerRocksDB), "reader of RocksDB files: kvferry's own, or the RocksDB library in a build with it")
	fs.StringVar(&f.tempDir, "temp-dir", "", "`directory` for temporary files (default: "+temp+")")
	fs.Var(&f.maxBitmap, "max-bitmap", "read Kvrocks bitmaps up to this size as strings, zeros included; larger ones are a loss; 0: 16MiB (default 16MiB)")
	fs.Var(&f.maxBlock, "max-block", "read blocks of RocksDB and LevelDB tables up to this size, decompressed; a block holds at least one row; 0: 528MiB (default 528MiB)")
	f.connect.Register(fs)
	f.objects.Register(fs)
	fs.StringArrayVar(&f.columns, "column", nil, "`use=name` of a column in Parquet files of other programs: key=user_id; uses are db, type, key, expire_at, index, field, value, member, score and field_expire_at")
	f.memory.Register(fs, memory)
	fs.Var(&f.now, "now", "`time` at which keys count as expired: RFC 3339, a date or Unix seconds (default: the current time)")
}

// Memory returns the bytes of --memory.
func (f *SourceFlags) Memory() int64 { return int64(f.memory.SizeFlag) }

// TempDir returns the directory of --temp-dir, or "" for the system's.
func (f *SourceFlags) TempDir() string { return f.tempDir }

// Clock returns the one time that the whole command uses.
func (f *SourceFlags) Clock(a *App) time.Time {
	if !f.now.IsZero() {
		return f.now.Time
	}
	return a.Now()
}

// Opened is an open source and its location.
type Opened struct {
	format.Source
	Found   *catalog.Found
	options format.OpenOptions
}

// Unwrap returns the source itself.
func (o *Opened) Unwrap() format.Source { return o.Source }

// prepare finds the dataset at a location, detecting its format unless the location names it, and builds the options
// to open it. It also applies --memory to the runtime. report receives findings about the files; nil drops them.
func (a *App) prepare(cmd *cobra.Command, location string, f *SourceFlags, report func(record.Finding)) (*Opened, error) {
	found, err := a.locate(cmd, location, f)
	if err != nil {
		return nil, err
	}
	o := &Opened{Found: found}
	if a.LimitMemory != nil {
		a.LimitMemory(f.Memory())
	}
	open, err := a.opener(found, f.reader)
	if err != nil {
		return nil, err
	}
	o.options = format.OpenOptions{
		Store:  open,
		Kind:   o.Found.Driver.Name,
		WALDir: f.walDir,
		Stdin:  cmd.InOrStdin(),

		MaxBitmap: int64(f.maxBitmap),
		Options: store.Options{
			AllowLive: f.allowLive,
			Resort:    f.resort,
			Memory:    f.Memory() / 8 / o.Found.Crowd(),
			TempDir:   f.tempDir,
			MaxBlock:  int64(f.maxBlock),
			WALFlag:   "--" + f.walFlag,
			Report:    report,
			Sources:   new(disk.Sources),
		},
	}
	return o, nil
}

// opener returns the function that opens the stores of a dataset.
func (a *App) opener(o *catalog.Found, reader string) (store.Opener, error) {
	switch {
	case reader == readerNative:
		return o.Driver.Open, nil
	case a.Fallback == nil:
		return nil, cli.Usagef("--store %s: this build has no RocksDB library: make one with go build -tags rocksdb ./cmd/kvferry",
			reader)
	case o.Driver.Name != "rocksdb":
		return nil, cli.Usagef("--store %s: %s is a %s store", reader, o.Location.Path, o.Driver.Name)
	case disk.IsMounted(o.Location.Path):
		return nil, cli.Usagef("--store %s: %s: the RocksDB library reads files on disk only: download them first", reader,
			o.Location.Path)
	}
	return a.Fallback, nil
}

// apart refuses temporary and output files inside the source or its logs.
func (f *SourceFlags) apart(cmd *cobra.Command, path string) error {
	for _, dir := range []string{path, f.walDir} {
		if dir == "" {
			continue
		}
		if err := convert.CheckTemp(dir, f.tempDir); err != nil {
			return cli.Usagef("--temp-dir %w", err)
		}
		for _, name := range outputNames {
			flag := cmd.Flags().Lookup(name)
			if flag != nil && !f.shared && !cli.ToStandard(flag.Value.String()) && !uploading(cmd, name, flag.Value.String()) {
				if err := cli.Local(name, flag.Value.String()); err != nil {
					return err
				}
				if err := convert.CheckOutput(dir, flag.Value.String()); err != nil {
					return cli.Usagef("--%s %w", name, err)
				}
			}
		}
	}
	return nil
}

// place resolves the location of a source. An address in an object store is readable as long as the command runs.
func (a *App) place(cmd *cobra.Command, location string, f *SourceFlags) (*catalog.Place, error) {
	reachable := a.Catalog
	reachable.Objects = f.objects.mounter(cmd.Context(), f.Memory())
	return reachable.Source(location)
}

// locate finds the dataset at a location.
func (a *App) locate(cmd *cobra.Command, location string, f *SourceFlags) (*catalog.Found, error) {
	place, err := a.place(cmd, location, f)
	if err != nil {
		return nil, err
	}
	if f.walDir != "" {
		if err := catalog.CheckDirectory(f.walDir); err != nil {
			return nil, cli.Usagef("--%s %w", f.walFlag, err)
		}
	}
	if err := f.apart(cmd, place.Path); err != nil {
		return nil, err
	}
	verbose := io.Discard
	if f.verbose {
		verbose = cmd.ErrOrStderr()
	}
	found, err := a.Find(place, verbose)
	if err == nil && len(f.columns) > 0 {
		found.Format, err = f.mapped(cmd, found.Format)
	}
	if err != nil {
		return nil, err
	}
	f.connect.notices = cmd.ErrOrStderr()
	found.Format, err = f.connect.reach(found.Format)
	return found, err
}

// mapped returns the format for Parquet files of other programs, of which a single --type is the type of all
// rows. Of the two sources of a command, --column is for those that are such files.
func (f *SourceFlags) mapped(cmd *cobra.Command, to format.Format) (format.Format, error) {
	if to.Name() != parquet.Name {
		if !slices.ContainsFunc(cmd.Flags().Args(), func(arg string) bool { return strings.HasPrefix(arg, parquet.Name+":") }) {
			return nil, cli.Usagef("--column: the source is not %s:", parquet.Name)
		}
		return to, nil
	}
	var types record.TypeSet
	if flag := cmd.Flags().Lookup("type"); flag != nil {
		if chosen, ok := flag.Value.(*typesFlag); ok {
			types = record.TypeSet(*chosen)
		}
	}
	return parquet.WithColumns(f.columns, types)
}

// fromStandard reports whether a file or a location is standard input.
func fromStandard(name string) bool {
	loc, err := catalog.ParseLocation(name)
	return err == nil && loc.Path == cli.Standard
}

// outputNames are the flags that name output files.
var outputNames = []string{"output", "html"}

// tryOutputs refuses unwritable output files before the command reads its sources. The paths have already been
// checked to lie outside all sources.
func tryOutputs(cmd *cobra.Command) error {
	for _, name := range outputNames {
		if flag := cmd.Flags().Lookup(name); flag != nil && !uploading(cmd, name, flag.Value.String()) {
			if err := cli.TryOutput(cmd, flag.Value.String()); err != nil {
				return fmt.Errorf("--%s: %w", name, err)
			}
		}
	}
	return nil
}

// uploading reports whether a flag names a directory in an object store that the command writes.
func uploading(cmd *cobra.Command, name, value string) bool {
	form := cmd.Flags().Lookup("format")
	return name == "output" && object.IsAddress(value) && form != nil && form.Value.String() == formatParquet
}
