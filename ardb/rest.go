package ardb

import (
	"errors"
	"fmt"
	"io"

	"kvferry/format"
	"kvferry/record"
	"kvferry/store"
)

// countRest counts the rows beside the namespaces.
func (s *source) countRest(e *format.Env) error {
	for _, sp := range s.rest {
		r := &rest{src: s, sp: sp, env: e}
		if err := r.run(); err != nil {
			return err
		}
	}
	return nil
}

// rest walks what is beside the namespaces: the TTL index, LMDB's directory, RocksDB's default.
type rest struct {
	src   *source
	sp    *space
	env   *format.Env
	it    store.Iterator
	tally record.Tally
	odd   int64 // rows that nothing looks at
	stale int64 // rows of the TTL index that are not those of META
}

func (r *rest) run() (err error) {
	if r.it, err = r.sp.ks.Rows(nil, nil); err != nil {
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
	r.env.Ledger.Add(r.sp.label, &r.tally)
	return nil
}

// row classifies a row; those of namespaces are jumped over.
func (r *rest) row(key, val []byte) error {
	if r.sp.named {
		d, n := splitData(key)
		if next, ok := nextNamespace(d); n > 0 && ok && string(d.Text) != ttlNamespace {
			var other record.Tally
			r.it.Tally(&other)
			return r.it.SeekGE(next)
		}
	}
	switch {
	case r.sp.name == lmdbNamespace:
		r.tally.Rows[record.Housekeeping]++
	case r.sp.name == defaultCF && !r.sp.named, r.sp.name == "":
		r.odd++
		r.tally.Rows[record.Orphan]++
	default:
		return r.ttl(key, val)
	}
	return nil
}

// ttl classifies a row of the TTL index. Whether it still stands for a key is looked up only when asked to.
func (r *rest) ttl(key, val []byte) error {
	k, err := DecodeKey(key, r.sp.named)
	if err == nil && k.Kind != KindTTL {
		err = fmt.Errorf("a %s row in the TTL index", k.Kind)
	}
	if err != nil {
		r.report(FindMalformedKey, record.Error, err.Error())
		r.tally.Rows[record.Malformed]++
		return nil
	}
	r.tally.Rows[record.Housekeeping]++
	if !r.env.Deep {
		return nil
	}
	live, err := r.src.expires(string(AppendServed(nil, k.Elems[1])), AppendServed(nil, k.Elems[2]), intOf(k.Elems[0]))
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
	it, err := sp.ks.Rows(bound(sp.ns, user), bound(sp.ns, after(user)))
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
	v, err := splitValue(val)
	return err == nil && isMeta(v.Kind) && v.ExpireMS == ms, nil
}

// inTTLIndex reports whether the TTL index has a key's row. RocksDB has no index.
func (s *source) inTTLIndex(sp *space, user []byte, ms int64) (bool, error) {
	for _, r := range s.rest {
		switch {
		case r.named:
			ns, _ := splitData(sp.ns)
			return r.has(AppendKey(nil, AppendText(nil, []byte(ttlNamespace)), nil, KindTTL, IntData(ms), ns, TextData(user)))
		case r.name == ttlNamespace:
			return r.has(AppendKey(nil, nil, nil, KindTTL, IntData(ms), TextData([]byte(sp.db)), TextData(user)))
		}
	}
	return s.kind == storeRocksDB, nil
}

// summary reports what was counted.
func (r *rest) summary() {
	if r.odd > 0 {
		r.report(FindUnusedRows, record.Warning, fmt.Sprintf("%d rows where the server does not look", r.odd))
	}
	if r.stale > 0 {
		r.report(FindStaleTTL, record.Note, fmt.Sprintf("%d rows of the TTL index are not of a key's expiry; they do no harm", r.stale))
	}
}

func (r *rest) report(kind string, sev record.Severity, detail string) {
	if r.env.Report != nil {
		r.env.Report(record.Finding{Kind: kind, Severity: sev, Keyspace: r.sp.name, Place: r.it.Place(), Detail: detail})
	}
}
