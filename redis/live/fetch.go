package live

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"kvferry/record"
	"kvferry/redis/rdb"
)

// fetcher asks for values and passes them to the spool as they come, whatever their size.
type fetcher struct {
	*copier
	ctx    context.Context
	db     string
	offset time.Duration
	nodes  map[string]*node // by address
	moved  [][]byte         // keys that another server of the cluster has by now
}

// node is a server that values are asked of.
type node struct {
	host string
	keys [][]byte // to ask for
	most int      // of them at once
	conn net.Conn
	in   *bufio.Reader
}

// add takes a key. Its value is asked for when there are enough.
func (f *fetcher) add(key []byte) error {
	host := f.server.host
	if f.server.cluster {
		host = f.server.nodes[slot(key)]
	}
	n := f.nodes[host]
	if n == nil {
		n = &node{host: host, most: 16}
		f.nodes[host] = n
	}
	if n.keys = append(n.keys, bytes.Clone(key)); len(n.keys) < n.most {
		return nil
	}
	return f.ask(n)
}

// finish asks for what is left.
func (f *fetcher) finish() error {
	for _, host := range f.server.hosts() {
		if n := f.nodes[host]; n != nil {
			if err := f.ask(n); err != nil {
				return err
			}
		}
	}
	return f.followMoved()
}

func (f *fetcher) close() {
	for _, n := range f.nodes {
		if n.conn != nil {
			_ = n.conn.Close() // only read
		}
	}
}

// ask gets the values of a node's keys. When the connection breaks, it goes on with the first that did not come whole.
func (f *fetcher) ask(n *node) error {
	for tries := 1; len(n.keys) > 0; tries++ {
		before := len(n.keys)
		err := f.round(n)
		if err == nil {
			return nil
		}
		if n.conn != nil {
			_ = n.conn.Close() // it is of no more use
			n.conn = nil
		}
		if f.ctx.Err() != nil {
			return context.Cause(f.ctx)
		}
		if len(n.keys) < before {
			tries = 0
		}
		if !isBroken(err) || tries >= attempts {
			return f.about(n.host, err)
		}
		if err := rest(f.ctx, time.Duration(tries+1)*pauseAfter); err != nil {
			return err
		}
	}
	return nil
}

// round asks for all keys of a node at once and takes the answers.
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
	if _, err := n.conn.Write(out); err != nil {
		return err
	}
	largest := int64(1)
	for len(n.keys) > 0 {
		from := f.to.n
		if err := f.value(n.in, n.keys[0]); err != nil {
			if back := f.to.back(from); back != nil {
				return back
			}
			return err
		}
		largest = max(largest, f.to.n-from)
		n.keys = n.keys[1:]
	}
	n.keys = nil
	n.most = int(min(max(fetchedBytes/largest, 1), maxFetched))
	return nil
}

// value takes the two answers about a key. One that is gone leaves nothing.
func (f *fetcher) value(in *bufio.Reader, key []byte) error {
	expire, err := line(in)
	if err != nil {
		return err
	}
	size, err := line(in)
	switch {
	case err != nil:
		return err
	case strings.HasPrefix(size, "-MOVED "), strings.HasPrefix(size, "-ASK "):
		f.moved = append(f.moved, key)
		return nil
	case strings.HasPrefix(size, "-"):
		return fmt.Errorf("key %s: the server says %s", record.Quote(key), size[1:])
	case strings.HasPrefix(expire, "-"):
		return fmt.Errorf("key %s: the server says %s", record.Quote(key), expire[1:])
	case size == "$-1":
		return nil
	}
	n, err := strconv.ParseInt(strings.TrimPrefix(size, "$"), 10, 64)
	ms, errMS := strconv.ParseInt(strings.TrimPrefix(expire, ":"), 10, 64)
	if err != nil || errMS != nil || n < 0 {
		return errAnswer
	}
	p := f.item(key, ms)
	if _, err := io.CopyN(p, in, n); err != nil {
		return err
	}
	if _, err := in.Discard(2); err != nil {
		return err
	}
	return aboutKey(key, p.end())
}

func aboutKey(key []byte, err error) error {
	var c *record.CorruptError
	if errors.As(err, &c) {
		c.Key = key
	}
	return err
}

// item returns what writes a key and its value; ms is what the server says of its expiry.
func (f *fetcher) item(key []byte, ms int64) *payload {
	switch {
	case ms < 0:
		ms = 0
	case !f.exact():
		ms += time.Now().Add(f.offset).UnixMilli()
	}
	return &payload{to: f.to, lead: func(t rdb.Type) []byte { return rdb.AppendKey(nil, t, key, ms) }}
}

// followMoved asks for keys that moved to another server meanwhile, one by one.
func (f *fetcher) followMoved() error {
	if len(f.moved) == 0 {
		return nil
	}
	expiry := "PTTL"
	if f.exact() {
		expiry = "PEXPIRETIME"
	}
	for _, key := range f.moved {
		ms, err := f.server.client.Do(f.ctx, expiry, string(key)).Int64()
		if err != nil {
			return told(f.server.shown, err)
		}
		value, err := f.server.client.Dump(f.ctx, string(key)).Result()
		if errors.Is(err, redis.Nil) {
			continue
		}
		if err != nil {
			return told(f.server.shown, err)
		}
		p := f.item(key, ms)
		if _, err := io.WriteString(p, value); err != nil {
			return err
		}
		if err := aboutKey(key, p.end()); err != nil {
			return err
		}
	}
	return nil
}
