package inspect

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"kvferry/format"
	"kvferry/internal/pass"
	"kvferry/internal/pass/filter"
	"kvferry/internal/pass/progress"
	"kvferry/internal/pass/sorted"
	"kvferry/internal/sys/disk"
	"kvferry/record"
)

const (
	defaultMemory = 128 << 20
	// spanBytes is the approximate source size of a span with several workers. Spans must be small compared to a
	// worker's share, so that all workers end at about the same time.
	spanBytes = 16 << 20
	maxSpans  = 64
	// leastSpan is the approximate source size below which a group is not cut further for parts.
	leastSpan = 64 << 10
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
	Stores    *Stores // adds directories to file names in findings; may be nil
	// Sources are the files that Source reads. nil skips the check for changes during the scan.
	Sources *disk.Sources
	// Deep makes the format check every element and report findings.
	Deep bool
	// RedisStrings requests strings in Redis's form.
	RedisStrings bool
	// PlainZero hashes scores of -0 as 0.
	PlainZero bool
	// ExactScores compares scores as 64-bit integers.
	ExactScores bool
	// Meter counts progress; it may be nil. Step is the name of this scan's step.
	Meter *progress.Meter
	Step  string
	// Share limits Run to a part of the tasks, which then depend on the source and on the number of parts alone.
	Share pass.Part

	hashOnly bool // redundant rows may be skipped, and records may come in any order
}

// Selected says of which records a result is.
type Selected struct {
	Filters filter.Conditions `json:"filters"`
	Expired string            `json:"expired,omitempty"` // drop or keep; "": they are counted apart
}

// Chosen returns which records the scan selects.
func (s *Scan) Chosen() Selected {
	out := Selected{s.Selected().Conditions(s.Now), "drop"}
	if s.Selected().KeepExpired {
		out.Expired = "keep"
	}
	return out
}

// Part is a part of a scan for one reader.
type Part = pass.Task

// Visitor receives the records of one part.
type Visitor interface {
	// Batch handles the records of a batch that are not out.
	Batch(b *record.Batch)
	// Merge is called when the part is done. Calls are serialized.
	Merge()
}

// Skipper is a Visitor that is also told about records left out.
type Skipper interface {
	Skip(h *record.Header, c record.Class)
}

// Selected returns the selection. It is never nil.
func (s *Scan) Selected() *filter.Selection {
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
	return s.Selected().SelectDBs(s.Source.Databases())
}

// Types returns the types of a database that are selected.
func (s *Scan) Types(db string) record.TypeSet {
	t := s.Source.Types(db)
	if f := s.Selected().Types; f != 0 {
		t &= f
	}
	return t
}

// Parts cuts the source into independently readable parts: groups of types that share no keyspace, cut into spans.
func (s *Scan) Parts() ([]Part, error) {
	lookups := format.Lookups(s.spans())
	return s.cut(true, func(size int64) int64 {
		if s.Share.N > 0 && !lookups {
			return max(size/spanBytes, min(int64(s.Share.N), size/leastSpan))
		}
		if s.workers() == 1 || lookups { // one worker gains nothing from spans, and finding their bounds costs reads
			return 1
		}
		return min(size/spanBytes, maxSpans)
	})
}

// Pieces cuts the source into parts of about some bytes on disk, each in key order. They depend on the source alone.
func (s *Scan) Pieces(bytes int64) ([]Part, error) {
	return s.cut(false, func(size int64) int64 { return size / bytes })
}

// cut cuts the source into parts; n returns the number of parts for some bytes on disk.
func (s *Scan) cut(anyOrder bool, n func(size int64) int64) (out []Part, err error) {
	dbs, err := s.Databases()
	if err != nil {
		return nil, err
	}
	keys := s.spans()
	for _, db := range dbs {
		for _, types := range format.Together(s.Source, db, s.Types(db)) {
			size := s.Size(db, types)
			parts, err := Part{DB: db, Types: types, Bytes: size}.Cut(s.Source, max(n(size), 1), anyOrder)
			if err != nil {
				return nil, err
			}
			for _, p := range parts {
				p.N = len(out)
				out = append(out, limited(p, keys))
			}
		}
	}
	return out, nil
}

// Whole returns the part of a scan that is all of a database.
func (s *Scan) Whole(db string, types record.TypeSet) Part {
	return limited(Part{DB: db, Types: types, Bytes: s.Size(db, types)}, s.spans())
}

// open returns a reader of a part's selected records. If the source is unsorted, it sorts them in some memory, unless
// that is 0. skipped is called for the others; it may be nil.
func (s *Scan) open(ctx context.Context, p Part, memory int64,
	skipped func(*record.Header, record.Class)) (record.Reader, error) {
	o := s.opening(skipped)
	if !s.Source.Sorted() {
		o.Sort = memory
	}
	r, err := o.Open(ctx, &p)
	if err != nil {
		return nil, err
	}
	return record.Booked(r, s.Ledger), nil
}

