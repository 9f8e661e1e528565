// Package keyspace finds the keys of a dataset for the commands of a server.
package keyspace

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/pass"
	"kvferry/record"
	"kvferry/serve/command"
	"kvferry/store"
)

// maxPasses is the number of passes over the source at a time, which share the memory.
const maxPasses = 64

// Keyspace is an open dataset as commands see it.
type Keyspace struct {
	// Reopen opens the dataset once more, in another way; nil: it can be read only once. Set it before the first use.
	Reopen func(context.Context, inspect.Opening) (format.Source, error)

	// Rename shows all records of a name that exists under several types: the first one, and the others as name:type. Set
	// it before the first use.
	Rename bool

	// Salvage serves what can be read of damaged values. The source was opened so. Set it before the first use.
	Salvage bool

	scan  atomic.Pointer[inspect.Scan]
	dbs   []command.Database
	spans []format.Span // that hold the selected keys; nil: all
	file  bool          // the types are in one order

	ctx    context.Context // of counting
	stop   context.CancelFunc
	wg     sync.WaitGroup
	mu     sync.Mutex
	counts map[string]*count

	patience time.Duration // of Exact

	past   *inspect.Scan // with a salvaging source, for lists of keys; nil: not opened yet
	opened []format.Source
	sorts  sync.Mutex // held while the tables are sorted
	sorted bool       // scan has a source that sorted its tables
}

// New returns the keyspace of the selected records of a source, which was opened for lookups.
func New(ctx context.Context, scan *inspect.Scan) (*Keyspace, error) {
	names, err := scan.Databases()
	if err != nil {
		return nil, err
	}
	k := &Keyspace{spans: scan.Selected().Spans(), counts: map[string]*count{}, patience: countWait}
	k.scan.Store(scan)
	k.ctx, k.stop = context.WithCancel(ctx)
	k.dbs = numbered(names, scan.Source.Format().Limits())
	_, k.file = format.As[format.Sectioned](scan.Source)
	return k, nil
}

// numbered assigns to databases the numbers that a conversion to RDB would.
func numbered(names []string, limits format.Limits) []command.Database {
	out := make([]command.Database, len(names))
	for i, number := range format.Numbers(names, limits) {
		n, _ := strconv.Atoi(number)
		out[i] = command.Database{Number: n, Name: names[i], Exists: true}
	}
	slices.SortFunc(out, func(a, b command.Database) int { return cmp.Compare(a.Number, b.Number) })
	return out
}

// Close frees what New made. The source stays open.
func (k *Keyspace) Close() (err error) {
	k.stop()
	k.wg.Wait()
	for _, src := range k.opened {
		err = errors.Join(err, src.Close())
	}
	return err
}

// readPast opens the dataset a second time, with Salvage: a list of keys goes on behind damage. Values are never read
// so, because a part that is missing would not show.
func (k *Keyspace) readPast() (*inspect.Scan, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.past != nil || k.Reopen == nil {
		return k.past, nil
	}
	scan, err := k.reopen(inspect.Opening{Salvage: true, Resort: k.sorted})
	if err == nil {
		k.past, k.opened = scan, append(k.opened, scan.Source)
	}
	return scan, err
}

// sort opens the dataset a second time, with its tables sorted, for all later passes. Servers of other versions may have
// written tables in another order.
func (k *Keyspace) sort() error {
	k.sorts.Lock()
	defer k.sorts.Unlock()
	if k.sorted {
		return nil
	}
	scan, err := k.reopen(inspect.Opening{Salvage: k.Salvage, Resort: true})
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.past, k.sorted, k.opened = nil, true, append(k.opened, scan.Source)
	k.scan.Store(scan)
	return nil
}

// reopen opens the dataset in another way.
func (k *Keyspace) reopen(how inspect.Opening) (*inspect.Scan, error) {
	scan := *k.scan.Load()
	how.Report = scan.Report
	src, err := k.Reopen(k.ctx, how)
	if err != nil {
		return nil, err
	}
	scan.Source = src
	return &scan, nil
}

// explained adds to an error about the order of the tables how they are sorted.
func (k *Keyspace) explained(err error) error {
	var order *store.OrderError
	if errors.As(err, &order) && k.Reopen != nil {
		return &command.UnorderedError{Err: err, Sort: k.sort}
	}
	return err
}

// Databases returns the databases of the dataset.
func (k *Keyspace) Databases() []command.Database { return k.dbs }

// opening is how a pass is opened.
func (k *Keyspace) opening(report func(record.Finding)) *pass.Opening {
	scan := k.scan.Load()
	memory := scan.Memory / 2
	if report != nil {
		memory /= maxPasses
	}
	memory = max(memory, 256<<10)
	return &pass.Opening{Source: scan.Source, Selection: scan.Selected(), Hold: memory,
		Env: format.Env{Now: scan.Now, Memory: memory, TempDir: scan.TempDir, Report: report, RecordsOnly: true, RedisStrings: true, Lookups: true}}
}
