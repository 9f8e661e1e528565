package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// nfpm builds Debian and RPM packages without tools of these systems.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0"

// maintainer is the maintainer of packages, as in .goreleaser.yaml.
const maintainer = "The kvferry authors <maintainers@kvferry.invalid>"

// writePackages builds a .deb and a .rpm from the description in .goreleaser.yaml.
func (r *release) writePackages(p platform, binary, work string) error {
	config, err := r.packageConfig(p, binary)
	if err != nil {
		return err
	}
	file := filepath.Join(work, "nfpm.yaml")
	if err := os.WriteFile(file, config, 0o644); err != nil {
		return err
	}
	for _, packager := range []string{"deb", "rpm"} {
		cmd := exec.Command("go", "run", nfpm, "package", "--config", file, "--packager", packager,
			"--target", r.path(p, "."+packager))
		cmd.Env = append(os.Environ(), fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.date.Unix()))
		if err := verbose(cmd); err != nil {
			return err
		}
	}
	return nil
}

// goreleaser is the part of .goreleaser.yaml that describes packages. GoReleaser also passes it to nfpm, with the
// same additions as packageConfig.
type goreleaser struct {
	NFPMs []map[string]any `yaml:"nfpms"`
}

// packageConfig returns the description of the packages for nfpm.
func (r *release) packageConfig(p platform, binary string) ([]byte, error) {
	data, err := os.ReadFile(".goreleaser.yaml")
	if err != nil {
		return nil, err
	}
	var all goreleaser
	if err := yaml.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf(".goreleaser.yaml: %w", err)
	}
	if n := len(all.NFPMs); n != 1 {
		return nil, fmt.Errorf(".goreleaser.yaml: %d entries of nfpms, want one", n)
	}
	config := all.NFPMs[0]
	for _, key := range []string{"id", "formats", "package_name", "bindir"} {
		delete(config, key)
	}
	config["name"], config["version"], config["platform"], config["arch"] = "kvferry", r.version, p.os, p.arch
	config["version_schema"] = "semver"
	config["mtime"] = r.date.Format(time.RFC3339)
	contents, _ := config["contents"].([]any)
	config["contents"] = append(contents, map[string]any{
		"src": binary, "dst": "/usr/bin/kvferry", "file_info": map[string]any{"mode": 0o755}})
	out, err := yaml.Marshal(config)
	return []byte(strings.ReplaceAll(string(out), "{{ .CommitDate }}", r.date.Format(time.RFC3339))), err
}
