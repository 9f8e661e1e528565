package versioned

import (
	"errors"
	"fmt"
	"io"

	"kvferry/internal/shared/dataset"
	"kvferry/record"
	"kvferry/store"
)

// Drain reads the rest of a record, so that End classifies all its rows.
func Drain(e Elements) error {
	var some [record.BatchLen]record.Element
	for {
		if _, err := e.Read(some[:]); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// seekElement moves the data rows of the current record to those of an element, where its rows are in an order that
// permits that.
func (r *Reader) seekElement(s *record.Start) (err error) {
	c, m := r.cur, &r.m
	if r.special != nil || r.rows == nil || c.AppendRow == nil || m.Tail > 0 || m.Ambiguous {
		return nil
	}
	raw := c.AppendRow(nil, m.Key, m.Version)
	switch {
	case r.h.Type == record.List:
		if c.AppendPosition == nil || c.Bound != nil || m.Boundless || s.Index < 0 {
			return nil
		}
		r.want += min(uint64(s.Index), m.Right-r.want)
		raw = c.AppendPosition(raw, r.want)
	case s.Name == nil || s.Bytewise && !r.h.ByName || r.h.Type == record.Stream:
		return nil
	case c.AppendName == nil:
		raw = append(raw, s.Name...)
	default:
		if raw, err = c.AppendName(raw, m, s.Name); err != nil {
			return nil // it has no such element
		}
	}
	r.h.Sought = true
	return r.rows.SeekRow(append(raw, c.Tail...))
}

// Batch returns some of the next data rows of the current record, none after the last, and the length of the key prefix
// to skip. The rows are valid until the next call.
func (r *Reader) Batch(limit int) (rows []store.Row, skip int, err error) {
	if r.rows == nil {
		return nil, 0, nil
	}
	return r.rows.Batch(limit)
}

// Reject classifies row i of the last batch, which fails Check or does not belong to the record.
func (r *Reader) Reject(row *store.Row, i int) {
	r.reject(r.cur.data, row, r.rows.PlaceAt(i))
}

func (r *Reader) reject(i int, row *store.Row, place record.Place) {
	if _, ok := r.check(i, row.Key, row.Value, place); !ok {
		return
	}
	kind, wrong := FindBadRowKey, errNotOfType
	if r.cur.Wrong != nil {
		if err := r.cur.Wrong(&r.m, row.Value); err != nil {
			kind, wrong = dataset.ValueKind(err), err
		}
	}
	r.malformed(i, kind, r.h.Key, row.Key, place, wrong)
}

var errNotOfType = errors.New("records of this type have no such row")

// Broken classifies row i of the last batch, an undecodable row.
func (r *Reader) Broken(row *store.Row, i int, kind string, err error) {
	r.malformed(r.cur.data, kind, r.h.Key, row.Key, r.rows.PlaceAt(i), err)
}

// RemarkAt reports a finding about row i of the last batch that does not damage the record.
func (r *Reader) RemarkAt(i int, kind string, severity record.Severity, detail string) {
	r.Report(r.dataSpace(), record.Finding{Kind: kind, Severity: severity, Type: r.h.Type, Key: r.h.Key, Place: r.rows.PlaceAt(i),
		Detail: detail})
}

// Stale reports whether row i of the last batch is dead or stray by its version, and classifies it then. Rows that a
// layout with NewerAlive keeps are not.
func (r *Reader) Stale(version int64, i int) bool {
	if version == r.m.Version {
		return false
	}
	class := r.otherVersion(version, r.rows, i)
	if class != record.Copied {
		r.tallies[r.cur.data].Rows[class]++
	}
	return class != record.Copied
}

// Keep counts data rows that are part of the record.
func (r *Reader) Keep(n int64) { r.alive += n }

// Lose counts data rows of the record's version that are not part of it.
func (r *Reader) Lose(n int64) { r.tallies[r.cur.data].Rows[record.Orphan] += n }

// Again reads the data rows of the current record again; skip is the length of their key prefix.
func (r *Reader) Again() (it store.Iterator, skip int, err error) {
	it, err = r.dataSpace().Rows(r.cur.DataRows.Range(r.h.Key))
	return it, len(r.prefixOf(r.cur.data)), err
}

// DamageAt reports an error of the current record at one of its data rows, or at the meta row if raw is nil.
func (r *Reader) DamageAt(raw []byte, kind, detail string, args ...any) {
	if r.h.Expired {
		return
	}
	k, place := &r.store.Metas, r.Place()
	if raw != nil {
		k = r.dataSpace()
		place = r.lookup(k, raw)
	}
	r.Damage(k, kind, place, detail, args...)
}

// CheckCount compares the meta row's count with the number of data rows of its version.
func (r *Reader) CheckCount(rows int64) {
	if r.m.Count == rows || r.h.Expired || !r.limit.Tell(FindCountMismatch) {
		return
	}
	r.Report(&r.store.Metas, record.Finding{Kind: FindCountMismatch, Severity: record.Error, Type: r.h.Type, Key: r.h.Key,
		Place: r.Place(), Detail: fmt.Sprintf("count is %s, rows found: %s", record.Number(r.m.Count),
			record.Number(rows)), Missing: max(r.m.Count-rows, 0), None: rows == 0})
}

// Outside is the number of skipped rows of a list whose bounds are rows, or missing.
func (r *Reader) Outside() int64 { return r.outside }

// TempDir is the directory of spill files.
func (r *Reader) TempDir() string { return r.env.TempDir }

// otherVersion returns the class of row i of a batch, a row of the current record with another version. Copied means
// that the row is alive nevertheless.
func (r *Reader) otherVersion(v int64, set RowSet, i int) record.Class {
	switch newer := r.store.Layout.Newer; {
	case v < r.m.Version || newer == NewerStale:
		return record.Stale
	case r.newer == 0:
		r.newerPlace = set.PlaceAt(i)
	}
	r.newer++
	if r.store.Layout.Newer == NewerAlive {
		return record.Copied
	}
	return record.Orphan
}

// reportNewer reports the rows of newer versions. If they are part of the record, only their version shows that they
// may be wrong.
func (r *Reader) reportNewer() {
	switch {
	case r.newer == 0:
	case r.store.Layout.Newer == NewerAlive:
		r.Damage(r.dataSpace(), FindNewerVersion, r.newerPlace, "%s of a version newer than the meta row's version %d; the engine reads them nevertheless",
			record.Count(r.newer, "row"), r.m.Version)
	default:
		r.Report(&r.store.data[r.cur.data].Keyspace,
			record.Finding{Kind: FindNewerVersion, Severity: record.Warning, Type: r.h.Type, Key: r.m.Key,
				Place: r.newerPlace, Detail: fmt.Sprintf("%s of a version newer than %d, that of the meta row",
					record.Count(r.newer, "row"), r.m.Version)})
	}
	r.newer = 0
}

// dataSpace is the keyspace of the current record's data rows.
func (r *Reader) dataSpace() *Keyspace { return &r.store.data[r.cur.data].Keyspace }

// indexSpace is the keyspace of its index rows.
func (r *Reader) indexSpace() *Keyspace { return &r.store.data[r.cur.index].Keyspace }

// prefixOf returns the raw key prefix of the record's rows in a keyspace.
func (r *Reader) prefixOf(i int) []byte { return r.store.data[i].prefix(nil, r.h.Key) }
