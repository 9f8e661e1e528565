package plan

import (
	"fmt"
	"slices"

	"kvferry/format"
	"kvferry/internal/pass/filter"
	"kvferry/record"
)

const (
	// taskBytes is the approximate size of a task. Small tasks let all workers finish at about the same time.
	taskBytes = 16 << 20
	// pieceBytes is the task size if the target is one file or one server: all types go there together, so only spans
	// keep workers busy, and another span costs little.
	pieceBytes = 8 << 20
	maxSpans   = 64
	// mostTaskBytes is the largest size of a task, as far as the source can be split. A killed run loses the tasks
	// that its workers were executing.
	mostTaskBytes = 128 << 20
	// passBytes and mostPassBytes are the limits if each span costs a pass over the source.
	passBytes     = 64 << 20
	mostPassBytes = 1 << 30
)

// Task is a unit of work: one span of one database, of types that the source reads or the target writes together.
type Task struct {
	// N is the number of the task and of its shard of the target, in the order (database, group, span).
	N        int            `json:"n"`
	DB       string         `json:"db"`
	TargetDB string         `json:"target_db"`
	Types    record.TypeSet `json:"types"` // to read
	Group    record.TypeSet `json:"group"` // union of the target's groups; 0: no group holds the types
	Span     format.Span    `json:"span"`
	Bytes    int64          `json:"bytes"` // approximate size
}

// Work estimates the effort of the task, in bytes of strings, hashes or lists.
func (t *Task) Work() int64 { return work(t.Types, t.Bytes) }

// work estimates the effort for some bytes of some types. Sets and sorted sets count twice: their members are small
// and so more numerous, and sorted sets are also ordered by score.
func work(types record.TypeSet, bytes int64) int64 {
	if types&^record.Of(record.Set, record.ZSet) == 0 {
		return 2 * bytes
	}
	return bytes
}

// Plan is the work of a conversion. It depends only on the source and the filter, not on the number of workers.
type Plan struct {
	DBs Names `json:"dbs"`
	// TargetDBs are the names of the databases in the target, in the order of DBs.
	TargetDBs Names `json:"target_dbs"`
	// Groups are the groups of types that the target stores together.
	Groups []record.TypeSet `json:"groups"`
	// AnyOrder is true if the records of a task may come in any order.
	AnyOrder bool `json:"any_order,omitempty"`
	// Pieces is true if the target takes pieces of any size: a file or a server.
	Pieces bool   `json:"pieces,omitempty"`
	Tasks  []Task `json:"tasks"`
	Bytes  int64  `json:"bytes"`
}

// Order is the order of records that a conversion needs, see Plan.
type Order struct{ Any, Pieces bool }

// Each calls do with the numbers from 0 to n-1, in parallel if it likes, and returns the error of the lowest number.
// Calls are independent: they read the indexes of the source to find split points.
type Each func(n int, do func(i int) error) error

// New plans the conversion of the selected records of a source into the groups of types that the target writes. names
// are the names of the databases in the target.
func New(src format.Source, dbs, names []string, groups []record.TypeSet, order Order, f *filter.Filter, each Each) (*Plan, error) {
	p := &Plan{DBs: dbs, TargetDBs: names, Groups: groups, AnyOrder: order.Any, Pieces: order.Pieces}
	var shares []*share
	for i, db := range dbs {
		rest := src.Types(db)
		if f.Types != 0 {
			rest &= f.Types
		}
		together := format.Together(src, db, rest)
		// Types that no group holds are read too, to count them as lost.
		for _, first := range append(slices.Clone(groups), record.AllTypes) {
			for rest&first != 0 {
				types := format.Closure(record.Of((rest & first).Types()[0]), together, groups) & rest
				shares = append(shares, &share{db: i, types: types, group: holders(groups, types)})
				rest &^= types
			}
		}
	}
	if err := each(len(shares), func(i int) error { return p.cut(src, shares[i]) }); err != nil {
		return nil, err
	}
	for _, s := range shares {
		p.add(s)
	}
	if len(p.Tasks) == 0 {
		return nil, &NothingError{nothing(src, f)}
	}
	return p, nil
}

// share is the data of some types of one database.
type share struct {
	db    int            // index of the database in the plan
	types record.TypeSet // to read
	group record.TypeSet // union of their groups
	size  int64
	spans []format.Span
}

// cut cuts a share into spans.
func (p *Plan) cut(src format.Source, s *share) (err error) {
	db := p.DBs[s.db]
	s.size = src.Size(db, s.types)
	split := src.Split
	if p.AnyOrder {
		split = func(db string, t record.TypeSet, n int) ([]format.Span, error) { return format.SplitAny(src, db, t, n) }
	}
	if s.spans, err = split(db, s.types, p.spansFor(src, s.types, s.size)); err != nil {
		return fmt.Errorf("split database %s (%s): %w", db, s.types, err)
	}
	if len(s.spans) == 0 {
		s.spans = []format.Span{{}}
	}
	return nil
}

// holders returns the union of the groups that hold any of the types.
func holders(groups []record.TypeSet, types record.TypeSet) (out record.TypeSet) {
	for _, g := range groups {
		if g&types != 0 {
			out |= g
		}
	}
	return out
}

// NothingError means that a plan has no tasks, or that its tasks matched no record.
type NothingError struct{ Why string }

// Error gives the reason.
func (e *NothingError) Error() string { return "nothing to convert: " + e.Why }

// nothing explains an empty plan.
func nothing(src format.Source, f *filter.Filter) string {
	var have record.TypeSet
	for _, db := range src.Databases() {
		have |= src.Types(db)
	}
	if f.Types != 0 && f.Types&have == 0 {
		return fmt.Sprintf("the source holds no %s", f.Types)
	}
	return "the source has no databases"
}

// add appends the tasks of a share.
func (p *Plan) add(s *share) {
	for _, span := range s.spans {
		p.Tasks = append(p.Tasks, Task{N: len(p.Tasks), DB: p.DBs[s.db], TargetDB: p.TargetDBs[s.db], Types: s.types, Group: s.group,
			Span: span, Bytes: s.size / int64(len(s.spans))})
	}
	p.Bytes += s.size
}

// spansFor returns the number of spans for some types of the source, from their size alone.
func (p *Plan) spansFor(src format.Source, types record.TypeSet, size int64) int {
	most, each := int64(mostTaskBytes), int64(taskBytes)
	if p.Pieces {
		each = pieceBytes
	}
	if _, sorts := format.As[format.Sectioned](src); sorts && !p.AnyOrder {
		each, most = passBytes, mostPassBytes
	}
	few := min(max((work(types, size)+each-1)/each, 1), maxSpans)
	return int(max(few, (size+most-1)/most))
}

// spans counts the tasks of the same group and database.
func (p *Plan) spans(t *Task) int {
	n := 0
	for i := range p.Tasks {
		if p.Tasks[i].DB == t.DB && p.Tasks[i].Group == t.Group {
			n++
		}
	}
	return n
}
