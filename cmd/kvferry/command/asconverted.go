package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"kvferry/cmd/kvferry/cli"
	"kvferry/cmd/kvferry/report"
	"kvferry/convert"
	"kvferry/inspect/compare"
	"kvferry/internal/pass/filter"
	"kvferry/internal/sys/disk"
	"kvferry/internal/text/escape"
	"kvferry/internal/text/page"
	"kvferry/record"
	"kvferry/redis/live"
)

// plainDiff is the value of --as-converted that ignores a report beside B.
const plainDiff = "none"

// ownFlags lists the flags of diff that the report of a conversion decides. They make diff compare A and B as they are.
func ownFlags() []string { return append(takenNames(), "map-db", "direct", secondWAL) }

// report returns the report of the conversion that made B of A, if B is to be compared with what it writes; else nil.
// By default it is the report beside B, if that explains differences.
func (f *diffFlags) report(cmd *cobra.Command, a *App, locA, locB string) (*convert.Report, error) {
	var own []string
	for _, name := range ownFlags() {
		if cmd.Flags().Changed(name) && (name != filter.KeyFile || f.converted == "") {
			own = append(own, "--"+name)
		}
	}
	if f.format == "patch" {
		own = append(own, "--format patch")
	}
	switch {
	case f.converted == plainDiff, f.converted == "" && len(own) > 0:
		return nil, nil
	case f.converted == "":
		return f.reportBeside(cmd, a, locA, locB), nil
	case len(own) > 0:
		return nil, cli.Usagef("--as-converted takes filters, names and times from the report: leave out %s", strings.Join(own, ", "))
	}
	rep, err := convert.ReadReport(f.converted)
	if err == nil && rep.DryRun {
		err = fmt.Errorf("%s: this is the report of a dry run, which has no target to compare", f.converted)
	}
	if err != nil {
		return nil, cli.Usagef("--as-converted %w", err)
	}
	return rep, nil
}

// reportBeside returns the report beside B if it is that of a conversion of A and explains differences, else nil.
func (f *diffFlags) reportBeside(cmd *cobra.Command, a *App, locA, locB string) *convert.Report {
	if live.IsAddress(locA) {
		return nil
	}
	from, errA := a.place(cmd, locA, &f.read.source)
	to, errB := a.place(cmd, locB, &f.read.source)
	if errA != nil || errB != nil {
		return nil
	}
	path, server := to.Path, live.IsAddress(locB)
	if server { // its report is in the working directory
		path, errB = live.New().Work(locB)
	}
	rep, err := convert.ReadReport(disk.Address(convert.ReportPath(path)))
	if errB != nil || err != nil || rep.DryRun || !explains(rep) ||
		!server && filepath.Base(rep.Target.Path) != filepath.Base(path) {
		return nil
	}
	x, errA := disk.Stat(from.Path)
	y, errB := disk.Stat(rep.Source.Path)
	if errA != nil || errB != nil || !disk.SameFile(x, y) {
		return nil
	}
	return rep
}

// repeat returns the options that repeat a conversion of A to another target, from the command line that its report
// describes.
func (a *App) repeat(cmd *cobra.Command, rep *convert.Report, locA, target string) (*convert.Options, error) {
	f, as := new(convertFlags), &cobra.Command{Use: "convert"}
	f.register(a, as)
	as.SetContext(cmd.Context())
	as.SetIn(cmd.InOrStdin())
	as.SetErr(cmd.ErrOrStderr())
	set := func(name, value string) error {
		if err := as.Flags().Set(name, value); err != nil {
			return fmt.Errorf("the report's %s %q: %w", name, value, err)
		}
		return nil
	}
	names := append([]string{"memory", "workers", "temp-dir", "allow-live", "resort", "store", "max-block", "wal-dir",
		filter.KeyFile}, objectNames...)
	if live.IsAddress(locA) {
		names = append(names, connectNames...)
	}
	for _, name := range names {
		if flag := cmd.Flags().Lookup(name); flag.Changed || name == "memory" {
			if err := set(name, flag.Value.String()); err != nil {
				return nil, err
			}
		}
	}
	for name, text := range rep.Options {
		if as.Flags().Changed(name) { // the logs of A may have moved
			continue
		}
		values, err := optionValues(name, text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", rep.File, err)
		}
		for _, v := range values {
			if err := set(name, v); err != nil {
				return nil, fmt.Errorf("%s: %w", rep.File, err)
			}
		}
	}
	f.source.now.Time = rep.Now
	o, err := a.convertOptions(as, f, locA, target)
	if err != nil {
		return nil, err
	}
	if have := o.Selection.Conditions(rep.Now).Texts()[filter.KeyFile]; have != rep.Options[filter.KeyFile] {
		return nil, cli.Usagef("--as-converted %s: the conversion had --key-file of %s: give the same keys with --key-file",
			rep.File, cmp.Or(rep.Options[filter.KeyFile], "no keys"))
	}
	return o, nil
}

