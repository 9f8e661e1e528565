package result

import (
	"bytes"
	"cmp"
	"slices"
	"sync"

	"kvferry/record"
)

// Stored collects the findings of the source's stores: tables and blocks that were skipped, tables that had to be
// sorted. A store reports each finding once, to the first task that meets it, and a resumed run does not repeat
// finished tasks. So the findings must be kept in the journal.
type Stored struct {
	mu   sync.Mutex
	seen map[storeFinding]record.Finding
	// fresh holds the findings that are not in the journal yet.
	fresh []record.Finding
	// OnLoss is called for each report of a finding that means a loss; it may be nil.
	OnLoss func(kind string)
	// OnError is called for each new finding of severity Error; it may be nil.
	OnError func()
}

// storeFinding identifies a finding when another process reports it again. The wording of Detail may differ then.
type storeFinding struct {
	kind, key        string
	place            record.Place
	keyspace, detail string // only of findings without an offset
}

func identityOf(f *record.Finding) storeFinding {
	id := storeFinding{kind: f.Kind, key: string(f.Key), place: f.Place}
	if !f.Place.HasOffset() {
		id.keyspace, id.detail = f.Keyspace, f.Detail
	}
	return id
}

// Report adds a finding unless it is known. It calls OnLoss before the finding can reach the journal: a task takes
// the fresh findings first and then checks for refused losses.
func (s *Stored) Report(f record.Finding) {
	if kind := LossOf(f.Kind, f.Severity.String()); kind != "" && s.OnLoss != nil {
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

// Adopt adds the findings in the results of an earlier process.
func (s *Stored) Adopt(tasks []*Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range tasks {
		for _, f := range t.Stores {
			s.add(f)
		}
	}
}

// Unwritten returns the findings that are not in the journal yet. The caller must write them.
func (s *Stored) Unwritten() []record.Finding {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := s.fresh
	s.fresh = nil
	return fresh
}

// compareStored orders findings by place. Different findings never compare equal: their order must not depend on the
// timing of workers.
func compareStored(a, b record.Finding) int {
	return cmp.Or(cmp.Compare(a.Place.File, b.Place.File), cmp.Compare(a.Place.Off, b.Place.Off),
		cmp.Compare(a.Place.Level, b.Place.Level), cmp.Compare(a.Place.Seq, b.Place.Seq), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Keyspace, b.Keyspace), bytes.Compare(a.Key, b.Key), cmp.Compare(a.Detail, b.Detail))
}

// Tell calls to for all findings, in order.
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

// PassedOver returns the unreadable data, as losses.
func (s *Stored) PassedOver() []LossKind {
	var set Findings
	s.Tell(func(f record.Finding) {
		if f.Skipped() {
			set.Report(f)
		}
	})
	return LossesOf(set.List())
}
