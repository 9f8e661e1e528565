package ssdb

import (
	"bytes"
	"fmt"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/record"
)

// countRest counts the rows outside of records: the binlog, unknown kinds, and the meta database.
func (s *source) countRest(e *format.Env) error {
	log := dataset.Rest{Keyspace: s.data, DB: db, Label: dataDir, Records: []byte(kinds[1:]), Judge: judgeLog}
	if err := log.Count(e); err != nil || s.meta == nil {
		return err
	}
	var limits [2]string // of the keys of a server in a cluster
	server := dataset.Rest{Keyspace: s.meta, DB: db, Label: metaDir, Judge: func(raw, value []byte) (record.Class, error) {
		for i, field := range []string{"kv_s", "kv_e"} {
			if bytes.Equal(raw, AppendFieldKey(nil, []byte("key_range"), []byte(field))) {
				limits[i] = string(value)
			}
		}
		return record.Housekeeping, nil
	}}
	err := server.Count(e)
	if limits[0]+limits[1] != "" {
		server.Report(e, record.Finding{Kind: FindLeftBehind, Severity: record.Note,
			Detail: fmt.Sprintf("the server of this directory served the strings from %q to %q; kvferry reads all", limits[0],
				limits[1])})
	}
	return err
}

// judgeLog checks a row of the binlog, or of an unknown kind.
func judgeLog(raw, value []byte) (record.Class, error) {
	if len(raw) == 0 || raw[0] != kindBinlog {
		return record.Malformed, record.Unknown(0, "kind", record.Quote(raw[:min(1, len(raw))]))
	}
	_, err := DecodeLog(raw, value)
	return record.Housekeeping, err
}

func (s *source) report(e *format.Env, f record.Finding) {
	if e.Report != nil {
		f.DB, f.Key = db, bytes.Clone(f.Key)
		e.Report(f)
	}
}
