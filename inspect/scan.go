package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"kvferry/format"
	"kvferry/internal/filter"
	"kvferry/internal/progress"
	"kvferry/internal/sorted"
	"kvferry/record"
)

const (
	defaultMemory = 128 << 20
	// spanBytes is about how much of a source one span stands for when there are several workers. They end together when spans
	// are small beside their share.
	spanBytes = 16 << 20
	maxSpans  = 64
	// batchLen is how many elements are read at once: so few that they stay in the nearest cache.
	batchLen = 64
	// checkEvery is how many records or batches pass between looks at the context.
	checkEvery = 256
)

// Scan is a pass over the records of a source.
type Scan struct {
	Source    format.Source
	Selection *filter.Selection // nil: the zero Selection
	Now       time.Time
	Workers   int    // number of parts read in parallel; 0 means 1; results do not depend on it
	Memory    int64  // limit of buffered bytes; 0 means 128 MiB
	TempDir   string // directory for temporary files; "" means os.TempDir
	Ledger    *record.Ledger
	Report    func(record.Finding)
	Stores    *Stores // adds directories to the places of findings; may be nil
	// Deep asks the format for findings about every element.
	Deep bool
	// RedisStrings asks the format for strings as Redis has them.
	RedisStrings bool
	// Meter counts progress; nil counts nothing. Step is the name of this scan's step.
	Meter *progress.Meter
	Step  string

	hashOnly  bool // rows that repeat others need not be read, and records may come in any order
	plainZero bool // scores of -0 are hashed as 0
}

// Part is the part of a scan that one reader reads.
type Part struct {
	DB    string
	Types record.TypeSet
	Span  format.Span
	Bytes int64 // on disk, approximate

	share *share // of the memory; nil: nothing else is read
}

// String describes the part.
func (p Part) String() string {
	s := p.Types.String()
	if p.DB != "" {
		s = fmt.Sprintf("database %s, %s", p.DB, s)
	}
	if p.Span.Lo != nil {
		s += ", keys from " + record.Quote(p.Span.Lo)
	}
	if p.Span.Hi != nil {
		s += ", keys before " + record.Quote(p.Span.Hi)
	}
	return s
}

// visitor takes the records of one part. merge is called when the part is done, for one part at a time.
type visitor interface {
	// record takes a record, whose elements are read by next.
	record(h *record.Header, e *elements) error
	// strings takes whole strings.
	strings(batch []record.StringRecord)
	merge()
}

// skipper is a visitor that wants to know what is left out.
type skipper interface {
	skip(h *record.Header, c record.Class)
}

func (s *Scan) selection() *filter.Selection {
	if s.Selection == nil {
		return new(filter.Selection)
	}
	return s.Selection
}

func (s *Scan) memory() int64 {
	if s.Memory <= 0 {
		return defaultMemory
	}
	return s.Memory
}

func (s *Scan) workers() int { return max(1, s.Workers) }

// Databases returns the names of the selected databases.
func (s *Scan) Databases() ([]string, error) {
	return s.selection().SelectDBs(s.Source.Databases())
}

// types returns the types of a database that are selected.
func (s *Scan) types(db string) record.TypeSet {
	t := s.Source.Types(db)
	if f := s.selection().Types; f != 0 {
		t &= f
	}
	return t
}

// parts cuts the source into what can be read on its own: types that share no keyspace, in spans.
func (s *Scan) parts() ([]Part, error) {
	dbs, err := s.Databases()
	if err != nil {
		return nil, err
	}
	var out []Part
	for _, db := range dbs {
		for _, types := range format.Together(s.Source, db, s.types(db)) {
			size := s.Source.Size(db, types)
			n := min(max(size/spanBytes, 1), maxSpans)
			if s.workers() == 1 { // to sample keys would gain nothing
				n = 1
			}
			spans, err := format.SplitAny(s.Source, db, types, int(n))
			if err != nil {
				return nil, err
			}
			for _, span := range spans {
				out = append(out, Part{DB: db, Types: types, Span: span, Bytes: size / int64(len(spans))})
			}
		}
	}
	return out, nil
}

// open returns a reader of a part, selected.
func (s *Scan) open(ctx context.Context, p Part) (record.Reader, error) {
	r, err := s.Source.Records(ctx, p.DB, p.Types, p.Span, s.env())
	if err != nil {
		return nil, err
	}
	return s.apply(ctx, s.Meter.Reader(r, p.Bytes), nil), nil
}

// Ordered returns a reader of the selected records of a database, by key and type, with the elements of hashes,
// sets and sorted sets by name. Records of a file keep its order.
func (s *Scan) Ordered(ctx context.Context, db string) (record.Reader, error) {
	types := s.types(db)
	if types == 0 {
		return record.Merge(), nil
	}
	return s.ordered(ctx, db, types, true)
}

func (s *Scan) ordered(ctx context.Context, db string, types record.TypeSet, byName bool) (record.Reader, error) {
	p := Part{DB: db, Types: types, Bytes: s.Source.Size(db, types)}
	if _, ok := s.Source.(format.Sectioned); ok { // a file is read as it is
		spans, err := format.SplitAny(s.Source, db, types, 1)
		if err != nil {
			return nil, err
		}
		p.Span, byName = spans[0], false
	}
	r, err := s.openSorted(ctx, p)
	if err == nil && byName {
		r = s.byName(r)
	}
	return r, err
}

