package lint

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// reporting are modules that send errors, traces or usage to servers, or serve metrics. What stands in for one of them
// lies in internal/absent.
var reporting = regexp.MustCompile(`sentry|prometheus|opentelemetry|opencensus|datadog/dd|newrelic|honeycomb|rollbar|bugsnag|segmentio/analytics|posthog|statsd|jaeger|zipkin`)

// TestNothingReports: nothing that reports to servers or serves metrics is linked into the program.
func TestNothingReports(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{.ImportPath}} {{.Dir}}", "./cmd/kvferry")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		pkg, dir, _ := strings.Cut(line, " ")
		if reporting.MatchString(strings.ToLower(pkg)) && !strings.Contains(dir, "/internal/absent/") {
			t.Errorf("%s is linked into the program: see docs/dependencies.md", pkg)
		}
	}
}

// TestDependenciesAreListed: docs/dependencies.md has a reason for each module that is linked into the program.
func TestDependenciesAreListed(t *testing.T) {
	doc, err := os.ReadFile("../../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", "./cmd/kvferry")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, mod := range strings.Fields(string(out)) {
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
