package command

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Build identifies a build of kvferry.
type Build struct {
	Version string `json:"version"` // "" in an unreleased build
	Commit  string `json:"commit"`  // of the source, 40 hex digits
	Date    string `json:"date"`    // of the commit, RFC 3339
	Dirty   bool   `json:"dirty"`   // built with uncommitted changes
}

// Complete fills in missing fields from the go command's build info.
func (b Build) Complete(info *debug.BuildInfo) Build {
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = cmp.Or(b.Commit, s.Value)
		case "vcs.time":
			b.Date = cmp.Or(b.Date, s.Value)
		case "vcs.modified":
			b.Dirty = s.Value == "true"
		}
	}
	if v := info.Main.Version; v != "(devel)" {
		b.Version = cmp.Or(b.Version, v)
	}
	return b
}

// String returns the version for reports. An unreleased build gets its commit.
func (b Build) String() string {
	if b.Version != "" {
		return b.Version
	}
	out := "unreleased"
	if b.Commit != "" {
		out += "-" + b.Commit[:min(12, len(b.Commit))]
	}
	if b.Dirty {
		out += "-dirty"
	}
	return out
}

// version prints the version.
func (a *App) version() *cobra.Command {
	var form string
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Print the version, the commit and its date, the Go release it was built with and the platform.",
		Example: "  kvferry version",
		Args:    exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if form == "json" {
				return printJSON(cmd.OutOrStdout(), a.Build)
			}
			_, err := io.WriteString(cmd.OutOrStdout(), a.versionLine())
			return err
		},
	}
	choose(cmd.Flags(), &form, "format", plain("text", "json"), "form of the output")
	return cmd
}

// versionLine is the output of version and --version.
func (a *App) versionLine() string {
	from := ""
	if a.Build.Commit != "" {
		from = fmt.Sprintf("commit %s", a.Build.Commit[:min(12, len(a.Build.Commit))])
		if a.Build.Date != "" {
			from += " of " + a.Build.Date
		}
		from += ", "
	}
	return fmt.Sprintf("kvferry %s (%s%s, %s/%s)\n", a.Build, from, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
