// Package keyspace finds the keys of a dataset for the commands of a server.
package keyspace

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

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

	scan  *inspect.Scan
	dbs   []command.Database
	spans []format.Span   // that hold the selected keys; nil: all
	pins  []record.Reader // keep the sorted items of a file, of which one order at most would stay otherwise

	ctx    context.Context // of counting
	stop   context.CancelFunc
	wg     sync.WaitGroup
	mu     sync.Mutex
	counts map[string]*count
	past   *inspect.Scan // with a salvaging source, for lists of keys; nil: not opened yet
}

// New returns the keyspace of the selected records of a source. It sorts the items of a file, which takes a pass over
// it for each database; sorted is called with its progress and may be nil.
func New(ctx context.Context, scan *inspect.Scan, sorted store.Copied) (*Keyspace, error) {
	names, err := scan.Databases()
	if err != nil {
		return nil, err
	}
	k := &Keyspace{scan: scan, spans: scan.Selected().Spans(), counts: map[string]*count{}}
	k.ctx, k.stop = context.WithCancel(ctx)
	k.dbs = numbered(names, scan.Source.Format().Limits())
	if _, ok := format.As[format.Sectioned](scan.Source); ok {
		err = k.pin(ctx, sorted)
	}
	if err != nil {
		return nil, errors.Join(err, k.Close())
	}
	return k, nil
}

// numbered assigns numbers to databases: the numeric name or the position. The default database comes first.
func numbered(names []string, limits format.Limits) []command.Database {
	out := make([]command.Database, 0, len(names))
	for i, name := range names {
		n := i
		if limits.Numbered {
			if v, err := strconv.Atoi(name); err == nil {
				n = v
			}
		} else if name == limits.DefaultDB && i > 0 {
			out = append([]command.Database{{Name: name, Exists: true}}, out...)
			for j := range out {
				out[j].Number = j
			}
			continue
		}
		out = append(out, command.Database{Number: n, Name: name, Exists: true})
	}
	return out
}

// pin opens a reader of each database. The first one sorts the items.
func (k *Keyspace) pin(ctx context.Context, sorted store.Copied) error {
	env := &k.opening(nil).Env
	env.Copied = sorted
	for _, db := range k.dbs {
		r, err := k.scan.Source.Records(ctx, db.Name, k.scan.Types(db.Name), format.Span{}, env)
		if err != nil {
			return err
		}
		k.pins = append(k.pins, r)
	}
	return nil
}

// Close frees what New made. The source stays open.
func (k *Keyspace) Close() (err error) {
	k.stop()
	k.wg.Wait()
	for _, r := range k.pins {
		err = errors.Join(err, r.Close())
	}
	if k.past != nil {
		err = errors.Join(err, k.past.Source.Close())
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
	src, err := k.Reopen(k.ctx, inspect.Opening{Salvage: true, Report: k.scan.Report})
	if err != nil {
		return nil, err
	}
	scan := *k.scan
	scan.Source, k.past = src, &scan
	return k.past, nil
}

// explained adds to an error what to do.
func explained(err error) error {
	var order *store.OrderError
	if errors.As(err, &order) {
		return fmt.Errorf("%w; start kvferry serve with --resort", err)
	}
	return err
}

// Databases returns the databases of the dataset.
func (k *Keyspace) Databases() []command.Database { return k.dbs }

// opening is how a pass is opened.
func (k *Keyspace) opening(report func(record.Finding)) *pass.Opening {
	memory := k.scan.Memory / 2
	if report != nil {
		memory /= maxPasses
	}
	memory = max(memory, 256<<10)
	return &pass.Opening{Source: k.scan.Source, Selection: k.scan.Selected(), Hold: memory,
		Env: format.Env{Now: k.scan.Now, Memory: memory, TempDir: k.scan.TempDir, Report: report, RecordsOnly: true, RedisStrings: true}}
}
