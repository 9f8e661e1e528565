// Command kvferry converts, verifies and inspects Redis data on disk.
package main

import (
	"os"
	"runtime/debug"

	"kvferry/cmd/kvferry/command"
)

func main() { os.Exit(command.Main(build())) }

// Set by the linker in releases: -X main.version=1.2.0 and so on.
var version, commit, date string

// build describes this build from the linker's variables; the go command's stamp fills in missing fields.
func build() command.Build {
	b := command.Build{Version: version, Commit: commit, Date: date}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	return b.Complete(info)
}
