package convert

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"kvferry/convert/result"
	"kvferry/convert/work"
	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/internal/pass/filter"
	"kvferry/internal/pass/progress"
	"kvferry/internal/sys/object"
	"kvferry/record"
	"kvferry/store"
)

// Options control a conversion.
type Options struct {
	Source Input
	Target Output
	// Selection selects the records to convert; nil selects all that have not expired.
	Selection *filter.Selection
	// AllowLoss lists the kinds of losses to accept.
	AllowLoss []string
	// Prefer lists the types that keep a key that exists under several types, if the target holds
	// one; the others are an allowed loss. nil makes them a loss that needs permission.
	Prefer []record.Type
	// Rename renames the others to name:type instead.
	Rename bool
	// Plan makes a dry run do what a plan needs, in one pass: it checks records as a verification does, renames
	// records without looking for names that are in use, and needs no directory for the target.
	Plan   bool
	Layout format.Layout
	// Version is the version of all new rows; 0 means 1.
	Version int32
	// Namespace is the name in the target of the database that clients start in, or of the only one; ""
	// means the default of the target.
	Namespace string
	// RenameDB lists A=B: database A of the source gets the name B in the target.
	RenameDB []string
	// MaxBitmap applies when the target is read back, see format.OpenOptions; the source was opened with the
	// same value.
	MaxBitmap int64
	// Cluster writes rows for a node of a cluster. If the source is one, so is the target, unless NoCluster or SST is set.
	Cluster, NoCluster bool
	// SST also writes tables that a running server can load.
	SST bool
	// Instances and Slots control how a target spreads keys over several stores; 0 means the default of
	// the format.
	Instances, Slots int
	// Now is the time at which keys count as expired, also in the proof. NowGiven is true if the
	// user chose it; otherwise a resumed run keeps the time of its first start.
	Now      time.Time
	NowGiven bool
	// Workers is the number of tasks that run in parallel; 0 means 1. The result does not depend on
	// it.
	Workers int
	// Memory is the limit of resident memory; buffers may use half of it. 0 means 512 MiB.
	Memory  int64
	TempDir string
	// NoProve publishes the target without comparing it with the source. No record is hashed.
	NoProve bool
	// ForceSpace starts the conversion even if the disks seem too small.
	ForceSpace bool
	// Estimate makes a dry run read only a sample. SampleBytes is the approximate size of the sample; 0 means one byte
	// in SampleEvery, or a size that suits the source.
	Estimate    bool
	SampleBytes int64
	SampleEvery int64
	// Resume continues an unfinished run and keeps the work of this one if it fails for any reason. Otherwise
	// work is kept only if the run is cancelled or a disk is full, and some of it is done.
	Resume bool
	// Discard drops the work of an unfinished run and keeps no work of this one.
	Discard bool
	// Proofs makes Finish return a *MissingError until this many parts of the proof exist. With 0 it reads missing ones itself.
	Proofs int
	// Tool is the version of the program, for the report.
	Tool string
	// Traffic counts the requests to object stores; nil if there are none.
	Traffic *object.Traffic
	// Progress, if not nil, is called a few times per second.
	Progress func(Progress)

	// crash is called at every step at which a crash must be safe; tests set it.
	crash func(step string)
}

// Input is the source.
type Input struct {
	Format format.Format
	Store  string
	Path   string
	WALDir string // directory of the write-ahead logs; "": next to the tables
	// Open opens the source; change adjusts the options of the store before.
	Open func(ctx context.Context, change func(*store.Options)) (format.Source, error)
}

// Output is the target.
type Output struct {
	Format format.Format
	Store  string
	Path   string
	Create store.CreateFunc
	Open   store.Opener
	// Address is the address of a server; "" for a target on disk. Data written to a server is visible at once: the
	// publish step moves only the report, losses are detected before the first write, and Path replaces the address
	// in the names of the work directory and the report.
	Address string
	// Objects is the address to upload the target to after the proof; nil for a target that stays on disk. Path then
	// names the work directory and the report. Rate limits the bytes per second; 0: no limit.
	Objects *object.Target
	Rate    int64
	// Verify reads a server back; otherwise only its key counts are compared.
	Verify bool

	began string // the address that an unfinished run was started with, if it leads to the same servers
}

// Shown is the location of the target as people know it.
func (t *Output) Shown() string {
	if t.Objects != nil {
		return t.Objects.Address()
	}
	return cmp.Or(t.Address, t.Path)
}

// compares reports whether the finished target is read and compared with the source.
func (o *Options) compares() bool {
	if o.onServer() {
		return o.Target.Verify
	}
	return !o.NoProve
}

// readBack reports whether the finished target is reopened.
func (o *Options) readBack() bool {
	// Opening a store lists its files, and those are always checked.
	return o.compares() || o.onDisk() && o.Target.Format.Limits().Place == format.InDirectory
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
		return nil, fmt.Errorf("version %d cannot be used: the original engines do not find rows of versions whose low byte is 0xFF",
			n.Version)
	}
	if !n.Resume { // a resumed run takes its time from the journal
		if err := n.checkSelection(); err != nil {
			return nil, err
		}
	}
	if n.crash == nil {
		n.crash = func(string) {}
	}
	return &n, nil
}

// SelectionError means that the selection cannot match any record.
type SelectionError struct{ Err error }

