package versioned_test

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"kvferry/blackwidow"
	"kvferry/floyd"
	"kvferry/format"
	"kvferry/internal/shared/versioned"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// The mechanism is tested through two very different formats: blackwidow has a store for each type and keys in lanes of
// their length, floyd has one store for all types and keys in the order of user keys.

// row is a row of a store.
type row struct {
	store, cf  string
	key, value []byte
}

func (r *row) keyspace() string { return r.store + "/" + r.cf }

// kit makes the rows of a format.
type kit struct {
	format format.Format
	meta   func(t record.Type, key string, m versioned.Meta) row
	data   func(t record.Type, key string, version int64, name, value []byte) row
	score  func(key string, version int64, score float64, member string) row
}

var kits = []kit{
	{blackwidow.New().(format.Served).For("pika3.5"), blackwidowMeta, blackwidowData, func(key string, version int64, score float64, member string) row {
		return row{"zsets", "score_cf", blackwidow.AppendScoreKey(nil, blackwidow.ScoreKey{Key: []byte(key),
			Version: blackwidow.Version(version), Score: score, Member: []byte(member)}), nil}
	}},
	{floyd.New(), floydMeta, floydData, func(key string, version int64, score float64, member string) row {
		k := floyd.ScoreKey{Key: []byte(key), Version: floyd.Version(version), Score: score, Member: []byte(member)}
		return row{"0", "zset_score_cf", floyd.AppendScoreKey(nil, k), make([]byte, 24)}
	}},
}

var blackwidowStores = map[record.Type][2]string{record.String: {"strings"}, record.Hash: {"hashes", "data_cf"},
	record.Set:  {"sets", "member_cf"},
	record.List: {"lists", "data_cf"}, record.ZSet: {"zsets", "data_cf"}, record.Stream: {"streams", "data_cf"}}

func blackwidowMeta(t record.Type, key string, m versioned.Meta) row {
	r := row{blackwidowStores[t][0], "default", []byte(key), nil}
	expiry := blackwidow.UnixSeconds(m.ExpireMS / 1000)
	switch t {
	case record.String:
		r.value = blackwidow.AppendStringValue(nil, blackwidow.StringValue{Bytes: m.Value, Expiry: expiry})
	case record.List:
		r.value = blackwidow.AppendListMeta(nil, blackwidow.ListMeta{Count: uint64(m.Count),
			Version: blackwidow.Version(m.Version), Left: m.Left, Right: m.Right, Expiry: expiry})
	case record.Stream:
		r.value = blackwidow.AppendStreamMeta(nil,
			blackwidow.StreamMeta{Stream: m.Stream, Length: int32(m.Count), Version: blackwidow.Version(m.Version)})
	default:
		r.value = blackwidow.AppendMeta(
			nil, blackwidow.Meta{Count: int32(m.Count), Version: blackwidow.Version(m.Version), Expiry: expiry})
	}
	return r
}

func blackwidowData(t record.Type, key string, version int64, name, value []byte) row {
	k := blackwidow.DataKey{Key: []byte(key), Version: blackwidow.Version(version), Name: name}
	return row{blackwidowStores[t][0], blackwidowStores[t][1], blackwidow.AppendDataKey(nil, k), value}
}

var floydFamilies = map[record.Type]string{record.Hash: "hash_data_cf", record.Set: "set_data_cf", record.List: "list_data_cf",
	record.ZSet:   "zset_data_cf",
	record.Stream: "stream_data_cf"}

func floydMeta(t record.Type, key string, m versioned.Meta) row {
	r := row{"0", "default", floyd.AppendMetaKey(nil, floyd.MetaKey{Key: []byte(key)}), nil}
	version, expiry := floyd.Version(m.Version), floyd.TimeOf(m.ExpireMS)
	switch t {
	case record.String:
		r.value = floyd.AppendStringValue(nil, floyd.StringValue{Bytes: m.Value, Expiry: expiry})
	case record.List:
		r.value = floyd.AppendListMeta(
			nil, floyd.ListMeta{Count: uint64(m.Count), Version: version, Left: m.Left, Right: m.Right, Expiry: expiry})
	case record.Stream:
		r.value = floyd.AppendStreamMeta(nil, floyd.StreamMeta{Stream: m.Stream, Length: int32(m.Count), Version: version})
	default:
		r.value = floyd.AppendMeta(nil, floyd.Meta{Type: t, Count: int32(m.Count), Version: version, Expiry: expiry})
	}
	return r
}

