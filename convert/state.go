package convert

import (
	"errors"
	"sync/atomic"
	"time"

	"kvferry/convert/result"
	"kvferry/convert/transfer"
	"kvferry/convert/work"
	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/internal/pass/progress"
	"kvferry/internal/sys/disk"
	"kvferry/internal/sys/object"
	"kvferry/store"
)

// attempt is one pass through the phases. It holds all state of the pass, so that a pass that starts over inherits
// none.
type attempt struct {
	*run
	resort string      // how the source's tables are out of order; "" if they are sorted
	state  *work.State // of an earlier process

	id       *work.Identity
	rules    *transfer.Rules
	src      format.Source
	known    format.Shape // of src, see shape
	sources  disk.Sources // files that src reads
	target   format.Target
	stores   *result.Stored // findings of the source's stores
	refused  *atomic.Bool
	results  []*result.Result // by task number; nil for unfinished tasks
	counter  work.Counter     // counts the output of builders
	made     *work.Census     // of the finished target
	back     format.Source    // the finished target; nil if it is not read back
	opened   work.Stores      // of the finished target
	told     result.Findings  // of the finished target as it was opened
	rep      *Report
	reported []byte // the encoded report
	closed   bool   // source and target are closed
	timings  Timings
	cores    *pass.Cores
}

// run is the state of a conversion across attempts. Everything learned from the source belongs to an attempt.
type run struct {
	o     *Options
	work  *work.Dir
	meter *progress.Meter
	began time.Time
	// resumed is true if an earlier process began the work.
	resumed bool
	// shared is the work directory of a run in parts, otherwise nil. A zero part stands for the finish.
	shared *work.Parts
	part   pass.Part
	// sending is the upload of the target; nil before it begins.
	sending *object.Upload
}

// attempt starts a pass.
func (r *run) attempt(state *work.State, resort string) *attempt {
	a := &attempt{run: r, state: state, resort: resort, refused: new(atomic.Bool)}
	a.stores = &result.Stored{OnLoss: a.refuse, OnError: r.meter.Error}
	return a
}

// abort discards the pass's output.
func (a *attempt) abort() {
	if a.target != nil {
		a.target.Abort()
	}
	if a.rules != nil && a.rules.Back != nil {
		a.rules.Back.Target.Abort()
	}
}

// unordered returns the error of tables out of order, which another attempt sorts; nil if err is another one.
func (a *attempt) unordered(err error) (order *store.OrderError) {
	if a.resort == "" {
		errors.As(err, &order)
	}
	return order
}

// close closes the target and the source.
func (a *attempt) close() error {
	err := errors.Join(closeSource(a.back), closeSource(a.src))
	a.back, a.src = nil, nil
	return err
}

// location is the directory or address of the target under construction.
func (a *attempt) location() string {
	if a.o.onServer() {
		return a.o.Target.Address
	}
	return a.work.Data()
}

func closeSource(s format.Source) error {
	if s == nil {
		return nil
	}
	return s.Close()
}

// finishes reports whether the run builds the target from finished parts.
func (r *run) finishes() bool { return r.shared != nil && r.part.N == 0 }
