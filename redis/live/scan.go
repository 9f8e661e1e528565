package live

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"kvferry/internal/shared/dataset"
	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/redis/live/server"
	"kvferry/redis/rdb"
)

const (
	// scanCount is the COUNT of SCAN.
	scanCount = 1000
	// maxFetched limits the values requested per round trip, and fetchedBytes their approximate size.
	maxFetched   = 256
	fetchedBytes = 4 << 20
)

// scan copies key by key. SCAN may return a key more than once, so the keys are first sorted, on disk if necessary;
// then each value is fetched once.
func (c *copier) scan(ctx context.Context) error {
	if err := c.functions(ctx); err != nil {
		return err
	}
	counts, err := c.databases(ctx)
	if err != nil {
		return err
	}
	var dbs []int
	c.copied.hosts = 1 // one progress for all servers
	for name, keys := range counts {
		n, err := strconv.Atoi(name)
		if err == nil && keys > 0 && (c.server.DB < 0 || c.server.DB == n) {
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

// databases returns the number of keys per database, in a cluster those of all masters.
func (c *copier) databases(ctx context.Context) (map[string]int64, error) {
	byHost, sum := map[string]map[string]int64{}, map[string]int64{}
	err := c.everywhere(ctx, func(host string) error {
		client := c.server.To(host, "0")
		defer client.Close()
		byHost[host] = map[string]int64{}
		return client.AddDatabases(ctx, byHost[host])
	})
	for _, counts := range byHost {
		for db, n := range counts {
			sum[db] += n
		}
	}
	return sum, err
}

// read calls f, and calls it again if the connection breaks.
func (c *copier) read(ctx context.Context, host string, f func(host string) error) error {
	host, _, err := c.onServer(ctx, host, func(host string) (bool, error) { return false, f(host) })
	return c.about(host, err)
}

// clock returns how far the server's clock is ahead, to convert remaining times to timestamps.
func (c *copier) clock(ctx context.Context) (time.Duration, error) {
	if c.exact() {
		return 0, nil
	}
	t, err := redis.Int64s(c.server.Client.Do(ctx, "TIME"))
	if err == nil && len(t) != 2 {
		err = server.ErrAnswer
	}
	if err != nil {
		return 0, server.Explain(c.server.Shown, err)
	}
	return time.Until(time.Unix(t[0], t[1]*1000)), nil
}

// exact reports whether the server returns expiries as timestamps (PEXPIRETIME).
func (c *copier) exact() bool { return c.server.Since(7, 0) }

// functions copies the function libraries, which belong to no database.
func (c *copier) functions(ctx context.Context) error {
	if !c.exact() {
		return nil
	}
	for _, host := range c.server.Hosts() {
		c.begins(host)
		if err := c.read(ctx, host, func(host string) error { return c.functionsOf(ctx, host) }); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) functionsOf(ctx context.Context, host string) error {
	client := c.server.To(host, "0")
	defer client.Close()
	dump, err := redis.Bytes(client.Do(ctx, "FUNCTION", "DUMP"))
	if err != nil && (strings.Contains(err.Error(), "NOPERM") || strings.Contains(err.Error(), "unknown")) {
		dataset.Report(c.options, record.Finding{Kind: FindFunctions, Severity: record.Warning,
			Place:  record.Place{File: c.server.Shown, Off: record.NoOffset},
			Detail: fmt.Sprintf("function libraries are not read: %v", err)})
		return nil
	}
	if err != nil {
		return err
	}
	return c.libraries(dump)
}

// database copies one database.
func (c *copier) database(ctx context.Context, db int, offset time.Duration) (err error) {
	o := extsort.Options{Memory: max(c.options.Options.Memory, 16<<20), TempDir: c.options.Options.TempDir}
	keys := extsort.New(o)
	defer func() { err = errors.Join(err, keys.Close()) }()
	if err := c.everywhere(ctx, func(host string) error { return c.keys(ctx, host, db, keys) }); err != nil {
		return err
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

// everywhere calls list for all servers. It repeats this if a slot moved during the calls, because the new owner may have
// answered before the keys arrived, and the old owner after they left.
func (c *copier) everywhere(ctx context.Context, list func(host string) error) error {
	for try := 1; ; try++ {
		for _, host := range c.server.Hosts() {
			if err := c.read(ctx, host, list); err != nil {
				return err
			}
		}
		moved, err := c.server.Moved(ctx)
		switch {
		case err != nil || moved == 0:
			return err
		case try == server.Attempts:
			return server.Explain(c.server.Shown, server.MovedError(moved))
		}
	}
}

// keys collects the keys of one server.
func (c *copier) keys(ctx context.Context, host string, db int, to *extsort.Sorter) error {
	client := c.server.To(host, strconv.Itoa(db))
	defer client.Close()
	return client.Scan(ctx, "*", scanCount, func(keys [][]byte) error {
		c.copied.note(func() { c.copied.listed += int64(len(keys)) })
		for _, key := range keys {
			if err := to.Add(0, key, nil); err != nil {
				return server.FinalError{Err: err}
			}
		}
		return nil
	})
}
