// Package command implements the kvferry command line, one file per subcommand. Every command works the same way:
// fill a struct of flags, validate it, call one library function, print the result.
package command

import (
	"cmp"
	"io"
	"os"
	"runtime/debug"
	"time"

	"kvferry/catalog"
)

// App holds the dependencies of the commands. Default builds the real App; tests build their own.
type App struct {
	catalog.Catalog
	Build Build
	// Now is the clock. A command reads it once.
	Now func() time.Time
	// LimitMemory applies --memory to the Go runtime; nil leaves the runtime alone.
	LimitMemory func(bytes int64)
	// Stdin is the input that - names; nil means the process's standard input.
	Stdin io.Reader
	// Terminal is true if standard error is a terminal where a progress bar can be drawn.
	Terminal bool
	// Screen is true if standard output is a terminal, which a bar would share with the results.
	Screen bool
	// Colors is true if these terminals have colours.
	Colors bool
}

// Default returns an App with all formats and stores of this build.
func Default(build Build) *App {
	return &App{Catalog: catalog.Default(), Build: build, Now: time.Now, LimitMemory: limitMemory}
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

// Build identifies a build of kvferry.
type Build struct {
	Version string `json:"version"` // "" in an unreleased build
	Commit  string `json:"commit"`  // of the source, 40 hex digits
	Date    string `json:"date"`    // of the commit, RFC 3339
	Dirty   bool   `json:"dirty"`   // built with uncommitted changes
}

// Complete fills in missing fields from the go command's build info.
func (b Build) Complete(info *debug.BuildInfo) Build {
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = cmp.Or(b.Commit, s.Value)
		case "vcs.time":
			b.Date = cmp.Or(b.Date, s.Value)
		case "vcs.modified":
			b.Dirty = s.Value == "true"
		}
	}
	if v := info.Main.Version; v != "(devel)" {
		b.Version = cmp.Or(b.Version, v)
	}
	return b
}

// String returns the version for reports. An unreleased build gets its commit.
func (b Build) String() string {
	if b.Version != "" {
		return b.Version
	}
	out := "unreleased"
	if b.Commit != "" {
		out += "-" + b.Commit[:min(12, len(b.Commit))]
	}
	if b.Dirty {
		out += "-dirty"
	}
	return out
}
