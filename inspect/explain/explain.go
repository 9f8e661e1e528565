package explain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"kvferry/internal/text/jsonl"
	"slices"
	"time"

	"kvferry/format"
	"kvferry/inspect"
	"kvferry/internal/pass/filter"
	"kvferry/record"
	"kvferry/store"
)

// Options control an explanation.
type Options struct {
	Source format.Source
	Stores *inspect.Stores // adds directories to file names; may be nil
	Key    []byte
	// Where selects the databases and types to look in; nil: everywhere.
	Where   *filter.Filter
	Now     time.Time
	Memory  int64
	TempDir string
	// Tell is called for each physical row, range by range. The row is valid until it returns.
	Tell func(*Row) error
}

// Row is one entry of a key.
type Row struct {
	DB       string
	Keyspace string
	Type     record.Type // 0 unknown
	store.Entry
	Row format.Row
	// Alive is true if the row is part of a live record, or folded into one that is.
	Alive bool
	Why   string // why it is alive or dead
	Bytes int64  // key and value
}

// State is the state of a key under one type of one database.
type State struct {
	DB       string
	Type     record.Type
	State    string // alive, expired, deleted, gone
	Detail   string
	Elements int64
	ExpireMS int64 // 0 never
	Version  int64 // -1: no version
	Count    int64 // count in the meta row; -1: no count
}

// Result sums up a key.
type Result struct {
	States   []State
	Rows     int64
	Alive    int64
	Bytes    int64
	Dead     int64 // bytes of dead rows
	Findings []record.Finding
	Omitted  int64 // findings of the key not listed
	Unlisted int64 // findings about files not listed
	Errors   int64 // findings of the key that are errors, listed or not
}

// maxFindings is the number of findings of a key to list.
const maxFindings = 100

// Run reports every physical row of a key and whether it is alive.
func Run(ctx context.Context, o *Options) (*Result, error) {
	x := &explainer{o: o, seconds: o.Source.Format().Limits().Seconds, where: o.Where, names: o.Stores.Names(o.Source)}
	if x.where == nil {
		x.where = new(filter.Filter)
	}
	for _, db := range o.Source.Databases() {
		if !x.where.DB(db) {
			continue
		}
		if err := x.database(ctx, db); err != nil {
			return nil, err
		}
	}
	return &x.res, nil
}

// explainer explains one key.
type explainer struct {
	o       *Options
	where   *filter.Filter
	seconds bool
	names   *inspect.FileNames
	res     Result

	// State of the current database, by type. Index 0 is for formats that keep all types in one keyspace.
	metas   [record.NumTypes]*format.Row
	records [record.NumTypes]*State
	bare    []State                // keyless records with this name
	dead    [record.NumTypes]int64 // number of dead rows
}

func (x *explainer) database(ctx context.Context, db string) error {
	x.metas, x.records, x.dead = [record.NumTypes]*format.Row{}, [record.NumTypes]*State{}, [record.NumTypes]int64{}
	ranges := slices.DeleteFunc(x.o.Source.Where(db, x.o.Key), func(r format.Range) bool { return !x.asked(r.Type) })
	keyspaces := make(map[string]format.Keyspace)
	for _, k := range x.o.Source.Keyspaces() {
		if k.DB == db {
			keyspaces[k.Name] = k
		}
	}
	if err := x.live(ctx, db); err != nil {
		return err
	}
	for _, r := range ranges {
		if err := x.meta(db, keyspaces[r.Keyspace], r); err != nil {
			return err
		}
	}
	for _, r := range ranges {
		if err := x.entries(ctx, db, keyspaces[r.Keyspace], r); err != nil {
			return err
		}
	}
	x.states(db)
	return nil
}

// asked reports whether rows of a type are selected. Rows of an unknown type, 0, are.
func (x *explainer) asked(t record.Type) bool { return t == 0 || x.where.Type(t) }

// live reads the key's records as any reader of the source does.
func (x *explainer) live(ctx context.Context, db string) (err error) {
	env := &format.Env{Now: x.o.Now, Memory: x.o.Memory, TempDir: x.o.TempDir, Deep: true, Report: x.finding}
	span := format.KeySpan(x.o.Key)
	types := x.o.Source.Types(db)
	if x.where.Types != 0 {
		types &= x.where.Types
	}
	if types == 0 {
		return nil
	}
	r, err := x.o.Source.Records(ctx, db, types, span, env)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	records := record.Walk(r)
	for {
		h, err := records.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if !bytes.Equal(h.Key, x.o.Key) {
			continue // spans of an unsorted source may contain other keys
		}
		n, gone, err := x.count(h, records)
		if err != nil {
			return err
		}
		if n > 0 || h.Type == record.Stream {
			s := State{DB: db, Type: h.Type, Elements: n - gone, ExpireMS: h.ExpireMS,
				State: aliveOrExpired(h.Expired || gone > 0 && gone == n), Version: -1, Count: -1}
			if gone > 0 {
				s.Detail = record.Count(gone, "field") + " expired"
			}
			if h.Keyless != record.Keyed {
				s.Detail = "a " + h.Keyless.String() + ", not a key"
				x.bare = append(x.bare, s)
				continue
			}
			x.records[h.Type] = &s
		}
	}
}

