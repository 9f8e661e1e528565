package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gomodule/redigo/redis"

	"kvferry/record"
)

const (
	// Patience is how long to wait for an unavailable server.
	Patience = 60 * time.Second
	// Attempts limits the tries of an operation whose connection breaks, and PauseAfter is the pause before a retry.
	Attempts   = 5
	PauseAfter = 300 * time.Millisecond
)

// ErrAnswer means that the server does not speak RESP2.
var ErrAnswer = errors.New("the answer is not that of a Redis server")

// Parsed marks an error of redigo's parser as ErrAnswer.
func Parsed(err error) error {
	if err != nil && strings.HasPrefix(err.Error(), "redigo: ") {
		return fmt.Errorf("%w (%w)", ErrAnswer, err)
	}
	return err
}

// FinalError is an error that a retry cannot fix.
type FinalError struct{ Err error }

func (e FinalError) Error() string { return e.Err.Error() }

func (e FinalError) Unwrap() error { return e.Err }

// BusyError is a temporary refusal such as LOADING, after which a new connection is made.
type BusyError struct{ Text string }

func (e *BusyError) Error() string {
	return fmt.Sprintf("gave up after %s; the server still replies %s", Patience, e.Text)
}

// IsBusy reports whether an error is a temporary refusal.
func IsBusy(err error) bool {
	var answer redis.Error
	errors.As(err, &answer)
	word, _, _ := strings.Cut(string(answer), " ")
	return slices.Contains([]string{"LOADING", "BUSY", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN"}, word)
}

// Redirection returns the server to which a reply of from redirects: MOVED slot host:port, ASK slot host:port.
func Redirection(from string, err error) (host string, asks, ok bool) {
	var answer redis.Error
	errors.As(err, &answer)
	words := strings.Fields(string(answer))
	if len(words) < 3 || words[0] != "MOVED" && words[0] != "ASK" {
		return "", false, false
	}
	return addressFrom(from, words[2]), words[0] == "ASK", true
}

// addressFrom returns an address that a node gave. Without a host it means the node's own: the node does not know how the
// client reaches it. Redirections have IPv6 addresses without brackets.
func addressFrom(node, address string) string {
	at := strings.LastIndexByte(address, ':')
	if at < 0 {
		return address
	}
	host, port := strings.Trim(address[:at], "[]"), address[at+1:]
	if host == "" {
		host, _, _ = net.SplitHostPort(node)
	}
	return net.JoinHostPort(host, port)
}

// IsRefused reports whether dialing failed.
func IsRefused(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// IsBroken reports whether an error comes from the connection, not from a reply.
func IsBroken(err error) bool {
	var final FinalError
	var corrupt *record.CorruptError
	if errors.As(err, &final) || errors.As(err, &corrupt) || errors.Is(err, ErrAnswer) {
		return false
	}
	var network interface{ Timeout() bool }
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// closedError prints io.EOF and connection resets as "the server closed the connection".
type closedError struct{ error }

func (e closedError) Unwrap() error { return e.error }

func (e closedError) Error() string {
	const words = "the server closed the connection"
	before := strings.TrimSuffix(strings.TrimSuffix(e.error.Error(), io.EOF.Error()), "unexpected ")
	if before == "" || strings.HasSuffix(before, ": ") {
		return before + words
	}
	return words + " (" + e.error.Error() + ")"
}

// Closed wraps the error of a closed connection in closedError.
func Closed(err error) error {
	var already closedError
	if errors.As(err, &already) || !strings.HasSuffix(err.Error(), io.EOF.Error()) && !errors.Is(err, syscall.ECONNRESET) {
		return err
	}
	return closedError{err}
}

// LinkError reports a server that repeatedly closed the replication link without an error message.
type LinkError struct{ Err error }

func (e LinkError) Unwrap() error { return e.Err }

func (e LinkError) Error() string {
	return fmt.Sprintf("%v in each of %s attempts to send its data; see its log for the reason, such as a value that it cannot send to this replica  "+
		"or client-output-buffer-limit; --scan reads it key by key, without such a link", Closed(e.Err), record.Number(Attempts))
}

// MovedError is the number of slots that moved while the servers were read, each at a different time.
type MovedError int

func (n MovedError) Error() string {
	return record.Count(int64(n), "slot") + " moved between servers of the cluster while kvferry read them: keys may be missing or duplicated; " +
		"run the command again when no slots move, or with --scan, which lists the keys again"
}

// Explain adds the address, and a hint for errors that the user can fix.
func Explain(where string, err error) error {
	if err == nil {
		return nil
	}
	err = Closed(err)
	text := err.Error()
	for _, h := range hints {
		if strings.Contains(text, h.sign) && !strings.HasSuffix(text, h.todo) {
			err = fmt.Errorf("%w; %s", err, h.todo)
			break
		}
	}
	if strings.HasPrefix(text, where+": ") {
		return err
	}
	return fmt.Errorf("%s: %w", where, err)
}

var hints = []struct{ sign, todo string }{
	{"WRONGPASS", "the user or the password is wrong"},
	{"NOAUTH", "put the password in KVFERRY_PASSWORD or a file that --password-file names"},
	{"invalid password", "the password is wrong"},
	{"without any password configured", "the server has no password: unset KVFERRY_PASSWORD"},
	{"OOM ", "the server's memory is full: raise its maxmemory, or write less data; written data stays"},
	{"ERR Function ", "a library of another name has that function: delete it on the server with FUNCTION DELETE"},
	{"READONLY", "this is a replica that takes no writes: use its master"},
	{"MISCONF", "the server cannot save to its disk and refuses writes: look at its log"},
	{"NOPERM", "the user lacks permissions: `kvferry help live` lists the permissions for each use"},
	{"CROSSSLOT", "this is a server of a cluster: write redis+cluster://"},
	{"MOVED", "this is a server of a cluster: write redis+cluster://"},
	{"SELECT is not allowed", "clusters before Valkey 9 have only database 0: end the address with /0 to put one database there"},
	{"DB index is out of range", "the server has fewer databases (databases in its configuration, cluster-databases of a cluster)"},
	{"certificate", "name the certificate that signed it with --tls-ca"},
	{"connection refused", "nothing listens there"},
	{"redis: can't parse", ErrAnswer.Error()},
}