// opening is how parts are opened.
func (s *Scan) opening(skipped func(*record.Header, record.Class)) *pass.Opening {
	return &pass.Opening{Source: s.Source, Selection: s.Selected(), Env: *s.Env(), Meter: s.Meter, Skipped: skipped,
		Hold: s.memory() / 8 / int64(s.workers())}
}

// Ordered returns a reader of the selected records of a database, by key and type, with the elements of hashes,
// sets and sorted sets by name. Records of a file keep its order.
func (s *Scan) Ordered(ctx context.Context, db string) (record.Reader, error) {
	return s.ordered(ctx, db, true)
}

// OrderedKeys is Ordered with elements in source order.
func (s *Scan) OrderedKeys(ctx context.Context, db string) (record.Reader, error) {
	return s.ordered(ctx, db, false)
}

func (s *Scan) ordered(ctx context.Context, db string, byName bool) (record.Reader, error) {
	types := s.Types(db)
	if types == 0 {
		return record.Merge(), nil
	}
	p := s.Whole(db, types)
	if _, ok := format.As[format.Sectioned](s.Source); ok { // a file keeps its order
		spans, err := format.SplitAny(s.Source, db, types, 1)
		if err != nil {
			return nil, err
		}
		p.Span, byName = spans[0], false
	}
	r, err := s.OpenSorted(ctx, p)
	if err == nil && byName {
		r = s.ByName(r, 4)
	}
	return r, err
}

// OpenSorted returns a reader of a part in (key, type) order, even if the source is unsorted.
func (s *Scan) OpenSorted(ctx context.Context, p Part) (record.Reader, error) {
	return s.open(ctx, p, s.memory()/4, nil)
}

// OpenShared is OpenSorted for one of several parts that are read at once.
func (s *Scan) OpenShared(ctx context.Context, p Part) (record.Reader, error) {
	return s.open(ctx, p, s.memory()/4/int64(s.workers()), nil)
}

// ByName returns a reader that sorts elements by name, for types whose elements have names. It may use 1/shares of
// the memory.
func (s *Scan) ByName(r record.Reader, shares int64) record.Reader {
	return sorted.ByName(r, sorted.Options{Memory: s.memory() / shares, TempDir: s.TempDir})
}

// Apply returns a reader of the selected records of r.
func (s *Scan) Apply(ctx context.Context, r record.Reader, skipped func(*record.Header, record.Class)) record.Reader {
	return s.opening(skipped).Select(ctx, r)
}

// Env returns the environment for a reader of a part.
func (s *Scan) Env() *format.Env {
	report := s.Stores.Names(s.Source).reporter(s.Report)
	return &format.Env{Now: s.Now, Memory: s.memory() / 2 / int64(s.workers()), TempDir: s.TempDir, Ledger: s.Ledger,
		Report: report, Deep: s.Deep, RecordsOnly: s.hashOnly, AnyOrder: s.hashOnly,
		RedisStrings: s.RedisStrings, ExactScores: s.ExactScores, Wanted: s.Selected().Wanted(s.Now)}
}

// Run reads the scan's share of all parts, several in parallel, and returns all. It stops at the first error.
func (s *Scan) Run(ctx context.Context, visit func(Part) Visitor) ([]Part, error) {
	parts, err := s.Parts()
	if err != nil {
		return nil, err
	}
	return parts, s.RunParts(ctx, s.Share.Of(parts), func(ctx context.Context, p Part) (func(), error) {
		v := visit(p)
		return v.Merge, s.Visit(ctx, p, v)
	})
}

// RunParts calls do for each part, largest first, on the scan's workers. It calls the functions that do returns one
// at a time.
func (s *Scan) RunParts(ctx context.Context, parts []Part, do func(context.Context, Part) (func(), error)) error {
	s.begin(parts)
	var mu sync.Mutex
	return s.Sources.Err(pass.Run(ctx, parts, pass.NewCores(s.Workers), s.shared(), func(ctx context.Context, p *Part) error {
		merge, err := do(ctx, *p)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			merge()
		}
		return err
	}))
}

// shared is the memory that parts share. A row that is read is decompressed and copied.
func (s *Scan) shared() pass.Memory { return pass.Memory{Bytes: s.memory(), Held: 8} }

// begin starts the scan's step.
func (s *Scan) begin(parts []Part) {
	var total int64
	for _, p := range parts {
		total += p.Bytes
	}
	s.Meter.Begin(s.Step, total, 0, len(parts))
}

// Visit reads one part.
func (s *Scan) Visit(ctx context.Context, p Part, v Visitor) (err error) {
	var skipped func(*record.Header, record.Class)
	if k, ok := v.(Skipper); ok {
		skipped = k.Skip
	}
	r, err := s.open(ctx, p, 0, skipped)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for ctx.Err() == nil {
		b, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		v.Batch(b)
	}
	return context.Cause(ctx)
}
