package command

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"kvferry/internal/text/paint"
)

// The width of a help text is the terminal's within these bounds; without a terminal it is the usual one.
const (
	leastHelp = 60
	usualHelp = 80
	mostHelp  = 100
)

// helpWidth returns the width of help printed to w.
func helpWidth(w io.Writer) int {
	width, _ := screenSize(w)
	if width == 0 {
		return usualHelp
	}
	return min(max(width, leastHelp), mostHelp)
}

// fileOf returns the file behind standard output or standard error.
func fileOf(w io.Writer) io.Writer {
	switch o := w.(type) {
	case *standardOutput:
		return o.Writer
	case *standardError:
		return o.Writer
	}
	return w
}

// screenSize returns the columns and rows of a terminal; 0 if w is none.
func screenSize(w io.Writer) (columns, rows int) {
	f, ok := fileOf(w).(interface{ Fd() uintptr })
	if !ok {
		return 0, 0
	}
	columns, rows, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0, 0
	}
	return columns, rows
}

// widthOf returns the width of a terminal in characters; 0 if unknown.
func widthOf(w io.Writer) int {
	columns, _ := screenSize(w)
	return columns
}

// paged prints a text, through a pager if it is longer than the terminal.
func paged(w io.Writer, text string) error {
	if _, rows := screenSize(w); rows > 0 && strings.Count(text, "\n") >= rows && runPager(fileOf(w), text) {
		return nil
	}
	_, err := io.WriteString(w, text)
	return err
}

// runPager shows a text in the pager that the environment names, or in less. It returns false if the pager cannot be
// started. How the pager ends does not matter: the user may quit at any line.
func runPager(w io.Writer, text string) bool {
	words := strings.Fields(cmp.Or(os.Getenv("KVFERRY_PAGER"), os.Getenv("PAGER"), "less"))
	if len(words) == 0 {
		return false
	}
	pager := exec.Command(words[0], words[1:]...)
	pager.Stdin, pager.Stdout, pager.Stderr = strings.NewReader(text), w, os.Stderr
	pager.Env = append(os.Environ(), "LESS="+cmp.Or(os.Getenv("LESS"), "FRX"))
	if pager.Start() != nil {
		return false
	}
	_ = pager.Wait()
	return true
}

// standardOutput remembers the first write error, which libraries that print help and tables do not report. It writes
// no more after an error, so the output has no gap.
type standardOutput struct {
	io.Writer
	err     error
	screen  bool // a terminal
	colored func() bool
}

// Colored reports whether reports have colours.
func (o *standardOutput) Colored() bool { return o.colored != nil && o.colored() }

// Columns returns the width of the terminal; 0 if output is none.
func (o *standardOutput) Columns() int { return widthOf(o) }

// isPipe reports whether another program reads the output.
func (o *standardOutput) isPipe() bool {
	f, ok := o.Writer.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&fs.ModeNamedPipe != 0
}

// Write writes until the first error.
func (o *standardOutput) Write(p []byte) (n int, err error) {
	if o.err == nil {
		n, o.err = o.Writer.Write(p)
	}
	return n, o.err
}

// broken reports whether the reader has gone away.
func (o *standardOutput) broken() bool { return errors.Is(o.err, syscall.EPIPE) }

// failed returns the error of a command that ended with err. If its output is incomplete, exit codes such as 0 or 3
// would be wrong: the results did not reach the reader.
func (o *standardOutput) failed(err error) error {
	var exit *ExitError
	switch {
	case o.err == nil || errors.Is(err, o.err):
		return err
	case err == nil, errors.As(err, &exit) && exit.Err == nil:
		return fmt.Errorf("standard output: %w", o.err)
	}
	return errors.Join(err, fmt.Errorf("standard output: %w", o.err))
}

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
