package state

import (
	"strings"

	"kvferry/internal/shared/argument"
)

// maxWord is more than the length of any word that a command knows.
const maxWord = 64

// Upper returns a word in upper case, valid until the next call; of a long argument only the first bytes.
func (s *Server) Upper(word []byte) []byte {
	s.word = s.word[:0]
	for _, b := range word[:min(len(word), maxWord)] {
		if 'a' <= b && b <= 'z' {
			b -= 'a' - 'A'
		}
		s.word = append(s.word, b)
	}
	return s.word
}

// optionWords are the names of options of all commands.
var optionWords = words(`NX XX GT LT CH INCR GET EX PX EXAT PXAT KEEPTTL PERSIST IFEQ IFNE IFDEQ IFDNE FNX FXX FIELDS REPLACE
	ABSTTL IDLETIME FREQ DB ASYNC SYNC LIMIT BY ASC DESC ALPHA STORE STOREDIST WEIGHTS AGGREGATE SUM MIN MAX BYSCORE BYLEX REV
	WITHSCORES FROMMEMBER FROMLONLAT BYRADIUS BYBOX COUNT ANY WITHDIST WITHHASH WITHCOORD MAXLEN MINID NOMKSTREAM MKSTREAM
	ENTRIESREAD ENTRIESADDED MAXDELETEDID IDLE TIME RETRYCOUNT FORCE JUSTID LASTID KEEPREF DELREF ACKED IDS IDMP IDMPAUTO
	APPEND FLUSH LEFT RIGHT BEFORE AFTER AND OR XOR NOT SET OVERFLOW INCRBY KM FT MI`)

func words(list string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(list) {
		out[w] = true
	}
	return out
}

// Option returns the error for an argument in place of an option that the command does not have. A word that
// is no option of any known command may belong to a newer server; a server refuses all other arguments.
func (s *Server) Option(command string, arg []byte) error {
	if len(arg) < 2 || len(arg) > 32 || optionWords[string(s.Upper(arg))] {
		return argument.ErrSyntax
	}
	for _, b := range s.Upper(arg) {
		if b < 'A' || b > 'Z' {
			return argument.ErrSyntax
		}
	}
	return Unsupported(command+" "+string(s.Upper(arg)), "kvferry does not know this option")
}

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
