package kvrocks_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/formattest"
	"kvferry/kvrocks"
	"kvferry/kvrocks/codec"
	"kvferry/record"
)

// only opens a database with the rows that do plants.
func only(t *testing.T, do func(rows)) format.Source {
	t.Helper()
	m := formattest.NewMemory(t, kvrocks.New())
	r := rows{m.Store("db")}
	for _, cf := range []string{"default", "metadata", "zset_score", "stream", "propagate"} {
		r.Keyspace(cf, bytewise)
	}
	do(r)
	return formattest.Open(t, m.Format, m.Dir, &format.OpenOptions{Store: m.FS.Open})
}

// TestGreatestDeleted: a stream knows the greatest id that was deleted from it, when there is one.
func TestGreatestDeleted(t *testing.T) {
	for _, id := range []codec.StreamID{{}, {7: 3, 15: 9}} {
		src := only(t, func(r rows) {
			r.meta(codec.KindStream, 0, codec.AppendStreamState(nil, codec.StreamState{LastGenerated: id, MaxDeleted: id, Added: 1}))
		})
		r := formattest.Records(t, src, kvrocks.DefaultNamespace, &format.Env{TempDir: t.TempDir()})
		h, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if want := id[:]; h.Type != record.Stream || (h.MaxDeleted == nil) != (id == codec.StreamID{}) || h.MaxDeleted != nil && !bytes.Equal(h.MaxDeleted, want) {
			t.Errorf("%s, greatest deleted %x, want %x", h.Type, h.MaxDeleted, want)
		}
		r.Close()
	}
}

// TestDeadTypes: what rows without metadata were.
func TestDeadTypes(t *testing.T) {
	for want, do := range map[string]func(rows){
		"zset": func(r rows) { r.sub("default", "m", double(1.5)); r.sub("zset_score", double(1.5)+"m", "") },
		"hash": func(r rows) { r.sub("default", "f", double(1.5)) },
	} {
		dead := only(t, do).(format.Undead)
		r, err := dead.DeadRecords(context.Background(), kvrocks.DefaultNamespace, record.AllTypes, format.Span{}, &format.Env{Now: goldenNow, TempDir: t.TempDir()},
			func([]byte, record.Type, string) {})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(formattest.Lines(t, r)); !strings.Contains(got, `"type":"`+want+`"`) {
			t.Errorf("%s, want a %s", got, want)
		}
	}
}

// TestDescribeByMetadata: what a row is depends on the metadata of its key.
func TestDescribeByMetadata(t *testing.T) {
	for kind, want := range map[codec.Kind]string{codec.KindHash: "hash field", codec.KindSet: "set member", codec.KindZSet: "zset member"} {
		src := only(t, func(r rows) { r.meta(kind, 1, nil); r.sub("default", "m", double(1)) })
		for _, ks := range src.Keyspaces() {
			if !strings.HasSuffix(ks.Name, "default") {
				continue
			}
			if got := formattest.ShowRow(src.Describe(ks.DB, ks.Name, subKey(7, "m"), []byte(double(1)))); !strings.HasPrefix(got, want) {
				t.Errorf("%s, want a %s", got, want)
			}
		}
	}
}

// TestStaleModuleRows: rows of a value that was deleted before are passed over, however many there are: none of a batch is not
// the end.
func TestStaleModuleRows(t *testing.T) {
	src := only(t, func(r rows) {
		r.meta(codec.KindBloom, 1, append([]byte{0, 1}, append(make([]byte, 14), 0, 0, 0, 1)...))
		for i := range 200 {
			r.Put("default", subKey(6, be(uint64(i))), []byte("old"))
		}
		r.sub("default", be(0), "v")
	})
	r := formattest.Records(t, src, kvrocks.DefaultNamespace, &format.Env{TempDir: t.TempDir()})
	defer r.Close()
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	total := 0
	for dst := make([]record.Element, 10); ; {
		n, err := r.Read(dst)
		if err == io.EOF {
			break
		}
		if n == 0 || err != nil {
			t.Fatalf("%d elements, %v", n, err)
		}
		total += n
	}
	if total != 2 { // the metadata and one row
		t.Errorf("%d elements", total)
	}
}
