package command

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"kvferry/inspect"
	"kvferry/internal/pass/filter"
)

// takenNames are the flags that a fingerprint depends on, besides the dataset.
func takenNames() []string { return append(filter.Names(), "expired", "now") }

// taken returns what a fingerprint was taken with: its filters and its rule of expiry, by flag. The moment
// decides about nothing when expired keys are kept.
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

// takenText writes what a comparison was made with, without what is always so.
func takenText(c filter.Conditions) string {
	var out []string
	for _, name := range takenNames() {
		if len(c[name]) > 0 && (name != "expired" || c[name][0] != "drop") {
			out = append(out, conditionText(c, name))
		}
	}
	return strings.Join(out, ", ")
}

// asTaken makes a command read a dataset as the one that a fingerprint was taken of: filters and the rule of
// expiry are the file's where no flag gives them. A flag that says something else is refused: the
// fingerprints would be of other records. It returns what both were taken with, nil when the file does
// not say it.
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
	if file.Expired != f.choice.expired { // the moments do not matter
		delete(want, "now")
		delete(have, "now")
	}
	return want, otherwiseTaken(want, have, path)
}

// otherwiseTaken is the error that a file was taken with other filters, or another rule of expiry, than those
// given; nil when they are the same.
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
	return usagef("%s was taken with %s, and this run has %s: %s", path, strings.Join(was, ", "), strings.Join(is, ", "),
		strings.Join(slices.Compact(todo), "; "))
}

// conditionText names one flag and its values for people.
func conditionText(c filter.Conditions, name string) string {
	switch {
	case len(c[name]) == 0:
		return "no --" + name
	case name == filter.KeyFile:
		return "--key-file of " + c[name][0]
	}
	return shellLine(flagWords(c, name))
}
