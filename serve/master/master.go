// Package master feeds replicas from a dataset, as a Redis master does.
//
// A replica gets the whole dataset, whatever it asks for: the dataset does not change, so there is nothing to send
// after that but PINGs. Each replica has its own pass over the source, which writes RDB straight into its connection.
// The first replica of a kind waits for one pass more, which finds out what the file cannot hold, the counts that
// precede large values, and the length.
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
	// Log is called with what an operator wants to know; may be nil.
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
	passes  chan struct{}
	running sync.WaitGroup

	mu     sync.Mutex
	feeder *convert.Feeder
	files  map[kind]*file
	links  []*link
	synced map[string]bool // by address
}

// kind is what the file for a replica depends on.
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
	m.passes = make(chan struct{}, MaxPasses)
	m.files, m.synced = map[kind]*file{}, map[string]bool{}
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

// refused returns the reason why replicas of a kind get nothing, if it is known.
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

// measure makes the pass that is not sent. Losses are final, as the dataset does not change; any other error may pass.
func (m *Master) measure(k kind, f *file) {
	defer close(f.done)
	m.first.Lock()
	defer m.first.Unlock()
	began := time.Now()
	rep, err := m.pass(m.ctx, func(o *convert.Feeder) (*convert.Report, error) {
		return o.Pass(m.ctx, f.measured.Format(), m.Workers)
	})
	if f.err = err; m.Judged != nil && m.ctx.Err() == nil {
		m.Judged(rep, err)
	}
	var loss *convert.LossError
	if err == nil {
		m.log("RDB %s for replicas: %d keys, %d bytes, counted in %s", k.version, f.measured.Keys(), f.measured.Size(),
			time.Since(began).Round(time.Millisecond))
	} else if !errors.As(err, &loss) {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.files, k)
	}
}

// pass waits for its turn and calls do with the open dataset. The first call is alone.
func (m *Master) pass(ctx context.Context, do func(*convert.Feeder) (*convert.Report, error)) (*convert.Report, error) {
	select {
	case m.passes <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-m.passes }()
	m.mu.Lock()
	feeder := m.feeder
	m.mu.Unlock()
	if feeder == nil {
		var err error
		if feeder, err = m.Open(ctx); err != nil {
			return nil, err
		}
		m.mu.Lock()
		m.feeder = feeder
		m.mu.Unlock()
	}
	return do(feeder)
}

func (m *Master) log(text string, args ...any) {
	if m.Log != nil {
		m.Log(fmt.Sprintf(text, args...))
	}
}

// began adds a link to those of INFO and ROLE.
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
