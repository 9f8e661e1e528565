package formattest_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"kvferry/ardb"
	"kvferry/blackwidow"
	"kvferry/fixtures"
	"kvferry/floyd"
	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/testkit/formattest"
	"kvferry/internal/testkit/memstore"
	"kvferry/keydbflash"
	"kvferry/kvrocks"
	"kvferry/nemo"
	"kvferry/record"
	"kvferry/ssdb"
	"kvferry/store"
	"kvferry/store/lmdb"
	"kvferry/store/rocks"
)

// rowFormats are the formats that store rows, with the name prefixes of their golden databases.
var rowFormats = []struct {
	format format.Format
	golden []string
}{
	{nemo.New(), []string{"nemo-"}},
	{blackwidow.New(), []string{"bw-", "pika35"}},
	{floyd.New(), []string{"pika4"}},
	{ardb.New(), []string{"ardb-"}},
	{kvrocks.New(), []string{"kvrocks-"}},
	{keydbflash.New(), []string{"keydbflash-"}},
	{ssdb.New(), []string{"ssdb-basic"}},
}

// excepted lists changes that turn a row into another valid row of the format, with the reason: format, kind of row,
// and the change ("key" and "value" append bytes, "reserved" changes a byte of no field).
var excepted = map[string]string{
	"nemo string, key":                  userKey,
	"nemo string, value":                "the value is user data up to the suffix, of whose 8 bytes only the version says anything, and is 0 like its neighbours",
	"nemo hash field, key":              userName,
	"nemo set member, key":              userName,
	"blackwidow string, key":            userKey,
	"blackwidow string, value":          "the value is user data up to an expiry of 4 bytes, and any number is one",
	"blackwidow hash field, key":        userName,
	"blackwidow hash field, value":      userData,
	"blackwidow list element, value":    userData,
	"blackwidow set member, key":        userName,
	"floyd string, value":               shifted,
	"floyd hash field, key":             zeroTail,
	"floyd hash field, value":           shifted,
	"floyd list element, value":         shifted,
	"floyd set member, key":             zeroTail,
	"keydbflash string, key":            zeroSlot,
	"keydbflash string, value":          userData,
	"kvrocks string metadata, key":      userKey,
	"kvrocks string metadata, value":    userData,
	"kvrocks hash field, key":           userName,
	"kvrocks hash field, value":         userData,
	"kvrocks list element, value":       userData,
	"kvrocks set member, key":           userName,
	"kvrocks bitmap segment, value":     longSegment,
	"kvrocks ReJSON-RL metadata, key":   userKey,
	"kvrocks bitmap metadata, key":      emptyKey,
	"kvrocks hyperloglog metadata, key": emptyKey,
	"kvrocks stream metadata, key":      emptyKey,
	"kvrocks TDIS-TYPE metadata, key":   emptyKey,
	"kvrocks timeseries metadata, key":  emptyKey,
	"kvrocks time series row, key":      series,
	"kvrocks time series row, value":    series,
	"kvrocks index, key":                unread,
	"kvrocks index, value":              unread,
	"kvrocks search, key":               unread,
	"kvrocks search, value":             unread,
	"kvrocks propagate, key":            unread,
	"kvrocks propagate, value":          unread,
	"ssdb string, key":                  userKey,
	"ssdb string, value":                userData,
	"ssdb hash field, key":              userName,
	"ssdb hash field, value":            userData,
	"ssdb queue item, value":            userData,
	"ssdb queue size, key":              "the key ends in the name to its last byte: a longer one is the size of another queue, which is told",
	"ssdb binlog, value":                userData,
	"ssdb expiry by time, key":          byTime,
	"ssdb expiry by time, reserved":     byTime,
	"ssdb expiry by time, value":        byTime,
	"ssdb server hash field, key":       serversOwn,
	"ssdb server hash field, reserved":  serversOwn,
	"ssdb server hash field, value":     serversOwn,
	"ssdb server hash size, key":        serversOwn,
	"ssdb server hash size, value":      serversOwn,
	"ssdb expiry, reserved":             "the length of the string's key: the row is told, but no more whose it was",
}

