package versioned

import (
	"cmp"
	"context"
	"io"
	"path"
	"strings"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/shared/keylanes"
	"kvferry/record"
	"kvferry/store"
)

// typeOf reads the type from the value of a meta row. A type without a codec is an error: its layout is unknown.
func (s *Store) typeOf(value []byte) (record.Type, error) {
	t, err := s.Layout.TypeOf(value)
	if err == nil && s.codecs[t] == nil {
		err = record.Unknown(0, "type", "a "+t.String())
	}
	return t, err
}

// NewStore returns the store of a layout, in directory dir of a dataset. find returns the keyspace of a name; nil means
// an empty keyspace. closer is closed with the store and may be nil.
func NewStore(l *Layout, db, dir string, find func(name string) store.Keyspace, closer io.Closer) *Store {
	s := &Store{Layout: l, DB: db, Dir: dir, closer: closer}
	s.Metas = s.keyspace(l.Metas, find)
	for _, c := range l.Codecs {
		t := &typeRows{Codec: c, data: -1, index: -1}
		if c.Data != "" {
			t.data = s.open(c, c.Data, c.DataRows, false, find)
		}
		if c.Index != "" {
			t.index = s.open(c, c.Index, c.IndexRows, true, find)
		}
		s.codecs[c.Type] = t
	}
	if len(l.Codecs) == 1 && l.Codecs[0].Type == record.String && l.Codecs[0].Data == "" {
		s.strings = l.Codecs[0]
	}
	return s
}

// open returns the number of a keyspace of data rows. Types may share one.
func (s *Store) open(c *Codec, name string, l Rows, index bool, find func(name string) store.Keyspace) int {
	for i, sp := range s.data {
		if sp.Name() == name && sp.index == index && sp.shared(&l) {
			sp.types |= record.Of(c.Type)
			return i
		}
	}
	sp := &rows{Keyspace: s.keyspace(name, find), Rows: l, index: index, types: record.Of(c.Type)}
	if l.Lanes != nil {
		sp.lanes = keylanes.NewDirectory(sp.Keyspace.Keyspace, *l.Lanes)
	}
	s.data = append(s.data, sp)
	return len(s.data) - 1
}

// shared reports whether the rows have layout l: types share a keyspace if they have the same layout.
func (sp *rows) shared(l *Rows) bool { return sp.Rows.Lanes == l.Lanes && sp.Rows.Order == l.Order }

func (s *Store) keyspace(name string, find func(name string) store.Keyspace) Keyspace {
	k := Keyspace{Label: path.Join(s.Dir, name), Keyspace: find(name)}
	k.Short = k.Label
	if db, rest, ok := strings.Cut(k.Label, "/"); ok && dataset.IsDB(db) {
		k.Short = rest
	}
	if k.Listed = k.Keyspace != nil; !k.Listed {
		k.Keyspace = dataset.Absent(name)
	}
	return k
}

// Named renames the keyspaces, in the ledger and within the database.
func (s *Store) Named(name func(keyspace string) (long, short string)) {
	for _, k := range s.All() {
		k.Label, k.Short = name(k.Name())
	}
}

// All returns all keyspaces, including absent keyspaces.
func (s *Store) All() []*Keyspace {
	out := []*Keyspace{&s.Metas}
	for _, sp := range s.data {
		out = append(out, &sp.Keyspace)
	}
	return out
}

// Judge registers f, which makes the Judge of a pass; it checks each record that is not gone.
func (s *Store) Judge(f func() Judge) { s.judge = f }

// Wrap registers f for the readers of a store of strings.
func (s *Store) Wrap(f Wrap) { s.wrap = f }

// listed returns the existing keyspaces, each once.
func (s *Store) listed() []*Keyspace {
	var out []*Keyspace
	seen := map[string]bool{}
	for _, k := range s.All() {
		if k.Listed && !seen[k.Label] {
			seen[k.Label] = true
			out = append(out, k)
		}
	}
	return out
}

// Size returns the bytes of the keyspaces.
func (s *Store) Size() int64 {
	var n int64
	for _, k := range s.listed() {
		n += k.Size()
	}
	return n
}

// Keyspaces returns the existing keyspaces.
func (s *Store) Keyspaces() []format.Keyspace {
	var out []format.Keyspace
	for _, k := range s.listed() {
		out = append(out, format.Keyspace{Name: k.Short, Keyspace: k.Keyspace})
	}
	return out
}

// Sample returns user keys of all keyspaces.
func (s *Store) Sample(n int) ([]store.Weighted, error) {
	out, err := sample(&s.Metas, n, s.Layout.Sampled)
	if err != nil {
		return nil, err
	}
	sampled := map[string]bool{s.Metas.Label: true}
	for _, sp := range s.data {
		if sampled[sp.Label] {
			continue
		}
		sampled[sp.Label] = true
		more, err := sample(&sp.Keyspace, n, sp.Sampled)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

func sample(k *Keyspace, n int, user func(raw []byte) []byte) ([]store.Weighted, error) {
	samples, err := k.Sample(n)
	for i := range samples {
		samples[i].Key = user(samples[i].Key)
	}
	return samples, err
}

// Where lists the raw ranges that can hold rows of a user key.
func (s *Store) Where(key []byte) []format.Range {
	var out []format.Range
	r := format.Range{Keyspace: s.Metas.Short}
	if len(s.Layout.Codecs) == 1 {
		r.Type = s.Layout.Codecs[0].Type
	}
	if s.Metas.Listed {
		r.Lo, r.Hi = s.Layout.metaRange(key)
		out = append(out, r)
	}
	for _, sp := range s.data {
		if !sp.Listed || !sp.holds(key) {
			continue
		}
		r := format.Range{Keyspace: sp.Short}
		if t := sp.types.Types(); len(t) == 1 {
			r.Type = t[0]
		}
		r.Lo, r.Hi = sp.Range(key)
		out = append(out, r)
	}
	return out
}

// metaRange returns the raw range of the meta row of a user key.
func (l *Layout) metaRange(key []byte) (lo, hi []byte) {
	if l.AppendMetaPrefix == nil {
		return store.KeyRange(l.AppendMetaKey(nil, key))
	}
	key, next := store.KeyRange(key)
	return l.metaPrefix([]byte{}, key), l.metaPrefix([]byte{}, next)
}

// openMetas opens the meta rows of a span.
func (s *Store) openMetas(span format.Span, e *format.Env, memory int64) (store.Iterator, error) {
	if open := s.Layout.OpenMetas; open != nil {
		return open(s.Metas.Keyspace, span, e, memory)
	}
	return s.Metas.Rows(s.Layout.metaSpan(span))
}

// Records returns a reader of the records of some types, which may buffer memory bytes.
func (s *Store) Records(ctx context.Context, t record.TypeSet, span format.Span, e *format.Env,
	memory int64) (record.Reader, error) {
	p := newPass(ctx, s, t, span, e, memory)
	if s.strings == nil {
		return openReader(p)
	}
	if s.wrap == nil {
		return p.openStrings()
	}
	p.memory /= 2
	r, err := p.openStrings()
	if err != nil {
		return nil, err
	}
	return s.wrap(r, p)
}

// Close closes the store.
func (s *Store) Close() error {
	if s.closer == nil {
		return nil
	}
	return s.closer.Close()
}

// share returns the share of a pass's memory for each of n stores.
func share(e *format.Env, n int) int64 {
	return cmp.Or(max(e.Memory, 0), record.DefaultMemory) / int64(max(n, 1))
}
