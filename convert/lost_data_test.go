package convert

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

// unheld returns records with parts that targets may not hold.
func unheld() []fake.Record {
	e := func(kind record.Kind, name string) record.Element {
		return record.Element{Kind: kind, Name: []byte(name), Value: []byte("v")}
	}
	soon := testNow.UnixMilli() + 1000
	fields := []record.Element{e(0, "a"), e(0, "b"), e(0, "c")}
	fields[0].ExpireMS, fields[2].ExpireMS = soon, soon
	zero, id := make([]byte, 16), bytes.Repeat([]byte{1}, 16)
	groups := []record.Element{e(record.Group, "g1"), e(record.Consumer, "c"), e(record.Pending, "p"), e(record.Group, "g2")}
	return []fake.Record{
		{DB: "0", Type: record.Hash, Key: []byte("fields"), Elems: fields},
		{DB: "0", Type: record.Hash, Key: []byte("plain"), Elems: []record.Element{e(0, "a")}},
		{DB: "0", Type: record.Stream, Key: []byte("blank"), Last: zero},
		{DB: "0", Type: record.Stream, Key: []byte("emptied"), Last: id},
		{DB: "0", Type: record.Stream, Key: []byte("groups"), Last: id, Elems: append([]record.Element{e(record.Entry, "1"), e(record.Entry, "2")}, groups...)},
		{DB: "0", Type: record.Stream, Key: []byte("only groups"), Last: zero, Elems: groups},
		{DB: "0", Type: record.Other, Key: []byte("module"), Elems: []record.Element{e(0, "head"), e(0, "tail")}},
		{DB: "0", Type: record.Other, Key: []byte("nodule"), Elems: []record.Element{e(0, "head")}},
	}
}

// TestUnheld checks that data beyond a target's limits is dropped, reported once with its record, and counted as
// lost.
func TestUnheld(t *testing.T) {
	all := append([]record.TypeSet{record.Of(record.Stream)}, fake.PerType...)
	for name, c := range map[string]struct {
		limits         format.Limits
		groups         []record.TypeSet
		want           string
		records, elems int64
		classes        string
	}{
		"everything": {format.Limits{FieldExpiry: true, StreamGroups: true}, append(all, record.Of(record.Other)),
			`module 1 true [other "module" in database 0 (piece head)]
`, 7, 7, "map[copied:22 lost:3]"},
		"entries, and fields without expiry": {format.Limits{NoBlankStream: true}, all,
			`blank-stream 2 true [stream "blank" in database 0 (it never had an entry) stream "only groups" in database 0 (it never had an entry)]
field-expiry 2 false [hash "fields" in database 0 (field "a") hash "fields" in database 0 (field "c")]
module 2 true [other "module" in database 0 (the target does not support it) other "nodule" in database 0 (the target does not support it)]
stream-groups 4 true [stream "groups" in database 0 (group "g1") stream "groups" in database 0 (group "g2") ` +
				`stream "only groups" in database 0 (group "g1") stream "only groups" in database 0 (group "g2")]
`, 4, 6, "map[copied:10 lost:15]"},
	} {
		c.limits.SameName = true
		b := newBench(t, unheld())
		b.to.Bounds, b.to.Groups = c.limits, c.groups
		b.o.AllowLoss = []string{record.LossFieldExpiry, record.LossStreamGroups, record.LossBlankStream, record.LossModule}
		rep := b.run()
		var got strings.Builder
		for _, l := range rep.Losses {
			fmt.Fprintf(&got, "%s %d %t %v\n", l.Kind, l.Count, l.Drops, l.Samples)
		}
		if got.String() != c.want || rep.Records() != c.records || rep.Elements() != c.elems ||
			fmt.Sprint(rep.Ledger[0].Classes) != c.classes {
			t.Errorf("%s: %d records, %d elements, %v\n%s", name, rep.Records(), rep.Elements(), rep.Ledger[0].Classes, &got)
		}
	}
}

// TestCopyFile checks that a file beside the stores is copied up to a size that no server reaches.
func TestCopyFile(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	if err := os.WriteFile(from, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	for size, want := range map[int64]string{maxExtra: "", maxExtra + 1: from + ": larger than 64 MiB, so no server wrote it; move it out of the dataset"} {
		err := errors.Join(os.Truncate(from, size), copyFile(from, to))
		if err == nil && want != "" || err != nil && err.Error() != want {
			t.Errorf("%d bytes: %v", size, err)
		}
		if st, e := os.Stat(to); e != nil || want == "" && st.Size() != size {
			t.Errorf("%d bytes are copied: %v, %v", size, st, e)
		}
		if err := os.Remove(to); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyFile(from, filepath.Join(dir, "none", "to")); err == nil {
		t.Error("copied into no directory")
	}
}

// follower is a format whose servers can follow those of the fake.
type follower struct{ *fake.Format }

func (follower) Follows(source string) ([]string, bool) {
	return []string{"the binlog is still there"}, source == "fake"
}

// TestFollows checks the commands of all info files, for servers that can follow those of the source.
func TestFollows(t *testing.T) {
	b := newBench(t, fake.Dataset(1))
	b.o.Target.Format = follower{b.to}
	b.write("src/a", []byte("3s\n10.0.0.7\n9221\n42\n1234\n"))
	b.write("src/b", []byte("not one"))
	b.write("src/c", []byte("3s\n10.0.0.8\n9221\n7\n8\n"))
	for extra, want := range map[string]string{
		"a b c": "&{[slaveof 10.0.0.7 9221 42 1234 slaveof 10.0.0.8 9221 7 8] [the binlog is still there]}", "b": "<nil>", "": "<nil>",
	} {
		src := &fake.Source{Of: b.from, Files: strings.Fields(extra)}
		if got, err := following(src, b.o.Target.Format, b.o.Source.Path); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%q: %v, %v, want %s", extra, got, err, want)
		}
		if got, err := following(src, b.to, b.o.Source.Path); err != nil || got != nil {
			t.Errorf("a format that follows none: %v, %v", got, err)
		}
	}
	src := &fake.Source{Of: b.from, Files: []string{"gone"}}
	if _, err := following(src, b.o.Target.Format, b.o.Source.Path); err == nil {
		t.Error("an info file that is gone")
	}
}
