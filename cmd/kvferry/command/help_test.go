package command

import (
	"strings"
	"testing"
)

// Each script is written to where the command writes, and is one of its shell.
func TestCompletionScripts(t *testing.T) {
	for shell, want := range map[string]string{
		"bash": "__start_kvferry", "zsh": "#compdef kvferry", "fish": "complete -c kvferry", "powershell": "Register-ArgumentCompleter",
	} {
		if text := ok(t, "completion", shell); !strings.Contains(text, want) {
			t.Errorf("%s: no %q in\n%.300s", shell, want, text)
		}
	}
}

// Help that is asked for is that of the flag.
func TestHelpIsTheFlag(t *testing.T) {
	for _, name := range []string{"convert", "completion", "help", ""} {
		asked := ok(t, append([]string{"help"}, strings.Fields(name)...)...)
		if flag := ok(t, append(strings.Fields(name), "--help")...); asked != flag {
			t.Errorf("kvferry help %s is not kvferry %s --help:\n%s\n%s", name, name, asked, flag)
		}
	}
}
