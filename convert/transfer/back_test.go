package transfer

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"kvferry/format"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

// TestBack collects what records lose on the way back to the format of their source, and leaves their batch as it is.
func TestBack(t *testing.T) {
	src := &fake.Source{Of: fake.NewFormat(), Laid: format.LayoutDB, Weight: 1, Whole: true}
	src.Add(fake.Dataset(1)...)
	from, numbers := []string{"0", "users"}, format.Limits{Numbered: true}
	back := func() (*Back, error) {
		return NewBack(context.Background(), src, from, []string{"0", "1"}, numbers, filepath.Join(t.TempDir(), "back"),
			format.CreateOptions{Reopen: new(format.OpenOptions)})
	}
	b, err := back()
	if err != nil || !slices.Equal(b.RenameDB, []string{"1=users"}) {
		t.Fatalf("%+v, %v: want the name of database 1", b, err)
	}
	elems := []record.Element{{Value: []byte("v")}, {Value: []byte("v")}, {Name: []byte("a"), Score: 1e14},
		{Name: []byte("b"), Score: 1}, {Name: []byte("head")}, {Value: []byte("v")}}
	of := func(typ record.Type, key string, first, n int) record.Record {
		return record.Record{Header: record.Header{DB: "0", Type: typ, Key: []byte(key)}, First: first, N: n,
			Class: record.Copied}
	}
	batch := &record.Batch{Elems: elems, Records: []record.Record{of(record.String, "lost", 0, 1),
		of(record.String, "note", 1, 1),
		of(record.ZSet, "z", 2, 2), of(record.Other, "module", 4, 1), of(record.String, "lost too", 5, 1)}}
	batch.Records[4].Class = record.Filtered
	want := slices.Clone(elems)
	for range 2 {
		b.batch(batch)
	}
	if got := b.Kinds(); !slices.Equal(got, []string{"key-too-long", "score-range"}) {
		t.Errorf("losses %q", got)
	}
	for i := range want {
		if string(elems[i].Name) != string(want[i].Name) || elems[i].Score != want[i].Score {
			t.Errorf("element %d was changed to %+v", i, elems[i])
		}
	}
	src.Of.Bounds.NoTarget = "it is read alone"
	if b, err := back(); b != nil || err != nil {
		t.Errorf("a format that is not written: %+v, %v", b, err)
	}
}
