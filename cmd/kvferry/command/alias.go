package command

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/pflag"
)

// oldName keeps an old flag name working. Help and completion show only the new name.
func oldName(fs *pflag.FlagSet, old, name string) {
	f := fs.Lookup(name)
	fs.Var(f.Value, old, f.Usage)
	fs.Lookup(old).Hidden = true
}

// shorthandFor keeps an old boolean flag working that --format has replaced.
func shorthandFor(fs *pflag.FlagSet, old, form string) {
	fs.Var(&formFlag{of: fs.Lookup("format").Value, form: form}, old, "the same as --format "+form)
	f := fs.Lookup(old)
	f.Hidden, f.NoOptDefVal = true, "true"
}

// formFlag sets --format.
type formFlag struct {
	of   pflag.Value
	form string
	set  bool
}

// Set takes a boolean.
func (f *formFlag) Set(s string) (err error) {
	if f.set, err = strconv.ParseBool(s); err != nil {
		return fmt.Errorf("want true or false")
	}
	if f.set {
		return f.of.Set(f.form)
	}
	return nil
}

// String returns the boolean.
func (f *formFlag) String() string { return strconv.FormatBool(f.set) }

// Type marks a boolean flag.
func (f *formFlag) Type() string { return "bool" }

// printJSON prints a result as indented JSON.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
