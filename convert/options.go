package convert

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"kvferry/format"
	"kvferry/internal/filter"
	"kvferry/internal/progress"
	"kvferry/record"
	"kvferry/store"
)

// Options says what a conversion does.
type Options struct {
	Source Input
	Target Output
	// Selection says which records are converted; nil converts all that have not expired.
	Selection *filter.Selection
	// AllowLoss lists the kinds of losses that are accepted.
	AllowLoss []string
	// Prefer says which type keeps a name that the target can hold under one type only, the others
	// being lost; they are an allowed loss then. nil asks for permission.
	Prefer []record.Type
	// Rename gives the others a name of their own instead: the name, ":" and the type.
	Rename bool
	Layout format.Layout
	// Version is that of all new rows; 0 means 1.
	Version int32
	// Namespace is what the database becomes that clients are in who select none, or the only one; "" is the
	// target's own.
	Namespace string
	// MaxBitmap is how the target is read back, see format.OpenOptions; the source was opened with the same.
	MaxBitmap int64
	// Cluster writes the rows of a node of a cluster.
	Cluster bool
	// SST writes tables that a running server takes in, too.
	SST bool
	// Instances and Slots say how a target spreads keys over several stores; 0 means its format's default.
	Instances, Slots int
	// Now is the moment that expiry is decided by, also in the proof. NowGiven says that the user
	// chose it; an unfinished run that is resumed has one of its own otherwise.
	Now      time.Time
	NowGiven bool
	// Workers is how many tasks run at once; 0 means 1. The result does not depend on it.
	Workers int
	// Memory is the promise for resident memory; planned buffers take half. 0 means 512 MiB.
	Memory  int64
	TempDir string
	// NoProve publishes without reading back.
	NoProve bool
	// ForceSpace starts also when the disks seem to have too little room.
	ForceSpace bool
	// Estimate makes a dry run read a sample only. SampleBytes is about how much of the source is sampled; 0 means one
	// byte in SampleEvery, or what suits the source's size.
	Estimate    bool
	SampleBytes int64
	SampleEvery int64
	// Resume continues an unfinished run, and keeps this one however it fails. Otherwise it is kept when it is
	// cancelled or a disk is full, as far as something is done.
	Resume bool
	// Discard drops what an unfinished run left, and keeps nothing of this one.
	Discard bool
	// Tool is the version that the report names.
	Tool string
	// Progress is called a few times a second; it may be nil.
	Progress func(Progress)

	// crash is called at every step that must be safe to die in; tests set it.
	crash func(step string)
}

// Input is the source.
type Input struct {
	Format format.Format
	Store  string
	Path   string
	WALDir string // of the logs, "" when they are beside the tables
	// Open opens the source, changing the store's options by change first.
	Open func(ctx context.Context, change func(*store.Options)) (format.Source, error)
}

// Output is the target.
type Output struct {
	Format format.Format
	Store  string
	Path   string
	Create store.CreateFunc
	Open   store.Opener
	// Address is that of a server, "" of a target on disk. What is written to a server is there at once: there
	// is nothing to publish, losses are looked for before the first write, and Path stands for it in the names of the
	// work directory and the report.
	Address string
	// Verify reads a server back; otherwise its own counts are compared.
	Verify bool
}

// location is where the target is made.
func (a *attempt) location() string {
	if a.o.Target.Address != "" {
		return a.o.Target.Address
	}
	return a.work.data()
}

// readBack reports whether the finished target is opened again.
func (o *Options) readBack() bool {
	if o.Target.Address != "" {
		return o.Target.Verify
	}
	// Stores say what they consist of when they are opened, which is compared in any case.
	return !o.NoProve || o.Target.Format.Limits().Place == format.InDirectory
}

const (
	defaultMemory = 512 << 20
)

// normalize returns a copy with the defaults filled in.
func (o *Options) normalize() (*Options, error) {
	n := *o
	if n.Selection == nil {
		n.Selection = new(filter.Selection)
	}
	if n.Memory == 0 {
		n.Memory = defaultMemory
	}
	if n.Resume && n.Discard {
		return nil, errors.New("an unfinished conversion is resumed or discarded, not both")
	}
	n.Workers = max(n.Workers, 1)
	if n.Version == 0 {
		n.Version = 1
	}
	if n.Version&0xFF == 0xFF || n.Version < 0 {
		return nil, fmt.Errorf("version %d cannot be used: the original engines do not find rows of versions whose low byte is 0xFF", n.Version)
	}
	if !n.Resume { // an unfinished run may have a moment of its own
		if err := n.checkSelection(); err != nil {
			return nil, err
		}
	}
	if n.crash == nil {
		n.crash = func(string) {}
	}
	return &n, nil
}

// SelectionError says that no record can be meant by what is to be selected.
type SelectionError struct{ Err error }

func (e *SelectionError) Error() string { return e.Err.Error() }
func (e *SelectionError) Unwrap() error { return e.Err }

// checkSelection refuses a selection that cannot be meant at the moment of the conversion.
func (o *Options) checkSelection() error {
	if err := o.Selection.Validate(o.Now); err != nil {
		return &SelectionError{err}
	}
	return nil
}

// checkPaths refuses places to write to that are taken, cannot be made or lie in the source.
func (o *Options) checkPaths() error {
	if err := checkTarget(o.Source.Path, o.Target.Path); err != nil {
		return err
	}
	if o.Source.WALDir != "" {
		if err := checkApart(o.Source.WALDir, filepath.Dir(filepath.Clean(o.Target.Path)), o.Target.Path); err != nil {
			return err
		}
	}
	return CheckTemp(o.Source.Path, o.TempDir)
}

// allows reports whether a kind of loss is accepted.
func (o *Options) allows(kind string) bool {
	return slices.Contains(o.AllowLoss, kind) || kind == record.LossSameName && (o.Prefer != nil || o.Rename)
}

// seconds reports whether either format keeps expiry in seconds only.
func (o *Options) seconds() bool {
	return o.Source.Format.Limits().Seconds || o.Target.Format.Limits().Seconds
}

// storeMemory is what each store of the source, and of the target in the proof, may plan for.
func (o *Options) storeMemory() int64 { return o.Memory / 8 }

// open opens the source for this conversion.
func (o *Options) open(ctx context.Context, resort bool, report func(record.Finding), m *progress.Meter) (format.Source, error) {
	return o.Source.Open(ctx, func(so *store.Options) {
		so.Resort = resort
		so.Salvage = true // a table or block that cannot be read is a finding, and so a loss: LossDamaged
		so.Memory = o.storeMemory()
		so.TempDir = o.TempDir
		so.Report = report
		so.Copied = m.Copied
	})
}
