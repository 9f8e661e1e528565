package cli

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

	"kvferry/internal/text/page"
)

// The width of a help text is the terminal's within these bounds; without a terminal it is the usual one.
const (
	leastHelp = 60
	UsualHelp = 80
	mostHelp  = 100
)

// HelpWidth returns the width of help printed to w.
func HelpWidth(w io.Writer) int {
	width, _ := ScreenSize(w)
	if width == 0 {
		return UsualHelp
	}
	return min(max(width, leastHelp), mostHelp)
}

// fileOf returns the file behind standard output or standard error.
func fileOf(w io.Writer) io.Writer {
	switch o := w.(type) {
	case *StandardOutput:
		return o.Writer
	case *StandardError:
		return o.Writer
	}
	return w
}

// ScreenSize returns the columns and rows of a terminal; 0 if w is none.
func ScreenSize(w io.Writer) (columns, rows int) {
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
	columns, _ := ScreenSize(w)
	return columns
}

// paged prints a text, through a pager if it is longer than the terminal.
func paged(w io.Writer, text string) error {
	if _, rows := ScreenSize(w); rows > 0 && strings.Count(text, "\n") >= rows && runPager(fileOf(w), text) {
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

// StandardOutput remembers the first write error, which libraries that print help and tables do not report. It writes
// no more after an error, so the output has no gap.
type StandardOutput struct {
	io.Writer
	err     error
	Screen  bool // a terminal
	Painted func() bool
}

// Colored reports whether reports have colours.
func (o *StandardOutput) Colored() bool { return o.Painted != nil && o.Painted() }

// Columns returns the width of the terminal; 0 if output is none.
func (o *StandardOutput) Columns() int { return widthOf(o) }

// isPipe reports whether another program reads the output.
func (o *StandardOutput) isPipe() bool {
	f, ok := o.Writer.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&fs.ModeNamedPipe != 0
}

// Write writes until the first error.
func (o *StandardOutput) Write(p []byte) (n int, err error) {
	if o.err == nil {
		n, o.err = o.Writer.Write(p)
	}
	return n, o.err
}

// Broken reports whether the reader has gone away.
func (o *StandardOutput) Broken() bool { return errors.Is(o.err, syscall.EPIPE) }

// Failed returns the error of a command that ended with err. If its output is incomplete, exit codes such as 0 or 3
// would be wrong: the results did not reach the reader.
func (o *StandardOutput) Failed(err error) error {
	var exit *ExitError
	switch {
	case o.err == nil || errors.Is(err, o.err):
		return err
	case err == nil, errors.As(err, &exit) && exit.Err == nil:
		return fmt.Errorf("standard output: %w", o.err)
	}
	return errors.Join(err, fmt.Errorf("standard output: %w", o.err))
}

// ColorFlag registers --color.
func ColorFlag(fs *pflag.FlagSet) {
	Choose(fs, new(string), "color", Plain(page.Auto, page.Always, page.Never),
		"colours; auto: on a terminal, unless NO_COLOR is set")
}

// Colored returns the function that says whether output has colours. Flags may not be parsed yet.
func Colored(root *cobra.Command, terminal bool) func() bool {
	mode := root.PersistentFlags().Lookup("color").Value
	return func() bool { return page.WantsColor(mode.String(), terminal, os.Getenv) }
}

// StandardError paints messages. A bar is none: its lines begin with a carriage return.
type StandardError struct {
	io.Writer
	painted io.Writer
	Colored func() bool
}

func NewStandardError(w io.Writer, colored func() bool) *StandardError {
	return &StandardError{Writer: w, painted: page.PaintedLines(w), Colored: colored}
}

// Write writes text, in colours if they are wanted.
func (e *StandardError) Write(p []byte) (int, error) {
	if e.Colored() {
		return e.painted.Write(p)
	}
	return e.Writer.Write(p)
}
