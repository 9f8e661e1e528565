package verify

import (
	"context"
	"errors"

	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/shared/dataset"
	"kvferry/record"
	"kvferry/store"
)

// standIns replaces stores that cannot be opened by empty ones, so that the rest of the dataset can be verified, and
// reports the cause.
type standIns struct {
	stores *inspect.Stores
	report func(record.Finding)
	// unread is called with the directory of each such store, relative to the dataset.
	unread func(dir string)
	// keyspaces returns the keyspaces of the store at a directory, as far as known.
	keyspaces func(dir string) []format.KeyspaceEvidence
}

func (s *standIns) opener(open store.Opener) store.Opener {
	return func(ctx context.Context, dir string, o *store.Options) (store.Store, error) {
		st, err := open(ctx, dir, o)
		switch {
		case err == nil:
			return st, nil
		case ctx.Err() != nil, !inspect.Unreadable(dir, err):
			return nil, err
		}
		s.report(s.finding(dir, err))
		s.unread(s.stores.Relative(dir))
		return s.empty(dir, o), nil
	}
}

// finding turns the error of opening a store into a finding.
func (s *standIns) finding(dir string, err error) record.Finding {
	f := record.Finding{Kind: record.FindUnreadableStore, Severity: record.Error, Detail: err.Error(),
		Unread: inspect.DataOf(dir), Place: record.InFile(s.stores.Relative(dir))}
	var missing *store.MissingError
	var c *record.CorruptError
	switch {
	case errors.Is(err, store.ErrNotStore):
		f.Kind, f.Place.File = record.FindMissingFile, inspect.Placed(f.Place.File, "CURRENT")
	case errors.As(err, &missing):
		f.Kind, f.Place.File, f.Detail = record.FindMissingFile, s.stores.File(missing.File), missing.Why()
	case errors.As(err, &c) && c.File != "":
		f.Kind, f.Place = record.FindDamagedFile, c.Place(s.stores.File(c.File))
		f.Detail = c.Reason()
		if record.IsNewer(err) {
			f.Kind = record.FindNewer
		}
	}
	return f
}

// empty returns a store without rows but with the keyspaces of the store at dir.
func (s *standIns) empty(dir string, o *store.Options) store.Store {
	out := new(emptyStore)
	evidence := []format.KeyspaceEvidence{{Name: "default", Comparer: store.Bytewise.Name}}
	if found := s.keyspaces(dir); len(found) > 0 {
		evidence = found
	}
	for _, k := range evidence {
		ks := &emptyKeyspace{dataset.Absent(k.Name), &store.Bytewise}
		for i := range o.Comparers {
			if o.Comparers[i].Name == k.Comparer {
				ks.cmp = &o.Comparers[i]
			}
		}
		out.keyspaces = append(out.keyspaces, ks)
	}
	return out
}

// emptyStore is a store without rows.
type emptyStore struct{ keyspaces []store.Keyspace }

func (s *emptyStore) Keyspaces() []store.Keyspace { return s.keyspaces }
func (s *emptyStore) Files() []store.File         { return nil }
func (s *emptyStore) Close() error                { return nil }

// emptyKeyspace is a keyspace without rows. It keeps the comparer.
type emptyKeyspace struct {
	dataset.Absent
	cmp *store.Comparer
}

func (k *emptyKeyspace) Comparer() *store.Comparer { return k.cmp }
