package keylanes

import (
	"errors"
	"io"

	"kvferry/internal/sys/extsort"
	"kvferry/store"
)

// RunsOptions configures the writing of lanes.
type RunsOptions struct {
	// Open starts the run of a lane.
	Open func(lane uint64) (store.Run, error)
	// Compare orders raw keys as the keyspace does; nil means bytes.Compare.
	Compare func(a, b []byte) int
	// MaxOpen limits the runs that are open at once; 0 means the constant MaxOpen.
	MaxOpen int
	// Memory and TempDir are for the spool of the other lanes.
	Memory  int64
	TempDir string
}

// Runs writes the lanes of one keyspace, each as a sorted run. The first MaxOpen lanes are written directly;
// the rows of all other lanes are spooled, and Close sorts and writes them.
type Runs struct {
	o     RunsOptions
	lanes map[uint64]*Lane
	spool *extsort.Sorter
}

// Lane takes the rows of a lane, ascending.
type Lane struct {
	id    uint64
	run   store.Run // nil: to the spool
	spool *extsort.Sorter
}

// NewRuns returns a writer without lanes.
func NewRuns(o RunsOptions) *Runs {
	if o.MaxOpen <= 0 {
		o.MaxOpen = MaxOpen
	}
	return &Runs{o: o, lanes: make(map[uint64]*Lane)}
}

// Lane returns the lane of an id. Lanes are ordered by id.
func (r *Runs) Lane(id uint64) (*Lane, error) {
	if l := r.lanes[id]; l != nil {
		return l, nil
	}
	l := &Lane{id: id}
	if len(r.lanes) < r.o.MaxOpen {
		var err error
		if l.run, err = r.o.Open(id); err != nil {
			return nil, err
		}
		r.lanes[id] = l
		return l, nil
	}
	if r.spool == nil {
		r.spool = extsort.New(extsort.Options{Compare: r.o.Compare, Memory: r.o.Memory, TempDir: r.o.TempDir})
	}
	l.spool = r.spool
	// Lanes are not kept: there may be very many, and making one is cheap.
	return l, nil
}

// Append adds a row to the lane; key and value are not kept.
func (l *Lane) Append(key, value []byte) error {
	if l.run != nil {
		return l.run.Append(key, value)
	}
	return l.spool.Add(l.id, key, value)
}

// AppendGroup adds the rows of a group to the lane; it is not kept.
func (l *Lane) AppendGroup(g *store.Group) error {
	if l.run != nil {
		return l.run.AppendGroup(g)
	}
	return g.Each(func(key, value []byte) error { return l.spool.Add(l.id, key, value) })
}

// Close finishes all runs. After an error, Abort must still be called.
func (r *Runs) Close() error {
	for id, l := range r.lanes {
		delete(r.lanes, id)
		if err := l.run.Close(); err != nil {
			return err
		}
	}
	if r.spool == nil {
		return nil
	}
	if err := r.unspool(); err != nil {
		return err
	}
	err := r.spool.Close()
	r.spool = nil
	return err
}

// unspool writes the lanes of the spool in sequence.
func (r *Runs) unspool() (err error) {
	it, err := r.spool.Sort()
	if err != nil {
		return err
	}
	var run store.Run
	defer func() {
		if run != nil {
			run.Abort()
		}
	}()
	var last uint64
	for {
		id, key, value, err := it.Next()
		if run != nil && (err != nil || id != last) {
			done := run
			run = nil
			if cerr := done.Close(); cerr != nil {
				return cerr
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if run == nil {
			if run, err = r.o.Open(id); err != nil {
				return err
			}
			last = id
		}
		if err := run.Append(key, value); err != nil {
			return err
		}
	}
}

// Abort drops all unclosed runs.
func (r *Runs) Abort() error {
	var errs []error
	for id, l := range r.lanes {
		l.run.Abort()
		delete(r.lanes, id)
	}
	if r.spool != nil {
		errs = append(errs, r.spool.Close())
		r.spool = nil
	}
	return errors.Join(errs...)
}
