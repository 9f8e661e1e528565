package stats

import (
	"context"
	"slices"
	"time"

	"kvferry/format"
	"kvferry/inspect"
	"kvferry/inspect/redismem"
	"kvferry/record"
)

// Options control Collect.
type Options struct {
	Scan      inspect.Scan
	Stores    *inspect.Stores // to count files; may be nil
	Top       int             // number of big keys and prefixes to list
	Delimiter string          // between the parts of a key; "" counts no prefixes
	Depth     int             // number of parts in a prefix; 0 means 1
	Redis     bool            // estimate the memory that the records would use in Redis
}

// Result describes the content of a dataset.
type Result struct {
	Format      string
	Databases   []string
	NowMS       int64
	Types       []Type // by database, then type
	Expiry      []ExpiryBucket
	TopBytes    []BigKey
	TopElements []BigKey
	// TopRedis lists the records that would use the most memory in Redis. Redis is the memory of all records, including
	// the hash tables of the keys; 0 if not requested.
	TopRedis []BigKey
	Redis    int64
	Prefixes []Prefix
	// MorePrefixes sums up the prefixes that are not listed. If there were too many to count, each
	// line may lack up to PrefixMisses bytes.
	MorePrefixes Prefix
	PrefixMisses int64
	Garbage      []Garbage // nil if only some spans of keys were read
	Files        Files
}

// Sum adds up records.
type Sum struct {
	Records  int64
	Elements int64
	Bytes    int64 // logical: keys, names and values, 8 for a score
	Redis    int64 // estimated memory in Redis, in bytes
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
}

// ExpiryBucket counts records by remaining time to live.
type ExpiryBucket struct {
	Name    string
	Below   time.Duration // 0: no bound
	Records int64
	Redis   int64 // estimated memory in Redis, in bytes
}

const day = 24 * time.Hour

// expiryBuckets are the buckets of the expiry histogram, between "expired" and "never".
var expiryBuckets = []ExpiryBucket{
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
	scan := o.Scan
	if scan.Ledger == nil {
		scan.Ledger = new(record.Ledger)
	}
	all := newCounter(o, "")
	err := scan.Run(ctx, func(p inspect.Part) inspect.Visitor {
		v := newCounter(o, p.DB)
		v.into = all
		v.ascending = !p.Span.IsSection() && scan.Source.Sorted()
		for _, t := range []*top{&v.byBytes, &v.byElem, &v.byRedis} {
			t.ascending = v.ascending
		}
		return v
	})
	if err != nil {
		return nil, err
	}
	s := all.result(o)
	if !scan.Seeks() {
		s.Garbage = garbage(scan.Source, scan.Ledger)
	}
	if o.Stores != nil {
		s.Files = fileStats(scan.Source, o.Stores)
		freeBlobs(s.Garbage, s.Files.Blobs)
	}
	return s, nil
}

// typeCount counts one type.
type typeCount struct {
	Sum
	expiring, expired        int64
	sizes, lengths, keySizes Histogram
}

func (c *typeCount) merge(d *typeCount) {
	c.add(d.Sum)
	c.expiring += d.expiring
	c.expired += d.expired
	c.sizes.Merge(&d.sizes)
	c.lengths.Merge(&d.lengths)
	c.keySizes.Merge(&d.keySizes)
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
	floor           Sum             // records at or below this are not among the largest
	meter           *redismem.Meter // nil: memory in Redis is not estimated
	prefixes        *prefixes
	expiry          []int64 // expired, then expiryBuckets
	expiryRedis     []int64
	ascending       bool    // records come in order
	sizes, weights  []int64 // scratch space for strings
	into            *counter
	db              string
}

