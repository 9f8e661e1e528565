package command

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// cancelling are the signals that cancel a command. Under nohup a hangup is none of them.
func cancelling() []os.Signal {
	out := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		out = append(out, syscall.SIGHUP)
	}
	return out
}

// Main runs the process's command line under its signals, and returns the exit code.
func Main(b Build) int {
	signal.Ignore(syscall.SIGPIPE) // a reader that goes away is an error of the write, and of no other
	ctx, stop := signal.NotifyContext(context.Background(), cancelling()...)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	app := Default(b)
	app.Terminal = term.IsTerminal(int(os.Stderr.Fd()))
	return app.Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
}
