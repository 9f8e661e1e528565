package catalog_test

import (
	"slices"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// TestLookups finds some keys of each golden database by themselves, and all by their first byte, and reads the same
// records as a pass over all keys, of no more rows.
func TestLookups(t *testing.T) {
	for _, name := range fixtures.Names() {
		if name == "rocks-modern" || name == "nemo-basic-zlib" { // tables, and no format; another codec
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := open(t, fixtures.Unpack(t, name))
			for _, db := range src.Databases() {
				var keys []string
				all, rows := sum(t, src, db, []format.Span{{}}, func(key []byte) bool {
					keys = append(keys, string(key))
					return true
				})
				seeks := []format.Span{format.KeySpan(nil)}
				for b := range 256 {
					seeks = append(seeks, format.PrefixSpan([]byte{byte(b)}))
				}
				check(t, src, db, format.Join(seeks, 20), all, rows)
				var lookups []format.Span
				some := func(key []byte) bool { return record.HashBytes(key).Lo%uint64(len(keys)) < 40 }
				for _, key := range slices.Compact(slices.DeleteFunc(keys, func(s string) bool { return !some([]byte(s)) })) {
					lookups = append(lookups, format.KeySpan([]byte(key)))
				}
				want, _ := sum(t, src, db, []format.Span{{}}, some)
				check(t, src, db, lookups, want, rows)
			}
		})
	}
}

func open(t *testing.T, dir string) format.Source { return openWith(t, dir, nil) }

// check reads spans of a database, which have these records in no more than these rows.
func check(t *testing.T, src format.Source, db string, spans []format.Span, want *record.Fingerprint, rows int64) {
	t.Helper()
	got, n := sum(t, src, db, spans, func([]byte) bool { return true })
	formattest.CheckEqual(t, got, want, false)
	if n > rows {
		t.Errorf("database %s: %d rows of %d spans, a pass over all keys reads %d", db, n, len(spans), rows)
	}
}

// sum reads the records of some keys in spans of a database. It returns their fingerprint and the number of rows.
func sum(t *testing.T, src format.Source, db string, spans []format.Span,
	keep func(key []byte) bool) (*record.Fingerprint, int64) {
	t.Helper()
	var f record.Fingerprint
	var l record.Ledger
	env := format.Env{TempDir: t.TempDir(), Ledger: &l, Memory: 1 << 20}
	for _, span := range spans {
		f.Merge(formattest.Sum(t, kept{formattest.RecordsOf(t, src, db, src.Types(db), span, &env).Reader, keep}))
	}
	var rows int64
	for _, tally := range l.Snapshot() {
		rows += tally.Visible
	}
	return &f, rows
}

// kept leaves out other keys.
type kept struct {
	record.Reader
	keep func(key []byte) bool
}

func (k kept) Next() (*record.Batch, error) {
	b, err := k.Reader.Next()
	if err != nil {
		return nil, err
	}
	for i := range b.Records {
		if r := &b.Records[i]; !k.keep(r.Key) {
			r.Settle(record.Filtered)
		}
	}
	return b, nil
}
