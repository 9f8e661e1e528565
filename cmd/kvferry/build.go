package main

import (
	"runtime/debug"

	"kvferry/cmd/kvferry/command"
)

// What the linker is told of a release: -X main.version=1.2.0 and so on.
var version, commit, date string

// build says what this build is: as the linker was told, else as the go command has stamped it.
func build() command.Build {
	b := command.Build{Version: version, Commit: commit, Date: date}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	return b.Complete(info)
}
