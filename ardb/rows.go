package ardb

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"kvferry/ardb/codec"
	"kvferry/format"
	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/store"
)

// arenaBatch is the approximate maximum of bytes of names and values that a batch of elements copies.
const arenaBatch = 64 << 10

// pass reads the records of one span: a META row, then its elements.
//
// It looks one row ahead: while have is true, key and val are the next row to handle. They remain views until
// the iterator moves, so a row is copied only when more rows are needed at once.
type pass struct {
	src    *source
	sp     *space
	types  record.TypeSet
	subset bool // some types are for other passes
	strays bool // this pass counts the rows beside the namespaces
	env    *format.Env
	now    int64
	it     store.Iterator

	batch store.Batcher // nil: rows are read one by one
	room  []store.Row
	ahead []store.Row // of the batch; their views live until the next one
	texts record.Texts
	next  int  // of them
	views bool // elements returned to the caller point into the batch

	key, val []byte
	have     bool
	eof      bool

	tally  record.Tally
	orphan []byte // user key of the last orphan that was reported
	inside bool   // a record is open

	// The open record.
	head   record.Header
	of     *record.Places
	meta   codec.Value
	first  codec.Data // of a string
	min    codec.Data
	max    codec.Data
	user   []byte
	prefix []byte           // raw key up to and with the user key; nil slice of strings, which have one row
	rows   int64            // with META
	index  int64            // of the sort rows
	count  int64            // elements yielded
	ended  bool             // all elements were read
	groups int64            // rows of consumer groups
	due    []record.Finding // at the end of its elements, until it is known whether it is left out
	asked  bool
	ints   codec.IntRange
	gone   codec.IntRange // of rows that were deleted

	names    []codec.Data // streams: the field names of META
	namesBuf []byte
	list     listState
	zset     codec.Twins
	arena    []byte
	tmp      []byte
	sorter   *extsort.Sorter
}

// listState follows a list.
type listState struct {
	codec.Indexes
	sorted *extsort.Iterator // nil: rows are in the order of their indexes
}

// advance looks one row ahead.
func (p *pass) advance() error {
	if p.have || p.eof {
		return nil
	}
	if p.next < len(p.ahead) {
		p.key, p.val, p.have = p.ahead[p.next].Key, p.ahead[p.next].Value, true
		p.next++
		return nil
	}
	if p.views {
		return errBatchEnds
	}
	key, val, err := p.fetch()
	if err == io.EOF {
		p.eof = true
		return nil
	}
	if err != nil {
		return err
	}
	p.key, p.val, p.have = key, val, true
	return nil
}

// errBatchEnds is returned if reading the next row would overwrite elements returned to the caller.
var errBatchEnds = errors.New("the batch of rows ends")

// fetch reads the next row, or the next batch.
func (p *pass) fetch() (key, val []byte, err error) {
	if p.batch == nil {
		p.it.Tally(&p.tally)
		return p.it.Next()
	}
	p.room = record.Room(p.room)
	n, err := p.batch.NextBatch(p.room)
	if err != nil {
		return nil, nil, err
	}
	p.ahead, p.next = p.room[:n], 1
	return p.room[0].Key, p.room[0].Value, nil
}

// place is the place of the row ahead.
func (p *pass) place() record.Place {
	if p.batch != nil {
		return p.batch.PlaceAt(p.next - 1)
	}
	return p.it.Place()
}

// consume completes the handling of the row ahead.
func (p *pass) consume(c record.Class) {
	p.tally.Rows[c]++
	p.have = false
}

// discard drops the row: another pass counts it.
func (p *pass) discard() {
	var other record.Tally
	p.it.Tally(&other)
	p.have = false
}

// element looks ahead to the next element row of the open record; false at its end. It counts other rows on the way.
func (p *pass) element(kind codec.Kind) (bool, error) {
	for {
		if err := p.advance(); err != nil || p.eof || !p.inRecord() {
			return false, err
		}
		switch k := codec.Kind(p.key[len(p.prefix)]); {
		case k == kind:
			return true, nil
		case k == codec.KindPending && p.head.Type == record.Stream:
			p.group()
		default:
			p.orphaned(p.user)
		}
	}
}

// group counts a row of a consumer group.
func (p *pass) group() {
	if err := codec.CheckPending(p.key, p.val, p.sp.Named); err != nil {
		p.bad(FindMalformedValue, record.Stream, p.head.Key, err)
		return
	}
	p.groups++
	p.consume(record.Lost)
}

// inRecord reports whether the row ahead has the user key of the open record.
func (p *pass) inRecord() bool {
	if len(p.key) > len(p.prefix) && bytes.HasPrefix(p.key, p.prefix) {
		return true
	}
	// The same key can be encoded in another way: old servers used two tags for strings.
	off, end, ok := codec.SplitUser(p.key, p.sp.Named)
	if !ok || !bytes.Equal(p.key[off:end], p.head.Key) {
		return false
	}
	p.prefix = append(p.prefix[:0], p.key[:end]...)
	return true
}

// orphaned counts an element row without a META row of its type.
func (p *pass) orphaned(user []byte) {
	k, err := codec.DecodeKey(p.key, p.sp.Named)
	t := k.Kind.Type()
	switch {
	case !p.inside && p.subset && !p.types.Has(max(t, record.String)):
		p.discard()
		return
	case err != nil:
		p.bad(FindMalformedKey, t, user, err)
		return
	case k.Kind == codec.KindTTL:
		if err := codec.DecodeNone(k.Kind, p.val); err != nil {
			p.bad(FindMalformedValue, t, user, err)
			return
		}
		p.consume(record.Housekeeping)
		return
	}
	if !bytes.Equal(p.orphan, user) || p.orphan == nil {
		p.orphan = append(append([]byte{}, p.orphan[:0]...), user...)
		p.report(FindOrphanRows, record.Warning, t, user, fmt.Sprintf("%s rows without a META row of type %s", k.Kind, t))
	}
	p.consume(record.Orphan)
}

// lostMeta reports a META row that cannot be decoded. The rows after it become orphans, without further reports.
func (p *pass) lostMeta(kind string, t record.Type, user []byte, err error) {
	p.orphan = append(append(make([]byte, 0, len(user)), p.orphan[:0]...), user...)
	p.bad(kind, t, user, err)
}

// bad reports the row ahead and counts it as malformed.
func (p *pass) bad(kind string, t record.Type, key []byte, err error) {
	detail := "cannot be decoded"
	if err != nil {
		detail = err.Error()
	}
	p.report(kindOf(kind, err), record.Error, t, key, detail)
	p.consume(record.Malformed)
}

// report reports a finding about the row last read.
func (p *pass) report(kind string, sev record.Severity, t record.Type, user []byte, detail string) {
	if p.env.Report == nil {
		return
	}
	f := record.Finding{Kind: kind, Severity: sev, DB: p.sp.DB, Type: t, Keyspace: p.sp.Name,
		Key: bytes.Clone(user), Place: p.place(), Detail: detail}
	if p.inside && p.ended {
		p.due = append(p.due, f)
		return
	}
	p.env.Report(f)
}
