package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"kvferry/cmd/kvferry/cli"
	"kvferry/cmd/kvferry/report"
	"kvferry/convert"
	"kvferry/inspect"
	"kvferry/internal/pass/filter"
	"kvferry/internal/text/escape"
	"kvferry/redis/live"
)

// takenNames lists the flags that affect a fingerprint.
func takenNames() []string { return append(filter.Names(), "expired", "now") }

// taken returns the flags that affect a fingerprint: filters, --expired and, unless expired keys are kept, --now.
func taken(filters filter.Conditions, expired string, now time.Time) filter.Conditions {
	c := maps.Clone(filters)
	if c == nil {
		c = filter.Conditions{}
	}
	c["expired"] = []string{expired}
	if expired == "drop" {
		c["now"] = []string{filter.MomentText(now)}
	}
	return c
}

// takenText describes the conditions of a comparison, without defaults.
func takenText(c filter.Conditions) string {
	var out []string
	for _, name := range takenNames() {
		if len(c[name]) > 0 && (name != "expired" || c[name][0] != "drop") {
			out = append(out, conditionText(c, name))
		}
	}
	return strings.Join(out, ", ")
}

// asTaken makes a command read a dataset under the conditions of a fingerprint file: filters and --expired come from
// the file unless a flag gives them. It refuses a flag that contradicts the file, as the fingerprints would cover
// different records. It returns the common conditions, or nil if the file does not record them.
func (f *ReadFlags) asTaken(fs *pflag.FlagSet, file *inspect.FingerprintFile, path string) (filter.Conditions, error) {
	at := time.UnixMilli(file.Now).UTC()
	if !fs.Changed("now") {
		f.source.now.Time = at
	}
	if file.Expired == "" {
		return nil, nil
	}
	want := taken(file.Filters, file.Expired, at)
	for _, name := range filter.Names() {
		if fs.Changed(name) || name == filter.KeyFile {
			continue
		}
		for _, v := range want.Values(name) {
			if err := fs.Lookup(name).Value.Set(v); err != nil {
				return nil, fmt.Errorf("%s: filters: %s %q: %w", path, name, v, err)
			}
		}
	}
	if !fs.Changed("expired") {
		f.choice.expired = file.Expired
	}
	sel, err := f.choice.Selection(f.source.Memory())
	if err != nil {
		return nil, err
	}
	have := taken(sel.Conditions(f.source.now.Time), f.choice.expired, f.source.now.Time)
	if file.Expired != f.choice.expired { // compare without --now then
		delete(want, "now")
		delete(have, "now")
	}
	return want, otherwiseTaken(want, have, path)
}

// otherwiseTaken returns an error if a file was taken with other filters or another --expired than this run; nil if
// they agree.
func otherwiseTaken(want, have filter.Conditions, path string) error {
	var was, is, leave, todo []string
	for _, name := range takenNames() {
		if want.Same(have, name) {
			continue
		}
		was, is = append(was, conditionText(want, name)), append(is, conditionText(have, name))
		if name == filter.KeyFile && len(want[name]) > 0 {
			todo = append(todo, "give the same keys with --key-file")
		} else {
			leave = append(leave, "--"+name)
		}
	}
	if was == nil {
		return nil
	}
	if leave != nil {
		todo = append(todo, "leave out "+strings.Join(leave, ", ")+" to compare as the file was taken")
	}
	return cli.Usagef("%s was taken with %s, and this run has %s: %s", path, strings.Join(was, ", "), strings.Join(is, ", "),
		strings.Join(slices.Compact(todo), "; "))
}

// conditionText describes a flag and its values.
func conditionText(c filter.Conditions, name string) string {
	switch {
	case len(c[name]) == 0:
		return "no --" + name
	case name == filter.KeyFile:
		return "--key-file of " + c[name][0]
	}
	return escape.Shell(c.Words(name))
}

// chosen returns the filters of a conversion in the form of flags.
func chosen(sel *filter.Selection, keyFile string, now time.Time) filter.Conditions {
	c := sel.Conditions(now)
	if c[filter.KeyFile] != nil {
		c[filter.KeyFile] = []string{keyFile}
	}
	return c
}

// comparing returns the diff command line that compares source and target. It returns "" if diff needs no help and if
// the source was standard input.
func comparing(fs *pflag.FlagSet, only filter.Conditions, r *convert.Report, src, dst string) string {
	if !explains(r) && !filtered(r) || fromStandard(src) {
		return ""
	}
	return cli.CommandLine(comparison(fs, only, r, src, dst))
}

// comparison returns the words of the diff that compares source and target. Filters, names and time are in the report,
// which lies beside the target, or in the working directory if that is a server.
func comparison(fs *pflag.FlagSet, only filter.Conditions, r *convert.Report, src, dst string) []string {
	words := []string{"diff"}
	keys := only[filter.KeyFile] // the report has only their digest
	if keys != nil || live.IsAddress(src) {
		words = append(words, "--as-converted", r.File)
	}
	if keys != nil {
		words = append(words, "--"+filter.KeyFile, keys[0])
	}
	return slices.Concat(words, openingWords(fs), []string{src, dst})
}

// openingWords returns the given flags that say how to open the source, for another command that opens it.
func openingWords(fs *pflag.FlagSet) []string {
	names := slices.Concat([]string{"allow-live", "column", "max-bitmap", "max-block", "resort", "store", "wal-dir"},
		connectNames, objectNames)
	var others []string
	fs.VisitAll(func(flag *pflag.Flag) {
		if !slices.Contains(names, flag.Name) {
			others = append(others, flag.Name)
		}
	})
	return cli.FlagWords(fs, others...)
}

// filtered reports whether a conversion selected some records.
func filtered(r *convert.Report) bool {
	return slices.ContainsFunc(filter.Names(), func(name string) bool { return r.Options[name] != "" })
}

// explains reports whether a conversion leaves differences between its source and its target. It is false if a list
// of keys or a function is needed to repeat it.
func explains(r *convert.Report) bool {
	return r.Options[filter.KeyFile] == "" && r.Options[filter.Where] == "" &&
		(filtered(r) || len(r.Losses) > 0 || r.Options["expired"] == "keep" || len(report.Renames(r)) > 0 ||
			len(r.Skipped) > 0 || len(r.Before) > 0)
}
