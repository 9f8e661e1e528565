package ardb

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"slices"
	"sync"

	"kvferry/ardb/codec"
	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/record"
	"kvferry/store"
)

// space is a namespace, or a part of the database outside all namespaces.
type space struct {
	DB       string
	Name     string // of the keyspace, for people
	Label    string // in the ledger
	Keyspace store.Keyspace
	NS       []byte // kindLevelDB: the encoded namespace that every key starts with
	Named    bool   // kindLevelDB: keys start with a namespace
	Upper    []byte // kindLevelDB: a key after all of the namespace

	mu     sync.Mutex
	looked map[string]bool // collections whose integers were looked at, and whether seeks find them
}

// spacesOf divides the keyspaces of a store into namespaces and the server's internal keyspaces.
func spacesOf(st store.Store, kind string) (spaces, rest []*space) {
	for _, ks := range st.Keyspaces() {
		sp := &space{Name: ks.Name(), Label: ks.Name(), Keyspace: ks}
		switch name := ks.Name(); {
		case name == codec.TTLNamespace, name == codec.LMDBNamespace, name == defaultCF && kind == kindRocksDB, name == "" &&
			kind == kindLMDB:
			rest = append(rest, sp)
		default:
			sp.DB = name
			spaces = append(spaces, sp)
		}
	}
	sortSpaces(spaces)
	return spaces, rest
}

func sortSpaces(spaces []*space) {
	slices.SortFunc(spaces, func(a, b *space) int { return record.CompareNames(a.DB, b.DB) })
}

// findSpaces jumps from namespace to namespace of a LevelDB keyspace. A namespace that MOVE wrote as an integer
// becomes database int:N.
func findSpaces(ks store.Keyspace) (spaces []*space, err error) {
	it, err := ks.Rows(nil, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	seen := make(map[string]bool) // a row with a damaged key may stand behind the others of its namespace
	for {
		key, _, err := it.Next()
		if err == io.EOF {
			sortSpaces(spaces)
			return spaces, nil
		}
		if err != nil {
			return nil, err
		}
		d, n := codec.SplitData(key)
		next, ok := codec.AfterNamespace(d)
		if n == 0 || !ok || seen[string(key[:n])] {
			continue
		}
		seen[string(key[:n])] = true
		if string(d.Text) != codec.TTLNamespace {
			spaces = append(spaces, newSpace(ks, d, next))
		}
		if err := it.SeekGE(next); err != nil {
			return nil, err
		}
	}
}

func newSpace(ks store.Keyspace, d codec.Data, upper []byte) *space {
	db := string(codec.AppendServed(nil, d))
	if d.Tag == codec.TagInt {
		db = "int:" + db
	}
	return &space{DB: db, Name: defaultCF, Label: defaultCF + "/" + db, Keyspace: ks, NS: codec.AppendData(nil, d), Named: true,
		Upper: upper}
}

// expirySpace are the rows of the TTL index of a LevelDB keyspace.
func expirySpace(ks store.Keyspace) *space {
	ns := codec.TextData([]byte(codec.TTLNamespace))
	upper, _ := codec.AfterNamespace(ns)
	return &space{Name: codec.TTLNamespace, Keyspace: ks, NS: codec.AppendData(nil, ns), Named: true, Upper: upper}
}

// buriedSpaces finds the namespaces in the entries of a LevelDB keyspace, including namespaces without visible rows.
func buriedSpaces(ks store.Keyspace) (spaces []*space, err error) {
	var from []byte
	seen := make(map[string]bool) // integers may be ordered in a circle
	for {
		key, next, err := firstNamespace(ks, from)
		if err == io.EOF {
			return spaces, nil
		}
		if err != nil {
			return nil, err
		}
		d, n := codec.SplitData(key)
		if seen[string(key[:n])] {
			return spaces, nil
		}
		seen[string(key[:n])] = true
		if string(d.Text) != codec.TTLNamespace {
			spaces = append(spaces, newSpace(ks, d, next))
		}
		from = next
	}
}

// firstNamespace returns the key of the first entry at or after from that has a namespace, and a key after the
// namespace; io.EOF after the last one.
func firstNamespace(ks store.Keyspace, from []byte) (key, next []byte, err error) {
	it, err := ks.Entries(from, nil)
	if err != nil {
		return nil, nil, err
	}
	for {
		e, err := it.Next()
		if err == io.EOF {
			return nil, nil, cmp.Or(it.Close(), io.EOF)
		}
		if err != nil {
			return nil, nil, errors.Join(err, it.Close())
		}
		d, n := codec.SplitData(e.Key)
		if next, ok := codec.AfterNamespace(d); n > 0 && ok {
			return bytes.Clone(e.Key), next, it.Close()
		}
	}
}

// Bounds returns the raw range of a span.
func (sp *space) Bounds(s format.Span) (lo, hi []byte) {
	if sp.Named || s.Lo != nil {
		lo = codec.Bound(sp.NS, s.Lo)
	}
	if s.Hi != nil {
		return lo, codec.Bound(sp.NS, s.Hi)
	}
	return lo, sp.Upper
}

// Holds reports whether a raw key belongs to the space, which on LevelDB shares its keyspace.
func (sp *space) Holds(raw []byte) bool {
	if !sp.Named {
		return true
	}
	d, n := codec.SplitData(raw)
	own, _ := codec.SplitData(sp.NS)
	return n > 0 && (bytes.Equal(raw[:n], sp.NS) || d.Compare(&own) == 0)
}

// Part is the part of the keyspace that is the namespace: on LevelDB all namespaces share a keyspace.
func (sp *space) Part() store.Keyspace {
	if !sp.Named {
		return sp.Keyspace
	}
	return &dataset.Slice{Keyspace: sp.Keyspace, Lo: codec.Bound(sp.NS, nil), Hi: sp.Upper, Holds: sp.Holds}
}

// Has reports whether a raw key exists.
func (sp *space) Has(raw []byte) (bool, error) {
	it, err := sp.Keyspace.Rows(raw, nil)
	if err != nil {
		return false, err
	}
	defer it.Close()
	key, _, err := it.Next()
	if err == io.EOF {
		return false, nil
	}
	return err == nil && sp.Keyspace.Comparer().Compare(key, raw) == 0, err
}

// Expires reports whether the META row of a user key has this expiry.
func (sp *space) Expires(user []byte, ms int64) (bool, error) {
	it, err := sp.Keyspace.Rows(codec.Bound(sp.NS, user), codec.Bound(sp.NS, codec.After(user)))
	if err != nil {
		return false, err
	}
	defer it.Close()
	_, val, err := it.Next()
	if err == io.EOF {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	v, err := codec.SplitValue(val)
	return err == nil && v.Kind.IsMeta() && v.ExpireMS == ms, nil
}
