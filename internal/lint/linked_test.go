package lint

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// reporting are modules that send errors, traces or usage to servers, or serve metrics.
var reporting = regexp.MustCompile(`sentry|prometheus|opentelemetry|opencensus|datadog/dd|newrelic|honeycomb|rollbar|bugsnag|segmentio/analytics|posthog|statsd|jaeger|zipkin`)

// idle are the packages of such modules that Pebble imports for their data types: docs/dependencies.md explains each.
var idle = regexp.MustCompile(`^github\.com/(getsentry/sentry-go(/.*)?|prometheus/(client_golang/prometheus(/internal)?|client_model/go|common/.*|procfs.*))$`)

// sending are the symbols that would send or serve: a client, its transports, an HTTP handler.
var sending = regexp.MustCompile(`sentry-go\.(Init|NewClient|Capture\w+|\(\*(Client|HTTPTransport|HTTPSyncTransport|Hub)\)\.)|prometheus/(promhttp|push)\.`)

// TestNothingReports: the program links neither a module that reports to servers nor the half of Pebble's
// dependencies that would.
func TestNothingReports(t *testing.T) {
	for _, pkg := range strings.Fields(goOutput(t, "list", "-deps", "./cmd/kvferry")) {
		if reporting.MatchString(strings.ToLower(pkg)) && !idle.MatchString(pkg) {
			t.Errorf("%s is linked into the program: see docs/dependencies.md", pkg)
		}
	}
	binary := filepath.Join(t.TempDir(), "kvferry")
	goOutput(t, "build", "-o", binary, "./cmd/kvferry")
	symbols := goOutput(t, "tool", "nm", binary)
	if !strings.Contains(symbols, "sentry-go") {
		t.Error("no symbol of sentry-go: mend the pattern, or docs/dependencies.md")
	}
	for _, line := range strings.Split(symbols, "\n") {
		if sending.MatchString(line) {
			t.Errorf("%s is linked into the program: see docs/dependencies.md", line)
		}
	}
}

// TestInstallable: go install refuses a module whose go.mod has replace lines.
func TestInstallable(t *testing.T) {
	if out := goOutput(t, "mod", "edit", "-json"); !strings.Contains(out, `"Replace": null`) {
		t.Error("go.mod has replace lines: go install cannot install the module")
	}
}

// TestToolsKeepStep: the module of the tools has the Go version and the requirements of this module, at the same versions.
func TestToolsKeepStep(t *testing.T) {
	type requirements struct {
		Go      string
		Require []struct{ Path, Version string }
	}
	var own, tools requirements
	for dir, r := range map[string]*requirements{".": &own, "tools": &tools} {
		if err := json.Unmarshal([]byte(goOutput(t, "mod", "edit", "-C", dir, "-json")), r); err != nil {
			t.Fatal(err)
		}
	}
	versions := map[string]string{}
	for _, m := range own.Require {
		versions[m.Path] = m.Version
	}
	same := 0
	for _, m := range tools.Require {
		switch version, ok := versions[m.Path]; {
		case ok && version != m.Version:
			t.Errorf("tools/go.mod has %s %s, and go.mod %s: cd tools && go mod tidy", m.Path, m.Version, version)
		case ok:
			same++
		}
	}
	if own.Go != tools.Go || same < 20 {
		t.Errorf("tools/go.mod: go %s, %d requirements of go.mod, which has go %s", tools.Go, same, own.Go)
	}
}

// goOutput runs go in the project's root, as the releases are built, and returns its output.
func goOutput(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(args, err)
	}
	return string(out)
}

// TestDependenciesAreListed: docs/dependencies.md has a reason for each module that is linked into the program.
func TestDependenciesAreListed(t *testing.T) {
	doc, err := os.ReadFile("../../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	out := goOutput(t, "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./cmd/kvferry")
	seen := map[string]bool{}
	for _, mod := range strings.Fields(out) {
		if mod != module && !seen[mod] && !strings.Contains(string(doc), "| "+mod+" |") {
			t.Errorf("%s is linked into the program and not in docs/dependencies.md", mod)
		}
		seen[mod] = true
	}
	for _, m := range regexp.MustCompile(`(?m)^\| ([a-z]+\.[^ ]+) \|`).FindAllStringSubmatch(string(doc), -1) {
		if !seen[m[1]] {
			t.Errorf("%s is in docs/dependencies.md and not linked", m[1])
		}
	}
}
