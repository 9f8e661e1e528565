package live

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"kvferry/record"
)

// fetcher fetches values with DUMP and streams them to the spool, so memory does not depend on their size.
type fetcher struct {
	*copier
	ctx    context.Context
	db     string
	offset time.Duration
	nodes  map[string]*node // by address
	moved  []movedKey
	head   []byte // of the payload
}

// node is the connection to one server, with a queue of keys to fetch from it.
type node struct {
	host string
	asks bool     // send ASKING first: the slots of these keys are being migrated to the server
	keys [][]byte // queue
	most int      // keys per round trip
	conn net.Conn
	in   *bufio.Reader
}

// add queues a key and fetches the queue when it is full.
func (f *fetcher) add(key []byte) error {
	return f.askFor(f.server.owner(key), false, bytes.Clone(key))
}

func (f *fetcher) askFor(host string, asks bool, key []byte) error {
	id := host
	if asks {
		id += " asking"
	}
	n := f.nodes[id]
	if n == nil {
		n = &node{host: host, asks: asks, most: 16}
		f.nodes[id] = n
	}
	if n.keys = append(n.keys, key); len(n.keys) < n.most {
		return nil
	}
	return f.ask(n)
}

// finish fetches the remaining keys.
func (f *fetcher) finish() error {
	if err := f.askAll(); err != nil {
		return err
	}
	return f.followMoved()
}

func (f *fetcher) askAll() error {
	for _, id := range slices.Sorted(maps.Keys(f.nodes)) {
		if err := f.ask(f.nodes[id]); err != nil {
			return err
		}
	}
	return nil
}

func (f *fetcher) close() {
	for _, n := range f.nodes {
		if n.conn != nil {
			_ = n.conn.Close() // only read
		}
	}
}

// ask fetches the values of a node's queue. When the connection breaks, it resumes with the first incomplete value.
func (f *fetcher) ask(n *node) error {
	if len(n.keys) == 0 {
		return nil
	}
	host, _, err := f.onServer(f.ctx, n.host, func(host string) (further bool, err error) {
		before := len(n.keys)
		n.host = host
		if err = f.round(n); err != nil && n.conn != nil {
			_ = n.conn.Close() // unusable
			n.conn = nil
		}
		return len(n.keys) < before, err
	})
	return f.about(host, err)
}

// round requests all queued keys of a node and reads the answers.
func (f *fetcher) round(n *node) (err error) {
	if n.conn == nil {
		if n.conn, err = f.server.dialer(n.host, f.db)(f.ctx); err != nil {
			return err
		}
		n.in = bufio.NewReaderSize(n.conn, 128<<10)
	}
	stop := context.AfterFunc(f.ctx, func() { n.conn.Close() })
	defer stop()
	expiry := []byte("PTTL")
	if f.exact() {
		expiry = []byte("PEXPIRETIME")
	}
	var out []byte
	for _, key := range n.keys {
		out = appendCommand(appendCommand(out, expiry, key), []byte("DUMP"), key)
	}
	if n.asks {
		out, _ = withAsking(out)
	}
	if _, err := n.conn.Write(out); err != nil {
		return err
	}
	largest := int64(1)
	for len(n.keys) > 0 {
		from, moved := f.to.n, len(f.moved)
		if err := f.value(n.in, n.keys[0]); err != nil {
			if back := f.to.back(from); back != nil {
				return back
			}
			return err
		}
		for i := range f.moved[moved:] {
			f.moved[moved+i].host = addressFrom(n.host, f.moved[moved+i].host)
		}
		largest = max(largest, f.to.n-from)
		n.keys = n.keys[1:]
	}
	n.keys = nil
	n.most = int(min(max(fetchedBytes/largest, 1), maxFetched))
	return nil
}

// value reads the two answers about a key. It skips a key that no longer exists.
func (f *fetcher) value(in *bufio.Reader, key []byte) error {
	expire, err := asked(in)
	if err != nil {
		return err
	}
	size, err := asked(in)
	switch {
	case err != nil:
		return err
	case isElsewhere(size):
		return f.elsewhere(key, size)
	case isBusy(size):
		return &busyError{size[1:]}
	case isBusy(expire):
		return &busyError{expire[1:]}
	case strings.HasPrefix(size, "-"):
		return fmt.Errorf("key %s: the server says %s", record.Quote(key), size[1:])
	case strings.HasPrefix(expire, "-") && !isElsewhere(expire):
		return fmt.Errorf("key %s: the server says %s", record.Quote(key), expire[1:])
	case size == "$-1" && isElsewhere(expire):
		return f.elsewhere(key, expire)
	case size == "$-1":
		return nil
	}
	n, err := strconv.ParseInt(strings.TrimPrefix(size, "$"), 10, 64)
	ms, errMS := strconv.ParseInt(strings.TrimPrefix(expire, ":"), 10, 64)
	switch {
	case err == nil && n >= 0 && isElsewhere(expire): // the slot came back between the two
		if _, err := io.CopyN(io.Discard, in, n+2); err != nil {
			return err
		}
		return f.elsewhere(key, expire)
	case err != nil || errMS != nil || n < 0:
		return errAnswer
	}
	if err := f.take(in, n, key, ms); err != nil {
		return err
	}
	_, err = in.Discard(2)
	return err
}

// asked returns the first line of an answer, without the +OK of ASKING.
func asked(in *bufio.Reader) (text string, err error) {
	for text = "+OK"; err == nil && text == "+OK"; {
		text, err = line(in)
	}
	return text, err
}

func aboutKey(key []byte, err error) error {
	var c *record.CorruptError
	if errors.As(err, &c) {
		c.Key = key
	}
	return err
}

// expiry converts the server's answer, a timestamp or a remaining time, to a timestamp; 0 is no expiry.
func (f *fetcher) expiry(ms int64) int64 {
	switch {
	case ms < 0:
		return 0
	case !f.exact():
		return ms + time.Now().Add(f.offset).UnixMilli()
	}
	return ms
}

// movedKey is a key of a slot that moved, or is being migrated, to another server.
type movedKey struct {
	key  []byte
	host string
	asks bool
}

// elsewhere records the new server of a key: MOVED slot host:port, ASK slot host:port.
func (f *fetcher) elsewhere(key []byte, answer string) error {
	words := strings.Fields(answer)
	if len(words) != 3 {
		return errAnswer
	}
	f.moved = append(f.moved, movedKey{key, words[2], words[0] == "-ASK"})
	return nil
}

func isElsewhere(answer string) bool {
	return strings.HasPrefix(answer, "-MOVED ") || strings.HasPrefix(answer, "-ASK ")
}

// followMoved fetches keys that moved to other servers. They may move again during this.
func (f *fetcher) followMoved() error {
	for round := 1; len(f.moved) > 0; round++ {
		if round > attempts {
			return f.about(f.moved[0].host, fmt.Errorf("key %s and %s others keep moving between servers of the cluster: run the command when no slots move",
				record.Quote(f.moved[0].key), record.Number(len(f.moved)-1)))
		}
		moved := f.moved
		f.moved = nil
		for _, m := range moved {
			if err := f.askFor(m.host, m.asks, m.key); err != nil {
				return err
			}
		}
		if err := f.askAll(); err != nil {
			return err
		}
	}
	return nil
}
