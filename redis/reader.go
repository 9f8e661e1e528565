package redis

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"kvferry/format"
	"kvferry/internal/shared/dataset"
	"kvferry/internal/sys/disk"
	"kvferry/record"
	"kvferry/redis/rdb"
)

// reader turns items into records.
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
	done    bool  // the item is read completely
	some    bool  // at least one element was read
	nan     bool  // a score is NaN
	members int64 // set members with an expiry
	broken  bool  // no element can be read
	tally   record.Tally
	places  *record.Places
	ordered bool

	texts record.Texts
}

func newReader(s *source, db *database, t record.TypeSet, e *format.Env, items items) record.Reader {
	r := &reader{s: s, db: db, types: t, env: e, items: items, now: e.Now.UnixMilli(), done: true,
		places: &record.Places{Meta: db.name + "/" + Keyspace}, decoder: rdb.Decoder{TempDir: e.TempDir, Memory: e.Memory / 4}}
	if !t.Has(record.String) {
		return record.Gather(r, nil)
	}
	return record.Gather(r, r.strings)
}

// rows returns the rows of a record.
func (r *reader) rows() record.Rows { return record.Rows{Of: r.places, Meta: 1} }

// Next moves to the next record.
func (r *reader) Next() (*record.Header, error) {
	_, r.ordered = r.items.(*sorter)
	for {
		it, err := r.items.next()
		if err != nil {
			return nil, err
		}
		r.item = it
		if !r.types.Has(TypeOf(it, r.s.header())) {
			continue
		}
		r.count(1)
		if r.s.isHalf(it) && !r.s.keepHalf {
			r.tally.Rows[record.HalfImported]++
			continue
		}
		if ok, err := r.begin(); err != nil {
			return nil, err
		} else if ok {
			return &r.h, nil
		}
		r.tally.Rows[record.Malformed]++
	}
}

// strings fills a batch with the following items while they are plain strings.
func (r *reader) strings(b *record.Batch) error {
	r.texts.Grow(r.db.name, r.rows())
	n := r.items.strings(r.texts.Records, r.texts.Elems)
	b.Records, b.Elems = r.texts.Records[:n], r.texts.Elems[:n]
	for i := range b.Records {
		s := &b.Records[i]
		s.DB, s.Expired, s.Class, s.N, s.Hidden = r.db.name, s.ExpireMS != 0 && s.ExpireMS < r.now, record.Copied, 1, false
	}
	r.count(n)
	return nil
}

// count counts items of the pass.
func (r *reader) count(n int) {
	r.tally.Entries += int64(n)
	r.tally.Visible += int64(n)
}

// heavy is the size from which a value is read only if it is wanted.
const heavy = 4 << 10

// Heavy reports whether decoding the value costs much, or tells findings that do not concern a record that is left out.
func (r *reader) Heavy() bool {
	switch r.h.Type {
	case record.Stream, record.Other:
		return true
	}
	return r.later() || r.item.To-r.item.From > heavy || r.env.Wanted != nil && !r.env.Wanted(&r.h)
}

// End ends the record.
func (r *reader) End(rec *record.Record) error {
	r.done = true
	if r.broken {
		rec.Settle(record.Malformed)
	}
	rec.Rows = r.rows()
	return nil
}

// begin fills the header, and reports whether the item yields a record.
func (r *reader) begin() (bool, error) {
	it := r.item
	key := it.Key // a sorter's rows have the record's key
	if !r.ordered {
		key = KeyOf(it)
	}
	r.h = record.Header{DB: r.db.name, Key: key, Keyless: keylessOf(it), Type: TypeOf(it, r.s.header())}
	if r.s.isRepeated(it.Off) {
		r.report(FindDuplicateKey, record.Error, it.Off, TwiceDetail(it, "first"))
		return false, nil
	}
	r.done, r.some, r.nan, r.broken, r.members = false, false, false, false, 0
	if r.h.Keyless != record.Keyed { // an expiry before it belongs to the next key
		r.h.Len = 1
		return true, nil
	}
	r.h.ExpireMS, r.h.Expired = it.ExpireMS, it.ExpireMS != 0 && it.ExpireMS < r.now
	if r.later() {
		r.h.Len = 1
		return true, nil
	}
	if err := r.decoder.BeginItem(r.s.header(), it, r.s.file, &r.h); err != nil {
		return false, r.damage(err)
	}
	if r.expiring() {
		r.h.Len = -1
	}
	return true, nil
}

