package command

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"kvferry/cmd/kvferry/cli"
)

// version prints the version.
func (a *App) version() *cobra.Command {
	var form string
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Print the version, the commit and its date, the Go release it was built with and the platform.",
		Example: "  kvferry version",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if form == "json" {
				return cli.PrintJSON(cmd.OutOrStdout(), a.Build)
			}
			_, err := io.WriteString(cmd.OutOrStdout(), a.versionLine())
			return err
		},
	}
	cli.Choose(cmd.Flags(), &form, "format", cli.Plain("text", "json"), "form of the output")
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
