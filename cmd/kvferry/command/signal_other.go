//go:build !unix

package command

import "os"

// stateSignals ask a command for its state; this system has none for that.
var stateSignals []os.Signal
