package command

import (
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

func TestBuild(t *testing.T) {
	stamped := &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef0123456789abcdef01234567"},
		{Key: "vcs.time", Value: "2026-11-22T01:02:03Z"},
		{Key: "vcs.modified", Value: "true"}}}
	for _, c := range []struct {
		b    Build
		info *debug.BuildInfo
		want string
	}{
		{Build{}, &debug.BuildInfo{}, "unreleased"},
		{Build{}, stamped, "unreleased-0123456789ab-dirty"},
		{Build{Version: "1.2.0"}, stamped, "1.2.0"},
		{Build{}, &debug.BuildInfo{Main: debug.Module{Version: "v1.3.0"}}, "v1.3.0"},
	} {
		if got := c.b.Complete(c.info).String(); got != c.want {
			t.Errorf("%+v: %s, want %s", c.b, got, c.want)
		}
	}
	app := testApp()
	app.Build = Build{Version: "1.2.0"}.Complete(stamped)
	if got := app.versionLine(); !strings.HasPrefix(got, "kvferry 1.2.0 (commit 0123456789ab of 2026-11-22T01:02:03Z, go") {
		t.Error(got)
	}
}

// TestReportNamesTheBuild checks the tool in the report of a conversion.
func TestReportNamesTheBuild(t *testing.T) {
	dst := filepath.Join(t.TempDir(), "dst")
	ok(t, "convert", golden(t, "nemo-basic"), "blackwidow:"+dst)
	if got := reportOf(t, dst).Tool; got != "test" {
		t.Errorf("tool %q", got)
	}
}
