package kvferry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"kvferry/catalog"
	"kvferry/convert"
	"kvferry/format"
	"kvferry/record"
)

// ConvertOptions control a conversion. The zero value converts all records that have not expired, verifies the target
// and refuses losses.
type ConvertOptions struct {
	// Options control how the source is read. Salvage and Findings are ignored: if AllowLoss contains "damaged", the
	// conversion skips unreadable parts, and the report lists the findings.
	Options
	// Filter selects the records to convert; nil selects all that have not expired.
	Filter *Filter
	// AllowLoss lists the kinds of losses to accept, like kvferry convert --allow-loss.
	AllowLoss []string
	// OnConflict is what happens to a key that exists under several types if the target holds one.
	OnConflict OnConflict
	// Instances is the number of instances of each database of a floyd target; 0 means 3.
	Instances int
	// Namespace is the name of database 0, or of the only one, in a target with named databases; "" means the database
	// that clients start in.
	Namespace string
	// RDBVersion is the version of the RDB files of an rdb or aof target, as of kvferry convert --rdb-version; ""
	// means the default.
	RDBVersion string
	// Resume continues an unfinished conversion and keeps the work of this one if it fails for any reason. Without
	// it, work is kept only if ctx is cancelled or a disk is full.
	Resume bool
	// Discard drops the work of an unfinished conversion and keeps no work of this one.
	Discard bool
	// ForceSpace starts the conversion even if the disks seem too small.
	ForceSpace bool
	// DryRun reads the source and reports what would be written and lost, without writing it.
	DryRun bool
	// Estimate is a dry run that reads only a sample of the source. Losses that the sample does not have are not found.
	Estimate bool
	// NoProve publishes the target without reading it back.
	NoProve bool
	// Progress, if not nil, is called a few times per second.
	Progress func(Progress)
}

// OnConflict chooses among the records of a key that exists under several types if the target holds one of them. The
// zero value makes the others a loss, same-name.
type OnConflict struct {
	// Rename keeps the others as name:type.
	Rename bool
	// Keep lists the types that keep the name, the first one first; the others are left out. If it is empty but not
	// nil, the first type in the order of Records does.
	Keep []record.Type
}

// Progress is the state of a running conversion.
type Progress struct {
	// Phase is the name of the current step: step Step of Steps, counted from 1.
	Phase       string
	Step, Steps int
	// Percent covers all steps, from 0 to 100. Percent and Remaining are negative until there is an estimate.
	Percent            float64
	Records, Elements  int64
	Elapsed, Remaining time.Duration
}

// Conversion is the result of a conversion.
type Conversion struct {
	Records, Elements int64
	// Proved is true if the target was read back and equals the source.
	Proved bool
	// Losses lists the losses of the conversion, and notes.
	Losses []Loss
	// ReportFile is the path of the JSON report; "" for a dry run.
	ReportFile string
}

// Loss sums up one kind of data that the target cannot hold.
type Loss struct {
	Kind    string
	Count   int64
	Dropped bool // data is left out; otherwise it is written changed
	Note    bool // informational, needs no permission
	Allowed bool
}

// LossError reports a conversion refused because of losses that were not allowed.
type LossError struct {
	Target string // format of the target
	Losses []Loss // including allowed ones and notes
}

// Error lists the kinds that were not allowed.
func (e *LossError) Error() string {
	var reasons, kinds []string
	for _, l := range e.Losses {
		switch {
		case l.Allowed || l.Note:
		case l.Kind == record.LossDamaged:
			reasons = append(reasons, "the source is damaged: "+record.Count(l.Count, "error"))
		case l.Kind == record.LossNewer:
			reasons = append(reasons, "the source has "+record.Count(l.Count, "part")+" in a form unknown to this version")
		default:
			kinds = append(kinds, fmt.Sprintf("%d × %s", l.Count, l.Kind))
		}
	}
	if kinds != nil {
		reasons = append(reasons, e.Target+" cannot hold everything: "+strings.Join(kinds, ", "))
	}
	return strings.Join(reasons, "; ") + "; AllowLoss accepts kinds of losses"
}

