package live

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync"

	"kvferry/format"
	"kvferry/internal/sys/pace"
	"kvferry/record"
	"kvferry/redis/live/server"
	"kvferry/store"
)

// target writes records to a server.
type target struct {
	*limits
	f       *Format
	to      *destination
	options *format.CreateOptions
	evicted int64

	mu      sync.Mutex
	shards  map[int]store.Table // by shard; File holds the run ids, Entries the number of records
	written int64               // records written by this process
}

// Create connects to a server for writing.
func (f *Format) Create(ctx context.Context, location string, o *format.CreateOptions) (format.Target, error) {
	s, err := server.Connect(ctx, location, f.options, o.Memory)
	if err != nil {
		return nil, err
	}
	t := &target{f: f, options: o, shards: map[int]store.Table{}}
	if err = s.Writable(ctx); err == nil {
		err = t.begin(ctx, s)
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
	t.evicted = s.Evicted(ctx)
	return t, nil
}

func closeAfter(err error, s *server.Server) error {
	_ = s.Client.Close() // err has the cause
	return err
}

// begin records the state of the server, or restores the state recorded by an earlier process.
func (t *target) begin(ctx context.Context, s *server.Server) (err error) {
	t.limits = newLimits(ctx, s, t.options.Reopen != nil)
	t.to = &destination{ctx: ctx, server: s, tempDir: t.options.TempDir, limit: pace.Limiter{Rate: s.Rate}}
	if t.options.Earlier != "" {
		return t.restore()
	}
	t.to.start = start{Existing: s.Existing, Names: temporaryPrefix(), Members: s.Members}
	if t.to.Before, err = s.Databases(ctx); err == nil && t.verified {
		t.to.Libraries = s.Libraries(ctx)
	}
	return err
}

// restore reads the state recorded by an earlier process.
func (t *target) restore() error {
	if err := json.Unmarshal([]byte(t.options.Earlier), &t.to.start); err != nil {
		return err
	}
	if was := t.to.Existing; was != t.server.Existing && was != format.FailExisting {
		return fmt.Errorf("%s: the unfinished conversion was started with --%s: pass it again to continue", t.server.Shown, was)
	}
	for _, db := range t.options.DBs {
		if n := t.to.Before[t.home(db)]; n > 0 && t.server.Existing == format.FailExisting {
			return &format.ExistingError{Err: fmt.Errorf("%s: database %s held %s before the unfinished conversion began, and kvferry can no longer distinguish them from its own keys: "+
				"continue with --skip-existing, which keeps all existing keys (keys written by kvferry are complete), or with --replace",
				t.server.Shown, t.home(db), record.Count(n, "key"))}
		}
	}
	return nil
}

// Earlier returns the state that a later process needs to resume.
func (t *target) Earlier() string {
	data, err := json.Marshal(t.to.start)
	if err != nil {
		panic(err) // maps, numbers and strings always encode
	}
	return string(data)
}

// Before returns the number of keys that each database had before the first process began to write.
func (t *target) Before() map[string]int64 {
	had := maps.Clone(t.to.Before)
	maps.DeleteFunc(had, func(_ string, n int64) bool { return n == 0 })
	return had
}

// Run identifies the run of the server, or the runs of a cluster's masters.
func (t *target) Run() string { return t.server.RunNames() }

// sweep deletes temporary names left by an earlier process.
func (t *target) sweep(ctx context.Context) error {
	for _, db := range t.options.DBs {
		for _, host := range t.server.Hosts() {
			if err := t.sweepDatabase(ctx, host, t.home(db)); err != nil {
				return server.Explain(t.server.Shown, err)
			}
		}
	}
	return nil
}

// sweepCount is the COUNT of SCAN when looking for temporary names.
const sweepCount = 10000

func (t *target) sweepDatabase(ctx context.Context, host, db string) (err error) {
	client := t.server.To(host, db)
	defer func() { err = errors.Join(err, client.Close()) }()
	return client.Scan(ctx, t.to.Names+"*", sweepCount, func(keys [][]byte) error {
		for _, key := range keys {
			if _, err := client.Do(ctx, "DEL", key); err != nil {
				return err
			}
		}
		return nil
	})
}

// databases rejects database names that the server cannot have. It also rejects databases with keys if the server will
// be read back and compared as a whole.
func (t *target) databases() error {
	for _, db := range t.options.DBs {
		if n, err := strconv.Atoi(db); err != nil || n < 0 {
			return fmt.Errorf("database %q: a server numbers its databases; choose one with --db", db)
		}
	}
	if len(t.options.DBs) > 1 && t.server.DB >= 0 {
		return fmt.Errorf("%s: the address names database %d, but there are %d to write: leave the number out, or write one of them alone",
			t.server.Shown, t.server.DB, len(t.options.DBs))
	}
	for _, db := range t.options.DBs {
		if err := t.server.Select(t.to.ctx, t.home(db)); err != nil {
			return err
		}
	}
	if !t.verified {
		return nil
	}
	for db, n := range t.to.Before {
		if n > 0 && (t.server.DB < 0 || db == t.home(db)) {
			return fmt.Errorf("%s: database %s holds %s: --verify compares all data on the server with the written data, so the server must be empty before",
				t.server.Shown, db, record.Count(n, "key"))
		}
	}
	if n := t.to.Libraries; n > 0 {
		return fmt.Errorf("%s: the server has function libraries (%d), which FLUSHALL keeps: --verify compares all data on the server with the written data, so delete them before, as with FUNCTION FLUSH",
			t.server.Shown, n)
	}
	return nil
}

// home returns the target database of a source database: the database in the address, if given.
func (t *target) home(db string) string {
	if t.server.DB >= 0 {
		return strconv.Itoa(t.server.DB)
	}
	return db
}

// Groups allows all types in any order.
func (t *target) Groups() []record.TypeSet { return []record.TypeSet{record.AllTypes} }

// Shard returns a writer with its own connections.
func (t *target) Shard(n int, db string, _ record.TypeSet, memory int64) (record.Writer, error) {
	return t.to.newWriter(t.home(db), memory, func(written int64) { t.closed(n, written) }), nil
}

// Look returns a writer that only checks whether the keys of its records exist, or nil if existing keys are acceptable.
func (t *target) Look(db string, dry bool) (record.Writer, error) {
	if t.server.Existing == format.Replace || t.server.Existing == format.SkipExisting && !dry {
		return nil, nil
	}
	return t.to.newLooker(t.home(db)), nil
}

// Conflicts returns an error that lists some of the existing keys found by the writers of Look, or nil.
func (t *target) Conflicts() error { return t.to.conflicts.error(t.server.Shown) }

// closed adds the counts of a writer.
func (t *target) closed(shard int, written int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written += written
	t.shards[shard] = store.Table{File: t.Run(), Entries: written}
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
		return fmt.Errorf("%s has restarted since: %w", t.server.Shown, format.ErrGone)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shards[n] = tables[0]
	return nil
}

// Finish opens the server as a source if it is to be verified.
func (t *target) Finish(ctx context.Context) (format.Source, error) {
	if !t.verified {
		return nil, nil
	}
	t.Abort()
	return t.f.Open(ctx, t.server.Location(), t.options.Reopen)
}

// Abort closes the connections; written keys stay.
func (t *target) Abort() { _ = t.server.Client.Close() }

// Undo describes the traces of an aborted run.
func (t *target) Undo() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	left := t.to.undeleted()
	if t.written == 0 && left == 0 {
		return ""
	}
	text := fmt.Sprintf("%s keeps the written data: up to %s", t.server.Shown, record.Count(t.written, "record"))
	if left > 0 {
		text += fmt.Sprintf("; parts of large records may exist under temporary names: delete %s*", t.to.Names)
	}
	if t.server.Existing == format.FailExisting && t.written > 0 {
		text += "; to start again, add --replace, which overwrites them, or --skip-existing"
	}
	return text
}