const (
	userKey     = "the key is the user key to its last byte: a longer one is another key"
	userName    = "the key ends in the name of an element, which is user data to its last byte: a longer one is another name"
	userData    = "the value is user data to its last byte"
	zeroTail    = "a zero behind 16 zeros looks like a name that ends in one; other bytes are told"
	zeroSlot    = "a zero behind a key of zeros has their slot: it is another key; other bytes are told"
	emptyKey    = "the key is the user key to its last byte; another one may have no rows, and rows of a deleted key are a note"
	longSegment = "a segment ends anywhere up to 1024 bytes, as the server lets it grow, and beyond the length of the bitmap"
	series      = "a label, its value and the key of another series are user data; samples are told"
	byTime      = "the row is told of the list of expiries; the string has its expiry by its other row"
	serversOwn  = "a server keeps it for itself; it is of no record"
	unread      = "kvferry does not read it, and a note says so"
	shifted     = "a zero behind a time of 4.0.0 whose low byte is zero looks like an earlier time; other bytes are told"
)

// TestUnknownForms checks that a row with trailing bytes, or with reserved bytes that no server writes, is an error
// that names its record and changes no other record. It appends bytes to, and changes reserved bytes in, each kind of
// row that the original engines wrote.
func TestUnknownForms(t *testing.T) {
	needed := map[string]bool{}
	for _, f := range rowFormats {
		for _, name := range fixtures.Names() {
			if slices.ContainsFunc(f.golden, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
				t.Run(name, func(t *testing.T) {
					s := openSample(t, f.format, name)
					s.changeAll(needed)
				})
			}
		}
	}
	for what := range excepted {
		if !needed[what] {
			t.Errorf("%s: each change is told: take it off the list", what)
		}
	}
}

// sample is a golden database in memory with a few records of each kind.
type sample struct {
	t      *testing.T
	format format.Format
	path   string
	dir    string // directory for spills
	stores store.Opener
	rows   []sampleRow
	whole  map[string]string // the unchanged records
}

type sampleRow struct {
	keyspace   format.Keyspace
	row        format.Row
	key, value []byte
}

// copying returns an opener that loads stores into memory when they are first opened.
func copying(t *testing.T, fs *memstore.FS) store.Opener {
	return func(ctx context.Context, dir string, o *store.Options) (store.Store, error) {
		if st, err := fs.Open(ctx, dir, o); err == nil {
			return st, nil
		}
		st, err := rocks.Open(ctx, dir, o)
		if errors.Is(err, store.ErrNotStore) {
			st, err = lmdb.Open(ctx, dir, o)
		}
		if err != nil {
			return nil, err
		}
		defer st.Close()
		for _, ks := range st.Keyspaces() {
			if err := fs.Dir(dir).Keyspace(ks.Name(), *ks.Comparer()); err != nil {
				return nil, err
			}
			it, err := ks.Rows(nil, nil)
			if err != nil {
				return nil, err
			}
			each(t, it, func(key, value []byte) { fs.Dir(dir).Put(ks.Name(), key, value) })
		}
		return fs.Open(ctx, dir, o)
	}
}

func each(t *testing.T, it store.Iterator, f func(key, value []byte)) {
	defer it.Close()
	for {
		key, value, err := it.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		f(key, value)
	}
}

// samples is the number of records, or of rows without a record, for each kind of row. samplesRows is the maximum
// number of rows in such a record.
const (
	samples    = 2
	sampleRows = 12
)

