package ardb

import (
	"bytes"
	"errors"
	"fmt"

	"kvferry/ardb/codec"
	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/record"
)

// countRest counts the rows beside the namespaces: the TTL index, LMDB's directory, RocksDB's default.
func (s *source) countRest(e *format.Env) error {
	for _, sp := range s.rest {
		r := &rest{src: s, sp: sp, env: e, seen: map[string]bool{}}
		rows := dataset.Rest{Keyspace: sp.Keyspace, Label: sp.Label, Judge: r.classify}
		if sp.Named {
			rows.Jump = r.jump
		}
		if err := rows.Count(e); err != nil {
			return err
		}
		if r.odd > 0 {
			rows.Report(e, record.Finding{Kind: FindUnusedRows, Severity: record.Warning, Detail: record.Count(r.odd, "row") + " where the server does not look"})
		}
		if r.stale > 0 {
			rows.Report(e, record.Finding{Kind: FindStaleTTL, Severity: record.Note,
				Detail: record.Count(r.stale, "row") + " of the TTL index without a key of that expiry: harmless"})
		}
	}
	return nil
}

// rest judges the rows of a keyspace that is no namespace.
type rest struct {
	src   *source
	sp    *space
	env   *format.Env
	seen  map[string]bool // namespaces whose rows were jumped over
	odd   int64           // rows that nothing looks at
	stale int64           // rows of the TTL index that are not those of META
}

// namespace returns the encoded namespace of a row, and the first key after its rows; nil if the row is in none.
func (r *rest) namespace(raw []byte) (ns, next []byte) {
	if !r.sp.Named {
		return nil, nil
	}
	d, n := codec.SplitData(raw)
	if next, ok := codec.AfterNamespace(d); n > 0 && ok && string(d.Text) != codec.TTLNamespace {
		return raw[:n], next
	}
	return nil, nil
}

// jump skips the rows of a namespace, once.
func (r *rest) jump(raw []byte) (next []byte, ok bool) {
	ns, next := r.namespace(raw)
	if ns == nil || r.seen[string(ns)] {
		return nil, false
	}
	r.seen[string(ns)] = true
	return next, true
}

// classify returns the class of a row.
func (r *rest) classify(raw, value []byte) (record.Class, error) {
	if ns, _ := r.namespace(raw); ns != nil {
		return record.Malformed, malformed(FindMalformedKey, errBehind)
	}
	switch {
	case r.sp.Name == codec.LMDBNamespace:
		if name, ok := bytes.CutPrefix(raw, []byte("ns:")); !ok || !bytes.Equal(name, value) {
			return record.Malformed, malformed(FindMalformedValue, fmt.Errorf("in the list of namespaces: %w", record.ErrUnknown))
		}
		return record.Housekeeping, nil
	case r.sp.Name == defaultCF && !r.sp.Named, r.sp.Name == "":
		r.odd++
		return record.Orphan, nil
	}
	return r.ttl(raw, value)
}

var errBehind = errors.New("it comes after all other rows of its namespace")

// malformed returns an error with its kind of finding.
func malformed(kind string, err error) error {
	return &dataset.KindError{Kind: kindOf(kind, err), Err: err}
}

// ttl classifies a row of the TTL index. It looks up whether the key still has that expiry only in deep mode.
func (r *rest) ttl(raw, value []byte) (record.Class, error) {
	k, err := codec.DecodeKey(raw, r.sp.Named)
	if err == nil && k.Kind != codec.KindTTL {
		err = fmt.Errorf("a %s row in the TTL index", k.Kind)
	}
	if err != nil {
		return record.Malformed, malformed(FindMalformedKey, err)
	}
	if err := codec.DecodeNone(codec.KindTTL, value); err != nil {
		return record.Malformed, malformed(FindMalformedValue, err)
	}
	if !r.env.Deep {
		return record.Housekeeping, nil
	}
	live, err := r.src.expires(string(codec.AppendServed(nil, k.Elems[1])), codec.AppendServed(nil, k.Elems[2]),
		k.Elems[0].Int64())
	if err != nil {
		return record.Housekeeping, &dataset.ReadError{Err: err}
	}
	if !live {
		r.stale++
	}
	return record.Housekeeping, nil
}

// expires reports whether a key's META row has this expiry.
func (s *source) expires(db string, user []byte, ms int64) (bool, error) {
	sp, err := s.space(db)
	if err != nil {
		return false, nil
	}
	return sp.Expires(user, ms)
}

// On LevelDB the server collects expired keys by an index ordered by expiry, across all namespaces: its rows
// are kept in files until all shards are complete.
//
//	ttl/000001.rows   of shard 1
const ttlDir = "ttl"

// ttlIndex is the namespace of the index, ttlValue the value of all its rows.
var ttlIndex, ttlValue = codec.AppendText(nil, []byte(codec.TTLNamespace)), []byte{byte(codec.KindTTL), 0}

// inTTLIndex reports whether the TTL index has a key's row. RocksDB has no index.
func (s *source) inTTLIndex(sp *space, user []byte, ms int64) (bool, error) {
	for _, r := range s.rest {
		switch {
		case r.Named:
			ns, _ := codec.SplitData(sp.NS)
			return r.Has(codec.AppendTTLKey(nil, ttlIndex, ms, ns, user))
		case r.Name == codec.TTLNamespace:
			return r.Has(codec.AppendTTLKey(nil, nil, ms, codec.TextData([]byte(sp.DB)), user))
		}
	}
	return s.kind == kindRocksDB, nil
}
