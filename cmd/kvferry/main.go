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

// endings are the signals that cancel a command. Under nohup a hangup is none of them.
func endings() []os.Signal {
	out := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		out = append(out, syscall.SIGHUP)
	}
	return out
}

func main() {
	signal.Ignore(syscall.SIGPIPE) // a reader that goes away is an error of the write, and of no other
	ctx, stop := signal.NotifyContext(context.Background(), endings()...)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	app := command.Default(build())
	app.Terminal = term.IsTerminal(int(os.Stderr.Fd()))
	os.Exit(app.Run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}
