package convert

import (
	"context"
	"errors"
	"fmt"

	"kvferry/convert/transfer"
	"kvferry/internal/pass"
	"kvferry/record"
)

// findRenames lists the records to rename.
func (a *attempt) findRenames(ctx context.Context) (err error) {
	if a.rules.SameName || !a.src.Format().Limits().SameName {
		return nil
	}
	if a.part.N > 0 {
		err = a.shareRenames(ctx)
	} else {
		tasks := a.id.Plan.Tasks
		a.rules.Memory = pass.NewShares(a.o.Memory/4, tasks, a.o.Workers)
		a.meter.Begin("look", a.id.Plan.Bytes, 0, len(tasks))
		a.rules.Renames, err = transfer.FindRenames(ctx, tasks, a.rules, a.src, a.target, a.cores, a.o.shared())
	}
	return a.sources.Err(err)
}

// shareRenames lists the records to rename from the names of all parts, which the processes read together.
func (a *attempt) shareRenames(ctx context.Context) error {
	for {
		part, more, err := a.shared.Unnamed(a.part, a.id)
		if err != nil {
			return err
		}
		if !more {
			return a.joinNames()
		}
		if err := a.readNames(ctx, part); err != nil {
			return err
		}
	}
}

// errNamed means that another process has read the names.
var errNamed = errors.New("read by another process")

// readNames reads the names of a part, until another process has done so.
func (a *attempt) readNames(ctx context.Context, part pass.Part) error {
	tasks := part.Of(a.id.Plan.Tasks)
	a.rules.Memory = pass.NewShares(a.o.Memory/4, tasks, a.o.Workers)
	a.meter.Begin("look", pass.Bytes(tasks), 0, len(tasks))
	file := a.shared.Names(part, a.id)
	return file.Make(func(path string) error {
		names := transfer.NewNames(a.o.shared().Bytes, a.work.Spools())
		defer names.Close()
		err := pass.Run(ctx, tasks, a.cores, a.o.shared(), func(ctx context.Context, t *pass.Task) error {
			if file.Done() {
				return errNamed
			}
			return names.Collect(ctx, t, a.rules, a.src, a.target)
		})
		if err != nil {
			return err
		}
		return names.Save(path)
	})
}

// joinNames lists the records to rename from the names of all parts.
func (a *attempt) joinNames() (err error) {
	names := transfer.NewNames(a.o.shared().Bytes, a.work.Spools())
	defer names.Close()
	for k := range a.part.N {
		path := a.shared.Names(pass.Part{K: k + 1, N: a.part.N}, a.id).Path
		if err == nil {
			err = names.Load(path)
		}
	}
	if err == nil {
		a.rules.Renames, err = names.Renames()
	}
	var damaged *record.CorruptError
	if errors.As(err, &damaged) {
		return fmt.Errorf("%w; remove this file, and run the part again", err)
	}
	return err
}
