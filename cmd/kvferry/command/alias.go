package command

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/pflag"
)

// oldName keeps an old name of a flag working. Help and completion show the new one alone.
func oldName(fs *pflag.FlagSet, old, name string) {
	f := fs.Lookup(name)
	fs.Var(f.Value, old, f.Usage)
	fs.Lookup(old).Hidden = true
}

// shorthandFor keeps a flag without a value working that is --format with one now.
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

// Set takes a truth.
func (f *formFlag) Set(s string) (err error) {
	if f.set, err = strconv.ParseBool(s); err != nil {
		return fmt.Errorf("want true or false")
	}
	if f.set {
		return f.of.Set(f.form)
	}
	return nil
}

// String returns the truth.
func (f *formFlag) String() string { return strconv.FormatBool(f.set) }

// Type is that of a flag without a value.
func (f *formFlag) Type() string { return "bool" }

// printJSON prints a result as JSON for programs to read.
func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
