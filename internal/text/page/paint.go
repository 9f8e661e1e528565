package page

import (
	"bytes"
	"io"
	"regexp"

	"kvferry/internal/text/escape"
)

// The modes of Wanted.
const (
	Auto   = "auto"
	Always = "always"
	Never  = "never"
)

// WantsColor reports whether output has colours. With Auto, it is what the terminal can do and the environment asks for:
// NO_COLOR turns colours off, CLICOLOR_FORCE turns them on in files, too.
func WantsColor(mode string, terminal bool, env func(string) string) bool {
	force := env("CLICOLOR_FORCE")
	switch {
	case mode != Auto:
		return mode == Always
	case env("NO_COLOR") != "":
		return false
	case force != "" && force != "0":
		return true
	}
	return terminal && env("TERM") != "dumb" && env("CLICOLOR") != "0"
}

const (
	red      = "\x1b[31m"
	green    = "\x1b[32m"
	yellow   = "\x1b[33m"
	boldText = "\x1b[1m"
	reset    = "\x1b[0m"
)

// PaintedError returns a text in the colour of errors.
func PaintedError(text string) string { return red + text + reset }

// colorRule colours the first group of a line.
type colorRule struct {
	line  *regexp.Regexp
	style string
}

// rules are the lines with a colour. The first that matches applies.
var rules = []colorRule{
	{regexp.MustCompile(`^(?:kvferry: |  follows: | *[\d,]+  )?(error) `), red},
	{regexp.MustCompile(`^(?:kvferry: |  follows: | *[\d,]+  )?(warning):? `), yellow},
	{regexp.MustCompile(`^loss .* \((not allowed)\)$`), red},
	{regexp.MustCompile(`^(loss) `), yellow},
	{regexp.MustCompile(`(NOT ENOUGH)$`), red},
	{regexp.MustCompile(`free: (enough)$`), green},
	{regexp.MustCompile(`^(proved|equal|equal as converted): `), green},
	{regexp.MustCompile(`^(NOT PROVED|the ledger of .* does not add up|A has changed since its conversion)\b`), red},
	{regexp.MustCompile(`^(the ledger adds up)$`), green},
	{regexp.MustCompile(`: (sound)$`), green},
	{regexp.MustCompile(`^.*: (equal) to .*$`), green},
	{regexp.MustCompile(`^.*: (differs) from .*$`), red},
	{regexp.MustCompile(`^([\d,]+ records? .*[\d,]+ differences?\b.*)$`), red},
	{regexp.MustCompile(`^(lost: nothing)`), green},
	{regexp.MustCompile(`^(cause:|lost:) `), red},
	{regexp.MustCompile(`^(next:) `), boldText},
}

// Painted returns a writer for the lines of a report. Characters that control the display are escaped, so no data can
// pose as a colour. The lines are painted if w has a method Colored that returns true. A line must be written at once.
func Painted(w io.Writer) io.Writer {
	if c, ok := w.(interface{ Colored() bool }); ok && c.Colored() {
		return escape.Writer(PaintedLines(w))
	}
	return escape.Writer(w)
}

// PaintedLines returns a writer that paints lines.
func PaintedLines(w io.Writer) io.Writer { return &lines{w: w} }

type lines struct {
	w      io.Writer
	within bool // a line has begun
}

// Write paints and writes text.
func (l *lines) Write(p []byte) (int, error) {
	var out []byte
	for line := range bytes.Lines(p) {
		if l.within {
			out = append(out, line...)
		} else {
			out = appendPainted(out, line)
		}
		l.within = !bytes.HasSuffix(line, []byte("\n")) && !bytes.HasSuffix(line, []byte("\r")) // \r: a bar was cleared
	}
	_, err := l.w.Write(out)
	return len(p), err
}

func appendPainted(dst, line []byte) []byte {
	text := bytes.TrimSuffix(line, []byte("\n"))
	for _, r := range rules {
		if at := r.line.FindSubmatchIndex(text); at != nil {
			dst = append(dst, line[:at[2]]...)
			dst = append(dst, r.style...)
			dst = append(dst, line[at[2]:at[3]]...)
			dst = append(dst, reset...)
			return append(dst, line[at[3]:]...)
		}
	}
	return append(dst, line...)
}
