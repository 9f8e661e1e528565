package blackwidow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"

	"kvferry/format"
	"kvferry/internal/dataset"
	"kvferry/internal/lane"
	"kvferry/record"
	"kvferry/store"
)

// typeStore is one of the five stores.
type typeStore struct {
	family   *family
	database string
	rel      string // directory in the dataset: "hashes", "db0/hashes", "db0/1/hashes"
	store    store.Store
	meta     space
	data     space           // not for strings
	score    space           // of zsets
	rows     *lane.Directory // lanes of data; nil for strings and lists
	index    *lane.Directory // lanes of score; nil but for zsets that have it
}

// space is a column family of a store.
type space struct {
	name     string // in the ledger and in findings: "db0/hashes/data_cf"
	short    string // without the database: "hashes/data_cf"
	keyspace store.Keyspace
	listed   bool // is there; a data column family need not be
}

// openStore opens the store of one type, nil when it is not there.
func openStore(ctx context.Context, root, dir string, fam *family, o *format.OpenOptions) (*typeStore, error) {
	rel := path.Join(dir, fam.dir)
	st, err := dataset.OpenStore(ctx, root, rel, o)
	if st == nil {
		return nil, err
	}
	ts := &typeStore{family: fam, rel: rel, store: st}
	if err := ts.assign(filepath.Join(root, rel)); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return ts, nil
}

// assign finds the column families. The engine opens a store that has only the default one; what is
// missing is then empty.
func (ts *typeStore) assign(dir string) error {
	f := ts.family
	ts.meta = ts.space(cfDefault)
	if f.data != "" {
		ts.data = ts.space(f.data)
	}
	if f.score != "" {
		ts.score = ts.space(f.score)
	}
	for _, ks := range ts.store.Keyspaces() {
		want := f.orderOf(ks.Name())
		if want == nil {
			return fmt.Errorf("%s: has a column family %q, which the engine refuses to open", dir, ks.Name())
		}
		if got := ks.Comparer().Name; got != want.Name {
			return fmt.Errorf("%s: column family %s is ordered by %s, want %s", dir, ks.Name(), got, want.Name)
		}
		for _, sp := range []*space{&ts.meta, &ts.data, &ts.score} {
			if sp.keyspace != nil && sp.keyspace.Name() == ks.Name() {
				sp.keyspace, sp.listed = ks, true
			}
		}
	}
	if f.data != "" && f.typ != record.List {
		ts.rows = lane.NewDirectory(ts.data.keyspace, f.dataRow)
	}
	if ts.score.listed {
		ts.index = lane.NewDirectory(ts.score.keyspace, f.index)
	}
	return nil
}

func (ts *typeStore) space(cf string) space {
	short := path.Join(ts.rel, cf)
	if db, rest, ok := strings.Cut(short, "/"); ok && dataset.IsDB(db) {
		short = rest
	}
	return space{name: path.Join(ts.rel, cf), short: short, keyspace: absent(cf)}
}

// spaces returns the column families that are there.
func (ts *typeStore) spaces() []*space {
	var out []*space
	for _, sp := range []*space{&ts.meta, &ts.data, &ts.score} {
		if sp.listed {
			out = append(out, sp)
		}
	}
	return out
}

// Type returns the type whose records the store holds.
func (ts *typeStore) Type() record.Type { return ts.family.typ }

// Size returns the bytes of the column families.
func (ts *typeStore) Size() int64 {
	var n int64
	for _, sp := range ts.spaces() {
		n += sp.keyspace.Size()
	}
	return n
}

// Keyspaces returns the column families that are there, named "hashes/data_cf", and "0/hashes/data_cf" in a
// partition.
func (ts *typeStore) Keyspaces() []format.Keyspace {
	var out []format.Keyspace
	for _, sp := range ts.spaces() {
		out = append(out, format.Keyspace{Name: sp.short, Keyspace: sp.keyspace})
	}
	return out
}

// Close closes the store.
func (ts *typeStore) Close() error { return ts.store.Close() }

// absent is a column family that is not there: it has no rows.
type absent string

// Name returns the name it would have.
func (a absent) Name() string { return string(a) }

// Comparer returns the bytewise order.
func (absent) Comparer() *store.Comparer { return &store.Bytewise }

// Rows returns no rows.
func (absent) Rows(_, _ []byte) (store.Iterator, error) { return nothing{}, nil }

// Entries returns no entries.
func (absent) Entries(_, _ []byte) (store.EntryIterator, error) { return noEntries{}, nil }

// Unordered calls nothing.
func (absent) Unordered(func(*store.Entry) error) error { return nil }

// Sample returns no keys.
func (absent) Sample(int) ([]store.Weighted, error) { return nil, nil }

// Size returns 0.
func (absent) Size() int64 { return 0 }

type nothing struct{}

func (nothing) Next() (key, value []byte, err error) { return nil, nil, io.EOF }
func (nothing) SeekGE([]byte) error                  { return nil }
func (nothing) Place() record.Place                  { return record.Place{Level: -1} }
func (nothing) Tally(*record.Tally)                  {}
func (nothing) Close() error                         { return nil }

type noEntries struct{}

func (noEntries) Next() (*store.Entry, error) { return nil, io.EOF }
func (noEntries) Close() error                { return nil }