func aliveOrExpired(expired bool) string {
	if expired {
		return "expired"
	}
	return "alive"
}

func (x *explainer) finding(f record.Finding) {
	if !bytes.Equal(f.Key, x.o.Key) {
		return
	}
	if f.Severity == record.Error {
		x.res.Errors++
	}
	if len(x.res.Findings) == maxFindings {
		x.res.Omitted++
		return
	}
	f.Place.File = x.names.Of(f.DB, f.Keyspace, f.Place.File)
	x.res.Findings = append(x.res.Findings, f)
}

// meta finds the current meta row: the first visible row of its range that has a key.
func (x *explainer) meta(db string, ks format.Keyspace, r format.Range) error {
	if ks.Keyspace == nil {
		return fmt.Errorf("no keyspace %q in database %s", r.Keyspace, db)
	}
	it, err := ks.Rows(r.Lo, r.Hi)
	if err != nil {
		return err
	}
	bare := true
	for bare && err == nil {
		var key, value []byte
		if key, value, err = it.Next(); err == nil {
			row := x.o.Source.Describe(db, ks.Name, bytes.Clone(key), bytes.Clone(value))
			if bare = row.Keyless != record.Keyed; !bare && row.Meta && bytes.Equal(row.UserKey, x.o.Key) {
				x.metas[r.Type] = &row
			}
		}
	}
	if err == io.EOF {
		err = nil
	}
	return errors.Join(err, it.Close())
}

// entries reports all entries of a range.
func (x *explainer) entries(ctx context.Context, db string, ks format.Keyspace, r format.Range) (err error) {
	it, err := ks.Entries(r.Lo, r.Hi)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	v := versions{compare: ks.Comparer().Compare}
	for n := 1; ; n++ {
		if err := record.Stopped(ctx, n); err != nil {
			return err
		}
		e, err := it.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		row := Row{DB: db, Keyspace: ks.Name, Type: r.Type, Entry: *e, Bytes: int64(len(e.Key) + len(e.Value))}
		row.Place.File = x.names.Of(db, ks.Name, e.Place.File)
		if e.ValueAt.File != "" {
			row.ValueAt.File = x.names.Of(db, ks.Name, e.ValueAt.File)
		}
		if e.Kind != store.RangeDelete {
			row.Row = x.describe(db, ks.Name, e)
		}
		hidden := ""
		if row.Row.Keyless == record.Keyed {
			hidden = v.next(e)
		}
		if e.Kind != store.RangeDelete {
			if row.Row.UserKey != nil && !bytes.Equal(row.Row.UserKey, x.o.Key) {
				continue
			}
			if row.Type == 0 {
				row.Type = row.Row.Type
			}
		}
		if !x.asked(row.Type) {
			continue
		}
		row.Alive, row.Why = x.verdict(&row, r.Type, hidden)
		if err := x.tell(&row); err != nil {
			return err
		}
	}
}

// describe decodes an entry. A tombstone has only a key.
func (x *explainer) describe(db, keyspace string, e *store.Entry) format.Row {
	row := x.o.Source.Describe(db, keyspace, e.Key, e.Value)
	if e.Kind == store.Put {
		return row
	}
	row.Err, row.Count, row.ExpireMS = nil, -1, 0
	var fields []format.Field
	for _, f := range row.Fields {
		if f.Where == "key" {
			fields = append(fields, f)
		}
	}
	row.Fields = fields
	return row
}

func (x *explainer) tell(row *Row) error {
	x.res.Rows++
	x.res.Bytes += row.Bytes
	if row.Alive {
		x.res.Alive++
	} else {
		x.res.Dead += row.Bytes
		x.dead[row.Type]++
	}
	return x.o.Tell(row)
}

// versions tracks the entries of one raw key, newest first.
type versions struct {
	compare func(a, b []byte) int
	key     []byte
	seq     uint64
	kind    store.Kind // kind of the newest entry that decides the row's state
	folded  bool       // merge operands were seen, but not their base yet
	begun   bool
}

