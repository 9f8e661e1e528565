package redis

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"kvferry/internal/shared/dataset"
	"math"

	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// reader makes records of items.
type reader struct {
	s     *source
	db    *database
	types record.TypeSet
	env   *format.Env
	items items
	now   int64

	decoder rdb.Decoder
	h       record.Header
	item    *rdb.Item
	done    bool  // nothing is left to be read of it
	some    bool  // something was read of it
	nan     bool  // it has a score that is no number
	members int64 // that will expire, of a set
	class   record.Class
	current bool
	tally   record.Tally
	ordered bool

	texts [stringsAtOnce]record.StringRecord
	given []record.StringRecord // those that NextStrings returned, not counted yet
}

// stringsAtOnce is how many strings NextStrings returns at most.
const stringsAtOnce = 64

func newReader(s *source, db *database, t record.TypeSet, e *format.Env) *reader {
	return &reader{s: s, db: db, types: t, env: e, now: e.Now.UnixMilli(), done: true, decoder: rdb.Decoder{TempDir: e.TempDir, Memory: e.Memory / 4}}
}

// Next moves to the next record.
func (r *reader) Next() (*record.Header, error) {
	_, r.ordered = r.items.(*sorter)
	for {
		r.count()
		it, err := r.items.next()
		if err != nil {
			return nil, err
		}
		r.item = it
		if !r.types.Has(TypeOf(it, r.s.header())) {
			continue
		}
		r.current, r.class = true, record.Copied
		if ok, err := r.begin(); err != nil {
			return nil, err
		} else if ok {
			return &r.h, nil
		}
		r.class = record.Malformed
	}
}

// NextStrings returns the strings that come next as long as they are plain.
func (r *reader) NextStrings() ([]record.StringRecord, error) {
	r.count()
	if !r.types.Has(record.String) {
		return nil, nil
	}
	r.given = r.texts[:r.items.strings(r.texts[:])]
	for i := range r.given {
		s := &r.given[i]
		s.DB, s.Expired, s.Class = r.db.name, s.ExpireMS != 0 && s.ExpireMS < r.now, record.Copied
	}
	return r.given, nil
}

// count classes the item that is left, or the strings that NextStrings returned.
func (r *reader) count() {
	for i := range r.given {
		r.tally.Rows[r.given[i].Class]++
	}
	n := int64(len(r.given))
	r.tally.Entries += n
	r.tally.Visible += n
	r.given = nil
	if r.current {
		r.tally.Rows[r.class]++
		r.tally.Entries++
		r.tally.Visible++
		r.current = false
	}
}

// begin makes a header of the item and reports whether there is a record.
func (r *reader) begin() (bool, error) {
	it := r.item
	key := it.Key // the rows of a sorter have the record's
	if !r.ordered {
		key = KeyOf(it)
	}
	r.h = record.Header{DB: r.db.name, Key: key, Keyless: keylessOf(it), Type: TypeOf(it, r.s.header())}
	if r.s.isRepeated(it.Off) {
		r.report(FindDuplicateKey, record.Error, it.Off, TwiceDetail(it, "first"))
		return false, nil
	}
	r.done, r.some, r.nan, r.members = false, false, false, 0
	if r.h.Keyless != record.Keyed { // an expiry before it is the next key's
		r.h.Len = 1
		return true, nil
	}
	r.h.ExpireMS, r.h.Expired = it.ExpireMS, it.ExpireMS != 0 && it.ExpireMS < r.now
	if err := r.decoder.BeginItem(r.s.header(), it, r.s.file, &r.h); err != nil {
		return false, r.damage(err)
	}
	if r.expiring() {
		r.h.Len = -1
	}
	return true, nil
}

// TwiceDetail is the text of FindDuplicateKey; read is which of the items counts.
func TwiceDetail(it *rdb.Item, read string) string {
	what := "key"
	if it.Op == rdb.OpFunction {
		what = "library"
	}
	return fmt.Sprintf("the %s occurs more than once; kvferry reads the %s; servers do not load the file", what, read)
}

// expiring reports whether members may expire of a record that has no place for it.
func (r *reader) expiring() bool {
	return r.h.Type != record.Hash && (r.item.HasMembers() || r.h.Type == record.Set && r.item.Type == rdb.TypeSetMember)
}

