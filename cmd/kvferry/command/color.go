package command

import (
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kvferry/internal/text/paint"
)

// colorFlag registers --color.
func colorFlag(fs *pflag.FlagSet) {
	choose(fs, new(string), "color", plain(paint.Auto, paint.Always, paint.Never),
		"colours; auto: on a terminal, unless NO_COLOR is set")
}

// colored returns the function that says whether output has colours. Flags may not be parsed yet.
func colored(root *cobra.Command, terminal bool) func() bool {
	mode := root.PersistentFlags().Lookup("color").Value
	return func() bool { return paint.Wanted(mode.String(), terminal, os.Getenv) }
}

// standardError paints messages. A bar is none: its lines begin with a carriage return.
type standardError struct {
	io.Writer
	painted io.Writer
	colored func() bool
}

func newStandardError(w io.Writer, colored func() bool) *standardError {
	return &standardError{Writer: w, painted: paint.Lines(w), colored: colored}
}

// Write writes text, in colours if they are wanted.
func (e *standardError) Write(p []byte) (int, error) {
	if e.colored() {
		return e.painted.Write(p)
	}
	return e.Writer.Write(p)
}