// later reports whether the value is read only when it is wanted: a string that was sorted without.
func (r *reader) later() bool {
	return r.ordered && r.item.Value == nil && r.item.Op == rdb.OpKey && r.item.Type == rdb.TypeString
}

// TwiceDetail is the text of FindDuplicateKey; read names the item that counts.
func TwiceDetail(it *rdb.Item, read string) string {
	what := "key"
	if it.Op == rdb.OpFunction {
		what = "library"
	}
	return fmt.Sprintf("the %s occurs more than once; kvferry reads the %s; servers do not load the file", what, read)
}

// expiring reports whether members may have an expiry in a record type that cannot store it.
func (r *reader) expiring() bool {
	return r.h.Type != record.Hash && (r.item.HasMembers() || r.h.Type == record.Set && r.item.Type == rdb.TypeSetMember)
}

// Read returns elements. It reports damage as a finding and ends the value there, so the elements before it are kept.
func (r *reader) Read(dst []record.Element) (int, error) {
	if r.done {
		return 0, io.EOF
	}
	if len(dst) == 0 {
		return 0, nil
	}
	if r.h.Keyless != record.Keyed {
		r.done = true
		return r.readOnly(dst)
	}
	if r.later() && !r.some {
		if err := r.items.(*sorter).fetch(r.item); err != nil {
			return 0, err
		}
		if err := r.decoder.BeginItem(r.s.header(), r.item, r.s.file, &r.h); err != nil {
			return 0, err // of a temporary file: a string begins without reading
		}
	}
	n, err := r.decoder.Read(dst)
	for err == nil && r.expiring() {
		var expiring int64
		n, expiring = dataset.KeepMembers(dst[:n], r.now)
		r.members += expiring
		if n > 0 {
			break
		}
		n, err = r.decoder.Read(dst)
	}
	if err == nil {
		r.checkScores(dst[:n])
		if r.h.Type == record.Stream {
			for _, detail := range GroupsAhead(&r.h, dst[:n]) {
				r.report(FindGroupAhead, record.Warning, r.item.Off, detail)
			}
		}
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
	if !r.some && r.h.Type != record.Stream { // a stream may have no entries
		r.broken = true
	}
	if err := r.damage(err); err != nil {
		return 0, err
	}
	return 0, io.EOF
}

// UnkeptDetail is the text of FindUnreadMeta for a result of Decoder.Unkept.
func UnkeptDetail(what string) string { return what + "; records have no place for that" }

// readOnly returns a function library or module data as one element.
func (r *reader) readOnly(dst []record.Element) (int, error) {
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

// checkScores reports NaN scores: servers reject such a file.
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

// checkStream compares the stored number of entries with the actual number.
func (r *reader) checkStream() {
	if says, has, ok := r.decoder.StreamLength(); ok && says != has {
		r.report(FindStreamLength, record.Warning, r.item.Off,
			fmt.Sprintf("the stream's header counts %s, but it has %s", record.Count(int64(says), "entry"), record.Number(has)))
	}
}

// DamageKind is the kind of finding for a value that cannot be decoded.
func DamageKind(err error) string {
	if errors.Is(err, rdb.ErrNewer) {
		return record.FindNewer
	}
	return FindDamagedValue
}

// damage reports a decoding error as a finding and returns other errors.
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

// Close adds the counts of items that are no records to the ledger.
func (r *reader) Close() error {
	r.env.Ledger.Add(r.places.Meta, &r.tally)
	return errors.Join(r.decoder.Close(), r.items.close())
}
