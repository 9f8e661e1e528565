package plan

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/internal/pass/filter"
	"kvferry/record"
)

// TestNamesOfAnyBytes checks that a plan survives encoding with any bytes in database names.
func TestNamesOfAnyBytes(t *testing.T) {
	const db, other = "\xff\xfe", "naïve\u202e"
	in := &Plan{DBs: Names{db, other}, TargetDBs: Names{other, db}, Groups: []record.TypeSet{record.Of(record.Set)},
		Tasks: []pass.Task{{N: 1, DB: db, TargetDB: other, Types: record.Of(record.Set), Span: format.Span{Lo: []byte("\x00")},
			Bytes: 7}}, Bytes: 7}
	data, err := json.Marshal(in)
	if err != nil || strings.Count(string(data), `{"base64":"//4="}`) != 3 {
		t.Fatalf("%s, %v", data, err)
	}
	out := new(Plan)
	if err := json.Unmarshal(data, out); err != nil || !reflect.DeepEqual(in, out) {
		t.Errorf("%s, %v: %+v, want %+v", data, err, out, in)
	}
}

// TestEmptyPlan checks that the error for a plan without tasks gives the reason.
func TestEmptyPlan(t *testing.T) {
	src := &sizes{types: record.Of(record.Hash)}
	_, err := New(src, nil, nil, nil, Order{}, new(filter.Filter), on(1))
	var nothing *NothingError
	if !errors.As(err, &nothing) || err.Error() != "nothing to convert: the source has no databases" {
		t.Error(err)
	}
}

// unsplit is a source that cannot be split.
type unsplit struct{ sizes }

func (*unsplit) Split(string, record.TypeSet, int) ([]format.Span, error) {
	return nil, errors.New("no index")
}

// TestUnsplit checks that New returns the error of a source that cannot be split.
func TestUnsplit(t *testing.T) {
	src := &unsplit{sizes{dbs: []string{"0"}, types: record.Of(record.Hash), size: func(string, record.TypeSet) int64 {
		return 1
	}}}
	if _, err := New(src, src.dbs, src.dbs, nil, Order{}, new(filter.Filter), on(1)); err == nil || err.Error() != "split database 0 (hash): no index" {
		t.Error(err)
	}
}
