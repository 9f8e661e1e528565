package live

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// copied tells how far the copying of servers is.
type copied struct {
	tell func(done, total, keys, of int64)

	mu    sync.Mutex
	hosts int   // servers, which are taken for about equally large
	done  int   // of them
	from  int64 // bytes of those
	bytes int64 // of all
	size  int64 // of the server that is being copied; 0: not known
	keys  int64 // of that server
	all   int64 // keys that it has; 0: not known

	before int64 // keys of the servers that are done
	of     int64 // keys of all servers, when the copy began; 0: not known

	listed int64 // keys, whose values are asked for afterwards
	told   time.Time
}

// tellEvery is how often it is told.
const tellEvery = 200 * time.Millisecond

// note changes what is known and tells it now and then.
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

// fewKeys: the first of so many keys do not tell what to expect of the others.
const fewKeys = 1000

// total is about how many bytes all servers have: this one as many as it says, or as its keys so far lead to expect.
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

// next goes on with another server.
func (c *copied) next() {
	c.note(func() {
		c.done, c.from, c.size = c.done+1, c.bytes, 0
		if c.done < c.hosts {
			c.before, c.keys, c.all = c.before+c.all, 0, 0
		}
	})
}

// askEvery is how often a server is asked how far its saving is.
const askEvery = time.Second

// watch asks a server that sends what it saves how many keys it has saved, until stop is called. Servers tell it since 6.2.
func (c *copied) watch(ctx context.Context, o *redis.Options) (stop func()) {
	if c.tell == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		client := redis.NewClient(o)
		defer client.Close()
		for rest(ctx, askEvery) == nil {
			text, err := client.Info(ctx, "persistence").Result()
			if err != nil {
				continue // the copy goes on without
			}
			i := info(text)
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
