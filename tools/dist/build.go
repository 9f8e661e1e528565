package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// platform is an operating system and architecture, in Go's names.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

// binary returns the file name of the program on the platform.
func (p platform) binary() string {
	if p.os == "windows" {
		return "kvferry.exe"
	}
	return "kvferry"
}

// compile builds the program like `make build`.
func (r *release) compile(p platform, binary string) error {
	flags := fmt.Sprintf("-s -w -X main.version=%s -X main.commit=%s -X main.date=%s",
		r.tag, r.commit, r.date.Format(time.RFC3339))
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-pgo="+r.pgo, "-ldflags", flags, "-o", binary, "./cmd/kvferry")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.os, "GOARCH="+p.arch)
	return verbose(cmd)
}

// writePages makes the files that a package contains besides the binary.
func (r *release) writePages() error {
	if err := os.RemoveAll(r.pages); err != nil {
		return err
	}
	cmd := exec.Command("go", "run", "-C", "tools", "-trimpath", "./pages", filepath.Join("..", r.pages))
	if err := verbose(cmd); err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(r.pages, "man", "*.1"))
	if err != nil {
		return err
	}
	for _, page := range pages {
		if err := compress(page); err != nil {
			return err
		}
	}
	changes := fmt.Sprintf("kvferry (%s-1) stable; urgency=medium\n\n  * New release; see CHANGELOG.md.\n\n -- %s  %s\n",
		debianVersion(r.version), maintainer, r.date.Format(time.RFC1123Z))
	debian := filepath.Join(r.pages, "changelog.Debian")
	return errors.Join(r.writeLicenses(), os.WriteFile(debian, []byte(changes), 0o644), compress(debian))
}

// debianVersion converts a version so that Debian sorts a prerelease before its release.
func debianVersion(version string) string { return strings.Replace(version, "-", "~", 1) }

// compress replaces a file by file.gz. Its gzip header has no time and no name, to be reproducible.
func compress(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err = w.Write(data); err == nil {
		err = w.Close()
	}
	return errors.Join(err, os.WriteFile(path+".gz", packed.Bytes(), 0o644), os.Remove(path))
}

// writeChecksums lists the checksums of all artifacts in the format of sha256sum -c.
func (r *release) writeChecksums() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	fmt.Print(list.String())
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(list.String()), 0o644)
}

// output runs a command and returns its trimmed output.
func output(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// verbose runs a command and shows its messages.
func verbose(cmd *exec.Cmd) error {
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return nil
}
