package inspect

import (
	"context"
	"time"

	"kvferry/format"
	"kvferry/internal/footprint"
	"kvferry/record"
)

// StatsOptions control Collect.
type StatsOptions struct {
	Scan      Scan
	Stores    *Stores // to count files; may be nil
	Top       int     // number of big keys and prefixes to list
	Delimiter string  // between the parts of a key; "" counts no prefixes
	Depth     int     // number of parts in a prefix; 0 means 1
	Redis     bool    // estimate the memory that the records would use in Redis
}

// Stats describes the content of a dataset.
type Stats struct {
	Format      string
	Databases   []string
	NowMS       int64
	Types       []TypeStats // by database, then type
	Expiry      []ExpiryBucket
	TopBytes    []BigKey
	TopElements []BigKey
	// TopRedis lists the records that would use the most memory in Redis. Redis is the memory of all records, including
	// the hash tables of the keys; 0 if not requested.
	TopRedis []BigKey
	Redis    int64
	Prefixes []PrefixStats
	// MorePrefixes sums up the prefixes that are not listed. If there were too many to count, each
	// line may lack up to PrefixMisses bytes.
	MorePrefixes PrefixStats
	PrefixMisses int64
	Garbage      []Garbage
	Files        FileStats
}

// TypeStats counts the records of one type in one database.
type TypeStats struct {
	DB       string
	Type     record.Type
	Records  int64
	Elements int64
	Bytes    int64 // logical: keys, names and values, 8 for a score
	Disk     int64 // of the files with the type; files with several types count for each, see Shared
	Shared   bool
	Redis    int64 // estimated memory in Redis, in bytes
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

// expiryBuckets are the bounds of the expiry histogram; "expired" comes before and "never" after them.
var expiryBuckets = []ExpiryBucket{
	{Name: "within an hour", Below: time.Hour}, {Name: "within a day", Below: day},
	{Name: "within a week", Below: 7 * day}, {Name: "within 30 days", Below: 30 * day},
	{Name: "within 90 days", Below: 90 * day}, {Name: "within a year", Below: 365 * day}, {Name: "later"},
}

// Collect counts in one pass.
func Collect(ctx context.Context, o *StatsOptions) (*Stats, error) {
	scan := o.Scan
	if scan.Ledger == nil {
		scan.Ledger = new(record.Ledger)
	}
	all := newStatsVisitor(o, "")
	err := scan.run(ctx, func(p Part) visitor {
		v := newStatsVisitor(o, p.DB)
		v.into = all
		for _, t := range []*top{&v.byBytes, &v.byElem, &v.byRedis} {
			t.ascending = !p.Span.IsSection() && scan.Source.Sorted()
		}
		return v
	})
	if err != nil {
		return nil, err
	}
	s := all.stats(o)
	s.Garbage = garbage(scan.Source, scan.Ledger)
	if o.Stores != nil {
		s.Files = fileStats(scan.Source, o.Stores)
		freeBlobs(s.Garbage, s.Files.Blobs)
	}
	return s, nil
}

// typeCount counts one type.
type typeCount struct {
	records, elements, bytes, redis, expiring, expired int64
	sizes, lengths, keySizes                           Histogram
}

func (c *typeCount) merge(d *typeCount) {
	c.records += d.records
	c.elements += d.elements
	c.bytes += d.bytes
	c.redis += d.redis
	c.expiring += d.expiring
	c.expired += d.expired
	c.sizes.Merge(&d.sizes)
	c.lengths.Merge(&d.lengths)
	c.keySizes.Merge(&d.keySizes)
}

// statsVisitor counts the records of a part.
type statsVisitor struct {
	now             int64
	types           map[record.Part]*typeCount
	cur             *typeCount
	curPart         record.Part
	big             BigKey // the current record
	byBytes, byElem top
	byRedis         top
	meter           *footprint.Meter // nil: nothing is estimated
	prefixes        *prefixes
	expiry          []int64 // expired, the buckets, never
	expiryRedis     []int64
	into            *statsVisitor
	db              string
}

func newStatsVisitor(o *StatsOptions, db string) *statsVisitor {
	v := &statsVisitor{
		now:         o.Scan.Now.UnixMilli(),
		types:       make(map[record.Part]*typeCount),
		byBytes:     top{n: o.Top, measure: func(k *BigKey) int64 { return k.Bytes }},
		byElem:      top{n: o.Top, measure: func(k *BigKey) int64 { return k.Elements }},
		prefixes:    newPrefixes(o.Delimiter, o.Depth),
		expiry:      make([]int64, len(expiryBuckets)+2),
		db:          db,
		expiryRedis: make([]int64, len(expiryBuckets)+2),
	}
	if o.Redis {
		v.byRedis = top{n: o.Top, measure: func(k *BigKey) int64 { return k.Redis }}
		v.meter = new(footprint.Meter)
	}
	return v
}

func (v *statsVisitor) count(p record.Part) *typeCount {
	if v.cur == nil || v.curPart != p {
		v.curPart = p
		if v.cur = v.types[p]; v.cur == nil {
			v.cur = new(typeCount)
			v.types[p] = v.cur
		}
	}
	return v.cur
}

func (v *statsVisitor) record(h *record.Header, e *elements) error {
	n, size := int64(0), int64(len(h.Key))
	if v.meter != nil {
		v.meter.Begin(h)
	}
	batch, err := e.next()
	for ; len(batch) > 0 && err == nil; batch, err = e.more(h.Type) {
		if v.meter != nil {
			v.meter.Elements(batch)
		}
		for i := range batch {
			size += batch[i].Bytes(h.Type)
			if batch[i].Kind == record.Entry {
				n++
			}
		}
	}
	if err == nil && (n > 0 || h.Type == record.Stream) {
		c, b := v.count(record.Part{DB: v.db, Type: h.Type}), &v.big
		*b = BigKey{DB: v.db, Type: h.Type, Key: h.Key, Bytes: size, Elements: n, ExpireMS: h.ExpireMS}
		if v.meter != nil {
			b.Redis = v.meter.Bytes()
		}
		c.lengths.Add(n)
		v.add(c, h.Expired)
	}
	return err
}

func (v *statsVisitor) strings(batch []record.StringRecord) {
	c, b := v.count(record.Part{DB: v.db, Type: record.String}), &v.big
	b.DB, b.Type, b.Elements = v.db, record.String, 1
	c.lengths.AddSome(1, int64(len(batch)))
	for i := range batch {
		s := &batch[i]
		b.Key, b.Bytes, b.ExpireMS = s.Key, int64(len(s.Key)+len(s.Value)), s.ExpireMS
		if v.meter != nil {
			v.weigh(s)
		}
		v.add(c, s.Expired)
	}
}

// weigh estimates what a string would take in Redis.
func (v *statsVisitor) weigh(s *record.StringRecord) {
	var h record.Header
	s.Header(&h)
	v.meter.Begin(&h)
	v.meter.Elements([]record.Element{{Value: s.Value}})
	v.big.Redis = v.meter.Bytes()
}

// add counts the record in big, but for its length.
func (v *statsVisitor) add(c *typeCount, expired bool) {
	b := &v.big
	c.records++
	c.elements += b.Elements
	c.bytes += b.Bytes
	c.redis += b.Redis
	c.sizes.Add(b.Bytes)
	c.keySizes.Add(int64(len(b.Key)))
	bucket := len(v.expiry) - 1
	if b.ExpireMS != 0 {
		c.expiring++
		bucket = v.bucket(b.ExpireMS, expired)
	}
	v.expiry[bucket]++
	v.expiryRedis[bucket] += b.Redis
	if !v.byBytes.small(b.Bytes) || !v.byElem.small(b.Elements) || !v.byRedis.small(b.Redis) {
		v.byBytes.add(b)
		v.byElem.add(b)
		v.byRedis.add(b)
	}
	v.prefixes.add(b)
}

// bucket returns the index in expiry of a record that expires.
func (v *statsVisitor) bucket(expireMS int64, expired bool) int {
	if expired {
		return 0
	}
	left := expireMS - v.now
	for i, b := range expiryBuckets {
		if b.Below == 0 || left < b.Below.Milliseconds() {
			return 1 + i
		}
	}
	return len(expiryBuckets)
}

// skip counts a record that is left out.
func (v *statsVisitor) skip(h *record.Header, c record.Class) {
	if c == record.Expired {
		v.count(record.Part{DB: v.db, Type: h.Type}).expired++
		v.expiry[0]++
	}
}

func (v *statsVisitor) merge() {
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

// stats makes the result.
func (v *statsVisitor) stats(o *StatsOptions) *Stats {
	src := o.Scan.Source
	s := &Stats{Format: src.Format().Name(), Databases: src.Databases(), NowMS: v.now,
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
	s.Expiry = append(s.Expiry, ExpiryBucket{Name: "expired", Records: v.expiry[0], Redis: v.expiryRedis[0]})
	for i, b := range expiryBuckets {
		b.Records, b.Redis = v.expiry[1+i], v.expiryRedis[1+i]
		s.Expiry = append(s.Expiry, b)
	}
	last := len(v.expiry) - 1
	s.Expiry = append(s.Expiry, ExpiryBucket{Name: "never", Records: v.expiry[last], Redis: v.expiryRedis[last]})
	s.MorePrefixes = v.prefixes.folded
	for i, p := range v.prefixes.sorted() {
		if i < o.Top {
			s.Prefixes = append(s.Prefixes, *p)
		} else {
			s.MorePrefixes.add(p)
		}
	}
	return s
}

// redis is what all records would take in Redis, with the tables that keys stand in.
func (v *statsVisitor) redis() (sum int64) {
	keys, expiring := map[string]int64{}, map[string]int64{}
	for p, c := range v.types {
		sum += c.redis
		keys[p.DB] += c.records
		expiring[p.DB] += c.expiring
	}
	for db, n := range keys {
		sum += footprint.Keys(n, expiring[db])
	}
	return sum
}

func (c *typeCount) stats(o *StatsOptions, db string, t record.Type) TypeStats {
	s := TypeStats{DB: db, Type: t, Records: c.records, Elements: c.elements, Bytes: c.bytes, Redis: c.redis, Expiring: c.expiring,
		Expired: c.expired, Sizes: c.sizes.Distribution(), Lengths: c.lengths.Distribution(), KeySizes: c.keySizes.Distribution()}
	src := o.Scan.Source
	s.Disk = src.Size(db, record.Of(t))
	for _, g := range format.Together(src, db, src.Types(db)) {
		s.Shared = s.Shared || g.Has(t) && g != record.Of(t)
	}
	return s
}
