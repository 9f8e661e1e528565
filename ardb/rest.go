package ardb

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"kvferry/ardb/codec"
	"kvferry/ardb/engine"
	"kvferry/format"
	"kvferry/record"
	"kvferry/store"
)

// countRest counts the rows beside the namespaces.
func (s *source) countRest(e *format.Env) error {
	for _, sp := range s.rest {
		r := &rest{src: s, sp: sp, env: e, seen: map[string]bool{}}
		if err := r.run(); err != nil {
			return err
		}
	}
	return nil
}

// rest scans the keyspaces that are no namespaces: the TTL index, LMDB's directory, RocksDB's default.
type rest struct {
	src   *source
	sp    *engine.Space
	env   *format.Env
	it    store.Iterator
	tally record.Tally
	seen  map[string]bool // namespaces whose rows were jumped over
	odd   int64           // rows that nothing looks at
	stale int64           // rows of the TTL index that are not those of META
}

func (r *rest) run() (err error) {
	if r.it, err = r.sp.Keyspace.Rows(nil, nil); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.it.Close()) }()
	for {
		r.it.Tally(&r.tally)
		key, val, err := r.it.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if err := r.row(key, val); err != nil {
			return err
		}
	}
	r.it.Tally(&r.tally)
	r.summary()
	r.env.Ledger.Add(r.sp.Label, &r.tally)
	return nil
}

// row classifies a row; it skips namespaces.
func (r *rest) row(key, val []byte) error {
	if r.sp.Named {
		d, n := codec.SplitData(key)
		if next, ok := codec.AfterNamespace(d); n > 0 && ok && string(d.Text) != codec.TTLNamespace {
			if r.seen[string(key[:n])] {
				r.bad(FindMalformedKey, fmt.Errorf("row %s stands behind the others of its namespace", record.Quote(key)))
				return nil
			}
			r.seen[string(key[:n])] = true
			r.it.Tally(new(record.Tally)) // counted elsewhere
			return r.it.SeekGE(next)
		}
	}
	switch {
	case r.sp.Name == codec.LMDBNamespace:
		if name, ok := bytes.CutPrefix(key, []byte("ns:")); !ok || !bytes.Equal(name, val) {
			r.bad(FindMalformedValue, fmt.Errorf("row %s in the list of namespaces: %w", record.Quote(key), record.ErrUnknown))
			return nil
		}
		r.tally.Rows[record.Housekeeping]++
	case r.sp.Name == engine.DefaultCF && !r.sp.Named, r.sp.Name == "":
		r.odd++
		r.tally.Rows[record.Orphan]++
	default:
		return r.ttl(key, val)
	}
	return nil
}

// ttl classifies a row of the TTL index. It looks up whether the key still has that expiry only in deep mode.
func (r *rest) ttl(key, val []byte) error {
	k, err := codec.DecodeKey(key, r.sp.Named)
	if err == nil && k.Kind != codec.KindTTL {
		err = fmt.Errorf("a %s row in the TTL index", k.Kind)
	}
	if err != nil {
		r.bad(FindMalformedKey, err)
		return nil
	}
	if err := codec.DecodeNone(codec.KindTTL, val); err != nil {
		r.bad(FindMalformedValue, err)
		return nil
	}
	r.tally.Rows[record.Housekeeping]++
	if !r.env.Deep {
		return nil
	}
	live, err := r.src.expires(string(codec.AppendServed(nil, k.Elems[1])), codec.AppendServed(nil, k.Elems[2]), k.Elems[0].Int64())
	if !live {
		r.stale++
	}
	return err
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
func (s *source) inTTLIndex(sp *engine.Space, user []byte, ms int64) (bool, error) {
	for _, r := range s.rest {
		switch {
		case r.Named:
			ns, _ := codec.SplitData(sp.NS)
			return r.Has(codec.AppendTTLKey(nil, ttlIndex, ms, ns, user))
		case r.Name == codec.TTLNamespace:
			return r.Has(codec.AppendTTLKey(nil, nil, ms, codec.TextData([]byte(sp.DB)), user))
		}
	}
	return s.kind == engine.RocksDB, nil
}

// summary reports the counts.
func (r *rest) summary() {
	if r.odd > 0 {
		r.report(FindUnusedRows, record.Warning, record.Plural(r.odd, "row")+" where the server does not look")
	}
	if r.stale > 0 {
		r.report(FindStaleTTL, record.Note, record.Plural(r.stale, "row")+" of the TTL index without a key of that expiry: harmless")
	}
}

// bad reports a row and counts it as malformed.
func (r *rest) bad(kind string, err error) {
	r.report(kindOf(kind, err), record.Error, err.Error())
	r.tally.Rows[record.Malformed]++
}

func (r *rest) report(kind string, sev record.Severity, detail string) {
	if r.env.Report != nil {
		r.env.Report(record.Finding{Kind: kind, Severity: sev, Keyspace: r.sp.Name, Place: r.it.Place(), Detail: detail})
	}
}