// Convert converts the dataset at source. The location of the target names its format: blackwidow:/data/new. The target
// must not exist. Convert builds it next to its final location, reads it back, compares it with the source and renames
// it into place. It returns a *LossError if the target cannot hold everything.
func Convert(ctx context.Context, source, target string, o *ConvertOptions) (*Conversion, error) {
	if o == nil {
		o = new(ConvertOptions)
	}
	read := o.Options
	if read.Memory <= 0 {
		read.Memory = convertMemory
	}
	d, err := find(catalog.Default(), source, &read)
	if err != nil {
		return nil, err
	}
	defer d.unmount()
	opts, err := o.options(d, target)
	if err != nil {
		return nil, err
	}
	run := convert.Run
	if o.DryRun || o.Estimate {
		run = convert.DryRun
	}
	rep, err := run(ctx, opts)
	var loss *convert.LossError
	if errors.As(err, &loss) {
		err = &LossError{loss.Target, losses(loss.Losses)}
	}
	if rep == nil {
		return nil, err
	}
	return conversion(rep), err
}

func (o *ConvertOptions) options(d *Dataset, target string) (*convert.Options, error) {
	c := catalog.Default()
	out, err := c.Target(target)
	if err != nil {
		return nil, err
	}
	if _, ok := out.Format.(format.Remote); ok {
		return nil, format.Usagef("%s: servers are written by the command kvferry convert", target)
	}
	if out.Format, err = o.format(out.Format); err != nil {
		return nil, err
	}
	if o.Resume && o.Filter != nil && o.Filter.Func != nil {
		return nil, format.Usagef("a conversion with Filter.Func cannot be resumed: whether it selected the same records before is unknown; " +
			"start over with Discard")
	}
	sel, err := o.Filter.selection(d.o.Now)
	if err != nil {
		return nil, err
	}
	return &convert.Options{Source: d.found.Input(d.openOptions()), Target: out, Selection: sel, AllowLoss: o.AllowLoss,
		Now: d.o.Now, NowGiven: !o.Now.IsZero(), Workers: d.o.Workers, Memory: d.o.Memory, TempDir: d.o.TempDir,
		NoProve: o.NoProve, Resume: o.Resume, Discard: o.Discard, ForceSpace: o.ForceSpace, Tool: "library",
		Progress: o.progress(),
		Rename:   o.OnConflict.Rename, Prefer: o.OnConflict.Keep, Instances: o.Instances, Namespace: o.Namespace,
		Estimate: o.Estimate}, nil
}

// format returns the format of the target with the version asked for. It refuses options that do not apply to it.
func (o *ConvertOptions) format(f format.Format) (format.Format, error) {
	limits, name := f.Limits(), format.LocationName(f)
	switch {
	case o.Namespace != "" && limits.Numbered:
		return nil, format.Usagef("Namespace %q: databases of %s have numbers", o.Namespace, name)
	case o.Instances < 0 || o.Instances > 1024:
		return nil, format.Usagef("Instances %d: want 1 to 1024, or 0 for the default", o.Instances)
	case o.Instances != 0 && limits.Instances == 0:
		return nil, format.Usagef("Instances %d: %s does not spread keys over instances", o.Instances, name)
	case o.OnConflict.Rename && o.OnConflict.Keep != nil:
		return nil, format.Usagef("OnConflict: Rename and Keep do not go together")
	case o.RDBVersion == "":
		return f, nil
	}
	f, err := catalog.WithRDBVersion(f, o.RDBVersion)
	if err != nil {
		return nil, format.Usagef("RDBVersion %q: %w", o.RDBVersion, err)
	}
	return f, nil
}

func (o *ConvertOptions) progress() func(convert.Progress) {
	if o.Progress == nil {
		return nil
	}
	return func(p convert.Progress) {
		o.Progress(Progress{Phase: p.Phase, Step: p.Step, Steps: p.Steps, Percent: p.Percent, Records: p.Records,
			Elements: p.Elements, Elapsed: seconds(p.Elapsed), Remaining: seconds(p.Remaining)})
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func conversion(rep *convert.Report) *Conversion {
	c := &Conversion{Proved: rep.Proof.Done && !rep.DryRun, Losses: losses(rep.Losses), ReportFile: rep.File}
	for _, p := range rep.Parts {
		c.Records += p.Records
		c.Elements += p.Elements
	}
	if rep.DryRun {
		c.ReportFile = ""
	}
	return c
}

func losses(kinds []convert.LossKind) (out []Loss) {
	for _, l := range kinds {
		out = append(out, Loss{Kind: l.Kind, Count: l.Count, Dropped: l.Drops, Note: l.Note, Allowed: l.Allowed})
	}
	return out
}
