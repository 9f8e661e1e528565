package command

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// cancelling lists the signals that cancel a command. Under nohup, SIGHUP does not.
func cancelling() []os.Signal {
	out := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		out = append(out, syscall.SIGHUP)
	}
	return out
}

// Main runs the process's command line until it ends or a signal cancels it, and returns the exit code.
func Main(b Build) int {
	signal.Ignore(syscall.SIGPIPE) // a closed pipe becomes an error of the write to it
	ctx, stop := signal.NotifyContext(context.Background(), cancelling()...)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C kills the process at once
	app := Default(b)
	app.Terminal = term.IsTerminal(int(os.Stderr.Fd())) && os.Getenv("TERM") != "dumb"
	app.Screen = term.IsTerminal(int(os.Stdout.Fd()))
	app.Colors = (!app.Terminal || canColor(os.Stderr)) && (!app.Screen || canColor(os.Stdout))
	return app.Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
}
