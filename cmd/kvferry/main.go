// Command kvferry moves, proves and reads Redis data kept on disk by nemo, blackwidow and Ardb.
package main

import (
	"os"

	"kvferry/cmd/kvferry/command"
)

func main() { os.Exit(command.Main(build())) }
