package dataset

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"testing"

	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/internal/testkit/memstore"
	"kvferry/record"
	"kvferry/store"
)

// plainPass accepts all rows with a value.
type plainPass struct{ published int }

func (p *plainPass) DecodeStrings(dst []record.StringRecord, rows []store.Row, _ store.Batcher) (n int) {
	for _, row := range rows {
		if len(row.Value) > 0 {
			dst[n] = record.StringRecord{DB: "7", Key: row.Key, Value: row.Value, Class: record.Copied}
			n++
		}
	}
	return n
}

func (p *plainPass) StringValue(row *store.Row) ([]byte, error) { return row.Value, nil }

func (p *plainPass) Publish() { p.published++ }

func (p *plainPass) Counted(f record.CountFunc) {}

// TestStrings: a row is a record of one element, which is read once and counted in its settled class.
func TestStrings(t *testing.T) {
	fs := memstore.New()
	kv := fs.Dir("/x")
	for k, v := range map[string]string{"a": "1", "b": "", "c": "3", "d": "4"} {
		kv.Put("default", []byte(k), []byte(v))
	}
	st, err := fs.Open(context.Background(), "/x", &store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	it, err := st.Keyspaces()[0].Rows(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var tally record.Tally
	p := &plainPass{}
	r := Strings(context.Background(), it, &tally, p, 0)
	elems := make([]record.Element, 2)
	for _, want := range []string{"a", "c", "d"} {
		h, err := r.Next()
		if err != nil || h.DB != "7" || h.Type != record.String || h.Len != 1 || string(h.Key) != want {
			t.Fatalf("record %+v, %v", h, err)
		}
		if n, err := r.Read(nil); n != 0 || err != io.EOF {
			t.Errorf("without room: %d, %v", n, err)
		}
		if want == "c" {
			r.Settle(record.Expired)
			continue
		}
		if n, err := r.Read(elems); n != 1 || err != nil || len(elems[0].Value) != 1 {
			t.Errorf("%s: %d elements %q, %v", want, n, elems[0].Value, err)
		}
		if n, err := r.Read(elems); n != 0 || err != io.EOF {
			t.Errorf("%s again: %d, %v", want, n, err)
		}
	}
	if _, err := r.Next(); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
	if n, err := r.Read(elems); n != 0 || err != io.EOF {
		t.Errorf("behind the end: %d, %v", n, err)
	}
	if err := r.Close(); err != nil || p.published != 1 || tally.Rows[record.Copied] != 2 || tally.Rows[record.Expired] != 1 {
		t.Errorf("published %d times, rows %v, %v", p.published, tally.Rows, err)
	}
}

// TestStringsAtOnce: rows come in batches or one by one, each once, and are counted in their class either way.
func TestStringsAtOnce(t *testing.T) {
	fs := memstore.New()
	kv := fs.Dir("/x")
	const rows = 500
	for i := range rows {
		kv.Put("default", fmt.Appendf(nil, "%03d", i), []byte("v")[:min(i%7, 1)])
	}
	st, err := fs.Open(context.Background(), "/x", &store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	it, err := st.Keyspaces()[0].Rows(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var tally, want record.Tally
	r := Strings(context.Background(), it, &tally, &plainPass{}, 0)
	settle := func(i int) record.Class {
		class := []record.Class{record.Copied, record.Expired, record.Filtered}[i%3]
		want.Rows[class]++
		return class
	}
	next := func(key []byte, i int) int {
		if i++; i%7 == 0 {
			i++
		}
		if string(key) != fmt.Sprintf("%03d", i) {
			t.Fatalf("%s, want %03d", key, i)
		}
		return i
	}
	rng, i, several := rand.New(rand.NewSource(1)), 0, 0
	for err == nil {
		if rng.Intn(3) == 0 {
			var batch []record.StringRecord
			if batch, err = r.NextStrings(); err == nil && len(batch) == 0 {
				t.Fatal("no strings and no end")
			}
			for j := range batch {
				if batch[j].DB != "7" || string(batch[j].Value) != "v" {
					t.Fatalf("%+v", batch[j])
				}
				i = next(batch[j].Key, i)
				batch[j] = record.StringRecord{DB: "changed", Class: settle(i)}
			}
			if n, err := r.Read(make([]record.Element, 1)); n != 0 || err != io.EOF {
				t.Fatalf("a batch has no current record: %d, %v", n, err)
			}
			continue
		}
		var h *record.Header
		if h, err = r.Next(); err != nil {
			break
		}
		if rng.Intn(2) == 0 {
			bound := fmt.Appendf(nil, "%03d", i+2+rng.Intn(40))
			batch, err := r.(record.StringRunner).Strings(bound)
			if err != nil || len(batch) == 0 {
				t.Fatalf("%d strings after %s, %v", len(batch), h.Key, err)
			}
			for j := range batch {
				if i = next(batch[j].Key, i); j > 0 && bytes.Compare(batch[j].Key, bound) >= 0 || string(batch[j].Value) != "v" {
					t.Fatalf("%s up to %s: %+v", batch[j].Key, bound, batch[j])
				}
				batch[j] = record.StringRecord{Class: settle(i)}
			}
			several += len(batch) - 1
			if batch, err = r.(record.StringRunner).Strings(nil); len(batch) > 0 || err != nil {
				t.Fatalf("they are not current any more: %v, %v", batch, err)
			}
			continue
		}
		i = next(h.Key, i)
		r.Settle(settle(i))
	}
	r.Settle(record.Lost)
	if r.Close(); err != io.EOF || i < rows-2 || several == 0 || tally.Rows != want.Rows {
		t.Errorf("%v after %d, rows %v, want %v", err, i, tally.Rows, want.Rows)
	}
}

// TestPassed: a store is skipped if it has files or is unreadable, and Pass matches.
func TestPassed(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"full/x", "empty"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	defer disk.Inject(func(_, path string) error {
		if filepath.Base(path) == "shut" {
			return os.ErrPermission
		}
		return nil
	})()
	yes := &format.OpenOptions{Pass: func(string, record.TypeSet, string) bool { return true }}
	no := &format.OpenOptions{Pass: func(string, record.TypeSet, string) bool { return false }}
	for _, c := range []struct {
		dir  string
		o    *format.OpenOptions
		want bool
	}{{"full", yes, true}, {"full", no, false}, {"full", &format.OpenOptions{}, false}, {"empty", yes, false}, {"nowhere", yes, false}, {"shut", yes, true}, {"shut", no, false}} {
		if got := Passed(root, c.dir, "0", record.Set, c.o); got != c.want {
			t.Errorf("%s: %t", c.dir, got)
		}
	}
}

// failing returns an error for the value of one row.
type failing struct {
	plainPass
	row string
}

func (p *failing) StringValue(row *store.Row) ([]byte, error) {
	if string(row.Key) == p.row {
		return nil, io.ErrUnexpectedEOF
	}
	return row.Value, nil
}

// TestValues: values of a batch are set from its rows again, only for strings, and not for rows with a freed value.
func TestValues(t *testing.T) {
	rows := []store.Row{{Key: []byte("no")}, {Key: []byte("a"), Value: []byte("1")}, {Key: []byte("nor"), Value: []byte("x")}, {Key: []byte("b")},
		{Key: []byte("c"), Value: []byte("3")}, {Key: []byte("last"), Value: []byte("x")}}
	for row, want := range map[string]string{"": `["1" "" "3"]`, "c": `["1" "" ""]`, "nor": `["1" "" "3"]`} {
		s := &stringRows{pass: &failing{row: row}, wait: store.Waiting{Rows: rows}}
		for _, key := range []string{"a", "b", "c"} {
			s.batch = append(s.batch, record.StringRecord{Key: []byte(key), Value: []byte("old")})
		}
		err := s.values()
		var got [][]byte
		for _, r := range s.batch {
			got = append(got, r.Value)
		}
		if fmt.Sprintf("%q", got) != want || (err != nil) != (row == "c") {
			t.Errorf("%s cannot be read: %q, %v", row, got, err)
		}
	}
}

// TestIsAbsent: a directory without files is absent; with files, or if it is no directory, it is damaged.
func TestIsAbsent(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		dir  string
		err  error
		want bool
	}{
		{dir, store.ErrNotStore, true}, {dir, io.EOF, false}, {filepath.Join(dir, "none"), os.ErrNotExist, true},
		{filepath.Dir(dir), store.ErrNotStore, false}, {"strings_test.go", store.ErrNotStore, false},
	} {
		if got := isAbsent(c.dir, c.err); got != c.want {
			t.Errorf("%s, %v: absent %t", c.dir, c.err, got)
		}
	}
}
