package live

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"kvferry/internal/text/resp"
	"kvferry/redis/live/server"
)

// forbiddenError reports a server that accepts no replicas.
type forbiddenError struct{ text string }

func (e *forbiddenError) Error() string { return "it accepts no replicas: " + e.text }

// replica copies one server. When the connection breaks, it restarts the copy.
func (c *copier) replica(ctx context.Context, host string) error {
	from := c.to.mark
	stop := c.copied.watch(ctx, c.server.To(host, "0"))
	defer stop()
	host, tries, err := c.onServer(ctx, host, func(host string) (bool, error) {
		if c.to.n > from.n {
			if err := c.to.back(from); err != nil {
				return false, server.FinalError{Err: err}
			}
		}
		return false, c.replicate(ctx, host)
	})
	if err == nil {
		err = c.dropImported(from)
	}
	switch {
	case err == nil && tries > 1:
		return c.sameRuns(ctx)
	case tries == server.Attempts && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
		err = server.LinkError{Err: err}
	}
	return c.about(host, err)
}

// replicate requests a full sync, as a replica does, and adds the snapshot to the spool:
//
//	> REPLCONF capa eof        it may send before it knows how much it will be
//	> REPLCONF rdb-only 1      and need not keep what changes meanwhile, from 7.0 on
//	> REPLCONF version 9.0.0   Valkey: what the replica can read; others refuse the word, and nothing comes of it
//	> PSYNC ? -1               or SYNC
//	< +FULLRESYNC id offset, lines with nothing while it gets ready
//	< $length, or $EOF: and a mark of 40 bytes
//	< an RDB file, the mark
func (c *copier) replicate(ctx context.Context, host string) error {
	conn, in, err := c.server.Stream(ctx, host, "0")
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	conn.Patience = server.Unfed
	size, err := c.fullSync(conn, in)
	if err == nil {
		if n, err := strconv.ParseInt(size, 10, 64); err == nil {
			c.copied.note(func() { c.copied.size = n })
		}
		p := newPart(c.to)
		if err = receive(in, size, p); err == nil {
			err = p.end()
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// fullSync requests a full sync and returns the announced size: a number, or EOF: and a mark.
func (c *copier) fullSync(conn io.Writer, in *bufio.Reader) (string, error) {
	for _, option := range [][]string{{"capa", "eof"}, {"rdb-only", "1"}, {"version", "9.0.0"}} {
		if _, err := order(conn, in, "REPLCONF", option[0], option[1]); err != nil {
			return "", err
		}
	}
	text, err := order(conn, in, "PSYNC", "?", "-1")
	if err == nil && isUnknown(text) {
		text, err = order(conn, in, "SYNC")
	}
	for err == nil && strings.HasPrefix(text, "+") { // +FULLRESYNC
		text, err = line(in)
	}
	switch size, ok := strings.CutPrefix(text, "$"); {
	case err != nil:
		return "", err
	case ok:
		return size, nil
	case isUnknown(text), strings.HasPrefix(text, "-NOPERM"), strings.Contains(text, "not allowed"), strings.Contains(text, "not supported"):
		return "", &forbiddenError{strings.TrimPrefix(text, "-")}
	case strings.HasPrefix(text, "-"):
		return "", server.Explain(c.server.Shown, fmt.Errorf("it cannot feed replicas now: %s", text[1:]))
	}
	return "", server.ErrAnswer
}

func isUnknown(text string) bool {
	return strings.HasPrefix(strings.ToLower(text), "-err unknown command")
}

// order sends a command and returns the first line of its reply.
func order(conn io.Writer, in *bufio.Reader, args ...string) (string, error) {
	if _, err := conn.Write(resp.AppendCommand(nil, args...)); err != nil {
		return "", err
	}
	return line(in)
}

// line reads the next line that is not empty.
func line(in *bufio.Reader) (string, error) {
	for {
		text, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return "", server.ErrAnswer
		}
		if text := strings.TrimRight(string(text), "\r\n"); err != nil || text != "" {
			return text, err
		}
	}
}

// receive copies the snapshot.
func receive(in *bufio.Reader, size string, to io.Writer) error {
	if mark, ok := strings.CutPrefix(size, "EOF:"); ok {
		return receiveMarked(in, []byte(mark), to)
	}
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil || n < 0 {
		return server.ErrAnswer
	}
	_, err = io.CopyN(to, in, n)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// markLen is the length of a mark.
const markLen = 40

// receiveMarked copies the bytes before the mark.
func receiveMarked(in *bufio.Reader, mark []byte, to io.Writer) error {
	if len(mark) != markLen {
		return server.ErrAnswer
	}
	buf := make([]byte, 0, 128<<10)
	for {
		n, err := in.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		at := bytes.Index(buf, mark)
		if at < 0 {
			at = max(0, len(buf)-markLen+1) // keep a possible beginning of the mark
		} else {
			_, err = to.Write(buf[:at])
			return err
		}
		if _, werr := to.Write(buf[:at]); werr != nil {
			return werr
		}
		buf = buf[:copy(buf, buf[at:])]
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
	}
}
