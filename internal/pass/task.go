package pass

import (
	"encoding/json"
	"fmt"

	"kvferry/format"
	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// Task is a unit of work: one span of one database, of types that are read together. Tasks are data: a process may
// run those that another one has planned.
type Task struct {
	// N is the number of the task in its plan, in key order. In a conversion it is that of its shard of the target, in
	// the order (database, group, span).
	N        int            `json:"n"`
	DB       string         `json:"db"`
	TargetDB string         `json:"target_db"` // of a conversion
	Types    record.TypeSet `json:"types"`     // to read
	Group    record.TypeSet `json:"group"`     // union of the target's groups; 0: no group holds the types
	Span     format.Span    `json:"span"`
	Bytes    int64          `json:"bytes"` // approximate size
	// Spans are the parts of Span that can hold selected keys; nil: all of it.
	Spans []format.Span `json:"spans,omitzero"`

	share *share // of the memory while Run runs the task; nil: no limit
}

// String describes the task.
func (t Task) String() string {
	s := t.Types.String()
	if t.DB != "" {
		s = fmt.Sprintf("database %s, %s", t.DB, s)
	}
	if t.Span.Lo != nil {
		s += ", keys from " + record.Quote(t.Span.Lo)
	}
	if t.Span.Hi != nil {
		s += ", keys before " + record.Quote(t.Span.Hi)
	}
	return s
}

// Cut cuts a task into about n tasks of equal size. If any order will do, the spans of a file are sections.
func (t Task) Cut(src format.Source, n int64, anyOrder bool) ([]Task, error) {
	split := src.Split
	if sections, ok := format.As[format.Sectioned](src); ok && anyOrder {
		split = sections.Sections
	}
	spans, err := split(t.DB, t.Types, int(n))
	if err != nil {
		return nil, err
	}
	if len(spans) == 0 {
		spans = []format.Span{{}}
	}
	out := make([]Task, len(spans))
	t.Bytes /= int64(len(spans))
	for i := range out {
		out[i] = t
		out[i].Span = spans[i]
	}
	return out, nil
}

// Work estimates the effort of the task, in bytes of strings, hashes or lists.
func (t *Task) Work() int64 { return Work(t.Types, t.Bytes) }

// Work estimates the effort for some bytes of some types. Sets and sorted sets count twice: their members are small
// and so more numerous, and sorted sets are also ordered by score.
func Work(types record.TypeSet, bytes int64) int64 {
	if types&^record.Of(record.Set, record.ZSet) == 0 {
		return 2 * bytes
	}
	return bytes
}

// Database names may be any bytes, but JSON strings must be UTF-8. Other names are written like keys in dumps:
// {"base64":"…"}.

// MarshalJSON writes the task.
func (t Task) MarshalJSON() ([]byte, error) {
	type fields Task
	return json.Marshal(struct {
		fields
		DB       jsonl.Text `json:"db"`
		TargetDB jsonl.Text `json:"target_db"`
	}{fields(t), jsonl.Text(t.DB), jsonl.Text(t.TargetDB)})
}

// Bytes returns the size of all tasks.
func Bytes(tasks []Task) (n int64) {
	for i := range tasks {
		n += tasks[i].Bytes
	}
	return n
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Task) UnmarshalJSON(data []byte) error {
	type fields Task
	var f struct {
		*fields
		DB       jsonl.Text `json:"db"`
		TargetDB jsonl.Text `json:"target_db"`
	}
	f.fields = (*fields)(t)
	err := json.Unmarshal(data, &f)
	t.DB, t.TargetDB = string(f.DB), string(f.TargetDB)
	return err
}
