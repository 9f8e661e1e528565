package object

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"time"
)

const (
	// IncompleteName is the object of a directory whose upload is not finished. It is the first of an upload, and is
	// removed after the last.
	IncompleteName = "_kvferry-incomplete"
	// ManifestName is the last object of an upload: it lists the others.
	ManifestName = "_kvferry-manifest.json"
	// ReportEnding follows the name of a target in the name of its report.
	ReportEnding = ".kvferry-report.json"

	manifestVersion = 1
	// maxManifest limits the bytes of a manifest that is read; a terabyte takes a megabyte.
	maxManifest = 256 << 20

	incompleteText = "kvferry has begun to upload this directory: it is complete when this object is gone.\n"
)

// manifest lists the objects of a directory.
type manifest struct {
	Version int            `json:"kvferry_manifest"`
	Run     string         `json:"run"`
	Files   []manifestFile `json:"files"`
}

type manifestFile struct {
	File string `json:"file"`
	Size int64  `json:"size"`
	ETag string `json:"etag"`
}

func (m *manifest) encode() ([]byte, error) {
	b, err := json.MarshalIndent(m, "", " ")
	return append(b, '\n'), err
}

// uploaded refuses the half of an upload in a listing, and compares a whole one with its manifest. It takes what kvferry
// has added to an upload out of the listing.
func (f *files) uploaded(found map[string]*object) error {
	var manifests []string
	for name, o := range found {
		switch path.Base(name) {
		case IncompleteName:
			return failed("list", f.address(path.Dir(name)), fmt.Errorf("its upload is not complete (begun at %s): wait for it, or run kvferry convert with --resume where it was begun",
				o.modified.UTC().Format(time.RFC3339)))
		case ManifestName:
			manifests = append(manifests, name)
		}
	}
	for _, name := range manifests {
		if err := f.listedIn(found[name], path.Dir(name), found); err != nil {
			return err
		}
		delete(found, name)
	}
	return nil
}

// listedIn compares the objects of a directory with its manifest.
func (f *files) listedIn(of *object, dir string, found map[string]*object) error {
	var m manifest
	b, err := f.readSmall(of)
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err == nil && m.Version != manifestVersion {
		err = fmt.Errorf("version %d: written by a newer kvferry", m.Version)
	}
	if err != nil {
		return failed("read", f.addressOf(of.key), err)
	}
	differs := func(name, how string) error {
		return failed("list", f.address(name), fmt.Errorf("%s in the manifest of its upload: upload the dataset again; "+
			"if another program has changed it on purpose, remove %s", how, f.addressOf(of.key)))
	}
	known := map[string]bool{}
	for _, x := range m.Files {
		name := path.Join(dir, x.File)
		o := found[name]
		known[name] = true
		switch {
		case o == nil:
			return differs(name, "does not exist, but is listed")
		case o.size != x.Size || o.version != x.ETag:
			return differs(name, "differs from the object listed")
		}
	}
	for name := range found {
		if under(dir, name) && !known[name] && path.Base(name) != ManifestName {
			return differs(name, "is not listed")
		}
	}
	return nil
}

// readSmall reads a small object.
func (f *files) readSmall(o *object) ([]byte, error) {
	if o.size > maxManifest || o.size == 0 {
		return nil, fmt.Errorf("%d bytes are no manifest", o.size)
	}
	var b []byte
	err := f.retry("read", f.addressOf(o.key), func() error {
		in, err := f.server.get(f.ctx, o, 0, o.size)
		if err != nil {
			return err
		}
		b, err = io.ReadAll(in)
		return errors.Join(err, in.Close())
	})
	return b, err
}
