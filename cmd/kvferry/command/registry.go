package command

import (
	"os"
	"runtime/debug"
	"time"

	"kvferry/catalog"

	"github.com/spf13/cobra"
)

// Default returns the app with every format and store of this build.
func Default(build Build) *App {
	return &App{Catalog: catalog.Default(), Build: build, Now: time.Now, LimitMemory: limitMemory}
}

// commands lists the subcommands.
func (a *App) commands() []*cobra.Command {
	return []*cobra.Command{
		a.convert(),
		a.dump(),
		a.verify(),
		a.diff(),
		a.patch(),
		a.fingerprint(),
		a.inspect(),
		a.explain(),
		a.formats(),
		a.version(),
		completion(),
	}
}

// limitMemory keeps the process below the promise: the runtime collects as hard as it must when
// the limit comes near. What it does not count, the program itself and a tenth of large limits, is left.
// Of the least limits no more than a quarter is left: conversions would collect five times as often.
// Far below the limit, garbage may gather: there is memory for it, and most commands hold so little that
// they would collect all the time.
func limitMemory(bytes int64) {
	debug.SetMemoryLimit(bytes - max(bytes/10, min(bytes/4, programMemory)))
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
}

// programMemory is about what is resident of the program's file: its code and its tables.
const programMemory = 14 << 20

// garbagePercent is how much garbage may gather, in percent of what is in use.
const garbagePercent = 400
