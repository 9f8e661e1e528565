// Command pages writes the man pages and the shell completions of kvferry.
//
//	pages DIR    writes DIR/man/*.1 and DIR/completion/kvferry.{bash,zsh,fish,ps1}
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"kvferry/cmd/kvferry/cli"
	"kvferry/cmd/kvferry/command"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pages DIR")
		os.Exit(cli.ExitUsage)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "pages:", err)
		os.Exit(cli.ExitFailed)
	}
}

// write writes everything. The pages carry a fixed date: the same commands give the same files.
func write(dir string) error {
	root := command.Default(command.Build{}).Root()
	root.DisableAutoGenTag = true
	examples(root)
	man, completion := filepath.Join(dir, "man"), filepath.Join(dir, "completion")
	if err := errors.Join(os.MkdirAll(man, 0o755), os.MkdirAll(completion, 0o755)); err != nil {
		return err
	}
	date := time.Unix(0, 0)
	header := &doc.GenManHeader{Section: "1", Source: "kvferry", Manual: "kvferry", Date: &date}
	if err := doc.GenManTree(root, header, man); err != nil {
		return err
	}
	return completions(root, filepath.Join(completion, "kvferry"))
}

// examples turns the indented lines of help texts into code in the man pages, which are generated from
// Markdown: Markdown ignores an indent of two spaces, while four spaces mark code, whose lines are neither
// joined nor wrapped.
func examples(c *cobra.Command) {
	lines := strings.Split(c.Long, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "  ") {
			lines[i] = "  " + l
		}
	}
	c.Long = strings.Join(lines, "\n")
	for _, sub := range c.Commands() {
		examples(sub)
	}
}

func completions(root *cobra.Command, base string) error {
	return errors.Join(
		root.GenBashCompletionFileV2(base+".bash", true),
		root.GenZshCompletionFile(base+".zsh"),
		root.GenFishCompletionFile(base+".fish", true),
		root.GenPowerShellCompletionFileWithDesc(base+".ps1"),
	)
}
