package live

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/hlldialect"
	"kvferry/internal/sys/pace"
	"kvferry/record"
	files "kvferry/redis"
	"kvferry/redis/rdb/encode"
	"kvferry/store"
)

const skipExisting = format.SkipExisting

// target writes records to a server.
type target struct {
	format.ServerOptions
	hlldialect.Strings
	f       *Format
	ctx     context.Context
	server  *server
	options *format.CreateOptions
	start   start
	evicted int64
	limit   pace.Limiter

	mu      sync.Mutex
	names   uint64
	shards  map[int]store.Table // by shard; File holds the run ids, Entries the number of records
	written int64               // records written by this process
	left    int                 // temporary names that could not be deleted

	conflicts conflicts

	crashed []string // servers of a cluster that a replica replaced

	natives sync.Map // reply of the server by module type and version, "" if it accepts the values
}

// start is the state when writing began. A process that resumes the run restores it.
type start struct {
	Before map[string]int64 `json:"before"` // existing keys by database
	// Libraries is the number of existing function libraries, counted only if the server will be read back.
	Libraries int             `json:"libraries,omitempty"`
	Existing  format.Existing `json:"existing"`
	Names     string          `json:"names"`             // prefix of temporary names
	Members   []string        `json:"members,omitempty"` // addresses of the cluster's servers
}

// Create connects to a server for writing.
func (f *Format) Create(ctx context.Context, location string, o *format.CreateOptions) (format.Target, error) {
	s, err := f.connect(ctx, location, o.Memory)
	if err != nil {
		return nil, err
	}
	t := &target{f: f, ctx: ctx, server: s, options: o, ServerOptions: s.ServerOptions, shards: map[int]store.Table{}}
	t.limit.Rate = t.Rate
	if err = s.writable(ctx); err == nil {
		err = t.begin(ctx)
	}
	if err == nil {
		err = t.databases()
	}
	if err == nil && o.Earlier != "" {
		err = t.sweep(ctx)
	}
	if err != nil {
		return nil, closeAfter(err, s)
	}
	t.evicted = s.evicted(ctx)
	return t, nil
}

func closeAfter(err error, s *server) error {
	_ = s.client.close() // err has the cause
	return err
}

// begin records the state of the server, or restores the state recorded by an earlier process.
func (t *target) begin(ctx context.Context) (err error) {
	if t.options.Earlier == "" {
		t.start = start{Existing: t.Existing, Names: "kvferry-" + strconv.FormatUint(rand.Uint64(), 36) + "-", Members: t.server.members}
		if t.start.Before, err = t.server.databases(ctx); err == nil && t.options.Reopen != nil {
			t.start.Libraries = t.server.libraries(ctx)
		}
		return err
	}
	if err := json.Unmarshal([]byte(t.options.Earlier), &t.start); err != nil {
		return err
	}
	if was := t.start.Existing; was != t.Existing && was != format.FailExisting {
		return fmt.Errorf("%s: the unfinished conversion was started with --%s: pass it again to continue", t.server.shown, was)
	}
	for _, db := range t.options.DBs {
		if n := t.start.Before[t.home(db)]; n > 0 && t.Existing == format.FailExisting {
			return &format.ExistingError{Err: fmt.Errorf("%s: database %s held %s before the unfinished conversion began, and kvferry can no longer tell those keys from its own: "+
				"continue with --skip-existing, which keeps all existing keys (those that kvferry wrote are complete), or with --replace",
				t.server.shown, t.home(db), record.Count(n, "key"))}
		}
	}
	return nil
}

// Earlier returns the state that a later process needs to resume.
func (t *target) Earlier() string {
	data, err := json.Marshal(t.start)
	if err != nil {
		panic(err) // maps, numbers and strings always encode
	}
	return string(data)
}

// Before returns the number of keys that each database had before the first process began to write.
func (t *target) Before() map[string]int64 {
	had := maps.Clone(t.start.Before)
	maps.DeleteFunc(had, func(_ string, n int64) bool { return n == 0 })
	return had
}

// Run identifies the run of the server, or the runs of a cluster's masters.
func (t *target) Run() string { return t.server.runNames() }

// sweep deletes temporary names left by an earlier process.
func (t *target) sweep(ctx context.Context) error {
	for _, db := range t.options.DBs {
		for _, host := range t.server.hosts() {
			if err := t.sweepDatabase(ctx, host, t.home(db)); err != nil {
				return told(t.server.shown, err)
			}
		}
	}
	return nil
}

// sweepCount is the COUNT of SCAN when looking for temporary names.
const sweepCount = 10000

