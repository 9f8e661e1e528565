package command

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docCommand finds command lines in code blocks, after a prompt, a pipe or YAML.
var docCommand = regexp.MustCompile("(?m)^(?:[^\n`]*?[\\s|])?kvferry ((?:convert|dump|verify|diff|fingerprint|inspect|explain|formats|get|keys|serve)\\b[^\n#|>]*)")

// TestDocsUseWhatExists checks that command lines in the docs use existing commands and flags.
func TestDocsUseWhatExists(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, page := range append(pages, filepath.Join(root, "README.md")) {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range strings.Split(string(data), "```") {
			if i%2 == 0 {
				continue
			}
			for _, m := range docCommand.FindAllStringSubmatch(block, -1) {
				checked++
				checkLine(t, filepath.Base(page), m[1])
			}
		}
	}
	if checked < 8 {
		t.Errorf("only %d command lines found", checked)
	}
}

func checkLine(t *testing.T, page, text string) {
	t.Helper()
	root := testApp().Root()
	cmd, args, err := root.Find(strings.Fields(strings.TrimSuffix(strings.TrimSpace(text), `\`)))
	if err == nil {
		err = cmd.ParseFlags(args)
	}
	if err != nil {
		t.Errorf("%s: kvferry %s: %v", page, text, err)
	}
}

// TestHelpOfSample checks that commands that --sample does not make faster say so.
func TestHelpOfSample(t *testing.T) {
	for _, name := range []string{"inspect", "verify"} {
		if got := strings.Join(strings.Fields(ok(t, name, "--help")), " "); !strings.Contains(got, "all rows are read: it saves no time") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestHelpNamesExitCodes checks that kvferry's help explains the exit codes, and that of each command with codes of its own.
func TestHelpNamesExitCodes(t *testing.T) {
	for args, want := range map[string]string{"": "3 findings, differences or no such key", "convert": "4 refused", "verify": "3 findings",
		"diff": "3 different", "dump": "4 records left out", "fingerprint": "3 --check", "inspect": "3 --salvage", "explain": "It is 3"} {
		if got := ok(t, strings.Fields(args+" --help")...); !strings.Contains(got, want) {
			t.Errorf("kvferry %s --help does not name its exit codes", args)
		}
	}
}
