package result

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// maxSamples limits the samples kept per kind of loss or finding.
const maxSamples = 5

// LossKind sums up the losses of one kind.
type LossKind struct {
	Kind    string   `json:"kind"`
	Count   int64    `json:"count"`
	Drops   bool     `json:"drops"`             // data is left out; otherwise it is written changed
	Note    bool     `json:"note,omitempty"`    // reported, but needs no permission
	Allowed bool     `json:"allowed,omitempty"` // by --allow-loss
	Avoid   string   `json:"avoid,omitempty"`   // advice that avoids some or all of the losses
	Samples []Sample `json:"samples"`
}

// Sample is one example of a loss or a finding.
type Sample struct {
	Type   string     `json:"type,omitempty"`
	Key    []byte     `json:"key,omitzero"` // nil: none
	Detail string     `json:"detail"`
	DB     jsonl.Text `json:"db"`
}

// String describes the sample in one line.
func (s Sample) String() string {
	var parts []string
	if s.Type != "" {
		parts = append(parts, s.Type)
	}
	if s.Key != nil {
		parts = append(parts, record.Quote(s.Key))
	}
	if s.DB != "" {
		parts = append(parts, "in database "+string(s.DB))
	}
	if s.Detail != "" {
		parts = append(parts, "("+s.Detail+")")
	}
	return strings.Join(parts, " ")
}

// Losses collects the losses of one task.
type Losses map[string]*LossKind

// Add counts a loss of a record of database db of the source.
func (s Losses) Add(l record.Loss, db string, h *record.Header) {
	k := s[l.Kind]
	if k == nil {
		k = &LossKind{Kind: l.Kind, Note: true}
		s[l.Kind] = k
	}
	k.Count++
	k.Drops = k.Drops || l.Drops
	k.Note = k.Note && l.Note
	k.Avoid = cmp.Or(k.Avoid, l.Avoid)
	if len(k.Samples) < maxSamples {
		k.Samples = append(k.Samples, Sample{DB: jsonl.Text(db), Type: h.Type.String(),
			Key: slices.Clone(h.Key), Detail: l.Detail})
	}
}

// Merge adds the losses of a task. Tasks must be merged in the order of the plan, because the first samples are kept.
func (s Losses) Merge(list []LossKind) {
	for _, l := range list {
		k := s[l.Kind]
		if k == nil {
			k = &LossKind{Kind: l.Kind, Note: true}
			s[l.Kind] = k
		}
		k.Count += l.Count
		k.Drops = k.Drops || l.Drops
		k.Note = k.Note && l.Note
		k.Avoid = cmp.Or(k.Avoid, l.Avoid)
		k.Samples = append(k.Samples, l.Samples[:min(len(l.Samples), maxSamples-len(k.Samples))]...)
	}
}

// List returns the losses by kind.
func (s Losses) List() []LossKind {
	out := []LossKind{}
	for _, kind := range slices.Sorted(maps.Keys(s)) {
		out = append(out, *s[kind])
	}
	return out
}

// LossError means that the target cannot hold all of the source, and not all losses were allowed.
type LossError struct {
	// Target is the format of the target, as locations name it.
	Target string
	// Losses lists all losses, also the allowed ones.
	Losses []LossKind
}

// Error lists the refused kinds and the options: first those that avoid losses, then --allow-loss.
func (e *LossError) Error() string {
	var reasons, kinds, todo []string
	for _, l := range e.Refused() {
		switch {
		case l.Kind == record.LossDamaged:
			reasons = append(reasons, "the source is damaged: "+record.Count(l.Count, "error"))
		case l.Kind == record.LossNewer:
			reasons = append(reasons, "the source has "+record.Count(l.Count, "part")+" in a form unknown to this version")
		default:
			kinds = append(kinds, fmt.Sprintf("%s × %s", record.Number(l.Count), l.Kind))
		}
		if l.Avoid != "" && !slices.Contains(todo, l.Avoid) {
			todo = append(todo, l.Avoid)
		}
	}
	accept := "accept it with"
	switch {
	case kinds != nil:
		reasons = append(reasons, e.Target+" cannot hold everything: "+strings.Join(kinds, ", "))
	case len(e.Kinds()) == 1:
		accept = "convert the rest with"
	}
	todo = append(todo, accept+" --allow-loss "+strings.Join(e.Kinds(), ","))
	return "refused: " + strings.Join(reasons, "; ") + "; " + strings.Join(todo, ", or ")
}

// Kinds returns the kinds of losses that need permission, including those that are allowed.
func (e *LossError) Kinds() []string {
	var out []string
	for _, l := range e.Losses {
		if !l.Note {
			out = append(out, l.Kind)
		}
	}
	return out
}

// Refused returns the losses that are not allowed.
func (e *LossError) Refused() []LossKind {
	var out []LossKind
	for _, l := range e.Losses {
		if !l.Note && !l.Allowed {
			out = append(out, l)
		}
	}
	return out
}

// Judge marks the allowed losses and returns a LossError if any loss is not allowed. target is the name of the
// target's format in locations.
func Judge(losses []LossKind, target string, allows func(kind string) bool) error {
	e := &LossError{Target: target, Losses: losses}
	for i := range losses {
		losses[i].Allowed = !losses[i].Note && allows(losses[i].Kind)
	}
	if len(e.Refused()) > 0 {
		return e
	}
	return nil
}
