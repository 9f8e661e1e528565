package command

import (
	"slices"
	"time"

	"github.com/spf13/pflag"

	"kvferry/convert"
	"kvferry/inspect/compare"
	"kvferry/internal/pass/filter"
	"kvferry/redis/live"
)

// renames lists the databases whose names differ in the target.
func renames(r *convert.Report) (out compare.DBMap) {
	for i, db := range r.Source.DBs {
		if name := r.Target.DBs[i]; name != db {
			out = append(out, compare.DBNames{A: db, B: name})
		}
	}
	return out
}

// chosen returns the filters of a conversion in the form of flags.
func (f *convertFlags) chosen(sel *filter.Selection, now time.Time) filter.Conditions {
	c := sel.Conditions(now)
	if c[filter.KeyFile] != nil {
		c[filter.KeyFile] = []string{f.choice.keyFile}
	}
	return c
}

// comparing returns the diff command line that compares source and target. It returns "" if diff needs no help and if
// the source was standard input.
func (f *convertFlags) comparing(fs *pflag.FlagSet, only filter.Conditions, r *convert.Report, src, dst string) string {
	if !explains(r) && !filtered(r) || fromStandard(src) {
		return ""
	}
	return commandLine(f.comparison(fs, only, r, src, dst))
}

// comparison returns the words of the diff that compares source and target. Filters, names and time are in the report,
// which lies beside the target, or in the working directory if that is a server.
func (f *convertFlags) comparison(fs *pflag.FlagSet, only filter.Conditions, r *convert.Report, src, dst string) []string {
	words := []string{"diff"}
	keys := only[filter.KeyFile] // the report has only their digest
	if keys != nil || live.IsAddress(src) {
		words = append(words, "--as-converted", r.File)
	}
	if keys != nil {
		words = append(words, "--"+filter.KeyFile, keys[0])
	}
	for _, name := range []string{"allow-live", "resort", "store", "wal-dir"} { // flags that affect how the source is opened
		if flag := fs.Lookup(name); flag.Changed {
			words = append(words, "--"+name+"="+flag.Value.String())
		}
	}
	return slices.Concat(words, []string{src, dst})
}

// filtered reports whether a conversion selected some records.
func filtered(r *convert.Report) bool {
	return slices.ContainsFunc(filter.Names(), func(name string) bool { return r.Options[name] != "" })
}
