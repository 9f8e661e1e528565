package convert

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"kvferry/convert/work"
	"kvferry/format"
	"kvferry/internal/pass/progress"
	"kvferry/internal/sys/disk"
)

// Run converts a dataset. Afterwards the path of the target exists only if the target is complete and proved. A
// *LossError lists data that the target cannot hold, a *ProofError lists differences from the source, and an
// *UnfinishedError describes the work left by a run that failed. With a *PublishedError the target is complete, and
// Run returns the report, too.
func Run(ctx context.Context, opts *Options) (*Report, error) {
	o, err := opts.normalize()
	if err != nil {
		return nil, err
	}
	if o.Resume && o.Source.Format.Limits().Place == format.OnServer {
		return nil, fmt.Errorf("%s: a conversion from a running server cannot be resumed: leave out --resume, or convert the server to an RDB file first and resume from that",
			o.Source.Path)
	}
	if err := o.findWork(); err != nil {
		return nil, err
	}
	reopen := func() (*work.Dir, *work.State, error) { return work.Open(o.Target.Path, "", true) }
	if rep, done, err := concludeEarlier(o, reopen); done || err != nil {
		return rep, err
	}
	if err := o.checkPaths(); err != nil {
		return nil, err
	}
	if !o.Discard && work.FindParts(o.Target.Path).Exist() {
		return nil, fmt.Errorf("%s: holds parts of this conversion; go on with --part or --finish, or start over with --discard",
			work.Path(o.Target.Path))
	}
	if o.Discard {
		if err := o.dropUpload(); err != nil {
			return nil, err
		}
		if err := work.Drop(o.Target.Path); err != nil {
			return nil, err
		}
	}
	w, state, err := work.Open(o.Target.Path, o.TempDir, o.Resume)
	if err != nil {
		return nil, o.noPlace(err)
	}
	return (&run{o: o, work: w}).toEnd(ctx, state, conversion)
}

// toEnd runs all phases, from the state that an earlier process left.
func (r *run) toEnd(ctx context.Context, state *work.State, phases []phase) (*Report, error) {
	o, w := r.o, r.work
	if r.resumed = state.ID != nil; r.resumed {
		if err := w.WithdrawOrphan(); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	if o.uploads() && state.Made != nil {
		r.sending = o.uploadOf(state.ID, state)
	}
	r.began, r.meter = time.Now(), progress.Start(o.steps(phases), o.Progress)
	rep, err := r.all(ctx, state, phases)
	r.meter.Close()
	var published *PublishedError
	switch {
	case errors.As(err, &published):
		published.Name = o.Target.Shown()
		return rep, errors.Join(published, w.Close())
	case err != nil:
		return rep, r.giveUp(err)
	}
	return rep, nil
}

// findWork looks for unfinished work that was started with another address of the same servers.
func (o *Options) findWork() error {
	remote, ok := o.Target.Format.(format.Remote)
	if !ok || !o.Resume {
		return nil
	}
	if _, err := disk.Lstat(work.Path(o.Target.Path)); err == nil {
		return nil
	}
	runs, err := work.Begun(filepath.Dir(o.Target.Path))
	if err != nil {
		return err
	}
	for target, id := range runs {
		if id.Target != "" && remote.Same(o.Target.Address, id.Target) {
			o.Target.Path, o.Target.began = target, id.Options["target"]
		}
	}
	return nil
}

// noPlace explains a working directory that cannot be written if the target is not at its path.
func (o *Options) noPlace(err error) error {
	var place *work.NoPlaceError
	if o.local() || !errors.As(err, &place) {
		return err
	}
	dir, abs := filepath.Abs(place.Dir)
	if abs != nil {
		dir = place.Dir
	}
	return fmt.Errorf("%s: cannot write to the working directory (%w); it takes the report of a conversion into a server or an object store, and what "+
		"--resume needs: run kvferry in a directory that can be written", dir, place.Err)
}

// concludeEarlier completes a run that died after it had published its target. open opens its work directory.
func concludeEarlier(o *Options, open func() (*work.Dir, *work.State, error)) (rep *Report, done bool, err error) {
	if !o.Resume {
		return nil, false, nil
	}
	done, err = work.ConcludeEarlier(o.Target.Path, !o.uploads(), open, func() (err error) {
		rep, err = ReadReport(ReportPath(o.Target.Path))
		if err == nil && o.uploads() && rep.Target.Path != o.Target.Shown() {
			err = fmt.Errorf("%s: the report of another conversion", ReportPath(o.Target.Path))
		}
		return err
	})
	return rep, done, err
}

// all makes an attempt, which runs phases. If it finds tables out of order, all starts over with sorted ones. state is
// the state left by an earlier process. Only a published target has a report: another would claim a proof that failed.
func (r *run) all(ctx context.Context, state *work.State, phases []phase) (*Report, error) {
	a := r.attempt(state, "")
	if state.ID != nil {
		a.resort = state.ID.Resort
	}
	err := a.do(ctx, phases)
	if order := a.unordered(err); order != nil {
		if err := r.work.Clear(); err != nil {
			return nil, err
		}
		if state, err = r.fresh(); err != nil {
			return nil, err
		}
		a = r.attempt(state, order.Error())
		err = a.do(ctx, phases)
	}
	var published *PublishedError
	if err != nil && !errors.As(err, &published) {
		return nil, err
	}
	return a.rep, err
}
