package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// licensesFile holds the licenses of all libraries linked into the program on any platform.
const licensesFile = "THIRD_PARTY_LICENSES"

// library is a third-party module.
type library struct{ Path, Version, Dir string }

// libraries lists the third-party modules linked on any platform. A module replaced by a directory is not
// third-party.
func libraries() ([]library, error) {
	const format = "{{with .Module}}{{if not (or .Main .Replace)}}{{.Path}} {{.Version}} {{.Dir}}{{end}}{{end}}"
	found := map[string]library{}
	for _, p := range platforms {
		cmd := exec.Command("go", "list", "-deps", "-f", format, "./cmd/kvferry")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, err
		}
		for _, line := range strings.Split(string(out), "\n") {
			if f := strings.SplitN(line, " ", 3); len(f) == 3 {
				found[f[0]] = library{f[0], f[1], f[2]}
			}
		}
	}
	var all []library
	for _, l := range found {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b library) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// license reads a library's license texts and identifies the license. An unknown license fails the build, so that a
// person reads it first.
func (l *library) license() (id string, text []byte, err error) {
	entries, err := os.ReadDir(l.Dir)
	if err != nil {
		return "", nil, err
	}
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		if e.IsDir() || !strings.HasPrefix(name, "LICENSE") && !strings.HasPrefix(name, "LICENCE") &&
			!strings.HasPrefix(name, "COPYING") && !strings.HasPrefix(name, "NOTICE") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(l.Dir, e.Name()))
		if err != nil {
			return "", nil, err
		}
		if found := identify(data); found != "" && id == "" {
			id = found
		}
		text = append(append(text, bytes.TrimSpace(data)...), "\n\n"...)
	}
	if id == "" {
		return "", nil, fmt.Errorf("%s %s: no license that is known to be free was found in %s", l.Path, l.Version, l.Dir)
	}
	return id, text, nil
}

// identify identifies a license by words unique to it.
func identify(text []byte) string {
	words := strings.Join(strings.Fields(string(text)), " ")
	has := func(s string) bool { return strings.Contains(words, s) }
	switch {
	case has("Apache License") && has("Version 2.0"):
		return "Apache-2.0"
	case has("Mozilla Public License"):
		return "MPL-2.0"
	case has("Permission is hereby granted, free of charge"):
		return "MIT"
	case has("Redistribution and use in source and binary forms") && has("Neither the name"):
		return "BSD-3-Clause"
	case has("Redistribution and use in source and binary forms"):
		return "BSD-2-Clause"
	}
	return ""
}

// writeLicenses collects the licenses and writes the copyright file of the Debian package.
func (r *release) writeLicenses() error {
	all, err := libraries()
	if err != nil {
		return err
	}
	own, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}
	var texts, list bytes.Buffer
	fmt.Fprintf(&texts, "kvferry contains these libraries. Each comes under the license that follows its name.\n")
	fmt.Fprintf(&list, "kvferry\n\n%s\nIt contains the libraries below. %s.gz beside this file has their licenses;\n", own,
		licensesFile)
	fmt.Fprintf(&list, "/usr/share/common-licenses/Apache-2.0 is the text of Apache-2.0.\n\n")
	for _, l := range all {
		id, text, err := l.license()
		if err != nil {
			return err
		}
		fmt.Fprintf(&texts, "\n==== %s %s (%s)\n\n%s", l.Path, l.Version, id, text)
		fmt.Fprintf(&list, "  %s %s: %s\n", l.Path, l.Version, id)
	}
	file := filepath.Join(r.pages, licensesFile)
	return errors.Join(os.WriteFile(file, texts.Bytes(), 0o644),
		os.WriteFile(file+"-deb", texts.Bytes(), 0o644), compress(file+"-deb"),
		os.WriteFile(filepath.Join(r.pages, "copyright"), list.Bytes(), 0o644))
}

// component is a module in a bill of materials (CycloneDX 1.5).
type component struct {
	Type     string           `json:"type"`
	Ref      string           `json:"bom-ref,omitempty"`
	Name     string           `json:"name"`
	Version  string           `json:"version,omitempty"`
	PURL     string           `json:"purl,omitempty"`
	Licenses []map[string]any `json:"licenses,omitempty"`
}

// writeSBOM lists the modules of a binary by its embedded build info.
func (r *release) writeSBOM(binary, out string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	all, err := libraries()
	if err != nil {
		return err
	}
	std := component{Type: "library", Name: "std", Version: info.GoVersion, Licenses: named("BSD-3-Clause")}
	std.PURL = "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")
	parts := []component{std}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			continue
		}
		i := slices.IndexFunc(all, func(l library) bool { return l.Path == dep.Path })
		if i < 0 {
			return fmt.Errorf("%s has %s, which the source does not name", binary, dep.Path)
		}
		id, _, err := all[i].license()
		if err != nil {
			return err
		}
		purl := "pkg:golang/" + dep.Path + "@" + dep.Version
		parts = append(parts, component{"library", purl, dep.Path, dep.Version, purl, named(id)})
	}
	bom := map[string]any{
		"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
		"metadata": map[string]any{
			"timestamp": r.date.Format(time.RFC3339),
			"component": component{"application", "kvferry", "kvferry", r.version, "", named("BSD-3-Clause")},
		},
		"components": parts,
	}
	data, err := json.MarshalIndent(bom, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(out, append(data, '\n'), 0o644)
}

func named(id string) []map[string]any {
	return []map[string]any{{"license": map[string]any{"id": id}}}
}
