package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"testing"

	"kvferry/catalog"
	"kvferry/format"
	"kvferry/internal/shared/hll"
	"kvferry/internal/testkit/formattest"
	"kvferry/record"
)

// The matrix compares every conversion with a model: all live records of the source in memory, and a prediction of
// each record in the target, derived only from Format.Limits and the format pages.

// place is the location of a dataset or target. resort is true if its tables are out of order.
type place struct {
	format, store, path string
	resort              bool
}

func (p place) String() string {
	if p.store == "" { // the format has no stores
		return p.format + ":" + p.path
	}
	return p.format + "+" + p.store + ":" + p.path
}

// driver returns the driver of the store, if the format has stores.
func (p place) driver(t testing.TB) *catalog.Driver {
	t.Helper()
	if p.store == "" {
		return catalog.NoStores
	}
	d, err := testApp().Driver(p.store)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (p place) limits(t testing.TB) format.Limits { return formatOf(t, p.format).Limits() }

func formatOf(t testing.TB, name string) format.Format {
	t.Helper()
	f, err := testApp().Format(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func (p place) open(t testing.TB) format.Source {
	t.Helper()
	d := p.driver(t)
	o := &format.OpenOptions{Store: d.Open, Kind: d.Name}
	o.Options.TempDir, o.Options.Resort = t.TempDir(), p.resort
	src, err := formatOf(t, p.format).Open(context.Background(), p.path, o)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// modelRecord is a record in memory. groups is true if a stream has consumer groups.
type modelRecord struct {
	record.Header
	elems  []record.Element
	groups bool
}

// model is a dataset in memory, in record order.
type model struct {
	format  string
	dbs     []string
	home    string // the database that clients start in
	records []modelRecord
	damaged int64            // findings that are errors
	members map[string]int64 // findings of members that expire, by database
	rounded int64            // scores that were
}

// readModel reads all live records of a dataset.
func readModel(t testing.TB, p place) *model {
	t.Helper()
	src := p.open(t)
	defer src.Close()
	m := &model{members: map[string]int64{}, format: p.format, dbs: src.Databases(), home: homeOf(p.limits(t))}
	for _, db := range m.dbs {
		env := &format.Env{Now: testNow, TempDir: t.TempDir(), Report: func(f record.Finding) {
			switch {
			case f.Severity == record.Error:
				m.damaged++
			case f.Kind == record.LossScorePrecision:
				m.rounded++
			}
			if f.Kind == record.LossMemberExpiry {
				m.members[db]++
			}
		}}
		r, err := formattest.Walk(src.Records(context.Background(), db, src.Types(db), format.Span{}, env))
		if err != nil {
			t.Fatal(err)
		}
		m.read(t, db, r)
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	m.markGroups(t, src)
	return m
}

func homeOf(l format.Limits) string {
	if l.DefaultDB != "" {
		return l.DefaultDB
	}
	return "0"
}

func (m *model) read(t testing.TB, db string, r *record.Walker) {
	t.Helper()
	batch := make([]record.Element, 100)
	for {
		h, err := r.Next()
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Expired {
			continue
		}
		rec := modelRecord{Header: *h}
		rec.DB, rec.Key, rec.Last, rec.MaxDeleted = db, bytes.Clone(h.Key), bytes.Clone(h.Last), bytes.Clone(h.MaxDeleted)
		for {
			n, err := r.Read(batch)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range batch[:n] {
				rec.elems = append(rec.elems, record.Element{Name: bytes.Clone(e.Name), Value: bytes.Clone(e.Value),
					Score: e.Score, ExpireMS: e.ExpireMS, Kind: e.Kind})
			}
		}
		if len(rec.elems) > 0 || rec.Type == record.Stream {
			m.records = append(m.records, rec)
		}
	}
}

// markGroups looks for rows of consumer groups in sources whose records do not include them.
func (m *model) markGroups(t testing.TB, src format.Source) {
	t.Helper()
	if src.Format().Limits().StreamGroups || !src.Format().Limits().Types.Has(record.Stream) {
		return
	}
	for i := range m.records {
		r := &m.records[i]
		if r.Type != record.Stream {
			continue
		}
		for _, ks := range src.Keyspaces() {
			for _, at := range src.Where(r.DB, r.Key) {
				if ks.DB == r.DB && ks.Name == at.Keyspace {
					r.groups = r.groups || hasGroups(t, src, ks, at)
				}
			}
		}
	}
}

func hasGroups(t testing.TB, src format.Source, ks format.Keyspace, at format.Range) bool {
	t.Helper()
	it, err := ks.Rows(at.Lo, at.Hi)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for {
		k, v, err := it.Next()
		if err == io.EOF {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		if src.Describe(ks.DB, ks.Name, k, v).Kind == "stream group" {
			return true
		}
	}
}

// fingerprint returns the fingerprint of all records.
func (m *model) fingerprint() *record.Fingerprint {
	var f record.Fingerprint
	var h record.Hasher
	for i := range m.records {
		r := &m.records[i]
		h.Begin(&r.Header)
		h.Elements(r.elems)
		f.Add(record.Part{DB: r.DB, Type: r.Type}, h.End(&r.Header))
	}
	return &f
}

// conflict is a mode of --on-conflict.
type conflict struct {
	flag   string
	prefer []record.Type // for keep
	rename bool
}

// prediction is the expected result of a conversion.
type prediction struct {
	source string // format
	target string
	limits format.Limits
	mode   conflict
	taken  map[string]bool // names in the source, by database
	losses map[string]int64
	out    *model
}

// predict returns the expected conversion of m to a target.
func (m *model) predict(t testing.TB, target place, mode conflict) *prediction {
	t.Helper()
	p := &prediction{source: m.format, target: target.format, limits: target.limits(t), mode: mode, taken: map[string]bool{},
		losses: map[string]int64{}, out: &model{}}
	if m.damaged > 0 {
		p.losses[record.LossDamaged] = m.damaged
	}
	for _, n := range m.members {
		if n > 0 {
			p.losses[record.LossMemberExpiry] += n
		}
	}
	if m.rounded > 0 && !p.own() {
		p.losses[record.LossScorePrecision] = m.rounded
	}
	names := m.names(&p.limits)
	if target.format == "blackwidow" || target.format == "pika3.5" || target.format == "floyd" { // Pika has databases 0 to 7
		for _, db := range names {
			if n, _ := strconv.Atoi(db); n > 7 {
				p.losses[record.LossDatabase]++
			}
		}
	}
	for i := range m.records {
		p.taken[m.records[i].DB+"\x00"+string(m.records[i].Key)] = true
	}
	for i := 0; i < len(m.records); {
		n := i
		for n < len(m.records) && m.records[n].DB == m.records[i].DB && bytes.Equal(m.records[n].Key, m.records[i].Key) {
			n++
		}
		p.key(names, m.records[i:n])
		i = n
	}
	return p
}

// names maps databases to their names in the target. Numbers stay; other names get the lowest free numbers.
func (m *model) names(l *format.Limits) map[string]string {
	out := map[string]string{}
	home := homeOf(*l)
	moved := slices.Contains(m.dbs, m.home) && !slices.Contains(m.dbs, home)
	next := 0
	for _, db := range m.dbs {
		out[db] = db
		if moved && db == m.home {
			out[db] = home
		}
		if _, err := strconv.Atoi(out[db]); err == nil || !l.Numbered {
			continue
		}
		for slices.Contains(m.dbs, strconv.Itoa(next)) || moved && home == strconv.Itoa(next) {
			next++
		}
		out[db] = strconv.Itoa(next)
		next++
	}
	return out
}

// key predicts the records of one name.
func (p *prediction) key(names map[string]string, recs []modelRecord) {
	recs = slices.Clone(recs)
	rank := func(r modelRecord) int {
		if i := slices.Index(p.mode.prefer, r.Type); i >= 0 {
			return i
		}
		return len(p.mode.prefer) + int(r.Type)
	}
	slices.SortStableFunc(recs, func(a, b modelRecord) int { return rank(a) - rank(b) })
	kept := false
	for _, r := range recs {
		if kept && !p.limits.SameName {
			p.losses["same-name"]++
			if !p.mode.rename {
				continue
			}
			r.Key = p.rename(&r)
		}
		r.DB = names[r.DB]
		kept = p.record(r) || kept
	}
}

func (p *prediction) rename(r *modelRecord) []byte {
	name := fmt.Sprintf("%s:%s", r.Key, r.Type)
	for p.taken[r.DB+"\x00"+name] {
		name += "_"
	}
	p.taken[r.DB+"\x00"+name] = true
	return []byte(name)
}

// own reports whether SSDB is copied to SSDB: strings keep any key and hashes any field that servers made, and scores are
// exact.
func (p *prediction) own() bool { return p.source == "ssdb" && p.target == "ssdb" }

// record predicts one record and reports whether the target gets any of it.
func (p *prediction) record(r modelRecord) bool {
	l := &p.limits
	dropped := false
	drop := func(kind string, when bool) {
		if when {
			p.losses[kind]++
			dropped = true
		}
	}
	drop("module", r.Type == record.Other && (!l.Types.Has(r.Type) || p.source == "keydbflash"))
	if dropped {
		return false
	}
	drop("set", r.Type == record.Set && !l.Types.Has(r.Type))
	if dropped {
		return false
	}
	drop("stream", !l.Types.Has(r.Type))
	if dropped {
		return false
	}
	drop("inner-nul", l.NoInnerNUL && bytes.IndexByte(r.Key, 0) >= 0 && r.Key[len(r.Key)-1] != 0)
	if dropped {
		return false
	}
	any := r.Type == record.String && (!l.EveryKey || p.own() && r.ExpireMS == 0)
	empty := l.EmptyKey && (!l.EveryKey || r.Type == record.List)
	drop("empty-key", !any && !empty && len(r.Key) == 0)
	drop("key-too-long", !any && l.MaxKey > 0 && len(r.Key) > l.MaxKey)
	if dropped {
		return false
	}
	if r.groups {
		p.losses["stream-groups"]++
	}
	switch {
	case r.Type != record.String && l.OnlyStrings && r.ExpireMS != 0:
		p.losses["collection-expiry"]++
		r.ExpireMS = 0
	case r.Type == record.Stream && l.NoStreamExpiry && r.ExpireMS != 0:
		p.losses["stream-expiry"]++
		r.ExpireMS = 0
	case !l.Seconds || r.ExpireMS == 0:
	case l.MaxExpireMS > 0 && record.CeilSeconds(r.ExpireMS)*1000 > l.MaxExpireMS:
		p.losses["expiry-2038"]++
		r.ExpireMS = l.MaxExpireMS
	case r.ExpireMS%1000 != 0:
		p.losses["expiry-ms"]++
		r.ExpireMS += 1000 - r.ExpireMS%1000
	}
	p.progress(&r)
	elems := p.elements(&r)
	if len(elems) == 0 && len(r.elems) > 0 && r.Type != record.Stream {
		return false
	}
	if r.Type == record.Stream && len(elems) == 0 && l.NoBlankStream && bytes.Count(r.Last, []byte{0}) == len(r.Last) {
		p.losses["blank-stream"]++
		return false
	}
	r.elems = elems
	p.out.records = append(p.out.records, r)
	return true
}

// progress counts losses of stream counters that Ardb does not store.
func (p *prediction) progress(r *modelRecord) {
	if p.target != "ardb" || r.Type != record.Stream {
		return
	}
	entries := uint64(0)
	for i := range r.elems {
		if r.elems[i].Kind == record.Entry {
			entries++
		}
	}
	if r.Added > entries {
		p.losses["group-progress"]++
	}
	if r.MaxDeleted != nil {
		p.losses["group-progress"]++
	}
}

// elements predicts the elements in the target.
func (p *prediction) elements(r *modelRecord) (out []record.Element) {
	var lo, hi int64
	ints := false
	for _, e := range r.elems {
		kind := ""
		if e.Kind != record.Entry && !p.limits.StreamGroups {
			if e.Kind == record.Group {
				p.losses["stream-groups"]++
			}
			continue
		}
		switch r.Type {
		case record.String:
			e.Value = p.hyperLogLog(r.Native, e.Value)
		case record.ZSet:
			kind = p.score(e.Score)
			whole := math.Trunc(e.Score)
			if kind == "" && p.limits.WholeScores && p.name(&e) == "" {
				if whole != e.Score {
					p.losses["score-precision"]++
				}
				e.Score = whole + 0
			}
		case record.Hash, record.Set:
			v, err := strconv.ParseInt(string(e.Name), 10, 64)
			if p.target != "ardb" || err != nil || strconv.FormatInt(v, 10) != string(e.Name) {
				break
			}
			if !ints {
				lo, hi, ints = v, v, true
			}
			if float64(max(hi, v))-float64(min(lo, v)) >= 1<<63 && uint64(max(hi, v))-uint64(min(lo, v)) >= 1<<63 {
				kind = "int-span"
				break
			}
			lo, hi = min(lo, v), max(hi, v)
		}
		if kind == "" && !(p.own() && r.Type == record.Hash) {
			kind = p.name(&e)
		}
		if kind != "" {
			p.losses[kind]++
			continue
		}
		if e.ExpireMS != 0 && !p.limits.FieldExpiry {
			p.losses[record.LossFieldExpiry]++
			e.ExpireMS = 0
		}
		out = append(out, e)
	}
	return out
}

// name says what is wrong with the name of a field or member.
func (p *prediction) name(e *record.Element) string {
	if most := p.limits.MaxName; most > 0 && e.Name != nil && (len(e.Name) == 0 || len(e.Name) > most) {
		return "name-length"
	}
	return ""
}

func (p *prediction) score(s float64) string {
	switch {
	case math.IsNaN(s):
		return "score-nan"
	case p.limits.MaxScore > 0 && math.Abs(s) > p.limits.MaxScore:
		return "score-range"
	}
	return ""
}

// Sizes of HyperLogLogs: nemo's and blackwidow's, and the dense ones of Redis and Ardb.
const (
	rawLogLog   = 128 << 10
	denseLogLog = 16 + 12288
)

// hyperLogLog counts HyperLogLogs that the target does not recognize. It converts the mark of a stale count between
// Redis and Ardb.
func (p *prediction) hyperLogLog(native string, v []byte) []byte {
	hyll := len(v) >= 16 && string(v[:4]) == "HYLL" && (v[4] == 0 && len(v) == denseLogLog || v[4] == 1)
	if hyll && p.source == "ardb" && p.target != "ardb" && v[8]&0x80 != 0 {
		v = bytes.Clone(v)
		v[8] &^= 0x80
		v[15] |= 0x80
	}
	if p.target == "floyd" && native == "hyperloglog" && len(v) == rawLogLog {
		return v // a marked type in both formats
	}
	if p.target == "kvrocks" {
		dense, ok := hll.Dense(nil, v)
		if hyll && !hll.IsStale(v) || len(v) == rawLogLog {
			p.losses["hyperloglog"]++
		}
		if ok {
			return dense
		}
		return v
	}
	if p.target != "ardb" {
		if hyll || len(v) == rawLogLog {
			p.losses["hyperloglog"]++
		}
		return v
	}
	if len(v) == rawLogLog {
		p.losses["hyperloglog"]++
	}
	if hyll && v[15]&0x80 != 0 {
		p.losses["hyperloglog"]++
		v = bytes.Clone(v)
		v[15] &^= 0x80
		v[8] |= 0x80
	}
	return v
}
