package live

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"kvferry/format"
	"kvferry/internal/loglog"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/store"
)

const skipExisting = format.SkipExisting

// target is a server that records are written to.
type target struct {
	format.ServerOptions
	f       *Format
	ctx     context.Context
	server  *server
	options *format.CreateOptions
	before  map[string]int64 // keys that were there, by database
	evicted int64
	limit   limiter

	mu      sync.Mutex
	names   uint64
	written map[string]int64 // by database
	expires []int64          // of records that were written, in ms
	skipped int64
	started string // what begins temporary names
}

// Create starts to write to a server.
func (f *Format) Create(ctx context.Context, location string, o *format.CreateOptions) (format.Target, error) {
	opts, err := newOptions(location, f.options)
	if err != nil {
		return nil, err
	}
	s, err := connect(ctx, opts)
	if err != nil {
		return nil, err
	}
	t := &target{f: f, ctx: ctx, server: s, options: o, ServerOptions: opts.ServerOptions, written: map[string]int64{},
		started: strconv.FormatUint(rand.Uint64(), 36)}
	t.limit.rate = t.Rate
	if err = s.writable(ctx); err == nil {
		t.before, err = s.databases(ctx)
	}
	if err == nil {
		err = t.databases()
	}
	if err != nil {
		return nil, closeAfter(err, s)
	}
	t.evicted = s.evicted(ctx)
	return t, nil
}

func closeAfter(err error, s *server) error {
	_ = s.client.Close() // err says what is wrong
	return err
}

// databases refuses names that no database of the server has, and full ones that are to be read back as a whole.
func (t *target) databases() error {
	for _, db := range t.options.DBs {
		if n, err := strconv.Atoi(db); err != nil || n < 0 {
			return fmt.Errorf("database %q: a server has numbers for databases; choose with --db", db)
		}
		if t.server.cluster && db != "0" {
			return fmt.Errorf("database %s: a cluster has database 0 alone; --map-db %s=0 puts it there", db, db)
		}
	}
	if len(t.options.DBs) > 1 && t.server.db >= 0 {
		return fmt.Errorf("%s: the address names database %d, and there are %d to write: leave it out, or choose one with --db",
			t.server.shown, t.server.db, len(t.options.DBs))
	}
	if t.options.Reopen == nil {
		return nil
	}
	for db, n := range t.before {
		if n > 0 && (t.server.db < 0 || db == t.home(db)) {
			return fmt.Errorf("%s: database %s holds %s: all that a server holds is to be compared with what was written, so it has to be empty before",
				t.server.shown, db, record.Plural(n, "key"))
		}
	}
	return nil
}

// home is the database of the server that one is written to: that of the address, when it names one.
func (t *target) home(db string) string {
	if t.server.db >= 0 {
		return strconv.Itoa(t.server.db)
	}
	return db
}

// unique returns what makes a temporary name unlike others.
func (t *target) unique() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.names++
	return t.started + "-" + strconv.FormatUint(t.names, 36)
}

// node is the server of a cluster that has a slot.
func (t *target) node(slot int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.server.nodes[slot]
}

// relocate renews the map of slots.
func (t *target) relocate(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.server.locate(ctx)
}

// Losses says what the server cannot hold.
func (t *target) Losses(h *record.Header) []record.Loss {
	s := t.server
	switch {
	case h.Type == record.Stream && s.major < 5:
		return []record.Loss{{Kind: record.LossStream, Drops: true, Detail: s.name + " has no streams"}}
	case h.Type == record.Other && (!slices.Equal(h.Key[:min(len(h.Key), 9)], []byte("FUNCTION ")) || s.major < 7):
		return []record.Loss{{Kind: record.LossModule, Drops: true, Detail: "no command makes it"}}
	}
	return nil
}

// ElementLosses drops scores that are not numbers and expiries of fields if the server has none.
func (t *target) ElementLosses(h *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
	switch h.Type {
	case record.String:
		loglog.Engine{Name: "Redis", Counts: loglog.HYLL}.Notes(batch, report)
	case record.ZSet:
		return slices.DeleteFunc(batch, func(e record.Element) bool {
			nan := math.IsNaN(e.Score)
			if nan {
				report(record.Loss{Kind: record.LossScoreNaN, Drops: true, Detail: "the score of " + record.Quote(e.Name) + " is not a number"})
			}
			return nan
		})
	case record.Hash:
		if t.server.version.FieldExpiry() {
			return batch
		}
		for i := range batch {
			if batch[i].ExpireMS != 0 {
				report(record.Loss{Kind: record.LossFieldExpiry, Detail: t.server.name + " has no expiry of fields"})
				batch[i].ExpireMS = 0
			}
		}
	}
	return batch
}