// byName returns a reader that sorts elements by name where they have one.
func (s *Scan) byName(r record.Reader) record.Reader {
	return sorted.ByName(r, sorted.Options{Memory: s.memory() / 4, TempDir: s.TempDir})
}

// apply returns a reader of the records of r that are selected.
func (s *Scan) apply(ctx context.Context, r record.Reader, skipped func(*record.Header, record.Class)) record.Reader {
	return s.selection().Apply(ctx, r, filter.ApplyOptions{Now: s.Now, Memory: s.memory() / 8 / int64(s.workers()),
		TempDir: s.TempDir, Skipped: skipped})
}

func (s *Scan) env() *format.Env {
	report := s.Stores.names(s.Source).reporter(s.Report)
	return &format.Env{Now: s.Now, Memory: s.memory() / 2 / int64(s.workers()), TempDir: s.TempDir, Ledger: s.Ledger,
		Report: report, Deep: s.Deep, RecordsOnly: s.hashOnly, AnyOrder: s.hashOnly,
		RedisStrings: s.RedisStrings}
}

// run reads all parts, several at a time. It stops at the first error.
func (s *Scan) run(ctx context.Context, visit func(Part) visitor) error {
	parts, err := s.parts()
	if err != nil {
		return err
	}
	return s.runParts(ctx, parts, func(ctx context.Context, p Part) (func(), error) {
		v := visit(p)
		return v.merge, s.visit(ctx, p, v)
	})
}

// runParts calls do for each part, largest first, on as many workers as the scan has, and what do returns under a lock.
func (s *Scan) runParts(ctx context.Context, parts []Part, do func(context.Context, Part) (func(), error)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan Part, len(parts))
	for _, p := range slices.SortedStableFunc(slices.Values(parts), func(a, b Part) int { return cmp.Compare(b.Bytes, a.Bytes) }) {
		queue <- p
	}
	close(queue)
	s.begin(parts)
	var mu sync.Mutex
	var wg sync.WaitGroup
	workers := min(s.workers(), len(parts))
	memory := newSharing(ctx, s.memory(), workers)
	for range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for p := range queue {
				if ctx.Err() != nil {
					return
				}
				p.share = memory.begin()
				merge, err := do(ctx, p)
				p.share.end()
				if err != nil {
					cancel(err)
					return
				}
				mu.Lock()
				merge()
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	return context.Cause(ctx)
}

// begin starts the scan's step.
func (s *Scan) begin(parts []Part) {
	var total int64
	for _, p := range parts {
		total += p.Bytes
	}
	s.Meter.Begin(s.Step, total, 0, len(parts))
}

// visit reads one part.
func (s *Scan) visit(ctx context.Context, p Part, v visitor) (err error) {
	var skipped func(*record.Header, record.Class)
	if k, ok := v.(skipper); ok {
		skipped = k.skip
	}
	r, err := s.Source.Records(ctx, p.DB, p.Types, p.Span, s.env())
	if err != nil {
		return err
	}
	r = s.apply(ctx, p.shared(ctx, s.Meter.Reader(r, p.Bytes)), skipped)
	defer func() { err = errors.Join(err, r.Close()) }()
	e := newElements(ctx, r)
	for n := 1; ; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		batch, err := e.strings()
		if err == nil && len(batch) > 0 {
			v.strings(batch)
			continue
		}
		if err == nil {
			err = s.next(v, e)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// next reads one record.
func (s *Scan) next(v visitor, e *elements) error {
	h, err := e.r.Next()
	if err != nil {
		return err
	}
	return v.record(h, e)
}

// elements reads the elements of one record after the other, in batches.
type elements struct {
	ctx   context.Context
	r     record.Reader
	whole record.StringReader // that is the reader; nil: it is none
	batch []record.Element
	read  uint // batches
}

func newElements(ctx context.Context, r record.Reader) *elements {
	e := &elements{ctx: ctx, r: r, batch: make([]record.Element, batchLen)}
	e.whole, _ = r.(record.StringReader)
	return e
}

// strings returns the next records, which are strings; none when the next record is to be had by the reader's Next only.
func (e *elements) strings() ([]record.StringRecord, error) {
	if e.whole == nil {
		return nil, nil
	}
	return e.whole.NextStrings()
}

// next returns the next elements of the current record, none after the last. They live until the next call.
func (e *elements) next() ([]record.Element, error) {
	n, err := e.r.Read(e.batch)
	if err == io.EOF {
		return nil, nil
	}
	if e.read++; err == nil && e.read%checkEvery == 0 && e.ctx.Err() != nil {
		err = context.Cause(e.ctx)
	}
	return e.batch[:n], err
}

// more returns what next returns, and spares a string the question: it has one element.
func (e *elements) more(t record.Type) ([]record.Element, error) {
	if t == record.String {
		return nil, nil
	}
	return e.next()
}

// count reads what is left of the current record and counts it.
func (e *elements) count() (n int64, err error) {
	for {
		batch, err := e.next()
		if len(batch) == 0 || err != nil {
			return n, err
		}
		n += int64(len(batch))
	}
}
