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

// comparing returns the diff command line that compares source and target with the same filters and --now. It returns
// "" if no database was renamed (a plain diff works then), if the target is a server, if the source was standard
// input, and if part of the source could not be read (diff would stop there).
func (f *convertFlags) comparing(fs *pflag.FlagSet, only filter.Conditions, r *convert.Report, src, dst string) string {
	if renames(r) == nil || live.IsAddress(dst) || fromStandard(src) || slices.ContainsFunc(r.Findings, func(k convert.FindingKind) bool { return k.PassedOver() }) {
		return ""
	}
	return commandLine(f.comparison(fs, only, r, src, dst))
}

// comparison returns the words of the diff that compares source and target with the same filters and --now.
func (f *convertFlags) comparison(fs *pflag.FlagSet, only filter.Conditions, r *convert.Report, src, dst string) []string {
	words := []string{"diff"}
	c := taken(only, f.choice.expired, r.Now)
	for _, name := range takenNames() {
		if name != "expired" || c[name][0] != "drop" {
			words = append(words, flagWords(c, name)...)
		}
	}
	for _, name := range []string{"allow-live", "resort", "store", "wal-dir"} { // flags that affect how the source is opened
		if flag := fs.Lookup(name); flag.Changed {
			words = append(words, "--"+name+"="+flag.Value.String())
		}
	}
	for _, n := range renames(r) {
		words = append(words, "--map-db", n.String())
	}
	return slices.Concat(words, []string{src, dst})
}
