package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

// member is a file of an archive.
type member struct {
	name string
	mode fs.FileMode
	data []byte
}

// writeArchive packs the binary, the licenses and the pages under one directory: a zip file for Windows, a tar.gz for
// other systems.
func (r *release) writeArchive(p platform, binary string) error {
	members, err := r.members(p, binary)
	if err != nil {
		return err
	}
	if p.os == "windows" {
		return r.writeZip(r.path(p, ".zip"), members)
	}
	return r.writeTar(r.path(p, ".tar.gz"), members)
}

// members reads the files of an archive, in a fixed order.
func (r *release) members(p platform, binary string) (out []member, err error) {
	top := "kvferry_" + r.version + "_" + p.os + "_" + p.arch
	add := func(file, name string, mode fs.FileMode) {
		data, e := os.ReadFile(file)
		err = errors.Join(err, e)
		out = append(out, member{path.Join(top, name), mode, data})
	}
	add(binary, p.binary(), 0o755)
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		add(name, name, 0o644)
	}
	add(filepath.Join(r.pages, licensesFile), licensesFile, 0o644)
	for _, dir := range []string{"completion", "man"} {
		entries, e := os.ReadDir(filepath.Join(r.pages, dir))
		err = errors.Join(err, e)
		for _, entry := range entries {
			add(filepath.Join(r.pages, dir, entry.Name()), path.Join(dir, entry.Name()), 0o644)
		}
	}
	return out, err
}

func (r *release) writeTar(file string, members []member) error {
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(z)
	for _, m := range members {
		h := &tar.Header{Name: m.name, Mode: int64(m.mode), Size: int64(len(m.data)), ModTime: r.date, Format: tar.FormatPAX}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write(m.data); err != nil {
			return err
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		return err
	}
	return os.WriteFile(file, packed.Bytes(), 0o644)
}

func (r *release) writeZip(file string, members []member) error {
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate, Modified: r.date}
		h.SetMode(m.mode)
		part, err := w.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := part.Write(m.data); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(file, packed.Bytes(), 0o644)
}
