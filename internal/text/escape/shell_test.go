package escape

import (
	"os/exec"
	"strings"
	"testing"
)

// TestShell checks that command lines in messages are one line and have the same meaning in a shell.
func TestShell(t *testing.T) {
	words := []string{"plain", "", "it's", "a\nb", "tab\tand 'quote' \\", "\x1b[31mred", "\xff\xfe", "ÿ€", "bi\u202edi", "\u0085",
		"$HOME `x`", "\ufffd"}
	line := Shell(words)
	if strings.ContainsFunc(line, unprintable) {
		t.Errorf("%q", line)
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip(err)
	}
	got, err := exec.Command(bash, "-c", `printf '%s\0' `+line).Output()
	if err != nil || string(got) != strings.Join(words, "\x00")+"\x00" {
		t.Errorf("%v: %s is %q, want %q", err, line, got, words)
	}
}
