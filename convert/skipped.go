package convert

import (
	"cmp"
	"slices"
	"sync"

	"kvferry/record"
)

// skippedBlock is a block or page of the source that cannot be read, as the journal keeps it.
type skippedBlock struct {
	Kind     string       `json:"kind"`
	Keyspace string       `json:"keyspace"`
	Place    record.Place `json:"place"`
	Detail   string       `json:"detail"`
}

// finding is what the store said of the block.
func (b *skippedBlock) finding() record.Finding {
	return record.Finding{Kind: b.Kind, Severity: record.Error, Keyspace: b.Keyspace, Place: b.Place, Detail: b.Detail}
}

// skippedSet collects the blocks of the source that cannot be read and were passed over. The store tells of each
// once, to whichever task comes to it first, and tasks that an earlier process finished are not read again: so
// the journal keeps them.
type skippedSet struct {
	mu     sync.Mutex
	blocks map[record.Place]skippedBlock
	// fresh are those that the journal does not have yet.
	fresh []skippedBlock
}

// take takes a finding of a block, and reports whether it is one.
func (s *skippedSet) take(f *record.Finding) bool {
	if !f.Skipped() || f.Place.File == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := (skippedBlock{f.Kind, f.Keyspace, f.Place, f.Detail}); s.add(b) {
		s.fresh = append(s.fresh, b)
	}
	return true
}

// add adds a block and reports whether it is new; s.mu is held.
func (s *skippedSet) add(b skippedBlock) bool {
	if s.blocks == nil {
		s.blocks = make(map[record.Place]skippedBlock)
	}
	if _, known := s.blocks[b.Place]; known {
		return false
	}
	s.blocks[b.Place] = b
	return true
}

// journaled adds what tasks of an earlier process found.
func (s *skippedSet) journaled(tasks []*taskResult) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range tasks {
		for _, b := range t.Skipped {
			s.add(b)
		}
	}
}

// unwritten returns the blocks that the journal does not have yet.
func (s *skippedSet) unwritten() []skippedBlock {
	s.mu.Lock()
	defer s.mu.Unlock()
	fresh := s.fresh
	s.fresh = nil
	return fresh
}

// report reports all blocks in order.
func (s *skippedSet) report(to func(record.Finding)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]skippedBlock, 0, len(s.blocks))
	for _, b := range s.blocks {
		list = append(list, b)
	}
	slices.SortFunc(list, func(a, b skippedBlock) int {
		return cmp.Or(cmp.Compare(a.Place.File, b.Place.File), cmp.Compare(a.Place.Off, b.Place.Off))
	})
	for i := range list {
		to(list[i].finding())
	}
}
