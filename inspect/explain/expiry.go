package explain

import (
	"io"
	"kvferry/internal/text/jsonl"

	"kvferry/format"
	"kvferry/record"
)

// count counts the elements of a record and, in a hash, its expired fields.
func (x *explainer) count(h *record.Header, records *record.Walker) (n, gone int64, err error) {
	var batch [record.BatchLen]record.Element
	for {
		some, err := records.Read(batch[:])
		if err == io.EOF {
			return n, gone, nil
		}
		if err != nil {
			return n, gone, err
		}
		n += int64(some)
		for i := range batch[:some] {
			if h.Type == record.Hash && x.passed(batch[i].ExpireMS) {
				gone++
			}
		}
	}
}

// passed reports whether an expiry has passed.
func (x *explainer) passed(ms int64) bool { return ms != 0 && ms < x.o.Now.UnixMilli() }

// isExpired reports whether a record has expired, by the record itself if it was read, else by the meta row.
func (x *explainer) isExpired(t record.Type, meta *format.Row) bool {
	if s := x.records[t]; s != nil {
		return s.State == "expired"
	}
	if meta.ExpireMS == 0 {
		return false
	}
	if x.seconds {
		return record.CeilSeconds(meta.ExpireMS) < x.o.Now.Unix()
	}
	return x.passed(meta.ExpireMS)
}

func expiryText(ms int64) string {
	if ms == 0 {
		return "never expires"
	}
	return "expires at " + jsonl.TimeText(ms)
}
