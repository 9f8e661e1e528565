package server

// ReplyError is an error reply of a server. The command has changed no keys.
type ReplyError struct{ Text string }

func (e *ReplyError) Error() string { return e.Text }

// Refuse returns an error reply.
func Refuse(text string) error { return &ReplyError{text} }

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

// Answers that several commands give.
var (
	ErrWrongType = Refuse("WRONGTYPE Operation against a key holding the wrong kind of value")
	ErrSyntax    = Refuse("ERR syntax error")
	ErrInteger   = Refuse("ERR value is not an integer or out of range")
	ErrFloat     = Refuse("ERR value is not a valid float")
	ErrRange     = Refuse("ERR index out of range")
	ErrNoKey     = Refuse("ERR no such key")
	ErrArgs      = Refuse("ERR wrong number of arguments")
)