// openSample opens a golden database and keeps only a few of its records.
func openSample(t *testing.T, f format.Format, name string) *sample {
	fs := memstore.New()
	s := &sample{t: t, format: f, dir: t.TempDir(), path: fixtures.Unpack(t, name), stores: copying(t, fs)}
	src := formattest.Open(t, f, s.path, &format.OpenOptions{Store: s.stores, Options: store.Options{Resort: true}})
	groups := map[string][]sampleRow{}
	for _, ks := range src.Keyspaces() {
		it, err := ks.Rows(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		each(t, it, func(key, value []byte) {
			row := src.Describe(ks.DB, ks.Name, key, value)
			id := ks.DB + "\x00" + string(row.UserKey)
			if len(row.UserKey) == 0 {
				id += "\x00" + row.Kind
			}
			groups[id] = append(groups[id], sampleRow{ks, row, bytes.Clone(key), bytes.Clone(value)})
		})
	}
	s.choose(src, groups)
	s.whole, _ = s.read(nil)
	return s
}

// choose keeps the rows of some records.
func (s *sample) choose(src format.Source, groups map[string][]sampleRow) {
	seen := map[string]int{}
	for _, id := range slices.Sorted(maps.Keys(groups)) {
		g := groups[id]
		wanted := slices.ContainsFunc(g, func(r sampleRow) bool { return seen[r.row.Kind] < samples })
		switch lone := len(g[0].row.UserKey) == 0; {
		case lone:
			g = g[:min(samples, len(g))]
		case !wanted || len(g) > sampleRows || !s.alive(src, &g[0]):
			continue
		}
		for i := range g {
			seen[g[i].row.Kind]++
		}
		s.rows = append(s.rows, g...)
	}
	for _, g := range groups {
		for i := range g {
			g[i].memory().Clear()
		}
	}
	for i := range s.rows {
		s.rows[i].memory().Put(s.rows[i].key, s.rows[i].value)
	}
	if len(seen) < 3 {
		s.t.Errorf("only rows of the kinds %v", seen)
	}
}

// memory returns the keyspace of the row.
func (r *sampleRow) memory() *memstore.Keyspace {
	switch ks := r.keyspace.Keyspace.(type) {
	case *dataset.Slice:
		return ks.Keyspace.(*memstore.Keyspace)
	default:
		return ks.(*memstore.Keyspace)
	}
}

// alive reports whether all rows of a user key are part of a record.
func (s *sample) alive(src format.Source, r *sampleRow) bool {
	lo := r.row.UserKey
	_, found := s.records(src, &format.Span{Lo: lo, Hi: append(bytes.Clone(lo), 0)})
	return found != nil && len(found.All) == 0
}

// read opens the source and reads everything.
func (s *sample) read(report func(record.Finding)) (map[string]string, *formattest.Findings) {
	o := &format.OpenOptions{Store: s.stores, Options: store.Options{Report: report}}
	src, err := s.format.Open(context.Background(), s.path, o)
	if err != nil {
		s.t.Fatal(err)
	}
	defer src.Close()
	return s.records(src, nil)
}

// records returns the records by name and the findings above notes; no records if rows belong to no record. A nil
// span reads everything.
func (s *sample) records(src format.Source, span *format.Span) (records map[string]string, found *formattest.Findings) {
	records, found = map[string]string{}, &formattest.Findings{}
	var ledger record.Ledger
	all := span == nil
	if all {
		span = &format.Span{}
	}
	for _, db := range src.Databases() {
		e := &format.Env{TempDir: s.dir, Ledger: &ledger, Report: func(f record.Finding) {
			if f.Severity > record.Note {
				found.Report(f)
			}
		}}
		r := formattest.RecordsOf(s.t, src, db, record.AllTypes, *span, e)
		if err := readAll(r.Reader, records); err != nil {
			s.t.Fatal(err)
		}
	}
	formattest.CheckLedger(s.t, &ledger)
	for _, tally := range ledger.Snapshot() {
		if !all && tally.Rows[record.Copied]+tally.Rows[record.Index] != tally.Total() {
			return records, nil
		}
	}
	return records, found
}

// readAll reads records into texts by their names.
func readAll(reader record.Reader, records map[string]string) error {
	r := record.Walk(reader)
	var elems [8]record.Element
	for {
		h, err := r.Next()
		if err == io.EOF {
			return r.Close()
		}
		if err != nil {
			return errors.Join(err, r.Close())
		}
		id := fmt.Sprintf("%s %s %q", h.DB, h.Type, h.Key)
		text := fmt.Append(nil, h.ExpireMS, h.Expired, h.Last)
		for err == nil {
			var n int
			n, err = r.Read(elems[:])
			for _, e := range elems[:n] {
				text = fmt.Appendf(text, " %d %q %q %v %d", e.Kind, e.Name, e.Value, e.Score, e.ExpireMS)
			}
		}
		if err != io.EOF {
			return errors.Join(err, r.Close())
		}
		records[id] = string(text)
	}
}

// changeAll changes each row in each way.
func (s *sample) changeAll(needed map[string]bool) {
	n := 0
	for i := range s.rows {
		r := &s.rows[i]
		for _, more := range []string{"\x00", "\xff", "\x01\x02\x03\x04\x05\x06\x07\x08"} {
			s.change(r, needed, "key", append(bytes.Clone(r.key), more...), r.value)
			s.change(r, needed, "value", r.key, append(bytes.Clone(r.value), more...))
		}
		for _, at := range reservedBytes(&r.row, "key", len(r.key)) {
			n++
			s.change(r, needed, "reserved", flipped(r.key, at), r.value)
		}
		for _, at := range reservedBytes(&r.row, "value", len(r.value)) {
			n++
			s.change(r, needed, "reserved", r.key, flipped(r.value, at))
		}
	}
	s.t.Logf("%d records, %d rows, %d reserved bytes", len(s.whole), len(s.rows), n)
}

// reservedBytes returns the first, middle and last byte of each range that no field covers.
func reservedBytes(row *format.Row, where string, n int) (out []int) {
	known := make([]bool, n)
	for _, f := range row.Fields {
		for i := f.Off; f.Where == where && i < f.Off+f.Len; i++ {
			known[i] = true
		}
	}
	for i := 0; i < n; i++ {
		from := i
		for i < n && !known[i] {
			i++
		}
		if i > from {
			out = append(out, from, (from+i)/2, i-1)
		}
	}
	return slices.Compact(out)
}

func flipped(b []byte, at int) []byte {
	b = bytes.Clone(b)
	b[at] ^= []byte{0x01, 0x80, 0x40}[at%3]
	return b
}

// maxTold is the maximum number of findings for a row.
const maxTold = 6

// change replaces a row, reads everything and restores the row.
func (s *sample) change(r *sampleRow, needed map[string]bool, how string, key, value []byte) {
	what := fmt.Sprintf("%s %s, %s", s.format.Name(), r.row.Kind, how)
	ks := r.memory()
	if slices.ContainsFunc(s.rows, func(x sampleRow) bool {
		return how == "key" && x.memory() == ks && bytes.Equal(x.key, key)
	}) {
		return // it is another row's
	}
	ks.Delete(r.key)
	ks.Put(key, value)
	got, found := s.read(nil)
	ks.Delete(key)
	ks.Put(r.key, r.value)
	told := slices.ContainsFunc(found.All, func(f record.Finding) bool {
		// a longer key is a different one
		return f.Severity == record.Error && (bytes.HasPrefix(f.Key, r.row.UserKey) || f.Key == nil)
	})
	if !told {
		needed[what] = true
		if excepted[what] == "" {
			s.t.Errorf("%s: nothing is told of %q = %x changed to %q = %x: %+v", what, r.key, r.value, key, value, found.All)
		}
		return
	}
	if len(found.All) > maxTold {
		s.t.Errorf("%s: %d findings: %+v", what, len(found.All), found.All)
	}
	s.compare(what, r, got)
	if how != "key" {
		s.onlyKnown(what, got)
	}
}

// compare reports other records that changed.
func (s *sample) compare(what string, r *sampleRow, got map[string]string) {
	own := fmt.Sprintf(" %q", r.row.UserKey)
	for id, text := range s.whole {
		if !strings.HasSuffix(id, own) && got[id] != text {
			s.t.Errorf("%s: record %s is %q, was %q", what, id, got[id], text)
		}
	}
}

// onlyKnown reports records that did not exist before.
func (s *sample) onlyKnown(what string, got map[string]string) {
	for id := range got {
		if s.whole[id] == "" {
			s.t.Errorf("%s: new record %s", what, id)
		}
	}
}
