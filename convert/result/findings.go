package result

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"

	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// FindingKind sums up the findings of one kind.
type FindingKind struct {
	Kind     string   `json:"kind"`
	Severity string   `json:"severity"`
	Count    int64    `json:"count"`
	Samples  []Sample `json:"samples"`
}

// Findings collects findings. It is safe for concurrent use.
type Findings struct {
	mu    sync.Mutex
	kinds map[findingKey]*FindingKind
	// OnLoss is called for each finding that means a loss; it may be nil.
	OnLoss func(kind string)
	// OnError is called for each finding of severity Error; it may be nil.
	OnError func()
}

type findingKey struct {
	severity record.Severity
	kind     string
}

// Report counts a finding.
func (s *Findings) Report(f record.Finding) {
	s.mu.Lock()
	k := s.kind(findingKey{f.Severity, f.Kind})
	k.Count += f.Faults()
	if len(k.Samples) < maxSamples {
		k.Samples = append(k.Samples, sampleOf(&f))
	}
	s.mu.Unlock()
	if f.Severity == record.Error && s.OnError != nil {
		s.OnError()
	}
	if kind := LossOf(f.Kind, f.Severity.String()); kind != "" && s.OnLoss != nil {
		s.OnLoss(kind)
	}
}

// kind returns the sum of a kind; s.mu is held.
func (s *Findings) kind(key findingKey) *FindingKind {
	if s.kinds == nil {
		s.kinds = make(map[findingKey]*FindingKind)
	}
	if s.kinds[key] == nil {
		s.kinds[key] = &FindingKind{Kind: key.kind, Severity: key.severity.String()}
	}
	return s.kinds[key]
}

func sampleOf(f *record.Finding) Sample {
	s := Sample{DB: jsonl.Text(f.DB), Key: slices.Clone(f.Key), Detail: f.Detail}
	if f.Type != 0 {
		s.Type = f.Type.String()
	}
	if f.Place.HasOffset() {
		s.Detail += fmt.Sprintf(" [%s, offset %d]", f.Place.File, f.Place.Off)
	} else if f.Place.File != "" {
		s.Detail += fmt.Sprintf(" [%s]", f.Place.File)
	} else if f.Keyspace != "" {
		s.Detail += fmt.Sprintf(" [%s]", f.Keyspace)
	}
	return s
}

// Merge adds the findings of a task. Tasks must be merged in the order of the plan, because the first samples are
// kept.
func (s *Findings) Merge(list []FindingKind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range list {
		severity, _ := record.ParseSeverity(f.Severity)
		k := s.kind(findingKey{severity, f.Kind})
		k.Count += f.Count
		k.Samples = append(k.Samples, f.Samples[:min(len(f.Samples), maxSamples-len(k.Samples))]...)
	}
}

// List returns the findings, the most severe first.
func (s *Findings) List() []FindingKind {
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

// LossOf returns the kind of loss that a finding means: damaged or unknown data, or data that no record can hold. It
// returns "" if the finding means no loss.
func LossOf(kind, severity string) string {
	switch {
	case kind == record.LossCommand:
		return kind
	case kind == record.FindNewer && severity == record.Error.String():
		return record.LossNewer
	case severity == record.Error.String():
		return record.LossDamaged
	case kind == record.LossStreamGroups, kind == record.LossMemberExpiry, kind == record.LossScorePrecision:
		return kind
	}
	return ""
}

// PassedOver reports whether the findings concern data that could not be read and was skipped;
// other findings may follow from them.
func (k *FindingKind) PassedOver() bool {
	severity, _ := record.ParseSeverity(k.Severity)
	return (&record.Finding{Kind: k.Kind, Severity: severity}).Skipped()
}

// LossesOf converts findings to losses. Samples of unreadable data come first, because they may be the cause of the
// others.
func LossesOf(list []FindingKind) []LossKind {
	var causes, others []FindingKind
	for _, f := range list {
		if f.PassedOver() {
			causes = append(causes, f)
		} else {
			others = append(others, f)
		}
	}
	losses := map[string]*LossKind{}
	for _, f := range slices.Concat(causes, others) {
		kind := LossOf(f.Kind, f.Severity)
		if kind == "" {
			continue
		}
		l := losses[kind]
		if l == nil {
			l = &LossKind{Kind: kind, Drops: kind != record.LossScorePrecision}
			losses[kind] = l
		}
		l.Count += f.Count
		for _, s := range f.Samples[:min(len(f.Samples), maxSamples-len(l.Samples))] {
			if f.Kind != kind {
				s.Detail = f.Kind + ": " + s.Detail
			}
			l.Samples = append(l.Samples, s)
		}
	}
	var out []LossKind
	for _, kind := range slices.Sorted(maps.Keys(losses)) {
		out = append(out, *losses[kind])
	}
	return out
}
