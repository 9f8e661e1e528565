package plan

import (
	"testing"

	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

// sectioned is a target without key order, which is proved in two sections per database.
type sectioned struct{ *fake.Source }

func (sectioned) Sections(string, record.TypeSet, int) ([]format.Span, error) {
	return []format.Span{{Hi: []byte("m")}, {Lo: []byte("m")}}, nil
}

// TestProofReadsEverything checks that the proof reads each type of each database of the target, with any plan.
func TestProofReadsEverything(t *testing.T) {
	both, hashes := record.Of(record.String)|record.Of(record.Hash), record.Of(record.Hash)
	back := &fake.Source{}
	for _, db := range []string{"0", "1", "2"} {
		for _, typ := range []record.Type{record.String, record.Hash, record.List} {
			back.Add(fake.Record{DB: db, Type: typ})
		}
	}
	low, high := format.Span{Hi: []byte("m")}, format.Span{Lo: []byte("m")}
	// Group 0 writes no data. The plan has only strings of database 1 and no task of database 2. The rest is read as
	// a whole.
	plan := &Plan{TargetDBs: []string{"0", "1", "2"}, Groups: []record.TypeSet{hashes, record.Of(record.String)},
		Tasks: []pass.Task{
			{TargetDB: "0"}, {TargetDB: "0", Group: both, Span: low}, {TargetDB: "0"}, {TargetDB: "0", Group: both, Span: high},
			{TargetDB: "1", Group: record.Of(record.String), Span: low}, {TargetDB: "1", Group: record.Of(record.String), Span: high},
		}}
	for _, c := range []struct {
		name string
		back format.Source
		want map[string]int // number of times that a type is read
	}{{"in the order of keys", back, map[string]int{"0 string": 2, "0 hash": 2, "1 string": 2}},
		{"in sections", sectioned{back}, nil}} {
		read := map[string]int{}
		for _, task := range ProofTasks(c.back, plan) {
			for _, typ := range task.Types.Types() {
				read[task.DB+" "+task.TargetDB+" "+typ.String()]++
			}
		}
		for _, db := range []string{"0", "1", "2"} {
			for _, typ := range back.Types(db).Types() {
				want := c.want[db+" "+typ.String()]
				if want == 0 {
					want = 1 // as a whole
				}
				if c.want == nil {
					want = 2 // once per section
				}
				if n := read[db+" "+db+" "+typ.String()]; n != want {
					t.Errorf("%s: %s of database %s are read %d times, want %d", c.name, typ, db, n, want)
				}
			}
		}
		if len(read) != 9 {
			t.Errorf("%s: reads %v", c.name, read)
		}
	}
}
