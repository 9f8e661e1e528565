package stats

import (
	"context"
	"fmt"
	"testing"

	"kvferry/inspect"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
	"kvferry/store"
)

func TestFiles(t *testing.T) {
	st := &fake.Tables{Listed: []store.File{
		{Path: "1", Kind: "table", Keyspace: "default", Level: 1, Size: 10, Entries: 5, Deletes: 2, Codec: "zlib", MaxSeq: 7},
		{Path: "2", Kind: "table", Keyspace: "default", Level: 1, Size: 20, Entries: 6, Deletes: 0, Codec: "none", MaxSeq: 9},
		{Path: "3", Kind: "table", Keyspace: "default", Level: 0, Size: 5, Entries: -1, Deletes: -1, Codec: "none"},
		{Path: "4", Kind: "log", Size: 100, Entries: -1, Deletes: -1},
		{Path: "5", Kind: "manifest", Size: 3},
		{Path: "6.blob", Kind: "blobs", Keyspace: "default", Level: -1, Size: 400, Garbage: 30, Entries: 4, Codec: "lz4"},
		{Path: "7.blob", Kind: "blobs", Keyspace: "default", Level: -1, Size: 200, Garbage: 50, Entries: 2, Codec: "none"},
	}}
	stores := &inspect.Stores{Root: "/data"}
	open := stores.Opener(func(context.Context, string, *store.Options) (store.Store, error) { return st, nil })
	if _, err := open(context.Background(), "/data/hash", &store.Options{}); err != nil {
		t.Fatal(err)
	}
	files := factsOf(&inspect.Scan{Source: fake.New()}, stores).Files
	var got []string
	for _, l := range files.Levels {
		got = append(got, fmt.Sprintf("%s L%d %d %d %d %d %d %v %d", l.Keyspace, l.Level, l.Files, l.Bytes, l.Entries, l.Deletes,
			l.Unknown, l.Codecs, l.MaxSeq))
	}
	if fmt.Sprint(got) != "[hash/default L0 1 5 0 0 1 [none] 0 hash/default L1 2 30 11 2 0 [none zlib] 9]" {
		t.Errorf("levels %q", got)
	}
	b := files.Blobs
	if len(b) != 1 || b[0].Keyspace != "hash/default" || b[0].Files != 2 || b[0].Bytes != 600 || b[0].Garbage != 80 ||
		b[0].Entries != 6 {
		t.Errorf("blob files %+v", b)
	}
	if n, bytes := files.Sum(); n != 7 || bytes != 738 {
		t.Errorf("%d files of %d bytes", n, bytes)
	}
	if files.Logs.Bytes != 100 || files.Other.Bytes != 3 {
		t.Errorf("files %+v", files)
	}
}

// TestFreeBlobs checks that all garbage in blob files counts as freed, and of the rest the share of dead entries.
func TestFreeBlobs(t *testing.T) {
	g := Garbage{Keyspace: "a", Bytes: 1000}
	g.Entries, g.Rows[record.Copied] = 10, 5
	other := Garbage{Keyspace: "b", Freed: 7}
	lines := []Garbage{g, other}
	freeBlobs(lines, []Level{{Keyspace: "a", Bytes: 600, Garbage: 400}, {Keyspace: "nowhere", Garbage: 1}})
	if lines[0].Freed != 400+300 || lines[1].Freed != 7 {
		t.Errorf("freed %d and %d", lines[0].Freed, lines[1].Freed)
	}
}
