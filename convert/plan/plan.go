package plan

import (
	"fmt"
	"slices"

	"kvferry/format"
	"kvferry/internal/pass/filter"
	"kvferry/record"
)

const (
	// taskBytes is the approximate size of a task. Workers end together when tasks are small beside their share.
	taskBytes = 16 << 20
	// pieceBytes is the same if the target is one file or one server: all types go there together, so only spans keep
	// workers busy, and one more costs little.
	pieceBytes = 8 << 20
	maxSpans   = 64
	// mostTaskBytes is the largest size of a task, as far as the source can be cut: a run that dies loses the tasks
	// its workers were at.
	mostTaskBytes = 128 << 20
	// passBytes and mostPassBytes are the same if each span costs a pass over the source.
	passBytes     = 64 << 20
	mostPassBytes = 1 << 30
)

// Task is a piece of the work: one span of one database, of types that the source reads or the target
// writes together.
type Task struct {
	// N numbers the tasks, and the target's shards, in the order (database, group, span).
	N        int            `json:"n"`
	DB       string         `json:"db"`
	TargetDB string         `json:"target_db"`
	Types    record.TypeSet `json:"types"` // to read
	Group    record.TypeSet `json:"group"` // of the target, or several; 0: none has the types
	Span     format.Span    `json:"span"`
	Bytes    int64          `json:"bytes"` // approximate size
}

// Work is about how much there is to do, in bytes of strings, hashes or lists.
func (t *Task) Work() int64 { return work(t.Types, t.Bytes) }

// work is about how much there is to do for some bytes of some types. Members of sets and sorted sets are small, so that there
// are more of them; those of sorted sets are also ordered by score.
func work(types record.TypeSet, bytes int64) int64 {
	if types&^record.Of(record.Set, record.ZSet) == 0 {
		return 2 * bytes
	}
	return bytes
}

// Plan describes the work of a conversion. It depends only on the source and the filter, not on the
// number of workers.
type Plan struct {
	DBs Names `json:"dbs"`
	// TargetDBs are the names of the same databases in the target.
	TargetDBs Names `json:"target_dbs"`
	// Groups are the groups of types that the target stores together.
	Groups []record.TypeSet `json:"groups"`
	// AnyOrder is true if records may come in any order within a task.
	AnyOrder bool `json:"any_order,omitempty"`
	// Pieces is true if the target takes pieces of any size: a file or a server.
	Pieces bool   `json:"pieces,omitempty"`
	Tasks  []Task `json:"tasks"`
	Bytes  int64  `json:"bytes"`
}

// Order is the order of records that a conversion needs, see Plan.
type Order struct{ Any, Pieces bool }

// Each calls do with the numbers from 0 to n-1. Looking for places to cut reads the indexes of the source, which are
// independent of each other.
type Each func(n int, do func(i int) error) error

// New plans the conversion of the selected records of a source into the groups of types that
// the target writes. names are the names of the databases in the target. each calls do with numbers from 0 to n-1, several at
// once as it likes, and returns the error of the least.
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

// share is what a source has of some types of one database.
type share struct {
	db    int            // number of the database
	types record.TypeSet // to read
	group record.TypeSet // union of the groups that they go to
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

// holders is the union of the groups that hold any of the types.
func holders(groups []record.TypeSet, types record.TypeSet) (out record.TypeSet) {
	for _, g := range groups {
		if g&types != 0 {
			out |= g
		}
	}
	return out
}

// NothingError is the reason why a plan is empty, or what it has came to nothing.
type NothingError struct{ Why string }

// Error gives the reason.
func (e *NothingError) Error() string { return "nothing to convert: " + e.Why }

// nothing returns the reason why a plan is empty.
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

// add plans the tasks of a share.
func (p *Plan) add(s *share) {
	for _, span := range s.spans {
		p.Tasks = append(p.Tasks, Task{N: len(p.Tasks), DB: p.DBs[s.db], TargetDB: p.TargetDBs[s.db], Types: s.types, Group: s.group,
			Span: span, Bytes: s.size / int64(len(s.spans))})
	}
	p.Bytes += s.size
}

// spansFor returns the number of spans for a size of some types of the source. It depends on nothing else.
func (p *Plan) spansFor(src format.Source, types record.TypeSet, size int64) int {
	most, each := int64(mostTaskBytes), int64(taskBytes)
	if p.Pieces {
		each = pieceBytes
	}
	if _, sorts := src.(format.Sectioned); sorts && !p.AnyOrder {
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
