package state

// UnsupportedError means that a command's effect is unknown, or not exactly known.
type UnsupportedError struct {
	Command string
	Why     string
	// Near is set if the command was applied anyway, with a result that may differ in the last bits of a
	// number.
	Near bool
	// Wild is set if the command may have changed keys that its arguments do not name.
	Wild bool
}

func (e *UnsupportedError) Error() string { return e.Command + ": " + e.Why }

// Unsupported returns the error of a command that was not applied.
func Unsupported(command, why string) error { return &UnsupportedError{Command: command, Why: why} }
