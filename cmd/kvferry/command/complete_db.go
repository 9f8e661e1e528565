package command

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kvferry/internal/sys/disk"
)

// completionTime bounds the search for databases: a large RDB file has its database numbers among all its keys.
const completionTime = 2 * time.Second

// completeDatabases completes --db with the databases of the dataset that the command line names.
func (a *App) completeDatabases(cmd *cobra.Command, args []string, soFar string) ([]string, cobra.ShellCompDirective) {
	at := slices.IndexFunc(argNames(cmd), isSource)
	if at < 0 || at >= len(args) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := a.databasesOf(cmd, args[at])
	directive := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder | cobra.ShellCompDirectiveNoSpace
	return beginning(suggestNext(names, soFar), soFar), directive
}

// databasesOf lists the databases of a dataset on disk, or nothing if it cannot be opened. It reads no standard input
// and asks no server: the command that is typed has not been given yet.
func (a *App) databasesOf(cmd *cobra.Command, location string) []string {
	location = fromHome(location)
	st, err := disk.Stat(strings.TrimPrefix(location, a.PrefixOf(location)))
	if err != nil || !st.IsDir() && !st.Mode().IsRegular() {
		return nil
	}
	f, as := new(SourceFlags), new(cobra.Command)
	f.Register(as, readMemory, systemTemp)
	cmd.Flags().Visit(func(given *pflag.Flag) {
		if own := as.Flags().Lookup(given.Name); own != nil {
			_ = own.Value.Set(given.Value.String()) // a wrong value is an error of the command
		}
	})
	as.SetErr(io.Discard)
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	as.SetContext(ctx)
	o, err := a.prepare(as, location, f, nil)
	if err != nil {
		return nil
	}
	o.options.Options.AllowLive, o.options.Options.Salvage = true, true
	src, err := o.Found.Open(ctx, &o.options)
	if err != nil {
		return nil
	}
	defer src.Close()
	return slices.DeleteFunc(src.Databases(), func(name string) bool { return strings.ContainsAny(name, ",\"\t\r\n") })
}