func (t *target) sweepDatabase(ctx context.Context, host, db string) (err error) {
	client := t.server.to(host, db)
	defer func() { err = errors.Join(err, client.close()) }()
	return client.scan(ctx, t.start.Names+"*", sweepCount, func(keys [][]byte) error {
		for _, key := range keys {
			if _, err := client.do(ctx, "DEL", key); err != nil {
				return err
			}
		}
		return nil
	})
}

// tidyTimeout limits the cleanup of temporary names after a failure.
const tidyTimeout = 3 * time.Second

// drop deletes temporary names after a failed run. A resumed run deletes the rest; Undo reports them.
func (t *target) drop(db string, names []string) {
	if len(names) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), tidyTimeout)
	defer cancel()
	left := 0
	for _, name := range names {
		client := t.server.to(t.owner([]byte(name)), db)
		_, err := client.do(ctx, "DEL", name)
		_ = client.close() // the error of the run has the cause
		if err != nil {
			left++
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left += left
}

// databases rejects database names that the server cannot have. It also rejects databases with keys if the server will
// be read back and compared as a whole.
func (t *target) databases() error {
	for _, db := range t.options.DBs {
		if n, err := strconv.Atoi(db); err != nil || n < 0 {
			return fmt.Errorf("database %q: a server numbers its databases; choose one with --db", db)
		}
		if t.server.cluster && t.home(db) != "0" {
			return fmt.Errorf("database %s: a cluster has only database 0; end the address with /0 to put it there", db)
		}
	}
	if len(t.options.DBs) > 1 && t.server.db >= 0 {
		return fmt.Errorf("%s: the address names database %d, but there are %d to write: leave the number out, or write one of them alone",
			t.server.shown, t.server.db, len(t.options.DBs))
	}
	if t.options.Reopen == nil {
		return nil
	}
	for db, n := range t.start.Before {
		if n > 0 && (t.server.db < 0 || db == t.home(db)) {
			return fmt.Errorf("%s: database %s holds %s: --verify compares everything on the server with what was written, so the server must be empty before",
				t.server.shown, db, record.Count(n, "key"))
		}
	}
	if n := t.start.Libraries; n > 0 {
		return fmt.Errorf("%s: the server has function libraries (%d), which FLUSHALL keeps: --verify compares everything on the server with what was written, so delete them before, as with FUNCTION FLUSH",
			t.server.shown, n)
	}
	return nil
}

// home returns the target database of a source database: the database in the address, if given.
func (t *target) home(db string) string {
	if t.server.db >= 0 {
		return strconv.Itoa(t.server.db)
	}
	return db
}

// unique returns a new temporary name.
func (t *target) unique() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.names++
	return t.start.Names + strconv.FormatUint(t.names, 36)
}

// owner returns the server that has a key.
func (t *target) owner(key []byte) string {
	if !t.server.cluster {
		return t.server.host
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.server.owner(key)
}

// router returns a router for a database, which shares the slot map with the writers.
func (t *target) router(db string) *router {
	r := t.server.router(db)
	r.owner = t.owner
	if r.locate != nil {
		r.locate = t.relocate
	}
	return r
}

// hosts returns the servers with keys.
func (t *target) hosts() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.server.hosts()
}

// relocate refreshes the slot map.
func (t *target) relocate(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.server.locate(ctx)
}

// Losses lists the parts of a record that the server cannot hold.
func (t *target) Losses(h *record.Header) []record.Loss {
	s := t.server
	switch {
	case h.Type == record.Stream:
		return files.StreamLosses(s.version, s.name, h)
	case h.Type == record.Other && h.Keyless == record.Keyed && s.restore: // depends on the value
	case h.Type == record.Other && (h.Keyless != record.Library || s.major < 7):
		return []record.Loss{{Kind: record.LossModule, Drops: true, Detail: "no command creates it"}}
	}
	return nil
}

// Orphans returns the size up to which streams keep pending entries of deleted messages; -1: any (before Redis 7.0).
func (t *target) Orphans() int64 {
	switch {
	case !t.server.version.EntriesRead():
		return -1
	case !t.server.restore:
		return 0
	}
	return maxPayload
}

// ElementLosses drops NaN scores, and field expiries if the server lacks them.
func (t *target) ElementLosses(h *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
	switch h.Type {
	case record.String:
		hlldialect.Engine{Name: "Redis", Counts: hlldialect.HYLL}.Notes(batch, report)
	case record.ZSet:
		return dataset.KeepScores(batch, "Redis", math.Inf(1), report)
	case record.Stream:
		return files.KeepGroups(t.server.version, batch, report)
	case record.Other:
		return dataset.KeepIf(batch, func(e *record.Element) bool { return h.Keyless != record.Keyed || t.takes(e, report) })
	case record.Hash:
		if t.server.version.FieldExpiry() {
			return batch
		}
		for i := range batch {
			if batch[i].ExpireMS != 0 {
				report(record.Loss{Kind: record.LossFieldExpiry, Detail: "field " + record.Quote(batch[i].Name) + ": " + t.server.name + " does not support expiry of fields"})
				batch[i].ExpireMS = 0
			}
		}
	}
	return batch
}

