package live

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"kvferry/internal/text/resp"
	"kvferry/record"
	"kvferry/redis/live/server"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/crc64"
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
	conn *server.Link
	in   *bufio.Reader
}

// add queues a key and fetches the queue when it is full.
func (f *fetcher) add(key []byte) error {
	return f.askFor(f.server.Owner(key), false, bytes.Clone(key))
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
		if n.conn, n.in, err = f.server.Stream(f.ctx, n.host, f.db); err != nil {
			return err
		}
	}
	conn := n.conn // which ask may forget
	stop := context.AfterFunc(f.ctx, func() { conn.Close() })
	defer stop()
	expiry := "PTTL"
	if f.exact() {
		expiry = "PEXPIRETIME"
	}
	var out []byte
	for _, key := range n.keys {
		for _, command := range []string{expiry, "DUMP"} {
			if n.asks {
				out = resp.AppendCommand(out, "ASKING")
			}
			out = resp.AppendCommand(out, command, string(key))
		}
	}
	if _, err := n.conn.Write(out); err != nil {
		return err
	}
	largest := int64(1)
	for len(n.keys) > 0 {
		from := f.to.mark
		if err := f.value(n, n.keys[0]); err != nil {
			if back := f.to.back(from); back != nil {
				return back
			}
			return err
		}
		largest = max(largest, f.to.n-from.n)
		n.keys = n.keys[1:]
	}
	n.keys = nil
	n.most = int(min(max(fetchedBytes/largest, 1), maxFetched))
	return nil
}

// value reads the two answers about a key. It skips a key that no longer exists.
func (f *fetcher) value(n *node, key []byte) error {
	expire, noExpiry, err := asked(n.in)
	if err != nil {
		return err
	}
	size, noDump, err := asked(n.in)
	if err != nil {
		return err
	}
	refused := cmp.Or(noDump, noExpiry)
	host, asks, moved := server.Redirection(n.host, refused)
	switch {
	case moved && (noDump != nil || size == "$-1"):
		f.moved = append(f.moved, movedKey{key, host, asks})
		return nil
	case server.IsBusy(noDump):
		return &server.BusyError{Text: noDump.Error()}
	case server.IsBusy(noExpiry):
		return &server.BusyError{Text: noExpiry.Error()}
	case refused != nil && !moved:
		return fmt.Errorf("key %s: error from the server: %w", record.Quote(key), refused)
	case size == "$-1":
		return nil
	}
	left, err := strconv.ParseInt(strings.TrimPrefix(size, "$"), 10, 64)
	ms, errMS := strconv.ParseInt(strings.TrimPrefix(expire, ":"), 10, 64)
	switch {
	case err == nil && left >= 0 && moved: // the slot came back between the two
		_, err := io.CopyN(io.Discard, n.in, left+2)
		if err == nil { // otherwise the key is asked for again
			f.moved = append(f.moved, movedKey{key, host, asks})
		}
		return err
	case err != nil || errMS != nil || left < 0:
		return server.ErrAnswer
	}
	if err := f.readPayload(n.in, left, key, ms); err != nil {
		return err
	}
	_, err = n.in.Discard(2)
	return err
}

// asked returns the first line of an answer, without the +OK of ASKING. refused is an error that it holds.
func asked(in *bufio.Reader) (text string, refused, err error) {
	for text = "+OK"; err == nil && text == "+OK"; {
		text, err = line(in)
	}
	if answer, ok := strings.CutPrefix(text, "-"); ok {
		refused = redis.Error(answer)
	}
	return text, refused, err
}

// maxInMemory is the largest payload that is buffered whole.
const maxInMemory = 1 << 20

// readPayload reads the payload of a key with expiry ms. It reports and skips a value that this build cannot read.
func (f *fetcher) readPayload(in io.Reader, size int64, key []byte, ms int64) error {
	f.head = append(f.head[:0], make([]byte, min(size, maxInMemory))...)
	if _, err := io.ReadFull(in, f.head); err != nil {
		return err
	}
	body, version, whole := f.head, uint16(f.server.Version.Number), size <= maxInMemory
	if whole {
		var err error
		if body, version, err = crc64.CutFooter(f.head, true); err != nil {
			return aboutKey(key, err)
		}
	}
	d, err := rdb.OpenDump(body, version)
	if whole {
		if err != nil {
			return f.unread(f.db, key, err)
		}
		f.to.newer(d.Header)
		_, err = f.to.Write(append(f.lead(&d, key, ms), body[d.Off:]...))
		return err
	}
	return f.large(in, size-int64(len(f.head)), &d, key, ms)
}

// lead returns the bytes before a value in the spool: module metadata, expiry, type and key.
func (f *fetcher) lead(d *rdb.Dump, key []byte, ms int64) []byte {
	return rdb.AppendKey(bytes.Clone(f.head[:d.Off-1]), d.Type, key, f.expiry(ms))
}

// large streams a payload that begins with f.head to the spool, and checks it there.
func (f *fetcher) large(in io.Reader, left int64, d *rdb.Dump, key []byte, ms int64) error {
	from := f.to.mark
	if _, err := f.to.Write(f.lead(d, key, ms)); err != nil {
		return err
	}
	p := summed{to: f.to, keep: crc64.FooterLen, sum: crc64.Update(0, f.head[:d.Off])}
	if _, err := p.Write(f.head[d.Off:]); err != nil {
		return err
	}
	if _, err := io.CopyN(&p, in, left); err != nil {
		return err
	}
	version, err := payloadVersion(&p)
	if err == nil {
		err = f.to.w.Flush()
	}
	if err != nil {
		return aboutKey(key, err)
	}
	h := rdb.PayloadHeader(version)
	if err := onlyItems(f.to.f, h, from.n, f.to.n, rdb.OpKey); err != nil {
		if err := f.to.back(from); err != nil {
			return err
		}
		return f.unread(f.db, key, err)
	}
	f.to.newer(h)
	return nil
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

// followMoved fetches keys that moved to other servers. They may move again during this.
func (f *fetcher) followMoved() error {
	for round := 1; len(f.moved) > 0; round++ {
		if round > server.Attempts {
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
