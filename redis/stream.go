package redis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"kvferry/format"
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/crc64"
	"kvferry/store"
)

// Measured is the outcome of a first pass over records, which a second pass needs to write them as an RDB file without
// seeking: counts precede the elements in a file, and its size precedes the file on a replication link.
//
// Both passes must write the same shards with the same records, or the second fails. It writes them one at a time.
type Measured struct {
	// Keep leaves out records; nil keeps all.
	Keep func(*record.Header) bool

	format *rdbFormat
	mu     sync.Mutex
	shards map[int]*measure
	head   []byte
}

// measure describes one shard.
type measure struct {
	part
	counts []uint64 // of its large values
}

// Measure returns a Measured of files of a version.
func Measure(v rdb.Version) *Measured { return &Measured{format: &rdbFormat{version: v}} }

// Format returns the format of the first pass. Its target is written nowhere.
func (m *Measured) Format() format.Format { return &streamFormat{rdbFormat: m.format, measured: m} }

// Size returns the size of the file.
func (m *Measured) Size() int64 {
	n := int64(len(m.head) + len(rdb.AppendEnd(nil, m.format.version, 0)))
	for _, s := range m.shards {
		n += s.Bytes + int64(len(m.selectDB(&s.part)))
	}
	return n
}

// Keys returns the number of keys.
func (m *Measured) Keys() (n int64) {
	for _, s := range m.shards {
		n += s.Keys
	}
	return n
}

// selectDB returns the bytes before a shard.
func (m *Measured) selectDB(p *part) []byte {
	if p.Keys == 0 {
		return nil
	}
	var keys, expires uint64
	for _, s := range m.shards {
		if s.DB == p.DB {
			keys, expires = keys+uint64(s.Keys), expires+uint64(s.Expires)
		}
	}
	n, _ := strconv.ParseUint(p.DB, 10, 31)
	return rdb.AppendDatabase(nil, m.format.version, n, keys, expires)
}

// Stream is an RDB file that goes to a Writer.
type Stream struct {
	m     *Measured
	out   io.Writer
	mu    sync.Mutex
	sum   uint64
	whole bool // the bytes so far are whole items
	err   error
}

// Stream returns a second pass.
func (m *Measured) Stream(out io.Writer) *Stream { return &Stream{m: m, out: out} }

// Format returns the format of the second pass. Finishing its target completes the stream.
func (s *Stream) Format() format.Format {
	return &streamFormat{rdbFormat: s.m.format, measured: s.m, stream: s}
}

// Fill writes a field that servers ignore, if one may stand here: it shows a reader that waits that the stream goes
// on. It makes the file longer than Size.
func (s *Stream) Fill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.whole || s.m.format.version.Number < 7 {
		return nil
	}
	return s.put(rdb.AppendAux(nil, "kvferry", "reads"))
}

// write writes bytes; whole reports whether items end with them.
func (s *Stream) write(b []byte, whole bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whole = whole
	return s.put(b)
}

// end completes the file.
func (s *Stream) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.whole = false
	return s.put(rdb.AppendEnd(nil, s.m.format.version, s.sum))
}

func (s *Stream) put(b []byte) error {
	if s.err == nil && len(b) > 0 {
		s.sum = crc64.Update(s.sum, b)
		_, s.err = s.out.Write(b)
	}
	return s.err
}

// streamFormat is the format of either pass; stream is nil in the first.
type streamFormat struct {
	*rdbFormat
	measured *Measured
	stream   *Stream
}

// Create starts a pass.
func (f *streamFormat) Create(_ context.Context, _ string, o *format.CreateOptions) (format.Target, error) {
	if err := checkNumbers(o.DBs); err != nil {
		return nil, err
	}
	t := &streamTarget{target: target{Adapter: f.adapter(), format: f.rdbFormat, o: *o}, m: f.measured, stream: f.stream}
	if f.stream != nil {
		return t, f.stream.write(f.measured.head, true)
	}
	t.m.shards = map[int]*measure{}
	t.m.head = rdb.AppendHead(nil, f.version, o.Now.Unix())
	return t, nil
}

