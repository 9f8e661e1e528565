package convert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"kvferry/convert/plan"
	"kvferry/convert/result"
	"kvferry/convert/transfer"
	"kvferry/convert/work"
	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/internal/pass/progress"
	"kvferry/internal/sys/disk"
)

// ProofPart describes a part of a proof.
type ProofPart struct {
	Part  int `json:"part"`
	Parts int `json:"parts"`
	// Already is true if another process had proved the part, or finished the target.
	Already     bool                `json:"already,omitempty"`
	Fingerprint []result.PartDigest `json:"fingerprint"` // of the records read
}

// proving is the step of a process that proves a part.
var proving = []progress.Step{{Name: "prove", Weight: 1}}

// ProvePart reads one part of the target that Assemble left in the work directory. Finish reads the missing parts and
// compares the sum of all parts with the records written. Several processes may prove the same part.
func ProvePart(ctx context.Context, opts *Options, part pass.Part) (*ProofPart, error) {
	o, err := opts.normalize()
	if err == nil {
		err = o.checkParts()
	}
	if err == nil && o.NoProve {
		err = format.Usagef("a proof in parts needs a proof: leave out --no-prove")
	}
	if err != nil {
		return nil, err
	}
	rep := &ProofPart{Part: part.K, Parts: part.N, Fingerprint: []result.PartDigest{}}
	if rep.Already = o.finished() != nil; rep.Already {
		return rep, nil
	}
	r := &run{o: o, shared: work.FindParts(o.Target.Path)}
	id, err := r.shared.Planned(r.fits)
	if err != nil {
		return nil, err
	}
	a := r.attempt(&work.State{ID: id}, "")
	a.id = id
	if a.made, err = r.assembled(id); err != nil {
		return nil, err
	}
	file := r.shared.Proof(part, a.made)
	if rep.Already = file.Done(); !rep.Already {
		err = file.Make(func(path string) error { return a.provePart(ctx, part, path) })
	}
	if err != nil {
		return nil, err
	}
	got, err := readProof(file.Path)
	if err != nil {
		return nil, err
	}
	rep.Fingerprint = got.Parts
	return rep, nil
}

// assembled returns the census of the target. Before Assemble has run, the error is a *MissingError.
func (r *run) assembled(id *work.Identity) (*work.Census, error) {
	made, err := r.shared.Made()
	if err == nil && made == nil {
		err = &MissingError{Target: r.o.Target.Path, Parts: id.Parts, Assemble: true}
	}
	return made, err
}

// proofsMissing returns a *MissingError if Finish must wait for parts of the proof.
func (r *run) proofsMissing(id *work.Identity) error {
	if r.o.Proofs == 0 {
		return nil
	}
	made, err := r.assembled(id)
	if err != nil {
		return err
	}
	missing := pass.Missing(r.o.Proofs, func(p pass.Part) bool { return r.shared.Proof(p, made).Done() })
	if missing == nil {
		return nil
	}
	return &MissingError{Target: r.o.Target.Path, Missing: missing, Parts: r.o.Proofs, Proofs: true}
}

// provePart writes the proof of a part. The files are those of the census before and after it reads them.
func (a *attempt) provePart(ctx context.Context, part pass.Part, path string) (err error) {
	w, done, err := a.shared.Reader(a.o.TempDir)
	if err != nil {
		return err
	}
	a.work = w
	a.meter = progress.Start(proving, a.o.Progress)
	a.cores = pass.NewCores(a.o.Workers)
	a.rules = &transfer.Rules{Now: a.o.Now, TempDir: w.Spools(), Meter: a.meter}
	defer a.meter.Close()
	defer func() { err = errors.Join(err, a.close(), done()) }()
	if err = a.made.CheckFiles(w.Data()); err != nil {
		return err
	}
	if _, err = a.made.DropCached(w.Data()); err != nil {
		return err
	}
	var got *result.Result
	if a.back, err = a.reread(ctx); err == nil {
		if err = a.shareScan(ctx); err != nil {
			return err
		}
		got, err = a.readBack(ctx, a.back, part.Of(plan.ProofTasks(a.back, a.id.Plan)))
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return compare(nil, nil, false, nil, err)
	}
	if err = a.made.CheckFiles(w.Data()); err != nil {
		return err
	}
	data, err := json.Marshal(got)
	if err != nil {
		return err
	}
	return disk.WriteSynced(path, data)
}

// shareScan publishes the result of scanning the target, unless a process already has, so that others need not scan it.
func (a *attempt) shareScan(context.Context) error {
	made, err := a.shared.Made()
	file := a.shared.Scan(made)
	s, scans := format.As[format.Scanned](a.back)
	if err != nil || made == nil || !scans || file.Done() {
		return err
	}
	data := s.Scan()
	if data == nil {
		return nil
	}
	return file.Make(func(path string) error { return disk.WriteSynced(path, data) })
}

// proofs returns the parts of the proof that other processes have made, and the tasks that are left.
func (a *attempt) proofs(tasks []pass.Task) (have []*result.Result, left []pass.Task, err error) {
	if a.shared == nil {
		return nil, tasks, nil
	}
	parts, err := a.shared.Proofs(a.made)
	if err != nil || len(parts) == 0 {
		return nil, tasks, err
	}
	for _, part := range parts {
		got, err := readProof(a.shared.Proof(part, a.made).Path)
		if err != nil {
			return nil, nil, err
		}
		have = append(have, got)
	}
	n := parts[0].N
	for _, k := range pass.Missing(n, func(p pass.Part) bool { return slices.Contains(parts, p) }) {
		left = append(left, pass.Part{K: k, N: n}.Of(tasks)...)
	}
	return have, left, nil
}

func readProof(path string) (*result.Result, error) {
	data, err := disk.ReadFile(path)
	if err != nil {
		return nil, err
	}
	got := new(result.Result)
	if err := json.Unmarshal(data, got); err != nil {
		return nil, fmt.Errorf("%s: not a proof: %w; remove this file", path, err)
	}
	return got, nil
}
