package convert

import (
	"context"
	"errors"

	"kvferry/convert/work"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/object"
)

// UploadError means that a target that is built and proved did not get to its object store. The work is kept.
type UploadError struct{ Err error }

func (e *UploadError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UploadError) Unwrap() error { return e.Err }

// reach refuses a target in an object store that exists or cannot be written, before the source is read.
func (a *attempt) reach(ctx context.Context) error {
	run := ""
	if a.state.ID != nil {
		run = a.state.ID.Run()
	}
	return a.o.Target.Objects.Check(ctx, run)
}

// upload sends the files of the target to its object store.
func (a *attempt) upload(ctx context.Context) error {
	files, total := Objects(a.made.Files)
	a.meter.Begin("upload", total, 0, 0)
	a.sending = a.o.uploadOf(a.id, a.state)
	a.sending.Begun = func(key, id string) error {
		return a.work.Append(work.Entry{Upload: &work.Upload{Key: key, ID: id}})
	}
	a.sending.Sent = a.meter.Add
	if err := a.o.Target.Objects.Upload(ctx, a.sending, a.work.Data(), files); err != nil {
		return &UploadError{err}
	}
	return nil
}

// publishUpload makes the upload whole. The report lies beside it.
func (a *attempt) publishUpload(ctx context.Context) error {
	files, _ := Objects(a.made.Files)
	a.sending.Report = a.reported
	if err := a.o.Target.Objects.Publish(ctx, a.sending, files); err != nil {
		return &UploadError{err}
	}
	return nil
}

// Objects lists files for an upload, with the sum of their bytes.
func Objects(files []work.File) (out []object.File, total int64) {
	for _, f := range files {
		out = append(out, object.File{Path: f.Path, Size: f.Size})
		total += f.Size
	}
	return out, total
}

// uploadOf describes the upload of a run, with the objects in parts that an earlier process has begun.
func (o *Options) uploadOf(id *work.Identity, state *work.State) *object.Upload {
	return &object.Upload{Run: id.Run(), IDs: state.Uploads, Rate: o.Target.Rate, Workers: o.Workers}
}

// withdraw removes the upload of a run that failed.
func (r *run) withdraw(u *object.Upload) error {
	if u == nil {
		return nil
	}
	return r.o.Target.Objects.Withdraw(context.Background(), u)
}

// dropUpload removes the upload of an unfinished run before its work is dropped.
func (o *Options) dropUpload() error {
	if _, err := disk.Lstat(work.Path(o.Target.Path)); err != nil || !o.uploads() {
		return nil
	}
	w, state, err := work.Open(o.Target.Path, "", true)
	if err != nil {
		var broken *work.ResumeError
		if errors.As(err, &broken) { // Check finds a half upload in the store
			err = nil
		}
		return err
	}
	if state.ID != nil && state.Made != nil && !w.Concluded(state) {
		err = (&run{o: o}).withdraw(o.uploadOf(state.ID, state))
	}
	return errors.Join(err, w.Close())
}

// noteUploaded notes that the target is complete. Nothing is removed from the store from then on.
func (a *attempt) noteUploaded(context.Context) error {
	a.sending = nil
	if err := a.work.Append(work.Entry{Uploaded: true}); err != nil {
		return &PublishedError{Target: a.work.Target, Dir: a.work.Path, Kept: true, Err: err}
	}
	return nil
}
