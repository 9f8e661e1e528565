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

// comparing returns the diff command line that compares source and target. It returns "" if diff needs no help, if the
// target is a server and if the source was standard input.
func (f *convertFlags) comparing(fs *pflag.FlagSet, only filter.Conditions, r *convert.Report, src, dst string) string {
	if !explains(r) && !filtered(r) || live.IsAddress(dst) || fromStandard(src) {
		return ""
	}
	return commandLine(f.comparison(fs, only, r, src, dst))
}

// comparison returns the words of the diff that compares source and target. Filters, names and time are in the report
// beside a target on disk; a server is compared with flags.
func (f *convertFlags) comparison(fs *pflag.FlagSet, only filter.Conditions, r *convert.Report, src, dst string) []string {
	words := []string{"diff"}
	switch keys := only[filter.KeyFile]; {
	case live.IsAddress(dst):
		c := taken(only, f.choice.expired, r.Now)
		for _, name := range takenNames() {
			if name != "expired" || c[name][0] != "drop" {
				words = append(words, c.Words(name)...)
			}
		}
		for _, n := range renames(r) {
			words = append(words, "--map-db", n.String())
		}
	case keys != nil: // the report has only their digest
		words = append(words, "--as-converted", r.File, "--"+filter.KeyFile, keys[0])
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