// targetName is the format of the target in locations.
func targetName(rep *convert.Report) string { return strings.TrimSuffix(rep.Options["target"], "+") }

// optionValues returns the values of a flag that a report has as a text; see filter.Conditions.Texts. It refuses an
// option that this program does not know, because it cannot repeat it.
func optionValues(name, text string) ([]string, error) {
	switch name {
	case "source", "target", "upload", filter.KeyFile:
		return nil, nil // of the locations, and of the digest of a file
	case filter.Where:
		return nil, fmt.Errorf("%w; to compare all records, use --as-converted none", filter.ErrFunction)
	case "db", "match", "exclude", "rename-db":
		values, err := quotedList(text)
		return (filter.Conditions{name: values}).Values(name), err
	case "cluster", "sst":
		return []string{strconv.FormatBool(text == "yes")}, nil
	case "on-conflict":
		if order, ok := strings.CutPrefix(text, conflictKeep); ok {
			return []string{conflictKeep + strings.Join(strings.Fields(strings.Trim(order, "[]")), ",")}, nil
		}
	}
	return []string{text}, nil
}

// quotedList parses a list that %q has formatted.
func quotedList(s string) (out []string, err error) {
	rest, ok := strings.CutPrefix(s, "[")
	for ok && rest != "]" {
		word, err := strconv.QuotedPrefix(rest)
		if err != nil {
			return nil, fmt.Errorf("%s: want a list of quoted names", s)
		}
		text, _ := strconv.Unquote(word)
		out, rest = append(out, text), strings.TrimPrefix(rest[len(word):], " ")
	}
	return out, nil
}

// convertedDiff is the result of a comparison with a repeated conversion.
type convertedDiff struct {
	compare.Result
	Report    string             `json:"as_converted"`
	Explained []convert.LossKind `json:"explained"`
	// Kept is the number of keys on a server that differ from A because they were there before.
	Kept int64 `json:"keys_kept,omitempty"`
	// Changed are losses whose number is not the report's: A is not as it was.
	Changed []string `json:"changed,omitempty"`
}

// diffConverted compares B with what the reported conversion would write now.
func (a *App) diffConverted(cmd *cobra.Command, f *diffFlags, rep *convert.Report, locA, locB string) (err error) {
	if live.IsAddress(locB) != live.IsAddress(rep.Target.Path) {
		return cli.Usagef("--as-converted %s: the conversion wrote %s, not %s", rep.File, escape.Text(rep.Target.Path),
			escape.Text(locB))
	}
	if live.IsAddress(locB) {
		return a.diffServer(cmd, f, rep, locA, locB)
	}
	place, err := a.place(cmd, locB, &f.read.source)
	if err != nil {
		return err
	}
	o, err := a.repeat(cmd, rep, locA, targetName(rep)+":"+place.Path)
	if err != nil {
		return err
	}
	o.Target.Objects, o.Target.Path = nil, place.Path
	if err := tryOutputs(cmd); err != nil {
		return err
	}
	show := a.converting(cmd, &f.read.progress, o)
	defer func() { show.End(err) }()
	now, err := convert.Check(cmd.Context(), o, f.read.source.allowLive)
	var proof *convert.ProofError
	if err != nil && (!errors.As(err, &proof) || proof.Err != nil) {
		return err
	}
	show.End(nil)
	res := &convertedDiff{Report: rep.File, Explained: now.Losses, Changed: changedLosses(rep.Losses, now.Losses)}
	res.Seconds = o.Source.Format.Limits().Seconds || o.Target.Format.Limits().Seconds
	err = cli.ToOutput(cmd, f.output, func(w io.Writer) error {
		if proof == nil {
			res.Equal, res.Fingerprints, res.Alike = len(res.Changed) == 0, true, now.Records()
			return f.showConverted(w, res, rep)
		}
		return a.listConverted(cmd, f, o, now, proof, res, rep, w)
	})
	if err == nil && !res.Equal {
		return &cli.ExitError{Code: cli.ExitFindings}
	}
	return err
}

// changedLosses lists the kinds of losses whose numbers differ.
func changedLosses(was, is []convert.LossKind) (out []string) {
	count := func(list []convert.LossKind, kind string) (n int64) {
		for _, l := range list {
			if l.Kind == kind {
				n += l.Count
			}
		}
		return n
	}
	for i, l := range slices.Concat(was, is) {
		if x, y := count(was, l.Kind), count(is, l.Kind); x != y && (i < len(was) || x == 0) {
			out = append(out, fmt.Sprintf("%s: %s in the report, %s now", l.Kind, record.Number(x), record.Number(y)))
		}
	}
	return out
}

