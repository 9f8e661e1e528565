package command

import (
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"kvferry/format"
)

// Default returns the app with every format and store of this build. This is the one place that
// lists them.
func Default(version string) *App {
	return &App{
		Formats:     []format.Format{},
		Drivers:     []Driver{},
		Version:     version,
		Now:         time.Now,
		LimitMemory: limitMemory,
	}
}

// commands lists the subcommands.
func (a *App) commands() []*cobra.Command {
	return []*cobra.Command{
		a.version(),
	}
}

// limitMemory keeps the process below the promise: the runtime collects as hard as it must when
// the limit comes near. A tenth is left for what the runtime does not count.
func limitMemory(bytes int64) {
	debug.SetMemoryLimit(bytes - bytes/10)
}
