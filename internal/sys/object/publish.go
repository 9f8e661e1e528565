package object

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/minio/minio-go/v7"
)

// join makes an object of its parts. If the answer to an earlier request was lost, the object is there.
func (t *Target) join(r *requests, u *Upload, key, id string, parts []minio.CompletePart, fresh bool) error {
	return r.retry("write", t.s3.address(key), func() error {
		err := t.s3.complete(r.ctx, key, id, parts, u.Run, fresh)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errTaken) {
			own, e := t.run(r, key)
			switch {
			case e == nil && own == u.Run:
				return nil
			case errors.Is(err, errTaken):
				return errors.Join(e, t.overtaken(r, key))
			}
		}
		return err
	})
}

// overtaken is the error about an object that another run has made during the upload.
func (t *Target) overtaken(r *requests, key string) error {
	return fmt.Errorf("another run was faster: %w", t.taken(r, key, key))
}

// Publish makes an uploaded target whole: from now on readers see it.
func (t *Target) Publish(ctx context.Context, u *Upload, files []File) error {
	r := t.requests(ctx)
	if !t.dir { // keep the report of an upload that was faster
		if own, err := t.run(r, t.key); err != nil || own != "" && own != u.Run {
			return cmp.Or[error](err, t.overtaken(r, t.key))
		}
	}
	if u.Report != nil {
		err := r.retry("write", t.s3.address(t.report()), func() error {
			return t.s3.putBytes(ctx, t.report(), u.Report, u.Run, false)
		})
		if err != nil {
			return err
		}
	}
	if t.dir {
		return t.publishDir(r, u, files)
	}
	if u.parts != nil {
		if err := t.join(r, u, t.key, u.IDs[t.key], u.parts, true); err != nil {
			return err
		}
	}
	o := &object{}
	err := r.retry("stat", t.Address(), func() (err error) {
		o, err = t.s3.stat(ctx, t.key)
		return err
	})
	if err == nil && o.size != files[0].Size {
		err = fmt.Errorf("%s: has %d bytes, %d were sent", t.Address(), o.size, files[0].Size)
	}
	return err
}

// meddled is the error about objects in the directory of an upload that are not of it.
func (t *Target) meddled(r *requests, found map[string]*object, files []File) error {
	for _, f := range files {
		delete(found, f.Path)
	}
	delete(found, IncompleteName)
	delete(found, ManifestName)
	name := slices.Min(slices.Collect(maps.Keys(found)))
	e := t.taken(r, t.key+"/"+name, t.key+"/"+name)
	return fmt.Errorf("%s: another program writes to this directory during the upload, such as %s (%s): stop it and remove its objects, or use another address",
		t.Address(), e.Address, e.Writer)
}

// publishDir writes the manifest of a directory.
func (t *Target) publishDir(r *requests, u *Upload, files []File) error {
	found := map[string]*object{}
	if err := t.each(r, func(o *object) { found[strings.TrimPrefix(o.key, t.key+"/")] = o }); err != nil {
		return err
	}
	m := manifest{Version: manifestVersion, Run: u.Run}
	for _, f := range files {
		o := found[f.Path]
		if o == nil || o.size != f.Size {
			return fmt.Errorf("%s/%s: was uploaded, and is not there with its %d bytes", t.Address(), f.Path, f.Size)
		}
		m.Files = append(m.Files, manifestFile{f.Path, f.Size, o.version})
	}
	if own := len(found) - len(files); found[IncompleteName] != nil && own > 1 && found[ManifestName] == nil || own > 2 {
		return t.meddled(r, found, files)
	}
	b, err := m.encode()
	if err == nil {
		err = r.retry("write", t.s3.address(t.manifest()), func() error {
			return t.s3.putBytes(r.ctx, t.manifest(), b, u.Run, false)
		})
	}
	if err == nil {
		err = r.retry("remove", t.s3.address(t.marker()), func() error { return t.s3.remove(r.ctx, t.marker()) })
	}
	return err
}