func (e *SelectionError) Error() string { return e.Err.Error() }
func (e *SelectionError) Unwrap() error { return e.Err }

// checkSelection refuses a selection that cannot match any record at the time of the conversion.
func (o *Options) checkSelection() error {
	if err := o.Selection.Validate(o.Now); err != nil {
		return &SelectionError{err}
	}
	return nil
}

// checkPaths refuses output paths that exist, cannot be created or are inside the source.
func (o *Options) checkPaths() error {
	parent, err := work.Nearest(o.Target.Path)
	if err == nil && !o.Plan {
		err = work.CheckParent(o.Target.Path)
	}
	if err == nil {
		err = checkTarget(o.Source.Path, parent, o.Target.Path)
	}
	if err != nil {
		return err
	}
	if o.Source.WALDir != "" {
		if err := work.CheckApart(o.Source.WALDir, parent, o.Target.Path); err != nil {
			return err
		}
	}
	return work.CheckTemp(o.Source.Path, o.TempDir)
}

// checkTarget refuses a target that exists or would change the source, and one whose report has no place. parent is
// the nearest directory above it that exists.
func checkTarget(source, parent, target string) error {
	if err := work.CheckNew(target); err != nil {
		return err
	}
	if err := checkReport(ReportPath(target)); err != nil {
		return err
	}
	return work.CheckApart(source, parent, target)
}

// allows reports whether a kind of loss is accepted.
func (o *Options) allows(kind string) bool {
	return slices.Contains(o.AllowLoss, kind) || kind == record.LossSameName && (o.Prefer != nil || o.Rename)
}

// markAllowed marks the allowed losses and returns an error if any loss is not allowed.
func (o *Options) markAllowed(losses []result.LossKind) error {
	return result.Judge(losses, format.LocationName(o.Target.Format), o.allows)
}

// seconds reports whether either format keeps expiry in seconds only.
func (o *Options) seconds() bool {
	return o.Source.Format.Limits().Seconds || o.Target.Format.Limits().Seconds
}

// shared is the memory that tasks share. A row that moves is read, decompressed, copied into a block and compressed.
func (o *Options) shared() pass.Memory { return pass.Memory{Bytes: o.Memory, Held: 16} }

// storeMemory is the memory for each store of the source, and of the target in the proof.
func (o *Options) storeMemory() int64 { return o.Memory / 8 }

// optionTexts returns the options that affect the result, by their names on the command line.
func optionTexts(o *Options) map[string]string {
	m := map[string]string{
		"source":        o.Source.Format.Name() + "+" + o.Source.Store,
		"target":        format.LocationName(o.Target.Format) + "+" + o.Target.Store,
		"layout":        o.Layout.String(),
		"version-epoch": fmt.Sprint(o.Version),
		"expired":       expiredName(o.Selection.KeepExpired),
	}
	if o.Namespace != "" {
		m["namespace"] = o.Namespace
	}
	if len(o.RenameDB) > 0 {
		m["rename-db"] = fmt.Sprintf("%q", o.RenameDB)
	}
	if o.MaxBitmap != 0 {
		m["max-bitmap"] = fmt.Sprint(o.MaxBitmap)
	}
	if o.Cluster {
		m["cluster"] = "yes"
	}
	if o.NoCluster {
		m["cluster"] = "no"
	}
	if o.SST {
		m["sst"] = "yes"
	}
	if l := o.Target.Format.Limits(); l.Instances > 0 {
		m["instances"], m["slots"] = fmt.Sprint(cmp.Or(o.Instances, l.Instances)), fmt.Sprint(cmp.Or(o.Slots, l.Slots))
	}
	if o.Source.WALDir != "" {
		m["wal-dir"] = o.Source.WALDir
	}
	if v, ok := o.Source.Format.(interface{ SourceOptions() string }); ok && v.SourceOptions() != "" {
		m["column"] = v.SourceOptions()
	}
	if v, ok := o.Target.Format.(interface{ TargetVersion() string }); ok && v.TargetVersion() != "" {
		m["rdb-version"] = v.TargetVersion()
	}
	if o.onServer() {
		m["target"] = cmp.Or(o.Target.began, o.Target.Address)
	}
	if o.uploads() {
		m["upload"] = o.Target.Shown()
	}
	if o.Prefer != nil {
		m["on-conflict"] = fmt.Sprint("keep=", o.Prefer)
	}
	if o.Rename {
		m["on-conflict"] = "rename"
	}
	maps.Copy(m, o.Selection.Conditions(o.Now).Texts())
	return m
}

func expiredName(keep bool) string {
	if keep {
		return "keep"
	}
	return "drop"
}

// Progress is the state of a running conversion.
type Progress = progress.State

func (o *Options) renames() bool  { return o.Rename && !o.Plan }
func (o *Options) onServer() bool { return o.Target.Address != "" }
func (o *Options) onDisk() bool   { return o.Target.Address == "" }
func (o *Options) uploads() bool  { return o.Target.Objects != nil }
func (o *Options) local() bool    { return o.onDisk() && !o.uploads() }
func (o *Options) inFile() bool   { return o.Target.Format.Limits().Place == format.InFile }
func (o *Options) inParts() bool  { return !o.inFile() }
func (o *Options) fetches() bool  { return o.onServer() && o.Target.Verify }

// preparation is the name of the step preparation; "" if the source needs none.
func (o *Options) preparation() string { return o.Source.Format.Limits().Place.Preparation() }
