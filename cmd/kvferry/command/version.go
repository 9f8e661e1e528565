package command

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"
)

// version prints what this build is.
func (a *App) version() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Print the version, the Go release it was built with and the platform.\n" + exitHelp,
		Example: "  kvferry version",
		Args:    exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := io.WriteString(cmd.OutOrStdout(), a.versionLine())
			return err
		},
	}
}

// versionLine is what version and --version print.
func (a *App) versionLine() string {
	return fmt.Sprintf("kvferry %s (%s, %s/%s)\n", a.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
