package command

import (
	"cmp"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/term"
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
