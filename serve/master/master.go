// Package master feeds replicas from a dataset, as a Redis master does.
//
// Every synchronization is a full one. The dataset does not change, so only PINGs follow it. Each replica has its own
// pass over the source, which writes RDB directly to its connection. An earlier pass, shared by all replicas of a kind,
// writes nothing: it detects losses, and measures the file and the counts that precede large values.
package master

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"kvferry/convert"
	"kvferry/internal/sys/pace"
	"kvferry/record"
	"kvferry/redis"
	"kvferry/redis/rdb"
)

// MaxPasses is the number of passes over the source at a time, each with the memory of the Feeder. Further replicas
// wait.
const MaxPasses = 4

// Master feeds replicas.
type Master struct {
	// Open opens the dataset when the first replica asks for it.
	Open func(ctx context.Context) (*convert.Feeder, error)
	// Version is the RDB version that all replicas get; nil chooses one that the replica loads.
	Version *rdb.Version
	// Workers read the dataset in the pass that is not sent.
	Workers int
	// Limit is the speed of all replicas together.
	Limit pace.Limiter
	// Log receives messages for the operator; may be nil.
	Log func(text string)
	// Judged is called after the pass that is not sent, with its losses and findings; may be nil.
	Judged func(rep *convert.Report, err error)
	// Synced is called when a replica has everything, with the number of replicas that had so far; may be nil.
	Synced func(n int)

	id      string
	ctx     context.Context // ends all passes
	stop    context.CancelCauseFunc
	every   time.Duration // between signs of life
	first   sync.Mutex    // held by a pass that is not sent
	turns   chan struct{} // holds one for each pass that may begin
	running sync.WaitGroup

	mu     sync.Mutex
	feeder *convert.Feeder
	files  map[kind]*file
	links  []*link
	synced map[string]bool // by address
	errors map[string]bool // replicas that have been sent the error, by address
}

// kind identifies a file.
type kind struct {
	version rdb.Version
	only    string // the rdb-filter-only of a client that does not want everything
}

// file is an RDB file that can be sent.
type file struct {
	done     chan struct{}
	measured *redis.Measured
	err      error
}

// New completes a master. Close ends it.
func New(m *Master) *Master {
	var id [20]byte
	_, _ = rand.Read(id[:]) // does not fail
	m.id, m.every = hex.EncodeToString(id[:]), 10*time.Second
	m.ctx, m.stop = context.WithCancelCause(context.Background())
	m.turns = make(chan struct{}, MaxPasses)
	for range MaxPasses {
		m.turns <- struct{}{}
	}
	m.files, m.synced, m.errors = map[kind]*file{}, map[string]bool{}, map[string]bool{}
	return m
}

// Close ends all passes and closes the dataset. No link may be open.
func (m *Master) Close() error {
	m.stop(context.Canceled)
	m.running.Wait()
	if m.feeder == nil {
		return nil
	}
	return m.feeder.Close()
}

// file returns the file of a kind, and has it measured if it is new.
func (m *Master) file(k kind) *file {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.files[k]
	if f == nil {
		f = &file{done: make(chan struct{}), measured: redis.Measure(k.version)}
		if k.only != all {
			f.measured.Keep = onlyOf(k.only)
		}
		m.files[k] = f
		m.running.Add(1)
		go func() {
			defer m.running.Done()
			m.measure(k, f)
		}()
	}
	return f
}

// refused returns the error of a file whose measuring has failed.
func (m *Master) refused(k kind) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.files[k]; f != nil {
		select {
		case <-f.done:
			return f.err
		default:
		}
	}
	return nil
}

// once reports whether a replica is sent an error for the first time. It would ask again at once, without end: the next
// time it waits.
func (m *Master) once(r *Replica) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	again := r.listens && m.errors[r.address()]
	m.errors[r.address()] = true
	return !again
}

// measure makes the pass that is not sent. Losses are final, as the dataset does not change; any other error may pass.
func (m *Master) measure(k kind, f *file) {
	defer close(f.done)
	m.first.Lock()
	defer m.first.Unlock()
	began := time.Now()
	var rep *convert.Report
	err := m.pass(m.ctx, quiet, func(o *convert.Feeder) (err error) {
		rep, err = o.Pass(m.ctx, f.measured.Format(), m.Workers, k.only != all)
		return err
	})
	if f.err = err; m.Judged != nil && m.ctx.Err() == nil && (k.only == all || err != nil) {
		m.Judged(rep, err)
	}
	var loss *convert.LossError
	if err == nil {
		m.log("RDB %s for replicas: %s keys, %s bytes, counted in %s", k.version, record.Number(f.measured.Keys()), record.Number(f.measured.Size()),
			time.Since(began).Round(time.Millisecond))
	} else if !errors.As(err, &loss) {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.files, k)
	}
}

// pass waits for its turn, calling sign again and again, and calls do with the open dataset. The first call is alone.
func (m *Master) pass(ctx context.Context, sign func() error, do func(*convert.Feeder) error) error {
	if err := m.alive(ctx, m.turns, sign); err != nil {
		return err
	}
	defer func() { m.turns <- struct{}{} }()
	m.mu.Lock()
	feeder := m.feeder
	m.mu.Unlock()
	if feeder == nil {
		var err error
		if feeder, err = m.Open(ctx); err != nil {
			return err
		}
		m.mu.Lock()
		m.feeder = feeder
		m.mu.Unlock()
	}
	return do(feeder)
}

// alive waits until it receives from done, and calls sign again and again until then.
func (m *Master) alive(ctx context.Context, done <-chan struct{}, sign func() error) error {
	tick := time.NewTicker(m.every)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			if err := sign(); err != nil {
				return err
			}
		}
	}
}

// quiet is the sign of a pass that is not for a link.
func quiet() error { return nil }

func (m *Master) log(text string, args ...any) {
	if m.Log != nil {
		m.Log(fmt.Sprintf(text, args...))
	}
}

// began lists a link for INFO and ROLE.
func (m *Master) began(l *link) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.links = append(m.links, l)
}

// ended removes a link.
func (m *Master) ended(l *link) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.links = slices.DeleteFunc(m.links, func(one *link) bool { return one == l })
}

// inSync counts a replica that has everything.
func (m *Master) inSync(address string) {
	m.mu.Lock()
	m.synced[address] = true
	n := len(m.synced)
	m.mu.Unlock()
	if m.Synced != nil {
		m.Synced(n)
	}
}
