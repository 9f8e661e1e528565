//go:build !unix

package cli

import "os"

// stateSignals is empty: this system has no signal to request the state.
var stateSignals []os.Signal