func newCounter(o *Options, db string) *counter {
	v := &counter{
		now:         o.Scan.Now.UnixMilli(),
		types:       make(map[record.Part]*typeCount),
		byBytes:     top{n: o.Top, measure: func(k *BigKey) int64 { return k.Bytes }},
		byElem:      top{n: o.Top, measure: func(k *BigKey) int64 { return k.Elements }},
		prefixes:    newPrefixes(o.Delimiter, o.Depth),
		expiry:      make([]int64, 1+len(expiryBuckets)),
		db:          db,
		floor:       Sum{Bytes: -1, Elements: -1, Redis: -1},
		expiryRedis: make([]int64, 1+len(expiryBuckets)),
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
			v.cur = new(typeCount)
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
	if v.open.Elements += int64(len(elems)); r.Type == record.Stream {
		v.open.Elements += int64(entriesOf(elems) - len(elems))
	}
	v.open.Bytes += record.BatchBytes(elems)
	if r.Type == record.ZSet {
		v.open.Bytes += record.ScoreBytes * int64(len(elems))
	}
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
	if h.ExpireMS != 0 {
		v.expires(c, h.ExpireMS, h.Expired, sum.Redis)
	}
	if v.ranks(&sum) {
		v.rank(h.Type, h.Key, h.ExpireMS, &sum)
	}
	c.add(sum)
	v.prefixes.find(h.Key)
	v.prefixes.last.add(sum)
}

// entriesOf counts the stream entries in a batch.
func entriesOf(batch []record.Element) (n int) {
	for i := range batch {
		if batch[i].Kind == record.Entry {
			n++
		}
	}
	return n
}

// strings counts whole strings. It loops over them once per statistic, which is faster than one loop that collects all
// of them.
func (v *counter) strings(batch []record.Record, elems []record.Element) {
	c := v.count(record.Part{DB: v.db, Type: record.String})
	sizes, redis := v.measure(batch, elems)
	c.sizes.addAll(sizes)
	c.lengths.AddSome(1, int64(len(batch)))
	c.addKeys(batch)
	for i := range batch {
		if s := &batch[i]; s.ExpireMS != 0 {
			v.expires(c, s.ExpireMS, s.Expired, redis[i])
		}
	}
	most := Sum{Elements: 1, Bytes: slices.Max(sizes)}
	if v.meter != nil {
		most.Redis = slices.Max(redis)
	}
	if v.ranks(&most) {
		for i := range batch {
			v.rank(record.String, batch[i].Key, batch[i].ExpireMS, &Sum{Elements: 1, Bytes: sizes[i], Redis: redis[i]})
		}
	}
	for len(batch) > 0 {
		n := v.prefixes.run(batch, v.ascending)
		sum := Sum{Records: int64(n), Elements: int64(n)}
		for i := range n {
			sum.Bytes += sizes[i]
			sum.Redis += redis[i]
		}
		c.add(sum)
		v.prefixes.last.add(sum)
		batch, sizes, redis = batch[n:], sizes[n:], redis[n:]
	}
}

// measure returns the sizes of strings, and their memory in Redis: zeros if it is not estimated.
func (v *counter) measure(batch []record.Record, elems []record.Element) (sizes, redis []int64) {
	v.sizes = slices.Grow(v.sizes[:0], len(batch))[:len(batch)]
	v.weights = slices.Grow(v.weights[:0], len(batch))[:len(batch)]
	for i := range batch {
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

// ranks reports whether a record may be one of the largest.
func (v *counter) ranks(s *Sum) bool {
	return s.Bytes > v.floor.Bytes || s.Elements > v.floor.Elements || s.Redis > v.floor.Redis
}

// rank adds a record to the lists of the largest if it belongs there.
func (v *counter) rank(t record.Type, key []byte, expireMS int64, s *Sum) {
	k := &v.big
	*k = BigKey{DB: v.db, Type: t, Key: key, Bytes: s.Bytes, Redis: s.Redis, Elements: s.Elements, ExpireMS: expireMS}
	v.byBytes.add(k)
	v.byElem.add(k)
	v.byRedis.add(k)
	v.floor = Sum{Bytes: v.byBytes.floor(), Elements: v.byElem.floor(), Redis: v.byRedis.floor()}
}

// expires counts a record with an expiry.
func (v *counter) expires(c *typeCount, expireMS int64, expired bool, redis int64) {
	bucket := 0
	if !expired {
		bucket = 1
		for _, from := range expiryFrom {
			if expireMS-v.now >= from {
				bucket++
			}
		}
	}
	c.expiring++
	v.expiry[bucket]++
	v.expiryRedis[bucket] += redis
}

// Skip counts an expired record that the selection leaves out.
func (v *counter) Skip(h *record.Header, c record.Class) {
	if c == record.Expired {
		v.count(record.Part{DB: v.db, Type: h.Type}).expired++
		v.expiry[0]++
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
	v.into.prefixes.merge(v.prefixes)
	for i, n := range v.expiry {
		v.into.expiry[i] += n
		v.into.expiryRedis[i] += v.expiryRedis[i]
	}
}

// result returns the statistics.
func (v *counter) result(o *Options) *Result {
	src := o.Scan.Source
	s := &Result{Format: src.Format().Name(), Databases: src.Databases(), NowMS: v.now,
		TopBytes: v.byBytes.list(), TopElements: v.byElem.list(), PrefixMisses: v.prefixes.misses}
	if o.Redis {
		s.TopRedis, s.Redis = v.byRedis.list(), v.redis()
	}
	for _, db := range s.Databases {
		for t := record.String; int(t) < record.NumTypes; t++ {
			if c := v.types[record.Part{DB: db, Type: t}]; c != nil {
				s.Types = append(s.Types, c.stats(o, db, t))
			}
		}
	}
	s.Expiry = v.byExpiry()
	s.MorePrefixes = v.prefixes.folded
	for i, p := range v.prefixes.sorted() {
		if i < o.Top {
			s.Prefixes = append(s.Prefixes, *p)
		} else {
			s.MorePrefixes.add(p.Sum)
		}
	}
	return s
}

// byExpiry returns the expiry histogram. Records in no bucket never expire.
func (v *counter) byExpiry() []ExpiryBucket {
	out := append([]ExpiryBucket{{Name: "expired"}}, expiryBuckets...)
	never := ExpiryBucket{Name: "never"}
	for _, c := range v.types {
		never.Records += c.Records - c.expiring
		never.Redis += c.Redis
	}
	for i := range out {
		out[i].Records, out[i].Redis = v.expiry[i], v.expiryRedis[i]
		never.Redis -= v.expiryRedis[i]
	}
	return append(out, never)
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

func (c *typeCount) stats(o *Options, db string, t record.Type) Type {
	s := Type{DB: db, Type: t, Sum: c.Sum, Expiring: c.expiring, Expired: c.expired,
		Sizes: c.sizes.Distribution(), Lengths: c.lengths.Distribution(), KeySizes: c.keySizes.Distribution()}
	src := o.Scan.Source
	s.Disk = src.Size(db, record.Of(t))
	for _, g := range format.Together(src, db, src.Types(db)) {
		s.Shared = s.Shared || g.Has(t) && g != record.Of(t)
	}
	return s
}
