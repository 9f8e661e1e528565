package page

import (
	"bytes"
	"io"
	"testing"
)

func TestWanted(t *testing.T) {
	type env map[string]string
	for _, c := range []struct {
		mode     string
		terminal bool
		env      env
		want     bool
	}{
		{Auto, true, nil, true},
		{Auto, false, nil, false},
		{Auto, true, env{"NO_COLOR": "1"}, false},
		{Auto, true, env{"NO_COLOR": ""}, true},
		{Auto, true, env{"TERM": "dumb"}, false},
		{Auto, true, env{"CLICOLOR": "0"}, false},
		{Auto, false, env{"CLICOLOR_FORCE": "1"}, true},
		{Auto, false, env{"CLICOLOR_FORCE": "0"}, false},
		{Auto, false, env{"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, false},
		{Always, false, env{"NO_COLOR": "1"}, true},
		{Never, true, env{"CLICOLOR_FORCE": "1"}, false},
	} {
		if got := WantsColor(c.mode, c.terminal, func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("%s, terminal %v, %v: %v", c.mode, c.terminal, c.env, got)
		}
	}
}

// coloured is a terminal.
type coloured struct{ io.Writer }

func (coloured) Colored() bool { return true }

// TestReport checks that data cannot pose as a colour, and that only the beginning of a line matters.
func TestReport(t *testing.T) {
	for text, want := range map[string]string{
		"error x\nan error y\n":   "\x1b[31merror\x1b[0m x\nan error y\n",
		"loss a: 1 (not allowed)": "loss a: 1 (\x1b[31mnot allowed\x1b[0m)",
		"       1  warning  kind": "       1  \x1b[33mwarning\x1b[0m  kind",
		"\x1b[31mkey\x1b[0m\n":    "\\x1b[31mkey\\x1b[0m\n",
	} {
		var plain, colours bytes.Buffer
		io.WriteString(Painted(&plain), text)
		w := Painted(coloured{&colours})
		io.WriteString(w, text)
		if colours.String() != want || bytes.Contains(plain.Bytes(), []byte("\x1b")) {
			t.Errorf("%q: %q, without a terminal %q", text, colours.String(), plain.String())
		}
	}
	var out bytes.Buffer
	w := PaintedLines(&out)
	io.WriteString(w, "no ")
	io.WriteString(w, "error here\nerror x")
	if want := "no error here\n\x1b[31merror\x1b[0m x"; out.String() != want {
		t.Errorf("in pieces: %q", out.String())
	}
}
