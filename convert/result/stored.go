package result

import (
	"bytes"
	"cmp"
	"slices"
	"sync"

	"kvferry/record"
)

// Stored collects what the stores of the source report: tables and blocks that were passed over, tables
// that had to be sorted. A store tells of each once, when the first task comes to it, and tasks that an earlier
// process finished are not read again: so the journal keeps them.
type Stored struct {
	mu   sync.Mutex
	seen map[storeFinding]record.Finding
	// fresh are those that the journal does not have yet.
	fresh []record.Finding
	// OnLoss is called for each finding that tells of a loss.
	OnLoss func(kind string)
	// OnError is called for each error; it may be nil.
	OnError func()
}

// storeFinding is what a finding is known by when it is reported again, by another process. Words about a place may
// differ.
type storeFinding struct {
	kind, key        string
	place            record.Place
	keyspace, detail string // of findings without a place in a file
}

func identityOf(f *record.Finding) storeFinding {
	id := storeFinding{kind: f.Kind, key: string(f.Key), place: f.Place}
	if !f.Place.HasOffset() {
		id.keyspace, id.detail = f.Keyspace, f.Detail
	}
	return id
}

// Report takes a finding, once. What it means for the run is said before the journal can have it.
func (s *Stored) Report(f record.Finding) {
	if kind := lossOf(f.Kind, f.Severity.String()); kind != "" {
		s.OnLoss(kind)
	}
	f.Key = slices.Clone(f.Key) // it may be a view
	s.mu.Lock()
	fresh := s.add(f)
	if fresh {
		s.fresh = append(s.fresh, f)
	}
	s.mu.Unlock()
	if fresh && f.Severity == record.Error && s.OnError != nil {
		s.OnError()
	}
}

// add adds a finding and reports whether it is new; s.mu is held.
func (s *Stored) add(f record.Finding) bool {
	id := identityOf(&f)
	if _, known := s.seen[id]; known {
		return false
	}
	if s.seen == nil {
		s.seen = make(map[storeFinding]record.Finding)
	}
	s.seen[id] = f
	return true
}

// Adopt adds what was found while tasks of an earlier process ran.
func (s *Stored) Adopt(tasks []*Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range tasks {
		for _, f := range t.Stores {
			s.add(f)
		}
	}
}

// Unwritten returns the findings that the journal does not have yet.
func (s *Stored) Unwritten() []record.Finding {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := s.fresh
	s.fresh = nil
	return fresh
}

// compareStored orders findings by place. Those that are not the same finding are never equal: their order must not depend
// on which worker came first.
func compareStored(a, b record.Finding) int {
	return cmp.Or(cmp.Compare(a.Place.File, b.Place.File), cmp.Compare(a.Place.Off, b.Place.Off),
		cmp.Compare(a.Place.Level, b.Place.Level), cmp.Compare(a.Place.Seq, b.Place.Seq), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Keyspace, b.Keyspace), bytes.Compare(a.Key, b.Key), cmp.Compare(a.Detail, b.Detail))
}

// Tell reports all findings in order, whoever came to them.
func (s *Stored) Tell(to func(record.Finding)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]record.Finding, 0, len(s.seen))
	for _, f := range s.seen {
		list = append(list, f)
	}
	slices.SortFunc(list, compareStored)
	for i := range list {
		to(list[i])
	}
}

// PassedOver returns what could not be read, as losses.
func (s *Stored) PassedOver() []LossKind {
	var set Findings
	s.Tell(func(f record.Finding) {
		if f.Skipped() {
			set.Report(f)
		}
	})
	return LossesOf(set.List())
}
