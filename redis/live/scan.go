package live

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"kvferry/internal/shared/dataset"
	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/crc64"
)

const (
	// scanCount is how many keys a server is asked for at once.
	scanCount = 1000
	// maxFetched is how many values are asked for at once, and fetchedBytes about how many bytes of them.
	maxFetched   = 256
	fetchedBytes = 4 << 20
	// footerLen is that of a payload: version, checksum.
	footerLen = 10
)

// scan copies key by key. SCAN may name a key more than once, so the keys are gathered first and sorted, on disk when
// they are many; then each value is asked for once.
func (c *copier) scan(ctx context.Context) error {
	if err := c.functions(ctx); err != nil {
		return err
	}
	counts, err := c.server.databases(ctx)
	if err != nil {
		return err
	}
	var dbs []int
	c.copied.hosts = 1 // their keys come together
	for name, keys := range counts {
		n, err := strconv.Atoi(name)
		if err == nil && keys > 0 && (c.server.db < 0 || c.server.db == n) {
			dbs = append(dbs, n)
			c.copied.all += keys
		}
	}
	c.copied.note(func() { c.copied.of = c.copied.all })
	slices.Sort(dbs)
	offset, err := c.clock(ctx)
	if err != nil {
		return err
	}
	for _, db := range dbs {
		if err := c.database(ctx, db, offset); err != nil {
			return err
		}
	}
	c.copied.next()
	return c.sameRuns(ctx)
}

// clock is how much later it is at the server than here, for expiries that are told as what is left of them.
func (c *copier) clock(ctx context.Context) (time.Duration, error) {
	if c.exact() {
		return 0, nil
	}
	t, err := c.server.client.Time(ctx).Result()
	return time.Until(t), told(c.server.shown, err)
}

// exact reports whether the server tells the moment that a key expires.
func (c *copier) exact() bool { return c.server.valkey || c.server.major >= 7 }

// functions copies the libraries of functions, which are in no database.
func (c *copier) functions(ctx context.Context) error {
	if !c.exact() {
		return nil
	}
	for _, host := range c.server.hosts() {
		c.begins(host)
		if err := c.functionsOf(ctx, host); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) functionsOf(ctx context.Context, host string) error {
	client := redis.NewClient(c.server.single(host, 0))
	defer client.Close()
	text, err := client.FunctionDump(ctx).Result()
	if err != nil && (strings.Contains(err.Error(), "NOPERM") || strings.Contains(err.Error(), "unknown")) {
		dataset.Report(c.options, record.Finding{Kind: FindFunctions, Severity: record.Warning, Place: record.Place{File: c.server.shown, Off: record.NoOffset},
			Detail: fmt.Sprintf("function libraries are not read: %v", err)})
		return nil
	}
	if err != nil {
		return told(c.server.shown, err)
	}
	p := payload{to: c.to}
	if _, err := io.WriteString(&p, text); err != nil {
		return err
	}
	return p.end()
}

// database copies one database.
func (c *copier) database(ctx context.Context, db int, offset time.Duration) (err error) {
	o := extsort.Options{Memory: max(c.options.Options.Memory, 16<<20), TempDir: c.options.Options.TempDir}
	keys := extsort.New(o)
	defer func() { err = errors.Join(err, keys.Close()) }()
	for _, host := range c.server.hosts() {
		if err := c.keys(ctx, host, db, keys); err != nil {
			return told(c.server.shown, err)
		}
	}
	sorted, err := keys.Sort()
	if err != nil {
		return err
	}
	if _, err := c.to.Write(rdb.AppendDatabase(nil, rdb.Version{Number: 6}, uint64(db), 0, 0)); err != nil {
		return err
	}
	f := &fetcher{copier: c, ctx: ctx, db: strconv.Itoa(db), offset: offset, nodes: map[string]*node{}}
	defer f.close()
	var before []byte
	for first := true; ; first = false {
		_, key, _, err := sorted.Next()
		if err == io.EOF {
			return f.finish()
		}
		if err != nil {
			return err
		}
		if !first && string(key) == string(before) {
			continue
		}
		before = append(before[:0], key...)
		c.copied.note(func() { c.copied.keys++ })
		if err := f.add(key); err != nil {
			return err
		}
	}
}

// keys gathers the keys of one server.
func (c *copier) keys(ctx context.Context, host string, db int, to *extsort.Sorter) error {
	client := redis.NewClient(c.server.single(host, db))
	defer client.Close()
	for cursor := uint64(0); ; {
		keys, next, err := client.Scan(ctx, cursor, "", scanCount).Result()
		if err != nil {
			return err
		}
		c.copied.note(func() { c.copied.listed += int64(len(keys)) })
		for _, key := range keys {
			if err := to.Add(0, []byte(key), nil); err != nil {
				return err
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}

// payload passes a payload of DUMP to the spool, but for its footer: version u16 LE, checksum of all before it.
type payload struct {
	to   *spool
	lead func(t rdb.Type) []byte // makes what stands before the value; nil: the payload has no type
	held []byte
	sum  uint64
	n    int64
}

// Write takes bytes of the payload.
func (p *payload) Write(b []byte) (int, error) {
	p.n += int64(len(b))
	p.held = append(p.held, b...)
	if p.lead != nil && len(p.held) > 0 {
		if p.held[0] == keyMeta {
			return 0, errKeyMeta
		}
		if _, err := p.to.Write(p.lead(rdb.Type(p.held[0]))); err != nil {
			return 0, err
		}
		p.sum = crc64.Update(p.sum, p.held[:1])
		p.held, p.lead = p.held[1:], nil
	}
	n := len(p.held) - footerLen
	if n <= 0 {
		return len(b), nil
	}
	if _, err := p.to.Write(p.held[:n]); err != nil {
		return 0, err
	}
	p.sum = crc64.Update(p.sum, p.held[:n])
	p.held = append(p.held[:0], p.held[n:]...)
	return len(b), nil
}

// keyMeta begins a payload that has metadata of modules before its type, from Redis 8.6 on.
const keyMeta = 0xF3

var errKeyMeta = errors.New("a module keeps metadata with the key, which kvferry can read only as a replica: leave out --scan")

// end checks the footer.
func (p *payload) end() error {
	if len(p.held) != footerLen {
		return &record.CorruptError{Off: record.NoOffset, Field: "payload", Err: fmt.Errorf("%d bytes: too short", p.n)}
	}
	version := binary.LittleEndian.Uint16(p.held)
	p.to.newer(rdb.Header{Version: int(version), Valkey: version >= firstValkey})
	sum := crc64.Update(p.sum, p.held[:2])
	if want := binary.LittleEndian.Uint64(p.held[2:]); want != 0 && want != sum {
		return &record.CorruptError{Off: record.NoOffset, Field: "payload", Err: errors.New("its checksum is wrong")}
	}
	return nil
}

// firstValkey is the first version that Valkey counts on its own.
const firstValkey = 80
