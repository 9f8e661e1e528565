// Command dist builds a release: archives of static binaries for six platforms, Debian and RPM packages, software
// bills of materials, man pages, completions, the licenses of all libraries, and checksums. It does not publish the
// release.
//
//	dist                          everything, into dist/
//	dist -only linux/amd64        one platform
//	dist -pages DIR               only what packages contain beside the binary
//	dist -sbom BINARY -o FILE     only the bill of materials of a binary
//
// The same commit gives the same bytes in any directory: all times are the commit's. GoReleaser uses -pages and
// -sbom, and dist builds the packages from the description in .goreleaser.yaml. Paths are relative to the project.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// release describes the release to build.
type release struct {
	version string    // 1.2.3, or 0.0.0-dev.DATE.COMMIT between releases
	tag     string    // version shown by the binary; empty between releases
	commit  string    // commit of the source
	date    time.Time // time of the commit, used for all times in artifacts
	out     string    // directory of the artifacts
	pages   string    // directory of man pages, completions and licenses
	pgo     string    // CPU profile for the compiler, or off
}

// platforms are the platforms of a release.
var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"},
	{"darwin", "amd64"}, {"darwin", "arm64"},
	{"windows", "amd64"}, {"windows", "arm64"},
}

func main() {
	out := flag.String("o", "dist", "directory of the artifacts, or the file of -sbom")
	only := flag.String("only", "", "build one `os/arch` of "+fmt.Sprint(platforms))
	pages := flag.String("pages", "", "only write man pages, completions and licenses to `dir`")
	sbom := flag.String("sbom", "", "only write the bill of materials of a `binary`")
	pgo := flag.String("pgo", "tools/bench/kvferry.pgo", "CPU `profile` for the compiler, or off")
	flag.Parse()
	if err := run(*out, *only, *pages, *sbom, *pgo); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func run(out, only, pages, sbom, pgo string) error {
	if err := os.Chdir(".."); err != nil { // go run -C tools
		return err
	}
	r, err := describe(out)
	if err != nil {
		return err
	}
	r.pgo = pgo
	switch {
	case sbom != "":
		return r.writeSBOM(sbom, out)
	case pages != "":
		r.pages = pages
		return r.writePages()
	}
	return r.build(only)
}

// build makes the artifacts of all platforms, or of one.
func (r *release) build(only string) error {
	if err := errors.Join(os.RemoveAll(r.out), os.MkdirAll(r.out, 0o755)); err != nil {
		return err
	}
	if err := r.writePages(); err != nil {
		return err
	}
	known := false
	for _, p := range platforms {
		if only != "" && only != p.String() {
			continue
		}
		known = true
		if err := r.buildPlatform(p); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	if !known {
		return fmt.Errorf("%s is none of %v", only, platforms)
	}
	return r.writeChecksums()
}

// buildPlatform makes the artifacts of one platform.
func (r *release) buildPlatform(p platform) error {
	work, err := os.MkdirTemp("", "kvferry-dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	binary := filepath.Join(work, p.binary())
	if err := r.compile(p, binary); err != nil {
		return err
	}
	err = errors.Join(r.writeArchive(p, binary), r.writeSBOM(binary, r.path(p, ".cdx.json")))
	if p.os == "linux" {
		err = errors.Join(err, r.writePackages(p, binary, work))
	}
	return err
}

// describe asks git for the commit and its tag.
func describe(out string) (*release, error) {
	commit, err := output("git", "rev-parse", "HEAD")
	if err != nil {
		return nil, err
	}
	stamp, err := output("git", "log", "-1", "--format=%cI")
	if err != nil {
		return nil, err
	}
	date, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return nil, err
	}
	r := &release{commit: commit, date: date.UTC(), out: out, pages: filepath.Join("bin", "pages")}
	if r.tag, err = output("git", "describe", "--exact-match", "--tags"); err != nil {
		// A commit without a tag is fine: a build between releases sorts before all of them.
		r.tag, r.version = "", "0.0.0-dev."+r.date.Format("20060102150405")+"."+commit[:12]
		return r, nil
	}
	r.version = strings.TrimPrefix(r.tag, "v")
	return r, nil
}

// path returns the path of a platform's artifact.
func (r *release) path(p platform, ending string) string {
	return filepath.Join(r.out, fmt.Sprintf("kvferry_%s_%s_%s%s", r.version, p.os, p.arch, ending))
}