// Groups says that any records may come in any order.
func (t *target) Groups() []record.TypeSet { return []record.TypeSet{record.AllTypes} }

// Shard returns a writer with connections of its own.
func (t *target) Shard(_ int, db string, _ record.TypeSet, memory int64) (record.Writer, error) {
	db = t.home(db)
	w := &writer{t: t, db: db, pipes: map[string]*pipe{}, encoder: rdb.Encoder{Version: t.server.version, Memory: memory / 2,
		TempDir: t.options.TempDir}}
	w.ctx, w.cancel = context.WithCancelCause(t.ctx)
	if t.before[db] > 0 && t.Existing != format.Replace {
		if t.server.cluster {
			w.ask = redis.NewClusterClient(t.server.clusterOptions())
		} else {
			n, err := strconv.Atoi(db)
			if err != nil {
				return nil, err
			}
			w.ask = redis.NewClient(t.server.single(t.server.host, n))
		}
	}
	return w, nil
}

// closed adds what a writer wrote.
func (t *target) closed(w *writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written[w.db] += w.written
	t.expires = append(t.expires, w.expires...)
	t.skipped += w.skipped
}

// Tables stands for what was written by the run of the server that took it: another may have lost it.
func (t *target) Tables(int) ([]store.Table, error) {
	return []store.Table{{File: t.server.run}}, nil
}

// Adopt takes what an earlier process wrote.
func (t *target) Adopt(_ int, _ string, tables []store.Table) error {
	if len(tables) != 1 || tables[0].File != t.server.run {
		return fmt.Errorf("%s was started again since, and may have lost what was written", t.server.shown)
	}
	if t.Existing != format.Replace {
		return fmt.Errorf("what the unfinished part wrote cannot be told from keys that were there: use --replace")
	}
	return nil
}

// Finish returns the server as a source when it is to be read back.
func (t *target) Finish(ctx context.Context) (format.Source, error) {
	if t.options.Reopen == nil {
		return nil, nil
	}
	return t.f.Open(ctx, t.server.address.location(), t.options.Reopen)
}

// Abort leaves what was written.
func (t *target) Abort() { _ = t.server.client.Close() }

// Undo says what is left of a run that ended early.
func (t *target) Undo() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := int64(0)
	for _, w := range t.written {
		n += w
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("up to %s were written to %s and stay there", record.Plural(n, "record"), t.server.shown)
}

// Check compares how many keys the server has with how many were written.
func (t *target) Check(ctx context.Context) (string, error) {
	defer t.server.client.Close()
	after, err := t.server.databases(ctx)
	if err != nil {
		return "", err
	}
	if n := t.server.evicted(ctx) - t.evicted; n > 0 {
		return "", fmt.Errorf("%s evicted %s meanwhile: its maxmemory is too small for the data (maxmemory-policy)",
			t.server.shown, record.Plural(n, "key"))
	}
	soon := int64(0)
	now := time.Now().UnixMilli()
	for _, at := range t.expires {
		if at <= now {
			soon++
		}
	}
	total := int64(0)
	for db, n := range t.written {
		total += n
		grown := after[db] - t.before[db]
		if t.before[db] == 0 && (grown > n || grown < n-soon) {
			return "", fmt.Errorf("%s: database %s holds %s, and %d were written", t.server.shown, db, record.Plural(after[db], "key"), n)
		}
	}
	text := fmt.Sprintf("the server took %s and counts as many keys", record.Plural(total, "record"))
	if t.skipped > 0 {
		text += fmt.Sprintf("; %s were there and left alone", record.Plural(t.skipped, "key"))
	}
	for _, n := range t.before {
		if n > 0 {
			return fmt.Sprintf("the server took %s; it held keys before, so its counts tell nothing", record.Plural(total, "record")), nil
		}
	}
	return text + "; values were not read back", nil
}

// limiter holds bytes back to a rate.
type limiter struct {
	rate int64
	mu   sync.Mutex
	next time.Time
}

func (l *limiter) wait(n int) {
	if l.rate <= 0 {
		return
	}
	l.mu.Lock()
	now := time.Now()
	if l.next.Before(now) {
		l.next = now
	}
	pause := l.next.Sub(now)
	l.next = l.next.Add(time.Duration(float64(n) / float64(l.rate) * float64(time.Second)))
	l.mu.Unlock()
	time.Sleep(pause)
}
