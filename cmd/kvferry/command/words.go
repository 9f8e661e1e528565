package command

import "kvferry/internal/text/escape"

// commandLine formats a kvferry command line for a shell.
func commandLine(args []string) string { return "kvferry " + escape.Shell(args) }
