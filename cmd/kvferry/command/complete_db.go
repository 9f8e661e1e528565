package command

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kvferry/format"
	"kvferry/internal/sys/disk"
)

// completionTime bounds the search for databases: a large RDB file has its database numbers among all its keys.
const completionTime = 2 * time.Second

// completeNames completes a list of names of the dataset that the command line names: databases or keyspaces.
func (a *App) completeNames(names func(format.Source) []string) completer {
	return func(cmd *cobra.Command, args []string, soFar string) ([]string, cobra.ShellCompDirective) {
		sides := sidesOf(cmd, args)
		if len(sides) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return beginning(suggestNext(a.namesIn(cmd, sides[0], names), soFar), soFar), goesOnInOrder
	}
}

// goesOnInOrder is the directive for names that another part may follow.
const goesOnInOrder = goesOn | cobra.ShellCompDirectiveKeepOrder

// sidesOf lists the datasets of a command line: arguments, then --against.
func sidesOf(cmd *cobra.Command, args []string) (out []string) {
	for i, name := range argNames(cmd) {
		if i < len(args) && isSource(name) {
			out = append(out, args[i])
		}
	}
	if f := cmd.Flags().Lookup("against"); f != nil && f.Changed {
		out = append(out, f.Value.String())
	}
	return out
}

// completeMap completes --map-db: a database of the first side, or of the file of --check, then one of the other side.
func (a *App) completeMap(cmd *cobra.Command, args []string, soFar string) ([]string, cobra.ShellCompDirective) {
	sides := sidesOf(cmd, args)
	lists := make([][]string, len(sides), 3)
	for i, side := range sides {
		lists[i] = a.namesIn(cmd, side, databases)
	}
	if f := cmd.Flags().Lookup("check"); f != nil && f.Changed {
		lists = append([][]string{checkedDatabases(f.Value.String())}, lists...)
	}
	if len(lists) < 2 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, end, directive := lists[0], "=", goesOnInOrder
	head := soFar[:strings.LastIndexByte(soFar, '=')+1]
	if head != "" {
		names, end, directive = lists[1], "", goesOnInOrder&^cobra.ShellCompDirectiveNoSpace
	}
	var out []string
	for _, name := range names {
		out = append(out, head+name+end)
	}
	return beginning(out, soFar), directive
}

// checkedDatabases lists the databases in a fingerprint file.
func checkedDatabases(path string) (out []string) {
	if st, err := disk.Stat(path); err != nil || !st.Mode().IsRegular() {
		return nil
	}
	if f, err := readFingerprint(path, nil); err == nil {
		for _, name := range f.Databases {
			out = append(out, string(name))
		}
	}
	return out
}

// databases and keyspaces list what a dataset has.
func databases(src format.Source) []string { return src.Databases() }

func keyspaces(src format.Source) (out []string) {
	for _, ks := range src.Keyspaces() {
		if !slices.Contains(out, ks.Name) {
			out = append(out, ks.Name)
		}
	}
	return out
}

// namesIn lists names of a dataset on disk, or nothing if it cannot be opened. It reads no standard input
// and asks no server: the command that is typed has not been given yet.
func (a *App) namesIn(cmd *cobra.Command, location string, names func(format.Source) []string) []string {
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
	return slices.DeleteFunc(names(src), func(name string) bool { return strings.ContainsAny(name, ",\"\t\r\n") })
}
