// Command kvferry moves, proves and reads Redis data kept on disk by nemo, blackwidow and Ardb.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"kvferry/cmd/kvferry/command"
)

// version is set by the linker.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	app := command.Default(version)
	app.Terminal = term.IsTerminal(int(os.Stderr.Fd()))
	os.Exit(app.Run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