func floydData(t record.Type, key string, version int64, name, value []byte) row {
	r := row{"0", floydFamilies[t], floyd.AppendDataKey(nil,
		floyd.DataKey{Key: []byte(key), Version: floyd.Version(version), Name: name}), value}
	if t != record.Stream {
		r.value = append(bytes.Clone(value), make([]byte, 24)...)
	}
	return r
}

// world is a dataset in memory with one record per type, named after it, of two elements.
type world struct {
	*formattest.Memory
	kit
	t    testing.TB
	rows []row
}

const (
	version = 5
	left    = math.MaxInt64
)

func newWorld(t testing.TB, k kit) *world {
	w := &world{formattest.NewMemory(t, k.format), k, t, nil}
	formattest.Finish(t, w.Create(t, format.CreateOptions{Instances: 1, Slots: 1}))
	w.put(k.meta(record.String, "string", versioned.Meta{Value: []byte("v")}))
	for _, typ := range []record.Type{record.Hash, record.Set, record.List, record.ZSet, record.Stream} {
		w.put(k.meta(typ, typ.String(), healthy(typ)))
		for i := range 2 {
			w.put(w.element(typ, version, i))
		}
	}
	for i := range 2 {
		w.put(k.score("zset", version, float64(i), string(name(i))))
	}
	return w
}

// healthy returns the meta row of a type.
func healthy(t record.Type) versioned.Meta {
	m := versioned.Meta{Count: 2, Version: version}
	switch t {
	case record.List:
		m.Left, m.Right = left, left+3
	case record.Stream:
		m.Stream = versioned.StreamMeta{First: id(0), Last: id(1), Added: 2}
	}
	return m
}

func name(i int) []byte { return []byte{byte('a' + i)} }

func id(i int) (id versioned.ID) {
	id[15] = byte(1 + i)
	return id
}

// element returns row i of a type's record.
func (w *world) element(t record.Type, version int64, i int) row {
	switch t {
	case record.Set:
		return w.data(t, t.String(), version, name(i), nil)
	case record.List:
		return w.data(t, t.String(), version, leUint64(left+1+uint64(i)), name(i))
	case record.ZSet:
		return w.data(t, t.String(), version, name(i), leUint64(math.Float64bits(float64(i))))
	case record.Stream:
		id := id(i)
		return w.data(t, t.String(), version, id[:], []byte("\x01\x00\x00\x00f\x01\x00\x00\x00v"))
	}
	return w.data(t, t.String(), version, name(i), []byte("v"))
}

func leUint64(n uint64) []byte {
	return []byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24), byte(n >> 32), byte(n >> 40), byte(n >> 48), byte(n >> 56)}
}

func (w *world) put(r row) {
	w.rows = append(w.rows, r)
	w.Store(r.store).Put(r.cf, r.key, r.value)
}

func (w *world) delete(r row) {
	w.t.Helper()
	if !w.Store(r.store).Delete(r.cf, r.key) {
		w.t.Fatalf("%s: no row %q to delete", r.keyspace(), r.key)
	}
}

// seen is the result of reading a dataset.
type seen struct {
	records []string // as text
	kinds   []string // of findings
	ledger  record.Ledger
	err     error
}

// read reads a dataset; only turns its checks off.
func (w *world) read(only bool, types record.TypeSet, span format.Span) *seen {
	w.t.Helper()
	s, f := new(seen), formattest.Findings{}
	src := w.Open(w.t)
	env := &format.Env{Ledger: &s.ledger, Report: f.Report, Deep: true, RecordsOnly: only, TempDir: w.Dir, Memory: 1 << 20}
	r := formattest.RecordsOf(w.t, src, "0", types, span, env)
	s.records, s.err = texts(r)
	err := r.Close()
	if s.err == nil {
		s.err = err
	}
	s.kinds = f.Kinds()
	s.kinds = slices.DeleteFunc(s.kinds, func(kind string) bool { return kind == floyd.FindSlots })
	return s
}

// texts reads records as text, some of them only in part.
func texts(r *record.Walker) (out []string, err error) {
	elems := make([]record.Element, 1)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%s %s:", h.Type, h.Key)
		for len(h.Key) != 1 { // records of one letter are not read
			n, err := r.Read(elems)
			if err == io.EOF {
				break
			}
			if err != nil {
				return out, err
			}
			for _, e := range elems[:n] {
				fmt.Fprintf(&b, " %s=%s/%v", e.Name, e.Value, e.Score)
			}
		}
		out = append(out, b.String())
	}
}

// everywhere runs a test with each format.
func everywhere(t *testing.T, f func(t *testing.T, k kit)) {
	for _, k := range kits {
		t.Run(k.format.Name(), func(t *testing.T) { f(t, k) })
	}
}
