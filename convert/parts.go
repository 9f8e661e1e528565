package convert

import (
	"context"
	"errors"
	"maps"
	"time"

	"kvferry/convert/work"
	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/internal/pass/progress"
	"kvferry/internal/sys/disk"
)

// checkParts returns an error for a conversion that must run as a whole.
func (o *Options) checkParts() error {
	switch {
	case o.onServer():
		return format.Usagef("a target on a server is not written in parts: convert to a directory or an RDB file in parts, or to the server in one run")
	case o.uploads():
		return format.Usagef("a target in an object store cannot be written in parts: convert to a directory that all machines share, and upload the result")
	case o.Source.Format.Limits().Place == format.OnServer || o.Source.Path == "-":
		return format.Usagef("%s: processes that read it at different times would not see the same data: convert it to an RDB file first, and that in parts",
			o.Source.Path)
	case o.Discard:
		return format.Usagef("--discard would drop all parts of a conversion, including the parts of running processes: remove %s instead",
			work.Path(o.Target.Path))
	}
	return nil
}

// RunPart converts one part of a dataset into the work directory of the target, which other processes share. Finish
// makes the target of all parts. It may be called for the same part by several processes; the first to finish wins.
func RunPart(ctx context.Context, opts *Options, part pass.Part) (*PartReport, error) {
	o, err := opts.normalize()
	if err == nil {
		err = o.checkParts()
	}
	if err != nil {
		return nil, err
	}
	if o.finished() != nil {
		return &PartReport{Part: part.K, Parts: part.N, Tool: o.Tool, Already: true}, nil
	}
	if err := o.checkPaths(); err != nil {
		return nil, err
	}
	r := &run{o: o, part: part, began: time.Now(), shared: work.FindParts(o.Target.Path)}
	already, err := r.shared.Do(part, o.TempDir, r.fits, func(w *work.Dir, was *work.Identity) error {
		r.work = w
		return r.attempts(ctx, &work.State{ID: was})
	})
	if err != nil {
		return nil, err
	}
	return r.done(already)
}

// fits refuses the plan of another conversion.
func (r *run) fits(was *work.Identity) error {
	_, err := r.continues(was)
	return err
}

// attempts does the part, from the plan of state if that has one.
func (r *run) attempts(ctx context.Context, state *work.State) error {
	r.meter = progress.Start(r.o.steps(partial), r.o.Progress)
	defer r.meter.Close()
	_, err := r.all(ctx, state, partial)
	var other *plannedError
	if errors.As(err, &other) {
		if err = r.work.Clear(); err == nil {
			_, err = r.all(ctx, &work.State{ID: other.id}, partial)
		}
	}
	if err != nil {
		return r.giveUp(err)
	}
	return nil
}

// finished returns the report of the target if earlier processes built it in parts from the same source with the same
// options, else nil. Schedulers run a part or the finish again if they lose its outcome.
func (o *Options) finished() *Report {
	if _, err := disk.Lstat(o.Target.Path); err != nil || work.FindParts(o.Target.Path).Exist() {
		return nil
	}
	rep, err := ReadReport(ReportPath(o.Target.Path))
	if err != nil || rep.InParts == 0 || rep.Source.Path != o.Source.Path || !maps.Equal(rep.Options, optionTexts(o)) {
		return nil
	}
	return rep
}

// Finish makes the target of its parts, proves and publishes it, as Run does. If parts are missing, it returns a
// *MissingError. It continues the work of an earlier process that died, and takes the proofs of ProvePart.
func Finish(ctx context.Context, opts *Options) (*Report, error) {
	return ofParts(ctx, opts, conversion)
}

// Assemble makes the target of its parts in the work directory, for ProvePart. If it is finished already, Assemble
// returns its report, else nil.
func Assemble(ctx context.Context, opts *Options) (*Report, error) {
	return ofParts(ctx, opts, assembly)
}

func ofParts(ctx context.Context, opts *Options, phases []phase) (*Report, error) {
	o, err := opts.normalize()
	if err == nil {
		err = o.checkParts()
	}
	if err != nil {
		return nil, err
	}
	o.Resume = true
	if rep := o.finished(); rep != nil {
		return rep, nil
	}
	r := &run{o: o, shared: work.FindParts(o.Target.Path)}
	open := func() (*work.Dir, *work.State, error) { return r.shared.Open(o.TempDir) }
	if rep, done, err := concludeEarlier(o, open); done || err != nil {
		return rep, err
	}
	if err := o.checkPaths(); err != nil {
		return nil, err
	}
	id, err := r.shared.Whole(r.fits)
	if err == nil {
		err = r.proofsMissing(id)
	}
	if err != nil {
		return nil, err
	}
	var state *work.State
	if r.work, state, err = open(); err != nil {
		return nil, err
	}
	if state, err = r.shared.Gather(r.work, state); err != nil {
		return nil, errors.Join(err, r.work.Close())
	}
	rep, err := r.toEnd(ctx, state, phases)
	if rep == nil && err == nil {
		err = r.work.Close()
	}
	return rep, err
}
