package plan

import (
	"fmt"
	"slices"

	"kvferry/format"
	"kvferry/internal/pass"
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
	Pieces bool        `json:"pieces,omitempty"`
	Tasks  []pass.Task `json:"tasks"`
	Bytes  int64       `json:"bytes"`
}

// Order is the order of records that a conversion needs, see Plan.
type Order struct{ Any, Pieces bool }

// Each calls do with the numbers from 0 to n-1, in parallel if it likes, and returns the error of the lowest number.
// Calls are independent: they read the indexes of the source to find split points.
type Each func(n int, do func(i int) error) error

// New plans the conversion of the selected records of a source into the groups of types that the target writes. names
// are the names of the databases in the target.
func New(src format.Source, dbs, names []string, groups []record.TypeSet, order Order, f *filter.Filter,
	each Each) (*Plan, error) {
	p := &Plan{DBs: dbs, TargetDBs: names, Groups: groups, AnyOrder: order.Any, Pieces: order.Pieces}
	var shares []pass.Task // each the data of some types of one database
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
				shares = append(shares, pass.Task{DB: db, TargetDB: names[i], Types: types, Group: holders(groups, types)})
				rest &^= types
			}
		}
	}
	cut := make([][]pass.Task, len(shares))
	if err := each(len(shares), func(i int) (err error) {
		cut[i], err = p.cut(src, &shares[i])
		return err
	}); err != nil {
		return nil, err
	}
	for i, tasks := range cut {
		p.Bytes += shares[i].Bytes
		for _, t := range tasks {
			t.N = len(p.Tasks)
			p.Tasks = append(p.Tasks, t)
		}
	}
	if len(p.Tasks) == 0 {
		return nil, &NothingError{nothing(src, f)}
	}
	return p, nil
}

// cut cuts a share into tasks.
func (p *Plan) cut(src format.Source, s *pass.Task) ([]pass.Task, error) {
	s.Bytes = src.Size(s.DB, s.Types)
	tasks, err := s.Cut(src, p.spansFor(src, s.Types, s.Bytes), p.AnyOrder)
	if err != nil {
		return nil, fmt.Errorf("split database %s (%s): %w", s.DB, s.Types, err)
	}
	return tasks, nil
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

// spansFor returns the number of spans for some types of the source, from their size alone.
func (p *Plan) spansFor(src format.Source, types record.TypeSet, size int64) int64 {
	most, each := int64(mostTaskBytes), int64(taskBytes)
	if p.Pieces {
		each = pieceBytes
	}
	if _, sorts := format.As[format.Sectioned](src); sorts && !p.AnyOrder {
		each, most = passBytes, mostPassBytes
	}
	few := min(max((pass.Work(types, size)+each-1)/each, 1), maxSpans)
	return max(few, (size+most-1)/most)
}

// spans counts the tasks of the same group and database.
func (p *Plan) spans(t *pass.Task) int {
	n := 0
	for i := range p.Tasks {
		if p.Tasks[i].DB == t.DB && p.Tasks[i].Group == t.Group {
			n++
		}
	}
	return n
}
