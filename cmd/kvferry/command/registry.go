package command

import (
	"os"
	"runtime/debug"
	"time"

	"kvferry/catalog"

	"github.com/spf13/cobra"
)

// Default returns an App with all formats and stores of this build.
func Default(build Build) *App {
	return &App{Catalog: catalog.Default(), Build: build, Now: time.Now, LimitMemory: limitMemory}
}

// commands lists the subcommands.
func (a *App) commands() []*cobra.Command {
	return []*cobra.Command{
		a.convert(),
		a.plan(),
		a.get(),
		a.keys(),
		a.serve(),
		a.dump(),
		a.verify(),
		a.diff(),
		a.patch(),
		a.fingerprint(),
		a.merge(),
		a.fleet(),
		a.inspect(),
		a.explain(),
		a.formats(),
		a.version(),
		completion(),
	}
}

// limitMemory sets the runtime's memory limit so that resident memory stays below bytes. The runtime does not
// count everything, such as the program's own pages, so this reserves a tenth of the limit and at least
// programMemory. It leaves leastHeap, or three quarters of a smaller limit: with less heap, conversions would
// collect five times as often. Far below the limit, garbage may accumulate up to garbagePercent: most
// commands hold so little that they would otherwise collect all the time.
func limitMemory(bytes int64) {
	debug.SetMemoryLimit(bytes - max(bytes/10, min(programMemory, max(bytes/4, bytes-leastHeap))))
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
}

const (
	// programMemory is about the resident size of the program's own code and tables: most of the pages of the binary.
	programMemory = 28 << 20
	leastHeap     = 36 << 20
)

// garbagePercent is the value of GOGC: garbage allowed, in percent of the live heap.
const garbagePercent = 400
