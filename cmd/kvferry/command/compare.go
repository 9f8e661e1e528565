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

// renames lists the databases that have another name in the target of a conversion.
func renames(r *convert.Report) (out compare.DBMap) {
	for i, db := range r.Source.DBs {
		if name := r.Target.DBs[i]; name != db {
			out = append(out, compare.DBNames{A: db, B: name})
		}
	}
	return out
}

// chosen are the filters of a conversion as flags give them.
func (f *convertFlags) chosen(sel *filter.Selection, now time.Time) filter.Conditions {
	c := sel.Conditions(now)
	if c[filter.KeyFile] != nil {
		c[filter.KeyFile] = []string{f.choice.keyFile}
	}
	return c
}

// comparing returns the command line that compares source and target of a conversion, under its filters and at
// its moment. It is "" when no database was renamed, as names are no obstacle then, when the target is a
// server, which is not read, when the source is standard input, which is gone, and when something of the source could not be read, where diff stops.
func (f *convertFlags) comparing(fs *pflag.FlagSet, only filter.Conditions, r *convert.Report, src, dst string) string {
	dbs := renames(r)
	if dbs == nil || live.IsAddress(dst) || fromStandard(src) || slices.ContainsFunc(r.Findings, func(k convert.FindingKind) bool { return k.PassedOver() }) {
		return ""
	}
	words := []string{"diff"}
	c := taken(only, f.choice.expired, r.Now)
	for _, name := range takenNames() {
		if name != "expired" || c[name][0] != "drop" {
			words = append(words, flagWords(c, name)...)
		}
	}
	for _, name := range []string{"allow-live", "resort", "store", "wal-dir"} { // what the source is opened with
		if flag := fs.Lookup(name); flag.Changed {
			words = append(words, "--"+name+"="+flag.Value.String())
		}
	}
	for _, n := range dbs {
		words = append(words, "--map-db", n.String())
	}
	return commandLine(slices.Concat(words, []string{src, dst}))
}
