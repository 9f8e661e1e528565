package fake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"kvferry/format"
	"kvferry/record"
	"kvferry/store"
)

// Target writes one file a shard.
type Target struct {
	Of      *Format
	dir     string
	Mu      sync.Mutex
	tables  map[int][]store.Table
	Reopen  *format.OpenOptions
	aborted bool
}

func (f *Format) Create(_ context.Context, dir string, o *format.CreateOptions) (format.Target, error) {
	if len(o.DBs) > 1 && o.Layout == format.LayoutFlat {
		return nil, errors.New("one database only")
	}
	t := &Target{Of: f, dir: dir, tables: map[int][]store.Table{}, Reopen: o.Reopen}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".tmp") {
			return nil, fmt.Errorf("%s holds %s", dir, e.Name())
		}
	}
	if err != nil {
		return t, os.Mkdir(dir, 0o755)
	}
	return t, nil
}

func (t *Target) Losses(h *record.Header) []record.Loss {
	switch {
	case bytes.HasPrefix(h.Key, []byte("lost")):
		return []record.Loss{{Kind: "key-too-long", Drops: true, Detail: "it is"}}
	case bytes.HasPrefix(h.Key, []byte("note")):
		return []record.Loss{{Kind: "hyperloglog", Note: true}}
	}
	return nil
}

func (t *Target) Unchanged(batch []record.Record, _ []record.Element) int {
	for i := range batch {
		if t.Losses(&record.Header{Key: batch[i].Key}) != nil {
			return i
		}
	}
	return len(batch)
}

func (t *Target) ElementLosses(h *record.Header, batch []record.Element, report func(record.Loss)) []record.Element {
	return slices.DeleteFunc(batch, func(e record.Element) bool {
		if h.Type == record.Other && h.Key[0] == 'm' { // one loss per value; later pieces belong to it
			report(record.Loss{Kind: record.LossModule, Drops: true, Detail: "piece " + string(e.Name)})
			return true
		}
		if e.Score < 1e13 {
			return false
		}
		report(record.Loss{Kind: "score-range", Drops: true, Detail: fmt.Sprintf("member %q", e.Name)})
		return true
	})
}

func (t *Target) Groups() []record.TypeSet { return t.Of.Groups }

func (t *Target) Shard(n int, db string, g record.TypeSet, memory int64) (record.Writer, error) {
	if t.Of.OnShard != nil {
		t.Of.OnShard(memory)
	}
	return &writer{t: t, n: n, db: db}, nil
}

func (t *Target) Tables(n int) ([]store.Table, error) {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	tables := t.tables[n]
	if n != 0 && n == t.Of.Forgets {
		delete(t.tables, n)
	}
	return tables, nil
}

func (t *Target) Adopt(n int, _ string, tables []store.Table) error {
	for _, table := range tables {
		st, err := os.Stat(filepath.Join(t.dir, table.File))
		if err != nil {
			return err
		}
		if st.Size() != table.Bytes {
			return errors.New("another size")
		}
	}
	t.tables[n] = tables
	return nil
}

func (t *Target) Finish(ctx context.Context) (format.Source, error) {
	known := map[string]bool{}
	for n, tables := range t.tables {
		for _, table := range tables {
			known[table.File] = true
			if err := os.Rename(filepath.Join(t.dir, table.File), filepath.Join(t.dir, fmt.Sprintf("%06d.json", n))); err != nil {
				return nil, err
			}
			if t.Of.MidFinish != nil {
				t.Of.MidFinish()
			}
		}
	}
	left, _ := filepath.Glob(filepath.Join(t.dir, "*.tmp"))
	for _, path := range left {
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	if err := os.WriteFile(filepath.Join(t.dir, "CURRENT"), []byte("whole"), 0o644); err != nil {
		return nil, err
	}
	return (&Format{Bounds: t.Of.Bounds, Wrap: t.Of.Wrap}).Open(ctx, t.dir, t.Reopen)
}

func (t *Target) Abort() { t.aborted = true }

type writer struct {
	t    *Target
	n    int
	db   string
	feed record.Feeder
	seen int
	buf  bytes.Buffer
	rec  Record
}

func (w *writer) Begin(h *record.Header) error {
	if w.seen++; w.t.Of.FailAfter > 0 && w.seen > w.t.Of.FailAfter {
		return errors.New("no space left on device")
	}
	w.rec = Record{DB: w.db, Type: h.Type, Key: bytes.Clone(h.Key), ExpireMS: h.ExpireMS, Last: bytes.Clone(h.Last)}
	if h.DB != w.db {
		return fmt.Errorf("record of %q in the shard of %q", h.DB, w.db)
	}
	return nil
}

func (w *writer) Write(b *record.Batch) error { return w.feed.Feed(b, w, nil) }

func (w *writer) Elements(elems []record.Element) error {
	for _, e := range elems {
		e.Name, e.Value = append([]byte{}, e.Name...), append([]byte{}, e.Value...)
		w.rec.Elems = append(w.rec.Elems, e)
	}
	return nil
}

func (w *writer) End() error {
	blank := w.t.Of.Bounds.NoBlankStream && bytes.Count(w.rec.Last, []byte{0}) == len(w.rec.Last)
	if len(w.rec.Elems) == 0 && (w.rec.Type != record.Stream || blank) {
		return nil
	}
	if w.t.Of.Spoil != nil {
		w.t.Of.Spoil(&w.rec)
	}
	return json.NewEncoder(&w.buf).Encode(w.rec)
}

func (w *writer) Close() error {
	name := fmt.Sprintf("%06d.tmp", w.n)
	if err := os.WriteFile(filepath.Join(w.t.dir, name), w.buf.Bytes(), 0o644); err != nil {
		return err
	}
	w.t.Mu.Lock()
	defer w.t.Mu.Unlock()
	w.t.tables[w.n] = []store.Table{{File: name, Shard: w.n, Bytes: int64(w.buf.Len())}}
	return nil
}

func (w *writer) Abort() {}
