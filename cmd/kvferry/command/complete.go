package command

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kvferry/catalog"
	"kvferry/cmd/kvferry/cli"
	"kvferry/format"
	"kvferry/internal/sys/disk"
	foreignparquet "kvferry/parquet/foreign"
)

// complete adds shell completion to every command: arguments by their names in the usage line, flags by their known
// values, or else by the placeholder in their help. Only completion requests call it: cobra keeps the functions for
// flags as long as the process lives, and with them all memory that a command holds.
func (a *App) complete(root *cobra.Command) {
	a.completeFlags(root, root.PersistentFlags())
	for _, cmd := range root.Commands() {
		a.completeFlags(cmd, cmd.Flags())
		if cmd.ValidArgsFunction == nil {
			cmd.ValidArgsFunction = a.completeArgs(cli.ArgNames(cmd))
		}
	}
}

// completeArgs completes arguments with the given names.
func (a *App) completeArgs(names []string) cli.Completer {
	return func(_ *cobra.Command, args []string, soFar string) ([]string, cobra.ShellCompDirective) {
		if len(args) < len(names) {
			switch name := names[len(args)]; {
			case cli.IsSource(name):
				return a.completeSource(soFar)
			case name == "FORMAT:DST":
				return a.completeTarget(soFar)
			case name == "FILE":
				return nil, cobra.ShellCompDirectiveDefault
			case strings.HasPrefix(name, addressSchemes[0]):
				return locations(cli.BeginWith(servers(), soFar))
			}
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

func (a *App) completeFlags(cmd *cobra.Command, fs *pflag.FlagSet) {
	fs.VisitAll(func(f *pflag.Flag) {
		name, _ := pflag.UnquoteUsage(f)
		known, choice := f.Value.(cli.Suggester)
		var c cli.Completer
		switch {
		case choice:
			c = cli.CompleteKnown(known)
		case name == "location":
			c = func(_ *cobra.Command, _ []string, soFar string) ([]string, cobra.ShellCompDirective) {
				return a.completeSource(soFar)
			}
		case name == "directory":
			c = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
		case name == "file":
			return // shells complete files by default
		case f.Name == "db":
			c = a.completeNames(databases)
		case f.Name == "keyspace":
			c = a.completeNames(keyspaces)
		case f.Name == "map-db":
			c = a.completeMap
		case f.Name == "column":
			c = completeUses
		default:
			c = cobra.NoFileCompletions
		}
		if err := cmd.RegisterFlagCompletionFunc(f.Name, c); err != nil {
			panic(err) // registered twice
		}
	})
}

// completeUses completes what a column of Parquet can be used for; its name follows.
func completeUses(_ *cobra.Command, _ []string, soFar string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, use := range foreignparquet.Uses() {
		out = append(out, use+"=")
	}
	return cli.BeginWith(out, soFar), cli.GoesOnInOrder
}

// completeSource completes a directory, file or address, with or without a format prefix.
func (a *App) completeSource(soFar string) ([]string, cobra.ShellCompDirective) {
	prefix := a.PrefixOf(soFar)
	var known []string
	if prefix == "" {
		known = a.prefixes(func(*format.Limits) bool { return true }, func(s format.StoreSupport) bool { return s.Read })
	}
	known = append(known, cobra.CompletionWithDesc(prefix+"s3://", "an object store"),
		cobra.CompletionWithDesc(prefix+"https://", "a file on a web server"))
	return locations(append(cli.BeginWith(known, soFar), paths(prefix, soFar, true)...))
}

// completeTarget completes the name of a writable format, then a directory, or the address of a server.
func (a *App) completeTarget(soFar string) ([]string, cobra.ShellCompDirective) {
	if prefix := a.PrefixOf(soFar); prefix != "" {
		return locations(paths(prefix, soFar, false))
	}
	known := a.prefixes(func(l *format.Limits) bool { return l.NoTarget == "" },
		func(s format.StoreSupport) bool { return s.Write })
	return locations(cli.BeginWith(known, soFar))
}

// locations returns the directive for locations: no space follows, unless the only candidate is a file.
func locations(values []string) ([]string, cobra.ShellCompDirective) {
	if len(values) == 1 && !strings.Contains(values[0], "\t") && !strings.HasSuffix(values[0], "/") {
		return values, cobra.ShellCompDirectiveNoFileComp
	}
	return values, cli.GoesOn
}

// prefixes lists what a location can begin with, each with a description: formats, formats with a store if they support
// several, servers by name, and the schemes of addresses.
func (a *App) prefixes(usable func(*format.Limits) bool, on func(format.StoreSupport) bool) []string {
	var out []string
	for _, f := range a.Formats {
		l := f.Limits()
		if !usable(&l) {
			continue
		}
		var stores []string
		for _, s := range l.Stores {
			if on(s) {
				stores = append(stores, cobra.CompletionWithDesc(f.Name()+"+"+s.Store+":", f.Name()+" on "+s.Store))
			}
		}
		switch {
		case l.Place == format.OnServer:
			out = append(out, servers()...)
			continue
		case len(l.Stores) > 0 && len(stores) == 0:
			continue
		}
		out = append(out, cobra.CompletionWithDesc(f.Name()+":", l.Detail))
		if len(stores) > 1 {
			out = append(out, stores...)
		}
		for _, server := range catalog.Servers(f) {
			out = append(out, cobra.CompletionWithDesc(server.Name+":", server.Detail))
		}
	}
	return out
}

// addressSchemes begin the addresses of servers.
var addressSchemes = []string{"redis://", "rediss://", "unix:///", "redis+cluster://"}

// servers lists the schemes with a description.
func servers() (out []string) {
	for _, scheme := range addressSchemes {
		out = append(out, cobra.CompletionWithDesc(scheme, "a running server"))
	}
	return out
}

// fromHome replaces the ~ of a path, as the shell does when it runs the line. Not every shell does before it completes.
func fromHome(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}

// paths completes a directory after a prefix, and files if they can be datasets. It shows hidden ones only after a dot.
func paths(prefix, soFar string, files bool) []string {
	dir, name := filepath.Split(strings.TrimPrefix(soFar, prefix))
	at := dir
	if prefix == "" {
		at = fromHome(dir)
	}
	entries, err := disk.ReadDir(cmp.Or(at, "."))
	if err != nil {
		return nil // no candidates
	}
	var out []string
	for _, e := range entries {
		hidden := strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(name, ".")
		if hidden || !strings.HasPrefix(e.Name(), name) {
			continue
		}
		switch st, err := disk.Stat(filepath.Join(at, e.Name())); {
		case err == nil && st.IsDir():
			out = append(out, prefix+dir+e.Name()+"/")
		case err == nil && files && st.Mode().IsRegular():
			out = append(out, prefix+dir+e.Name())
		}
	}
	return out
}

// completionTime bounds the search for databases: a large RDB file has its database numbers among all its keys.
const completionTime = 2 * time.Second

// completeNames completes a list of names of the dataset that the command line names: databases or keyspaces.
func (a *App) completeNames(names func(format.Source) []string) cli.Completer {
	return func(cmd *cobra.Command, args []string, soFar string) ([]string, cobra.ShellCompDirective) {
		sides := sidesOf(cmd, args)
		if len(sides) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return cli.BeginWith(cli.SuggestNext(a.namesIn(cmd, sides[0], names), soFar), soFar), cli.GoesOnInOrder
	}
}

// sidesOf lists the datasets of a command line: arguments, then --against.
func sidesOf(cmd *cobra.Command, args []string) (out []string) {
	for i, name := range cli.ArgNames(cmd) {
		if i < len(args) && cli.IsSource(name) {
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
	names, end, directive := lists[0], "=", cli.GoesOnInOrder
	head := soFar[:strings.LastIndexByte(soFar, '=')+1]
	if head != "" {
		names, end, directive = lists[1], "", cli.GoesOnInOrder&^cobra.ShellCompDirectiveNoSpace
	}
	var out []string
	for _, name := range names {
		out = append(out, head+name+end)
	}
	return cli.BeginWith(out, soFar), directive
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
