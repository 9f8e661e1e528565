package stats

import (
	"bytes"
	"context"
	"slices"
	"time"

	"kvferry/inspect"
	"kvferry/inspect/redismem"
	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// Options control Collect.
type Options struct {
	Scan      inspect.Scan
	Location  string          // of the source, for commands
	Stores    *inspect.Stores // to count files; may be nil
	Top       int             // number of big keys and prefixes to list
	Delimiter string          // between the parts of a key; Auto finds it; "" counts no prefixes
	Depth     int             // maximum number of parts of a key; 0 means 16
	Redis     bool            // estimate the memory that the records would use in Redis
}

// About is what a result depends on beside the records and the rows. It is the same for all parts of a run.
type About struct {
	Location, Delimiter jsonl.Text
	Top                 int
	Redis               bool
	NowMS               int64
	inspect.Selected
	Everything bool // all records are selected
	Seeks      bool // only some spans of keys are read
	Facts      Facts
}

func aboutOf(o *Options) *About {
	scan := &o.Scan
	return &About{Location: jsonl.Text(o.Location), Delimiter: jsonl.Text(o.Delimiter), Top: o.Top, Redis: o.Redis,
		NowMS: scan.Now.UnixMilli(), Selected: scan.Chosen(),
		Everything: scan.Selected().Everything(), Seeks: scan.Seeks(), Facts: *factsOf(scan, o.Stores)}
}

// Result describes the content of a dataset.
type Result struct {
	Source      string // location
	Selected    inspect.Selected
	Format      string
	Databases   []string
	NowMS       int64
	Types       []Type // by database, then type
	Expiry      []ExpiryBucket
	TopBytes    []BigKey
	TopElements []BigKey
	// TopRedis lists the records that would use the most memory in Redis. Redis is the memory of all records, including
	// the hash tables of the keys; 0 if not requested.
	TopRedis  []BigKey
	Redis     int64
	Prefixes  *Prefix // the root: all keys; nil if not requested
	Deletable []Deletable
	Garbage   []Garbage // nil if only some spans of keys were read
	Files     Files
}

// Sum adds up records.
type Sum struct {
	Records  int64 `json:",omitzero"`
	Elements int64 `json:",omitzero"`
	Bytes    int64 `json:",omitzero"` // logical: keys, names and values, 8 for a score
	Redis    int64 `json:",omitzero"` // estimated memory in Redis, in bytes
}

func (s *Sum) add(t Sum) {
	s.Records += t.Records
	s.Elements += t.Elements
	s.Bytes += t.Bytes
	s.Redis += t.Redis
}

// Records returns the number of records of all types.
func (s *Result) Records() (n int64) {
	for _, t := range s.Types {
		n += t.Records
	}
	return n
}

// Type counts the records of one type in one database.
type Type struct {
	DB   string
	Type record.Type
	Sum
	Disk     int64 // of the files with the type; files with several types count for each, see Shared
	Shared   bool
	Expiring int64
	Expired  int64 // expired records, not counted above
	Sizes    Distribution
	Lengths  Distribution
	KeySizes Distribution
	Largest  []BigKey // by bytes
}

// ExpiryBucket counts records by remaining time to live.
type ExpiryBucket struct {
	Name  string
	Below time.Duration // 0: no bound
	Sum
}

const (
	day        = 24 * time.Hour
	numBuckets = 7
)

// expiryBuckets are the buckets of the expiry histogram, between "expired" and "never".
var expiryBuckets = [numBuckets]ExpiryBucket{
	{Name: "within an hour", Below: time.Hour}, {Name: "within a day", Below: day},
	{Name: "within a week", Below: 7 * day}, {Name: "within 30 days", Below: 30 * day},
	{Name: "within 90 days", Below: 90 * day}, {Name: "within a year", Below: 365 * day}, {Name: "later"},
}

// expiryFrom lists the lower bounds of all buckets but the first, in milliseconds.
var expiryFrom = func() (out []int64) {
	for _, b := range expiryBuckets[:len(expiryBuckets)-1] {
		out = append(out, b.Below.Milliseconds())
	}
	return out
}()

// Collect reads the dataset in one pass.
func Collect(ctx context.Context, o *Options) (*Result, error) {
	v, ledger, _, err := collect(ctx, o)
	if err != nil {
		return nil, err
	}
	return v.result(aboutOf(o), ledger), nil
}

// collect counts the records and rows of the share of the scan, and returns all tasks, too.
func collect(ctx context.Context, o *Options) (*counter, *record.Ledger, []inspect.Part, error) {
	scan := o.Scan
	if scan.Ledger == nil {
		scan.Ledger = new(record.Ledger)
	}
	all := newCounter(o, "", newTree(scan.Memory, len(scan.Source.Databases())))
	tasks, err := scan.Run(ctx, func(p inspect.Part) inspect.Visitor {
		v := newCounter(o, p.DB, all.places.to)
		v.into = all
		v.ascending = !p.Span.IsSection() && scan.Source.Sorted()
		return v
	})
	return all, scan.Ledger, tasks, err
}

// typeCount counts one type.
type typeCount struct {
	Sum
	expiring, expired        int64
	sizes, lengths, keySizes Histogram
	largest                  top
}

func (c *typeCount) merge(d *typeCount) {
	c.add(d.Sum)
	c.expiring += d.expiring
	c.expired += d.expired
	c.sizes.Merge(&d.sizes)
	c.lengths.Merge(&d.lengths)
	c.keySizes.Merge(&d.keySizes)
	c.largest.merge(&d.largest)
}

// counter counts the records of a part.
type counter struct {
	now             int64
	types           map[record.Part]*typeCount
	cur             *typeCount
	curPart         record.Part
	big             BigKey // scratch space
	byBytes, byElem top
	byRedis         top
	open            Sum             // of the last record
	meter           *redismem.Meter // nil: memory in Redis is not estimated
	places          *places
	values          values
	perType         int     // number of largest keys of a type
	ascending       bool    // records come in order
	sizes, weights  []int64 // scratch space for strings
	keys            [][]byte
	into            *counter
	db              string
}

// mostPerType is the number of largest keys listed for each type.
const mostPerType = 5

func newCounter(o *Options, db string, to *tree) *counter {
	v := &counter{
		now:     o.Scan.Now.UnixMilli(),
		types:   make(map[record.Part]*typeCount),
		byBytes: top{n: o.Top, measure: func(k *BigKey) int64 { return k.Bytes }},
		byElem:  top{n: o.Top, measure: func(k *BigKey) int64 { return k.Elements }},
		places:  newPlaces(to, o.Delimiter, o.Depth, db),
		perType: min(o.Top, mostPerType),
		db:      db,
	}
	if o.Redis {
		v.byRedis = top{n: o.Top, measure: func(k *BigKey) int64 { return k.Redis }}
		v.meter = new(redismem.Meter)
	}
	return v
}

func (v *counter) count(p record.Part) *typeCount {
	if v.cur == nil || v.curPart != p {
		v.curPart = p
		if v.cur = v.types[p]; v.cur == nil {
			v.cur = &typeCount{largest: top{n: v.perType, measure: v.byBytes.measure}}
			v.types[p] = v.cur
		}
	}
	return v.cur
}

// Batch counts records.
func (v *counter) Batch(b *record.Batch) {
	for i := 0; i < len(b.Records); {
		n := b.Strings(i)
		if n > 0 {
			v.strings(b.Records[i:i+n], b.Elems)
		} else {
			n = 1
			v.piece(b, i)
		}
		i += n
	}
}

// piece counts record i of a batch.
func (v *counter) piece(b *record.Batch, i int) {
	r := &b.Records[i]
	if r.Out() {
		return
	}
	if b.Begins(i) {
		v.open = Sum{Records: 1, Bytes: int64(len(r.Key))}
		if v.meter != nil {
			v.meter.Begin(&r.Header)
		}
	}
	elems := b.Of(i)
	if v.meter != nil {
		v.meter.Elements(elems)
	}
	n, bytes := record.Measure(r.Type, elems)
	v.open.Elements, v.open.Bytes = v.open.Elements+n, v.open.Bytes+bytes
	if b.Ends(i) && (v.open.Elements > 0 || r.Type == record.Stream) {
		v.record(&r.Header)
	}
}

// record counts the record that has ended.
func (v *counter) record(h *record.Header) {
	sum := v.open
	if v.meter != nil {
		sum.Redis = v.meter.Bytes()
	}
	c := v.count(record.Part{DB: v.db, Type: h.Type})
	c.lengths.Add(sum.Elements)
	c.sizes.Add(sum.Bytes)
	c.keySizes.Add(int64(len(h.Key)))
	c.add(sum)
	at := v.places.of(h.Key)
	at.reach(h.Key, h.Key)
	at.Types[h.Type].add(sum)
	if h.ExpireMS != 0 {
		c.expiring++
		at.Expiry[v.bucket(h.ExpireMS, h.Expired)].add(sum)
	}
	v.rank(c, at, h, &sum)
}

// strings counts whole strings. It loops over them once per statistic, which is faster than one loop that collects all
// of them.
func (v *counter) strings(batch []record.Record, elems []record.Element) {
	c := v.count(record.Part{DB: v.db, Type: record.String})
	sizes, redis := v.measure(batch, elems)
	c.sizes.AddAll(sizes)
	c.lengths.AddSome(1, int64(len(batch)))
	c.addKeys(batch)
	for i := 0; i < len(batch); {
		at, n := v.places.run(v.keys[i:], v.ascending)
		v.stringsAt(c, at, batch[i:i+n], sizes[i:i+n], redis[i:i+n])
		i += n
	}
	if slices.Max(sizes) >= leastValue {
		for i := range batch {
			v.values.add(v.db, batch[i].Key, elems[batch[i].First].Value)
		}
	}
}

// stringsAt counts strings with the same path.
func (v *counter) stringsAt(c *typeCount, at *Count, batch []record.Record, sizes, redis []int64) {
	sum := Sum{Records: int64(len(batch)), Elements: int64(len(batch))}
	most := Sum{Elements: 1, Bytes: slices.Max(sizes)}
	if v.meter != nil {
		most.Redis = slices.Max(redis)
	}
	for i, size := range sizes {
		sum.Bytes += size
		sum.Redis += redis[i]
		if s := &batch[i]; s.ExpireMS != 0 {
			c.expiring++
			at.Expiry[v.bucket(s.ExpireMS, s.Expired)].add(Sum{1, 1, size, redis[i]})
		}
	}
	c.add(sum)
	at.Types[record.String].add(sum)
	first, last := batch[0].Key, batch[len(batch)-1].Key
	for i := 0; i < len(batch) && !v.ascending; i++ {
		if key := batch[i].Key; bytes.Compare(key, last) > 0 {
			last = key
		} else if bytes.Compare(key, first) < 0 {
			first = key
		}
	}
	at.reach(first, last)
	if v.ranks(c, &most, first) || v.leads(at, most.Bytes, first) {
		for i := range batch {
			v.rank(c, at, &batch[i].Header, &Sum{1, 1, sizes[i], redis[i]})
		}
	}
}

// measure returns the sizes of strings, and their memory in Redis: zeros if it is not estimated.
func (v *counter) measure(batch []record.Record, elems []record.Element) (sizes, redis []int64) {
	v.sizes = slices.Grow(v.sizes[:0], len(batch))[:len(batch)]
	v.keys = slices.Grow(v.keys[:0], len(batch))[:len(batch)]
	v.weights = slices.Grow(v.weights[:0], len(batch))[:len(batch)]
	for i := range batch {
		v.keys[i] = batch[i].Key
		v.sizes[i] = int64(len(batch[i].Key) + len(elems[batch[i].First].Value))
	}
	if v.meter != nil {
		for i := range batch {
			v.weights[i] = v.weigh(&batch[i], elems)
		}
	}
	return v.sizes, v.weights
}

// addKeys counts the lengths of keys. Runs of equal lengths are common and are counted at once.
func (c *typeCount) addKeys(batch []record.Record) {
	for len(batch) > 0 {
		size, n := len(batch[0].Key), 1
		for n < len(batch) && len(batch[n].Key) == size {
			n++
		}
		c.keySizes.AddSome(int64(size), int64(n))
		batch = batch[n:]
	}
}

// weigh estimates the memory of a string in Redis.
func (v *counter) weigh(s *record.Record, elems []record.Element) int64 {
	v.meter.Begin(&s.Header)
	v.meter.Elements(elems[s.First : s.First+1])
	return v.meter.Bytes()
}

// ranks reports whether a record may be one of the largest, which has at most this size, and does not come before first.
func (v *counter) ranks(c *typeCount, s *Sum, first []byte) bool {
	return c.largest.ranks(s.Bytes, first) || v.byBytes.ranks(s.Bytes, first) || v.byElem.ranks(s.Elements, first) ||
		v.byRedis.ranks(s.Redis, first)
}

// leads reports whether such a record may be the largest of a path.
func (v *counter) leads(at *Count, size int64, first []byte) bool {
	if at.Largest.Type == 0 || size > at.Largest.Bytes {
		return true
	}
	return size == at.Largest.Bytes && bytes.Compare(first[:min(len(first), longestKey)], at.Largest.Key) <= 0
}

// rank adds a record to the lists of the largest if it belongs there.
func (v *counter) rank(c *typeCount, at *Count, h *record.Header, s *Sum) {
	ranks, leads := v.ranks(c, s, h.Key), v.leads(at, s.Bytes, h.Key)
	if !ranks && !leads {
		return
	}
	k := &v.big
	*k = BigKey{DB: v.db, Type: h.Type, Key: h.Key, Bytes: s.Bytes, Redis: s.Redis, Elements: s.Elements, ExpireMS: h.ExpireMS}
	if leads {
		at.rank(k)
	}
	if !ranks {
		return
	}
	c.largest.add(k)
	v.byBytes.add(k)
	v.byElem.add(k)
	v.byRedis.add(k)
}

// bucket returns the bucket of an expiry.
func (v *counter) bucket(expireMS int64, expired bool) int {
	if expired {
		return 0
	}
	bucket := 1
	for _, from := range expiryFrom {
		if expireMS-v.now >= from {
			bucket++
		}
	}
	return bucket
}

// Skip counts an expired record that the selection leaves out.
func (v *counter) Skip(h *record.Header, c record.Class) {
	if c == record.Expired {
		v.count(record.Part{DB: v.db, Type: h.Type}).expired++
		at := v.places.of(h.Key)
		at.reach(h.Key, h.Key)
		at.Skipped++
	}
}

// Merge adds the part to the sum.
func (v *counter) Merge() {
	for p, c := range v.types {
		v.into.count(p).merge(c)
	}
	v.into.byBytes.merge(&v.byBytes)
	v.into.byElem.merge(&v.byElem)
	v.into.byRedis.merge(&v.byRedis)
	v.into.values.merge(&v.values)
	v.places.flush()
}

// result returns the statistics.
func (v *counter) result(a *About, ledger *record.Ledger) *Result {
	s := &Result{Source: string(a.Location), Selected: a.Selected, Format: a.Facts.Format, Databases: a.Facts.Names(),
		NowMS: v.now, TopBytes: v.byBytes.list(), TopElements: v.byElem.list(), Files: a.Facts.Files}
	if a.Redis {
		s.TopRedis, s.Redis = v.byRedis.list(), v.redis()
	}
	for i := range a.Facts.Databases {
		db := &a.Facts.Databases[i]
		for t := record.String; int(t) < record.NumTypes; t++ {
			if c := v.types[record.Part{DB: string(db.Name), Type: t}]; c != nil {
				s.Types = append(s.Types, c.stats(db, t))
			}
		}
	}
	all := v.places.to.sum()
	s.Expiry = all.Buckets()
	if a.Top > 0 && a.Delimiter != "" {
		s.Prefixes = v.places.to.prefixes(a)
	}
	if !a.Seeks {
		s.Garbage = a.Facts.Garbage(ledger)
	}
	s.Deletable = v.deletable(a, s)
	return s
}

// redis returns the estimated memory of all records in Redis, including the hash tables of the keys.
func (v *counter) redis() (sum int64) {
	keys, expiring := map[string]int64{}, map[string]int64{}
	for p, c := range v.types {
		sum += c.Redis
		keys[p.DB] += c.Records
		expiring[p.DB] += c.expiring
	}
	for db, n := range keys {
		sum += redismem.Keys(n, expiring[db])
	}
	return sum
}

func (c *typeCount) stats(db *Database, t record.Type) Type {
	s := Type{DB: string(db.Name), Type: t, Sum: c.Sum, Expiring: c.expiring, Expired: c.expired,
		Sizes: c.sizes.Distribution(), Lengths: c.lengths.Distribution(), KeySizes: c.keySizes.Distribution(),
		Largest: c.largest.list()}
	s.Disk, s.Shared = db.Type(t)
	return s
}