// streamTarget is the target of either pass.
type streamTarget struct {
	target
	m      *Measured
	stream *Stream
	open   bool // a shard is being written
	done   int  // shards
}

// Shard starts a shard.
func (t *streamTarget) Shard(n int, db string, _ record.TypeSet, memory int64) (record.Writer, error) {
	if t.stream == nil {
		return t.section(&measuring{m: t.m}, n, db, memory), nil
	}
	s := t.m.shards[n]
	if s == nil || s.DB != db || t.open {
		return nil, fmt.Errorf("shard %d of database %s is out of order", n, db)
	}
	t.open = true
	if err := t.stream.write(t.m.selectDB(&s.part), true); err != nil {
		return nil, err
	}
	return t.section(&streaming{t: t, shard: s, counts: s.counts}, n, db, memory), nil
}

func (t *streamTarget) section(out output, n int, db string, memory int64) *writer {
	w := t.writer(out, n, db, memory)
	w.keep = t.m.Keep
	return w
}

// Tables and Adopt know no tables.
func (t *streamTarget) Tables(int) ([]store.Table, error) { return nil, nil }

// Adopt is not supported: a stream ends with its process.
func (t *streamTarget) Adopt(int, string, []store.Table) error { return errors.ErrUnsupported }

// Finish completes the file.
func (t *streamTarget) Finish(context.Context) (format.Source, error) {
	if t.stream == nil {
		return nil, nil
	}
	if t.done != len(t.m.shards) {
		return nil, errMoved
	}
	return nil, t.stream.end()
}

// Abort does nothing: what was sent cannot be taken back.
func (t *streamTarget) Abort() {}

// measuring is the output of a shard in the first pass.
type measuring struct {
	m      *Measured
	counts []uint64
}

func (o *measuring) Write(b []byte) (int, error) { return len(b), nil }
func (o *measuring) Begun() (uint64, error)      { return 0, nil }
func (o *measuring) Abort()                      {}

// Waits collects whole buffers.
func (o *measuring) Waits(n int, _ int64) int { return waits(n) }

// Counted keeps a count.
func (o *measuring) Counted(n uint64, _ int64, _ []byte) error {
	o.counts = append(o.counts, n)
	return nil
}

// Close keeps what is known of the shard.
func (o *measuring) Close(p *part) error {
	o.m.mu.Lock()
	defer o.m.mu.Unlock()
	o.m.shards[p.N] = &measure{*p, o.counts}
	return nil
}

// errMoved means that a source changed between the passes.
var errMoved = errors.New("the source changed between the first and the second pass")

// streaming is the output of a shard in the second pass.
type streaming struct {
	t      *streamTarget
	shard  *measure
	counts []uint64 // not used yet
	now    uint64   // count of the open value
	whole  bool     // the next bytes end an item
}

// Write passes on bytes.
func (o *streaming) Write(b []byte) (int, error) {
	whole := o.whole
	o.whole = false
	return len(b), o.t.stream.write(b, whole)
}

// Begun returns the count of the first pass.
func (o *streaming) Begun() (uint64, error) {
	if len(o.counts) == 0 {
		return 0, errMoved
	}
	o.now, o.counts = o.counts[0], o.counts[1:]
	return o.now, nil
}

// Counted compares the count with the one that was sent.
func (o *streaming) Counted(n uint64, _ int64, _ []byte) error {
	if n != o.now {
		return errMoved
	}
	return nil
}

// Waits collects whole buffers.
func (o *streaming) Waits(n int, _ int64) int {
	o.whole = waits(n) < n
	if n == 0 {
		o.t.stream.write(nil, true)
	}
	return waits(n)
}

func waits(n int) int {
	if n < writeBuffer {
		return n
	}
	return 0
}

// Close compares the shard with that of the first pass.
func (o *streaming) Close(p *part) error {
	was := o.shard.part
	o.t.open = false
	if p.Keys != was.Keys || p.Bytes != was.Bytes || p.Expires != was.Expires || len(o.counts) > 0 {
		return errMoved
	}
	o.t.done++
	return o.t.stream.write(nil, true)
}

// Abort leaves the stream without an end.
func (o *streaming) Abort() { o.t.open = false }