// Check compares the key counts of the server with the counts of written keys.
func (t *target) Check(ctx context.Context, given, expired map[string]int64) (string, error) {
	defer t.server.Client.Close()
	after, err := t.server.Databases(ctx)
	if err != nil {
		return "", err
	}
	if n := t.server.Evicted(ctx) - t.evicted; n > 0 {
		return "", fmt.Errorf("%s evicted %s during the run: its maxmemory is too small for the data (maxmemory-policy)",
			t.server.Shown, record.Count(n, "key"))
	}
	given, expired = t.atHome(given), t.atHome(expired)
	total, before := int64(0), int64(0)
	for db, n := range given {
		total += n
		before += t.to.Before[db]
		if t.to.Before[db] == 0 && (after[db] > n || after[db] < n-expired[db]) {
			text := fmt.Sprintf("database %s holds %s, but %s were written", db, record.Count(after[db], "key"), record.Number(n))
			return "", cmp.Or(t.lost(text), fmt.Errorf("%s: %s", t.server.Shown, text))
		}
	}
	if err := t.lost("the server had keys before, so its counts do not show it"); err != nil && before > 0 {
		return "", err
	}
	written := t.sent()
	if before > 0 && written != total { // only the totals are comparable
		return "", fmt.Errorf("%s: %s went to the server, but %s were counted", t.server.Shown, record.Count(written, "record"),
			record.Number(total))
	}
	return took(written, before), nil
}

// lost returns an error if a server failed over: replication is asynchronous, so acknowledged writes may be lost.
func (t *target) lost(text string) error {
	crashed := t.server.Crashed // no writer is left
	if len(crashed) == 0 {
		return nil
	}
	return &format.LostError{Err: fmt.Errorf("%s: %s crashed during the run; its last acknowledged writes may be lost: %s; continue with --resume, which writes everything again",
		t.server.Shown, strings.Join(crashed, "; "), text)}
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
	return text + "; it held keys before, so its key counts do not show whether all were written"
}
