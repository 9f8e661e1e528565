package ssdb

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"kvferry/format"
	"kvferry/internal/shared/findings"
	"kvferry/record"
	"kvferry/store"
)

// countRest counts the rows outside of records: the binlog, unknown kinds, and the meta database.
func (s *source) countRest(e *format.Env) error {
	r := rest{src: s, env: e, name: dataDir}
	from := []byte{}
	for i := range len(kinds) {
		if kinds[i] == kindBinlog {
			continue
		}
		if err := r.run(s.data, from, []byte{kinds[i]}, r.log); err != nil {
			return err
		}
		from = []byte{kinds[i] + 1}
	}
	if err := r.run(s.data, from, nil, r.log); err != nil {
		return err
	}
	e.Ledger.Add(dataDir, &r.tally)
	if s.meta == nil {
		return nil
	}
	r = rest{src: s, env: e, name: metaDir}
	if err := r.run(s.meta, nil, nil, r.server); err != nil {
		return err
	}
	if r.limits[0]+r.limits[1] != "" {
		s.report(e, record.Finding{Kind: FindLeftBehind, Severity: record.Note, Keyspace: metaDir, Place: record.Place{Level: -1},
			Detail: fmt.Sprintf("the server of this directory served the strings from %q to %q; kvferry reads all", r.limits[0], r.limits[1])})
	}
	e.Ledger.Add(metaDir, &r.tally)
	return nil
}

// rest walks rows outside of records.
type rest struct {
	src    *source
	env    *format.Env
	name   string // of the keyspace
	it     store.Iterator
	tally  record.Tally
	limits [2]string
}

// run calls row for the rows of a range.
func (r *rest) run(ks store.Keyspace, from, to []byte, row func(key, value []byte)) (err error) {
	if to != nil && bytes.Equal(from, to) {
		return nil
	}
	if r.it, err = ks.Rows(from, to); err != nil {
		return err
	}
	for err == nil {
		var key, value []byte
		if key, value, err = r.it.Next(); err == nil {
			row(key, value)
		}
	}
	r.it.Tally(&r.tally)
	if err == io.EOF {
		err = nil
	}
	return errors.Join(err, r.it.Close())
}

// log classifies a row outside of records.
func (r *rest) log(key, value []byte) {
	if len(key) == 0 || key[0] != kindBinlog {
		r.bad(record.FindNewer, key, fmt.Errorf("no kind of row starts so; want one of %q", kinds))
		return
	}
	if _, err := DecodeLog(key, value); err != nil {
		r.bad(findings.ValueKind(err), key, err)
		return
	}
	r.tally.Rows[record.Housekeeping]++
}

func (r *rest) bad(kind string, key []byte, err error) {
	r.tally.Rows[record.Malformed]++
	r.src.report(r.env, record.Finding{Kind: kind, Severity: record.Error, Keyspace: r.name, Place: r.it.Place(),
		Detail: fmt.Sprintf("row %s: %v", record.Quote(key), err)})
}

// server reads the key range of a cluster's server from the meta database.
func (r *rest) server(key, value []byte) {
	r.tally.Rows[record.Housekeeping]++
	for i, field := range []string{"kv_s", "kv_e"} {
		if bytes.Equal(key, AppendFieldKey(nil, []byte("key_range"), []byte(field))) {
			r.limits[i] = string(value)
		}
	}
}

func (s *source) report(e *format.Env, f record.Finding) {
	if e.Report != nil {
		f.DB, f.Key = db, bytes.Clone(f.Key)
		e.Report(f)
	}
}
