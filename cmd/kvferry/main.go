// Command kvferry converts, verifies and inspects Redis data on disk.
package main

import (
	"os"

	"kvferry/cmd/kvferry/command"
)

func main() { os.Exit(command.Main(build())) }
