package convert

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"kvferry/record"
)

// FindingKind sums up the findings of one kind.
type FindingKind struct {
	Kind     string   `json:"kind"`
	Severity string   `json:"severity"`
	Count    int64    `json:"count"`
	Samples  []Sample `json:"samples"`
}

// findingSet collects findings. It is safe for concurrent use.
type findingSet struct {
	mu    sync.Mutex
	kinds map[findingKey]*FindingKind
	// onError is called for each finding that says data is damaged; it may be nil.
	onError func()
}

type findingKey struct {
	severity record.Severity
	kind     string
}

// report counts a finding.
func (s *findingSet) report(f record.Finding) {
	s.mu.Lock()
	k := s.kind(findingKey{f.Severity, f.Kind})
	k.Count++
	if len(k.Samples) < maxSamples {
		k.Samples = append(k.Samples, sampleOf(&f))
	}
	s.mu.Unlock()
	if f.Severity == record.Error && s.onError != nil {
		s.onError()
	}
}

// kind returns the sum of a kind; s.mu is held.
func (s *findingSet) kind(key findingKey) *FindingKind {
	if s.kinds == nil {
		s.kinds = make(map[findingKey]*FindingKind)
	}
	if s.kinds[key] == nil {
		s.kinds[key] = &FindingKind{Kind: key.kind, Severity: key.severity.String()}
	}
	return s.kinds[key]
}

func sampleOf(f *record.Finding) Sample {
	s := Sample{DB: f.DB, Key: slices.Clone(f.Key), Detail: f.Detail}
	if f.Type != 0 {
		s.Type = f.Type.String()
	}
	if f.Place.File != "" {
		s.Detail += fmt.Sprintf(" [%s, offset %d]", f.Place.File, f.Place.Off)
	} else if f.Keyspace != "" {
		s.Detail += fmt.Sprintf(" [%s]", f.Keyspace)
	}
	return s
}

// merge adds the findings of a task that comes later in the plan.
func (s *findingSet) merge(list []FindingKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range list {
		severity, _ := record.ParseSeverity(f.Severity)
		k := s.kind(findingKey{severity, f.Kind})
		k.Count += f.Count
		k.Samples = append(k.Samples, f.Samples[:min(len(f.Samples), maxSamples-len(k.Samples))]...)
	}
}

// list returns the findings, the gravest first.
func (s *findingSet) list() []FindingKind {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := make([]findingKey, 0, len(s.kinds))
	for k := range s.kinds {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b findingKey) int {
		return cmp.Or(cmp.Compare(b.severity, a.severity), cmp.Compare(a.kind, b.kind))
	})
	out := []FindingKind{}
	for _, k := range keys {
		out = append(out, *s.kinds[k])
	}
	return out
}

// damage returns the findings that say data is damaged as a loss, nil when there are none.
func damage(list []FindingKind) []LossKind {
	loss := LossKind{Kind: record.LossDamaged, Drops: true}
	for _, f := range list {
		if f.Severity != record.Error.String() {
			continue
		}
		loss.Count += f.Count
		for _, s := range f.Samples[:min(len(f.Samples), maxSamples-len(loss.Samples))] {
			s.Detail = f.Kind + ": " + s.Detail
			loss.Samples = append(loss.Samples, s)
		}
	}
	if loss.Count == 0 {
		return nil
	}
	return []LossKind{loss}
}