// Read returns elements. A value that is damaged ends with what could be read of it.
func (r *reader) Read(dst []record.Element) (int, error) {
	if r.done {
		return 0, io.EOF
	}
	if len(dst) == 0 {
		return 0, nil
	}
	if r.h.Keyless != record.Keyed {
		r.done = true
		return r.whole(dst)
	}
	n, err := r.decoder.Read(dst)
	for err == nil && r.expiring() {
		var expiring int64
		n, expiring = dataset.KeepMembers(dst[:n], r.now)
		if r.members += expiring; n > 0 {
			break
		}
		n, err = r.decoder.Read(dst)
	}
	if err == nil {
		r.checkScores(dst[:n])
		r.some = true
		return n, nil
	}
	r.done = true
	if r.members += r.decoder.Unread(); r.members > 0 {
		r.report(FindMemberExpiry, record.Warning, r.item.Off, dataset.MembersDetail(r.members))
	}
	if err == io.EOF {
		r.checkStream()
		if what := r.decoder.Unkept(); what != "" {
			r.report(FindUnreadMeta, record.Warning, r.item.Off, UnkeptDetail(what))
		}
		return 0, io.EOF
	}
	if !r.some && r.h.Type != record.Stream { // a stream is one without entries
		r.class = record.Malformed
	}
	if err := r.damage(err); err != nil {
		return 0, err
	}
	return 0, io.EOF
}

// UnkeptDetail is the text of FindUnreadMeta about what a decoder says is unkept.
func UnkeptDetail(what string) string { return what + "; records have no place for that" }

// whole returns a library of functions, or data of a module.
func (r *reader) whole(dst []record.Element) (int, error) {
	it := r.item
	value := it.Value
	if value == nil {
		value = make([]byte, it.To-it.From)
		if _, _, err := disk.ReadAt(r.s.file, value, it.From); err != nil {
			return 0, fmt.Errorf("%s: offset %d: %w", r.s.name, it.From, err)
		}
	}
	dst[0] = record.Element{Name: []byte(r.h.Keyless.String()), Value: value}
	return 1, nil
}

// checkScores looks for scores that are no numbers: servers do not load such a file.
func (r *reader) checkScores(elems []record.Element) {
	if r.h.Type != record.ZSet || r.nan {
		return
	}
	for i := range elems {
		if r.nan = math.IsNaN(elems[i].Score); r.nan {
			r.report(FindScoreNaN, record.Warning, r.item.Off, "the score of a member is NaN, with which servers do not load the file")
			return
		}
	}
}

// checkStream compares how many entries a stream says that it has with those there were.
func (r *reader) checkStream() {
	if says, has, ok := r.decoder.StreamLength(); ok && says != has {
		r.report(FindStreamLength, record.Warning, r.item.Off, fmt.Sprintf("the stream says that it has %s, but has %d", record.Plural(int64(says), "entry"), has))
	}
}

// DamageKind is the kind of finding of a value that cannot be decoded.
func DamageKind(err error) string {
	if errors.Is(err, rdb.ErrNewer) {
		return record.FindNewer
	}
	return FindDamagedValue
}

// damage reports an error of decoding; any other is one of reading.
func (r *reader) damage(err error) error {
	var c *record.CorruptError
	if !errors.As(err, &c) {
		return fmt.Errorf("%s: %w", r.s.name, err)
	}
	r.report(DamageKind(c), record.Error, c.Off, r.item.Type.Name(r.s.header())+": "+c.Reason())
	return nil
}

func (r *reader) report(kind string, severity record.Severity, off int64, detail string) {
	if r.env.Report != nil {
		r.env.Report(record.Finding{Kind: kind, Severity: severity, DB: r.db.name, Type: r.h.Type, Keyspace: Keyspace,
			Key: bytes.Clone(r.h.Key), Place: record.Place{File: r.s.name, Off: off, Level: -1}, Detail: detail})
	}
}

// Settle sets the class of the current item.
func (r *reader) Settle(c record.Class) {
	if r.class != record.Malformed {
		r.class = c
	}
}

// Counted tells how many items were copied.
func (r *reader) Counted(f record.CountFunc) {
	r.tally.Counted(r.db.name+"/"+Keyspace, f)
}

// Close hands the counts to the ledger.
func (r *reader) Close() error {
	r.count()
	r.env.Ledger.Add(r.db.name+"/"+Keyspace, &r.tally)
	return errors.Join(r.decoder.Close(), r.items.close())
}
