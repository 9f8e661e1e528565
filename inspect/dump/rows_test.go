package dump

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/pass/filter"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
	"kvferry/store"
)

// rowSpace is a keyspace of rows in the form "key value".
type rowSpace struct {
	dataset.Absent
	rows []string
	err  error // returned after the last row
}

func (k *rowSpace) Rows(_, _ []byte) (store.Iterator, error) {
	if k.rows == nil {
		return nil, k.err
	}
	return &rowIterator{left: k.rows, err: k.err}, nil
}

type rowIterator struct {
	left []string
	err  error
}

func (it *rowIterator) Next() (key, value []byte, err error) {
	if len(it.left) == 0 {
		if it.err != nil {
			return nil, nil, it.err
		}
		return nil, nil, io.EOF
	}
	k, v, _ := strings.Cut(it.left[0], " ")
	it.left = it.left[1:]
	return []byte(k), []byte(v), nil
}
func (it *rowIterator) SeekGE([]byte) error { return nil }
func (it *rowIterator) Place() record.Place {
	return record.Place{File: "1.sst", Off: int64(len(it.left))}
}
func (it *rowIterator) Tally(*record.Tally) {}
func (it *rowIterator) Close() error        { return nil }

// described is a source whose keys contain their type: "s:key" is a set, "h:key" a hash; other rows have no user key.
type described struct{ *fake.Source }

func (described) Describe(_, _ string, key, _ []byte) format.Row {
	t := map[string]record.Type{"s": record.Set, "h": record.Hash}[string(key[:1])]
	if t == 0 {
		return format.Row{}
	}
	return format.Row{Type: t, UserKey: key[2:]}
}

func (described) Where(_ string, key []byte) []format.Range {
	return []format.Range{{Keyspace: "meta", Lo: key}, {Keyspace: "data", Lo: key}}
}

func newDescribed(spaces ...format.Keyspace) described {
	src := fake.Named("0", "1")
	src.Spaces = spaces
	return described{src}
}

func rowsOf(t *testing.T, src format.Source, change func(*RowsOptions)) ([]string, error) {
	t.Helper()
	var got []string
	o := &RowsOptions{Source: src, Stores: &inspect.Stores{Root: "/data"}, Selection: &filter.Selection{},
		Tell: func(r *Row) error {
			got = append(got, fmt.Sprintf("%s %s %s=%s %s@%d", r.DB, r.Keyspace, r.Key, r.Value, r.Place.File, r.Place.Off))
			return nil
		}}
	if change != nil {
		change(o)
	}
	n, err := Rows(context.Background(), o)
	if n != int64(len(got)) {
		t.Errorf("%d rows, %d told", n, len(got))
	}
	return got, err
}

// TestRows checks that rows are reported by keyspace, and that rows without a user key are selected only without
// filters.
func TestRows(t *testing.T) {
	src := newDescribed(format.Keyspace{DB: "0", Name: "meta", Keyspace: &rowSpace{rows: []string{"h:a 1", "s:a 2", "x 3"}}},
		format.Keyspace{DB: "0", Name: "data", Keyspace: &rowSpace{rows: []string{"h:b 4"}}},
		format.Keyspace{DB: "1", Name: "meta", Keyspace: &rowSpace{rows: []string{"s:b 5"}}})
	all := []string{"0 meta h:a=1 1.sst@2", "0 meta s:a=2 1.sst@1", "0 meta x=3 1.sst@0", "0 data h:b=4 1.sst@0", "1 meta s:b=5 1.sst@0"}
	for _, c := range []struct {
		name   string
		change func(*RowsOptions)
		want   []string
	}{
		{"all", nil, all},
		{"a limit", func(o *RowsOptions) { o.Limit = 2 }, all[:2]},
		{"a database", func(o *RowsOptions) { o.Selection.DBs = []string{"1"} }, all[4:]},
		{"a keyspace", func(o *RowsOptions) { o.Keyspaces = []string{"data"} }, all[3:4]},
		{"a type", func(o *RowsOptions) { o.Selection.Types = record.Of(record.Set) }, []string{all[1], all[4]}},
		{"keys", func(o *RowsOptions) { o.Selection.Match = []string{"b"} }, all[3:]},
	} {
		if got, err := rowsOf(t, src, c.change); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
}

func TestRowsFail(t *testing.T) {
	src := newDescribed(format.Keyspace{DB: "0", Name: "meta", Keyspace: &rowSpace{rows: []string{"h:a 1"}}})
	_, err := rowsOf(t, src, func(o *RowsOptions) { o.Keyspaces = []string{"none"} })
	var missing *NoKeyspaceError
	if !errors.As(err, &missing) || missing.Name != "none" || !strings.Contains(err.Error(), `"meta"`) {
		t.Errorf("a keyspace that is not there: %v", err)
	}
	var none *filter.NoDatabaseError
	if _, err := rowsOf(t, src, func(o *RowsOptions) { o.Selection.DBs = []string{"9"} }); !errors.As(err, &none) {
		t.Errorf("a database that is not there: %v", err)
	}
	boom := errors.New("boom")
	for name, ks := range map[string]*rowSpace{"cannot be opened": {err: boom},
		"cannot be read": {rows: []string{"h:a 1"}, err: boom}} {
		if _, err := rowsOf(t, newDescribed(format.Keyspace{DB: "0", Name: "meta", Keyspace: ks}), nil); !errors.Is(err, boom) {
			t.Errorf("a keyspace that %s: %v", name, err)
		}
	}
	o := &RowsOptions{Source: src, Selection: &filter.Selection{}, Tell: func(*Row) error { return boom }}
	if _, err := Rows(context.Background(), o); !errors.Is(err, boom) {
		t.Errorf("nobody wants them: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	many := make([]string, 2*record.CheckEvery)
	for i := range many {
		many[i] = "h:a 1"
	}
	o = &RowsOptions{Source: newDescribed(format.Keyspace{DB: "0", Name: "meta", Keyspace: &rowSpace{rows: many}}),
		Selection: &filter.Selection{},
		Tell:      func(*Row) error { return nil }}
	if _, err := Rows(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