// showConverted prints the result of a comparison without differing records.
func (f *diffFlags) showConverted(w io.Writer, res *convertedDiff, rep *convert.Report) error {
	if f.format == "json" {
		return cli.PrintJSON(w, res)
	}
	printExplained(w, res, rep)
	unit := ""
	if res.Seconds {
		unit = " (expiry in seconds)"
	}
	verdict := "equal as converted: B has the %s that the conversion of A writes%s\n"
	if !res.Equal {
		verdict = "A has changed since its conversion; B has the %s that a conversion of A writes now%s\n"
	}
	_, err := fmt.Fprintf(page.Painted(w), verdict, record.Count(res.Alike, "record"), unit)
	return err
}

// printExplained lists what the report explains, and what it does not.
func printExplained(w io.Writer, res *convertedDiff, rep *convert.Report) {
	w = page.Painted(w)
	fmt.Fprintf(w, "explained by %s:\n", res.Report)
	for _, l := range res.Explained {
		how := "changed"
		if l.Drops {
			how = "left out"
		}
		fmt.Fprintf(w, "  %s: %s %s\n", l.Kind, record.Number(l.Count), how)
	}
	for _, name := range append(filter.Names(), "expired", "on-conflict", "namespace") {
		if text := rep.Options[name]; text != "" && text != "drop" {
			if name == filter.NoExpiry {
				text = ""
			}
			fmt.Fprintf(w, "  %s\n", strings.TrimSpace("--"+name+" "+text))
		}
	}
	for _, n := range report.Renames(rep) {
		fmt.Fprintf(w, "  database %s is %s\n", n.A, n.B)
	}
	if rep.Options["expired"] != "keep" {
		fmt.Fprintf(w, "  keys that had expired at %s\n", rep.Now.UTC().Format(time.RFC3339))
	}
	for _, text := range res.Changed {
		fmt.Fprintf(w, "not explained: %s: A has changed since\n", text)
	}
}

// listConverted converts A again, to temporary files, and lists the records in which B differs from them.
func (a *App) listConverted(cmd *cobra.Command, f *diffFlags, o *convert.Options, now *convert.Report, proof *convert.ProofError,
	res *convertedDiff, rep *convert.Report, w io.Writer) (err error) {

	ctx, json := cmd.Context(), f.format == "json"
	if !json {
		printExplained(w, res, rep)
		for _, f := range proof.Findings {
			fmt.Fprintf(page.Painted(w), "B has %s %s: %s, such as %s\n", f.Severity, f.Kind, record.Number(f.Count),
				f.Samples[0])
		}
	}
	dir, err := disk.MkdirTemp(f.read.source.TempDir(), "kvferry-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, disk.RemoveAll(dir)) }()
	again, pathB := *o, o.Target.Path
	again.Target.Path, again.NoProve, again.Progress = filepath.Join(dir, filepath.Base(pathB)), true, nil
	for _, l := range now.Losses {
		again.AllowLoss = append(again.AllowLoss, l.Kind)
	}
	if _, err := convert.Run(ctx, &again); err != nil {
		return fmt.Errorf("the second dataset differs from the result of the conversion: %w; kvferry could not convert A again to list the records: %w",
			proof, err)
	}
	read := f.read
	read.source.now.Time, read.source.walDir, read.choice = rep.Now, "", SelectFlags{expired: rep.Options["expired"]}
	var sides [2]*Dataset
	for i, path := range []string{again.Target.Path, pathB} {
		if sides[i], err = a.unopened(cmd, targetName(rep)+":"+path, &read); err == nil {
			err = sides[i].open(ctx, nil)
		}
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, sides[i].Opened.Source.Close()) }()
		sides[i].Scan.Memory /= 2
	}
	if json {
		res.Result, err = f.count(cmd, sides)
		res.Equal = false
		return errors.Join(err, cli.PrintJSON(w, res))
	}
	_, err = f.compare(ctx, sides[0], sides[1], w)
	return err
}

// count compares two datasets and returns the counts alone.
func (f *diffFlags) count(cmd *cobra.Command, sides [2]*Dataset) (compare.Result, error) {
	res, err := compare.Diff(cmd.Context(), &compare.Options{A: sides[0].Scan, B: sides[1].Scan,
		Tell: func(*compare.Difference) error { return nil }})
	if err != nil {
		return compare.Result{}, err
	}
	return *res, nil
}
