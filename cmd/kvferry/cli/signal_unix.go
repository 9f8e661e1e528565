//go:build unix

package cli

import (
	"os"
	"syscall"
)

// stateSignals request the state of a command.
var stateSignals = []os.Signal{syscall.SIGUSR1}
