//go:build unix

package command

import (
	"os"
	"syscall"
)

// stateSignals ask a command for its state.
var stateSignals = []os.Signal{syscall.SIGUSR1}
