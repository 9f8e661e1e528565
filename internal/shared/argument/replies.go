package argument

// ReplyError is an error reply of a server. The command has changed no keys.
type ReplyError struct{ Text string }

func (e *ReplyError) Error() string { return e.Text }

// Refuse returns an error reply.
func Refuse(text string) error { return &ReplyError{text} }

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
