package versioned_test

import (
	"context"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/shared/versioned"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
	"kvferry/store"
)

// getters is a store in memory that looks up single rows.
type getters struct{ store.Store }

type rowGetter struct{ store.Keyspace }

func (s getters) Keyspaces() (out []store.Keyspace) {
	for _, ks := range s.Store.Keyspaces() {
		out = append(out, rowGetter{ks})
	}
	return out
}

func (k rowGetter) Get(key []byte) (value []byte, found, ok bool) {
	it, err := k.Rows(store.KeyRange(key))
	if err != nil {
		return nil, false, false
	}
	_, value, err = it.Next()
	return value, err == nil, true
}

// TestGet: single rows answer a lookup only where nothing is unusual about the key.
func TestGet(t *testing.T) {
	past := fixtures.Clock.UnixMilli() - 5000
	everywhere(t, func(t *testing.T, k kit) {
		for _, c := range []struct {
			what        string
			change      func(w *world)
			typ         record.Type
			key, name   string
			found, left bool // left to a pass
		}{
			{"a string", nil, record.String, "string", "", true, false},
			{"a field", nil, record.Hash, "hash", "a", true, false},
			{"a member", nil, record.Set, "set", "b", true, false},
			{"a score", nil, record.ZSet, "zset", "b", true, false},
			{"no field", nil, record.Hash, "hash", "none", false, k.format.Name() == "floyd"},
			{"no key", nil, record.Hash, "none", "a", false, k.format.Name() == "floyd"},
			{"a list", nil, record.List, "list", "a", false, true},
			{"another type", nil, record.Set, "hash", "a", false, true},
			{"a string, asked for a field", nil, record.Hash, "string", "a", false, true},
			{"a key that other keys may share", func(w *world) {
				w.put(w.meta(record.Hash, "a\x00b", healthy(record.Hash)))
				w.put(w.data(record.Hash, "a\x00b", version, name(0), nil))
			}, record.Hash, "a\x00b", "a", true, k.format.Name() == "floyd"},
			{"an emptied hash", func(w *world) {
				m := healthy(record.Hash)
				m.Count = 0
				w.put(w.meta(record.Hash, "hash", m))
			}, record.Hash, "hash", "a", false, true},
			{"an expired hash", func(w *world) {
				m := healthy(record.Hash)
				m.ExpireMS = past
				w.put(w.meta(record.Hash, "hash", m))
			}, record.Hash, "hash", "a", false, true},
			{"an expired string", func(w *world) {
				w.put(w.meta(record.String, "string", versioned.Meta{Value: []byte("v"), ExpireMS: past}))
			}, record.String, "string", "", false, true},
			{"a meta row that is cut off", func(w *world) {
				r := w.meta(record.Hash, "hash", healthy(record.Hash))
				r.value = r.value[:3]
				w.put(r)
			}, record.Hash, "hash", "a", false, true},
			{"a score that is cut off", func(w *world) {
				r := w.data(record.ZSet, "zset", version, name(1), leUint64(0))
				r.value = r.value[:5]
				w.put(r)
			}, record.ZSet, "zset", "b", false, true},
			{"a member with a value", func(w *world) {
				w.put(w.data(record.Set, "set", version, name(1), []byte("value")))
			}, record.Set, "set", "b", false, true},
		} {
			w := newWorld(t, k)
			if c.change != nil {
				c.change(w)
			}
			src := formattest.Open(t, w.Format, w.Dir, &format.OpenOptions{
				Store: func(ctx context.Context, dir string, o *store.Options) (store.Store, error) {
					st, err := w.FS.Open(ctx, dir, o)
					if err != nil {
						return nil, err
					}
					return getters{st}, nil
				}})
			l := record.Lookup{DB: "0", Key: []byte(c.key), Type: c.typ, Name: []byte(c.name), Now: fixtures.Clock.UnixMilli()}
			ok := src.(format.Getter).Get(&l)
			if ok == c.left || ok && l.Found != c.found {
				t.Errorf("%s: answered %t, exists %t, found %t", c.what, ok, l.Exists, l.Found)
			}
			if ok && l.Found && string(l.Elem.Name) != c.name {
				t.Errorf("%s: %q", c.what, l.Elem.Name)
			}
		}
	})
}
