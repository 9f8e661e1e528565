package live

import (
	"context"
	"strconv"
	"sync"
	"time"

	"kvferry/internal/sys/pace"
	"kvferry/redis/live/server"
	"kvferry/store"
)

// copied reports the progress of copying servers.
type copied struct {
	tell store.Copied

	mu    sync.Mutex
	hosts int   // number of servers; the estimate treats them as equally large
	done  int   // servers copied completely
	from  int64 // bytes of those servers
	bytes int64 // bytes of all servers
	size  int64 // bytes of the current server; 0: unknown
	keys  int64 // keys copied from the current server
	all   int64 // keys of the current server; 0: unknown

	before int64 // keys of the completed servers
	of     int64 // keys of all servers when the copy began; 0: unknown

	listed int64 // keys found by SCAN, before their values are fetched
	told   time.Time
}

// tellEvery is the interval between progress reports.
const tellEvery = 200 * time.Millisecond

// note applies a change and reports the progress at most every tellEvery.
func (c *copied) note(change func()) {
	if c.tell == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	if now := time.Now(); c.done == c.hosts || now.Sub(c.told) >= tellEvery {
		c.told = now
		c.tell(c.bytes, c.total(), c.before+max(c.keys, c.listed), c.of)
	}
}

// fewKeys bounds the estimate: total extrapolates only after more than 1/fewKeys of a server's keys.
const fewKeys = 1000

// total estimates the bytes of all servers: from the announced size of this one, or from its keys copied so far.
func (c *copied) total() int64 {
	if c.done == c.hosts {
		return c.bytes
	}
	size := c.size
	if size == 0 && c.keys > c.all/fewKeys {
		size = int64(float64(c.bytes-c.from) / float64(c.keys) * float64(c.all))
	}
	if size == 0 {
		return 0
	}
	return max(c.bytes, (c.from+size)/int64(c.done+1)*int64(c.hosts))
}

// next moves on to the next server.
func (c *copied) next() {
	c.note(func() {
		c.done, c.from, c.size = c.done+1, c.bytes, 0
		if c.done < c.hosts {
			c.before, c.keys, c.all = c.before+c.all, 0, 0
		}
	})
}

// askEvery is the interval between queries for the progress of a server's save.
const askEvery = time.Second

// watch polls how many keys of its snapshot a server has saved, until stop is called. It needs Redis 6.2.
func (c *copied) watch(ctx context.Context, client *server.Client) (stop func()) {
	if c.tell == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer client.Close()
		for pace.Rest(ctx, askEvery) == nil {
			i, err := client.Info(ctx, "persistence")
			if err != nil {
				continue // the copy goes on without progress
			}
			keys, _ := strconv.ParseInt(i["current_save_keys_processed"], 10, 64)
			all, _ := strconv.ParseInt(i["current_save_keys_total"], 10, 64)
			c.note(func() {
				if all > 0 {
					c.keys, c.all = keys, all
				}
			})
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}
