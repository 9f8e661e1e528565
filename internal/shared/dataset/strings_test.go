package dataset

import (
	"context"
	"fmt"
	"io"
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

func (p *plainPass) DecodeStrings(records []record.Record, elems []record.Element, rows []store.Row, _ store.Batcher) (n int) {
	for _, row := range rows {
		if len(row.Value) > 0 {
			r := &records[n]
			r.DB, r.Key, r.N, r.Class, elems[n].Value = "7", row.Key, 1, record.Copied, row.Value
			n++
		}
	}
	return n
}

func (p *plainPass) StringValue(row *store.Row) ([]byte, error) { return row.Value, nil }

func (p *plainPass) Publish() { p.published++ }

// TestStrings: a row is a record of one element. It is counted by its class, and changes of a batch do not last.
func TestStrings(t *testing.T) {
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
	var tally record.Tally
	var ledger record.Ledger
	p := &plainPass{}
	r := record.Booked(Strings(context.Background(), it, &tally, &record.Places{Meta: "kv"}, p, 0), &ledger)
	i, want := 0, record.Tally{}
	for {
		b, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for j := range b.Records {
			if i++; i%7 == 0 {
				i++
			}
			s := &b.Records[j]
			if s.DB != "7" || s.Type != record.String || s.Len != 1 || s.Class != record.Copied ||
				string(s.Key) != fmt.Sprintf("%03d", i) || string(b.Of(j)[0].Value) != "v" {
				t.Fatalf("%d: %+v", i, s)
			}
			s.Class = []record.Class{record.Copied, record.Expired, record.Filtered}[i%3]
			want.Rows[s.Class]++
			s.N, s.DB, b.Elems[s.First] = 0, "changed", record.Element{}
		}
	}
	if err := r.Close(); err != nil || p.published != 1 || i < rows-2 || ledger.Snapshot()["kv"].Rows != want.Rows {
		t.Errorf("published %d times, rows %v, want %v, %v", p.published, ledger.Snapshot(), want.Rows, err)
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
	}{{"full", yes, true}, {"full", no, false}, {"full", &format.OpenOptions{}, false}, {"empty", yes, false},
		{"nowhere", yes, false}, {"shut", yes, true}, {"shut", no, false}} {
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
	rows := []store.Row{{Key: []byte("no")}, {Key: []byte("a"), Value: []byte("1")}, {Key: []byte("nor"), Value: []byte("x")},
		{Key: []byte("b")}, {Key: []byte("c"), Value: []byte("3")}, {Key: []byte("last"), Value: []byte("x")}}
	for row, want := range map[string]string{"": `["1" "" "3"]`, "c": `["1" "" ""]`, "nor": `["1" "" "3"]`} {
		s := &stringRows{pass: &failing{row: row}, wait: store.Waiting{Rows: rows}}
		s.texts.Elems = make([]record.Element, 3)
		for _, key := range []string{"a", "b", "c"} {
			n := len(s.batch.Records)
			s.batch.Records = append(s.batch.Records, record.Record{Header: record.Header{Key: []byte(key)}})
			s.texts.Elems[n].Value = []byte("old")
		}
		err := s.values()
		var got [][]byte
		for i := range s.batch.Records {
			got = append(got, s.texts.Elems[i].Value)
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
