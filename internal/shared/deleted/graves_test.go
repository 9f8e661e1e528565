package deleted

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"kvferry/store"
)

// dated is a keyspace of entries written as "key=value@seq", with "key@seq" for a tombstone; entries of a key
// newest first.
func dated(t *testing.T, lines ...string) *fake {
	t.Helper()
	f := &fake{}
	for _, l := range lines {
		var e store.Entry
		row, seq, _ := strings.Cut(l, "@")
		key, value, put := strings.Cut(row, "=")
		e.Key, e.Value = []byte(key), []byte(value)
		if !put {
			e.Kind = store.Delete
		}
		if _, err := fmt.Sscan(seq, &e.Seq); err != nil {
			t.Fatal(err)
		}
		f.entries = append(f.entries, e)
	}
	return f
}

// dotted are rows with keys "user.rest"; meta rows have the rest 0. For users from x on, Make cannot make a
// meta row.
func dotted(f *fake) *Rows {
	return &Rows{Keyspace: f,
		Split: func(raw []byte) (user []byte, meta, ok bool) {
			user, rest, ok := bytes.Cut(raw, []byte("."))
			return user, string(rest) == "0", ok
		},
		Make: func(user, raw []byte) (key, value []byte, ok bool) {
			return append(bytes.Clone(user), ".0"...), append([]byte("by "), raw...), user[0] < 'x'
		},
		Bounds: func(user []byte) (lo, hi []byte) { return append(bytes.Clone(user), '.'), nil },
	}
}

const (
	bare    = "its META row is gone: its expiry is unknown"
	undated = bare + ", nor which of its elements were deleted before it was"
	remade  = "it was created and deleted again later, but that META row is gone; this is the state before"
)

func TestGraves(t *testing.T) {
	for name, c := range map[string]struct {
		entries, rows []string
		note          string
	}{
		"what was deleted before is no part of it, what came later neither": {
			[]string{"a.0@10", "a.0=m@1", "a.f@11", "a.f=1@2", "a.g@5", "a.g=2@3", "a.h=3@12", "a.h=old@4"}, []string{"a.0=m", "a.f=1", "a.h=old"}, ""},
		"it is there":           {[]string{"a.0=m@10", "a.0=old@1", "a.f@11", "a.f=1@2"}, nil, ""},
		"the tombstone is left": {[]string{"a.0@10", "a.f@11", "a.f=1@2", "a.g=2@12"}, []string{"a.0=by a.f", "a.f=1"}, bare},
		"nothing of it is left": {[]string{"a.f@11", "a.f=1@2", "a.g=2@3"}, []string{"a.0=by a.f", "a.f=1", "a.g=2"}, undated},
		"made and deleted again": {
			[]string{"a.0@20", "a.0@10", "a.0=m@5", "a.f@11", "a.f=1@6"}, []string{"a.0=m", "a.f=1"}, remade},
		"an empty meta row is none":      {[]string{"a.0=@10", "a.0=m@5", "a.f@11", "a.f=1@6"}, []string{"a.0=m", "a.f=1"}, remade},
		"none can be made":               {[]string{"x.f=1@2"}, nil, ""},
		"keys without a user":            {[]string{"a@3", "a=1@2"}, nil, ""},
		"meta rows without anything":     {[]string{"a.0@10", "b.0@11", "b.0=m@5"}, []string{"b.0=m"}, ""},
		"the rows of the next are apart": {[]string{"a.0@10", "a.0=m@5", "b.f=1@6"}, []string{"a.0=m", "b.0=by b.f", "b.f=1"}, undated},
	} {
		g, err := dotted(dated(t, c.entries...)).Graves(context.Background(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var rows []string
		for {
			k, v, err := g.Next()
			if err != nil {
				if err != io.EOF {
					t.Errorf("%s: %v", name, err)
				}
				break
			}
			rows = append(rows, fmt.Sprintf("%s=%s", k, v))
		}
		if !slices.Equal(rows, c.rows) {
			t.Errorf("%s: rows %q, want %q", name, rows, c.rows)
		}
		told := ""
		g.Told([]byte("z"), func(_ []byte, what string) { told += what })
		if told != c.note {
			t.Errorf("%s: told %q, want %q", name, told, c.note)
		}
		g.Tally(nil)
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestGravesTold: notes about a record are returned on request, once, even if the iterator has read ahead.
func TestGravesTold(t *testing.T) {
	g, err := dotted(dated(t, "a.f=1@2", "b.f=1@2", "c.f=1@2")).Graves(context.Background(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if _, _, err := g.Next(); err != nil {
			t.Fatal(err)
		}
	}
	var told []string
	for _, upTo := range []string{"0", "b", "b", "c"} {
		g.Told([]byte(upTo), func(user []byte, _ string) { told = append(told, upTo+":"+string(user)) })
	}
	if want := []string{"b:a", "b:b", "c:c"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// TestPast: a past row is found in the middle of its record.
func TestPast(t *testing.T) {
	f := dated(t, "a.0@10", "a.0=m@1", "a.f=1@2", "a.h=2@3", "b.0@10", "b.0=n@4")
	ks := dotted(f).Past(context.Background())
	for lo, want := range map[string][]string{
		"a.0": {"a.0=m", "a.f=1", "a.h=2", "b.0=n"}, "a.g": {"a.h=2", "b.0=n"}, "a.i": {"b.0=n"}, "c.": nil,
	} {
		it, err := ks.Rows([]byte(lo), nil)
		if err != nil {
			t.Fatal(err)
		}
		var rows []string
		for {
			k, v, err := it.Next()
			if err != nil {
				break
			}
			rows = append(rows, fmt.Sprintf("%s=%s", k, v))
		}
		if !slices.Equal(rows, want) {
			t.Errorf("from %s: %q, want %q", lo, rows, want)
		}
		if err := it.Close(); err != nil {
			t.Error(err)
		}
	}
	if f.open != 0 {
		t.Errorf("%d iterators are open", f.open)
	}
	if _, err := ks.Rows([]byte("a"), nil); err == nil || !strings.Contains(err.Error(), `"a"`) {
		t.Errorf("from a key without a user: %v", err)
	}
	f.fail = errors.New("boom")
	if _, err := ks.Rows([]byte("c."), nil); err != f.fail {
		t.Errorf("entries fail: %v", err)
	}
}
