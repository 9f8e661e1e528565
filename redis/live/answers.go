package live

import (
	"fmt"
	"slices"
	"strings"

	"kvferry/record"
	"kvferry/redis/rdb"
)

// busyError is a temporary refusal such as LOADING: the pipe drops the connection and dials again.
type busyError struct{ text string }

func (e *busyError) Error() string {
	return fmt.Sprintf("gave up after %s; the server still replies %s", patience, e.text)
}

// isBusy reports whether an answer is a temporary refusal.
func isBusy(answer string) bool {
	word, _, _ := strings.Cut(answer, " ")
	return slices.Contains([]string{"-LOADING", "-BUSY", "-TRYAGAIN", "-CLUSTERDOWN", "-MASTERDOWN"}, word)
}

// refused handles an error reply; nil means that the pipe goes on.
func (p *pipe) refused(b *batch, x piece, text string) error {
	if isBusy("-" + text) {
		return &busyError{text}
	}
	word, _, _ := strings.Cut(text, " ")
	switch word {
	case "MOVED", "ASK":
		if p.elsewhere != nil {
			if p.passed {
				return nil
			}
			p.passed = true // the whole piece: its commands can run again, and their effects here moved with the slot
			return p.elsewhere(b.piece(p.answered), x, text)
		}
	case "BUSYGROUP":
		return nil // a resent XGROUP CREATE
	}
	if x.part == last && strings.HasPrefix(text, "ERR no such key") {
		if x.ending.lapses {
			p.lapsed(x.ending.key)
			return nil
		}
		return p.end(x.ending.altered(":0"))
	}
	if strings.Contains(text, "equal or smaller than the target stream") && x.name != nil {
		return nil // a resent XADD
	}
	return p.end(&refusedError{what: x.subject(b.piece(p.answered)), text: text})
}

// end ends the pipe; p.mu is held.
func (p *pipe) end(err error) error {
	if p.err == nil {
		p.err = err
	}
	p.changed.Broadcast()
	return p.err
}

// lapsed deletes the key that an expired record would have replaced: RENAME did not find the temporary name.
func (p *pipe) lapsed(key []byte) {
	data := appendCommand(nil, []byte("DEL"), key)
	p.enqueue(&batch{data: data, pieces: []piece{{end: len(data), commands: 1}}})
}

// refusedError is a server's refusal of a record.
type refusedError struct{ what, text string }

func (e *refusedError) Error() string { return fmt.Sprintf("%s: the server says %s", e.what, e.text) }

// subject names what a piece with these commands writes: a key, or the library of a FUNCTION LOAD REPLACE.
func (x *piece) subject(data []byte) string {
	if key := x.key(data); key != nil {
		return "key " + record.Quote(key)
	}
	return "function library " + record.Quote([]byte(rdb.LibraryName(argument(data, 3))))
}

// key returns the name that a piece with these commands writes; nil: it loads a library.
func (x *piece) key(data []byte) []byte {
	switch {
	case x.name != nil:
		return x.name
	case string(argument(data, 0)) == "FUNCTION":
		return nil
	}
	return argument(data, 1) // of SET, RESTORE and other commands with a key in front
}