// next returns the reason why an entry is hidden: "" if it is visible, "folded" if it is merged into a visible entry.
func (v *versions) next(e *store.Entry) string {
	if e.Kind == store.RangeDelete {
		return fmt.Sprintf("range tombstone: deletes keys from %s up to %s", record.Quote(e.Key), record.Quote(e.Value))
	}
	if !v.begun || !bytes.Equal(v.key, e.Key) && v.compare(v.key, e.Key) != 0 {
		*v = versions{compare: v.compare, key: append(v.key[:0], e.Key...), begun: true}
		v.seq, v.kind, v.folded = e.Seq, e.Kind, e.Kind == store.Merge
		switch {
		case e.Covered:
			v.kind, v.folded = store.Delete, false
			return "deleted by a newer range tombstone"
		case e.Kind == store.Lost:
			return "lost: its value in a blob file cannot be read"
		case e.Kind == store.Delete || e.Kind == store.SingleDelete:
			return "tombstone: hides older entries of this row"
		case e.Kind == store.Merge:
			return "folded"
		}
		return ""
	}
	switch {
	case e.Covered:
		return "deleted by a newer range tombstone"
	case v.folded && e.Kind == store.Merge:
		return "folded"
	case v.folded && e.Kind == store.Lost:
		v.folded, v.seq, v.kind = false, e.Seq, store.Lost
		return "lost: its value in a blob file cannot be read"
	case v.folded:
		v.folded, v.seq = false, e.Seq
		if e.Kind == store.Put {
			v.kind = store.Put
			return "folded"
		}
		v.kind = e.Kind
		return "tombstone: hides older entries of this row"
	case v.kind == store.Delete || v.kind == store.SingleDelete:
		return fmt.Sprintf("deleted by the tombstone of sequence number %d", v.seq)
	}
	return fmt.Sprintf("superseded by sequence number %d", v.seq)
}

// verdict decides whether a row is alive, and why.
func (x *explainer) verdict(row *Row, rangeType record.Type, hidden string) (bool, string) {
	if hidden != "" && hidden != "folded" {
		return false, hidden
	}
	alive, why := x.visible(row, rangeType)
	if hidden == "folded" {
		why = "merged with the other operands of this row; " + why
	}
	return alive, why
}

// visible decides about a row that a scan of the keyspace returns.
func (x *explainer) visible(row *Row, rangeType record.Type) (bool, string) {
	r, meta := &row.Row, x.metas[rangeType]
	shared := x.metas[0]
	if meta == nil && shared != nil && shared.Type == rangeType {
		meta = shared
	}
	switch {
	case r.Err != nil:
		return false, fmt.Sprintf("malformed: %v", r.Err)
	case r.Keyless != record.Keyed:
		return true, "a " + r.Keyless.String() + ", not a key"
	case meta == nil && !r.Meta && shared != nil:
		return false, fmt.Sprintf("stale: of a %s, the key is a %s now", rangeType, shared.Type)
	case meta == nil && !r.Meta && x.records[rangeType] != nil:
		return true, "part of the record, which has no meta row"
	case meta == nil && !r.Meta:
		return false, "orphan: there is no meta row"
	case meta == nil:
		return true, "meta row"
	case !r.Meta && r.Version >= 0 && meta.Version >= 0 && !x.liveVersion(meta.Version, r.Version):
		if r.Version > meta.Version {
			return false, fmt.Sprintf("version %d is newer than the collection's, %d: clients do not see it", r.Version,
				meta.Version)
		}
		return false, fmt.Sprintf("stale: of version %d, the collection is at version %d", r.Version, meta.Version)
	case meta.Count == 0:
		return false, "deleted: the meta row's count is 0"
	case !r.Meta && x.passed(r.ExpireMS):
		return false, "the field expired at " + jsonl.TimeText(r.ExpireMS)
	case x.isExpired(row.Type, meta) && meta.ExpireMS == 0:
		return false, "expired with its last field"
	case x.isExpired(row.Type, meta):
		return false, "expired at " + jsonl.TimeText(meta.ExpireMS)
	case r.Meta:
		return true, "the record's meta row: " + expiryText(meta.ExpireMS)
	}
	return true, "part of the record"
}

func (x *explainer) liveVersion(meta, row int64) bool {
	if v, ok := format.As[format.Versioned](x.o.Source); ok {
		return v.LiveVersion(meta, row)
	}
	return meta == row
}

// states sums up the key by type.
func (x *explainer) states(db string) {
	for t := range record.Type(record.NumTypes) {
		s, meta := x.records[t], x.metas[t]
		if !x.asked(t) || meta != nil && !x.asked(meta.Type) {
			continue
		}
		if s == nil && meta != nil && t == 0 {
			s = x.records[meta.Type]
			if s != nil {
				continue // reported under its own type
			}
		}
		if s == nil && meta == nil && x.dead[t] == 0 {
			continue
		}
		if s == nil {
			s = &State{DB: db, Type: t, State: "gone", Version: -1, Count: -1, Detail: "no meta row, only rows that are dead"}
			if meta != nil {
				s.State, s.Detail = "deleted", "no live elements"
			}
		}
		if meta == nil {
			meta = x.metas[0]
		}
		if meta != nil {
			s.Version, s.Count, s.ExpireMS = meta.Version, meta.Count, meta.ExpireMS
		}
		x.res.States = append(x.res.States, *s)
	}
	x.res.States = append(x.res.States, x.bare...)
}