// Groups allows all types in any order.
func (t *target) Groups() []record.TypeSet { return []record.TypeSet{record.AllTypes} }

// Shard returns a writer with its own connections.
func (t *target) Shard(n int, db string, _ record.TypeSet, memory int64) (record.Writer, error) {
	db = t.home(db)
	w := &writer{t: t, n: n, db: db, pipes: map[string]*pipe{}, encoder: encode.Encoder{Version: t.server.version, Memory: memory / 2,
		TempDir: t.options.TempDir}}
	w.ctx, w.cancel = context.WithCancelCause(t.ctx)
	w.ask = t.newAsker(db)
	return w, nil
}

// closed adds the counts of a writer.
func (t *target) closed(w *writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written += w.written
	t.shards[w.n] = store.Table{File: t.Run(), Entries: w.written}
}

// Tables records the run ids of the servers: after a restart, the writes may be lost.
func (t *target) Tables(n int) ([]store.Table, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return []store.Table{t.shards[n]}, nil
}

// Adopt accepts the writes of an earlier process, unless the server has restarted since.
func (t *target) Adopt(n int, _ string, tables []store.Table) error {
	if len(tables) != 1 {
		return fmt.Errorf("%s tables, want one", record.Number(len(tables)))
	}
	if tables[0].File != t.Run() {
		return fmt.Errorf("%s has restarted since: %w", t.server.shown, format.ErrGone)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shards[n] = tables[0]
	return nil
}

// Finish opens the server as a source if it is to be verified.
func (t *target) Finish(ctx context.Context) (format.Source, error) {
	if t.options.Reopen == nil {
		return nil, nil
	}
	t.Abort()
	return t.f.Open(ctx, t.server.address.location(), t.options.Reopen)
}

// Abort closes the connections; written keys stay.
func (t *target) Abort() { _ = t.server.client.close() }

// Undo describes the traces of an aborted run.
func (t *target) Undo() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.written == 0 && t.left == 0 {
		return ""
	}
	text := fmt.Sprintf("%s keeps what was written to it: up to %s", t.server.shown, record.Count(t.written, "record"))
	if t.left > 0 {
		text += fmt.Sprintf("; parts of large ones may be there under temporary names: delete %s*", t.start.Names)
	}
	if t.Existing == format.FailExisting && t.written > 0 {
		text += "; to start again, add --replace, which writes over those, or --skip-existing"
	}
	return text
}

// Check compares the key counts of the server with the counts of written keys.
func (t *target) Check(ctx context.Context, given, expired map[string]int64) (string, error) {
	defer t.server.client.close()
	after, err := t.server.databases(ctx)
	if err != nil {
		return "", err
	}
	if n := t.server.evicted(ctx) - t.evicted; n > 0 {
		return "", fmt.Errorf("%s evicted %s meanwhile: its maxmemory is too small for the data (maxmemory-policy)",
			t.server.shown, record.Count(n, "key"))
	}
	given, expired = t.atHome(given), t.atHome(expired)
	total, before := int64(0), int64(0)
	for db, n := range given {
		total += n
		before += t.start.Before[db]
		if t.start.Before[db] == 0 && (after[db] > n || after[db] < n-expired[db]) {
			text := fmt.Sprintf("database %s holds %s, but %s were written", db, record.Count(after[db], "key"), record.Number(n))
			return "", cmp.Or(t.lost(text), fmt.Errorf("%s: %s", t.server.shown, text))
		}
	}
	if err := t.lost("the server had keys before, so its counts do not show it"); err != nil && before > 0 {
		return "", err
	}
	written := t.sent()
	if before > 0 && written != total { // only the totals are comparable
		return "", fmt.Errorf("%s: %s went to the server, but %s were counted", t.server.shown, record.Count(written, "record"), record.Number(total))
	}
	return took(written, before), nil
}

// atHome sums counts by target database.
func (t *target) atHome(counts map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for db, n := range counts {
		out[t.home(db)] += n
	}
	return out
}

// sent returns the number of keyed records written to the server.
func (t *target) sent() (n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.shards {
		n += s.Entries
	}
	return n
}

// took formats the result: written records, and whether before shows an empty server.
func took(written, before int64) string {
	text := "the server took " + record.Count(written, "record")
	if before == 0 {
		return text + " and counts as many keys; values were not read back"
	}
	return text + "; it held keys before, so its counts prove nothing"
}
