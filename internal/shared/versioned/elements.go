package versioned

import (
	"errors"
	"io"

	"kvferry/internal/shared/findings"
	"kvferry/record"
	"kvferry/store"
)

// Elements reads the elements of records of a type that are not its rows one by one. It reads the rows through the Reader
// and classifies all of them.
type Elements interface {
	// Begin starts the current record. A findings.Error says that it cannot be read: there is no record then.
	Begin() error
	// Read returns the next elements, as record.Reader does.
	Read(dst []record.Element) (int, error)
	// End ends the current record: rows that were not read are classified.
	End() error
	// Close releases what it holds, in the middle of a record too.
	Close() error
}

// Drain reads what is left of a record, for End to have its rows classified.
func Drain(e Elements) error {
	var some [batchLen]record.Element
	for {
		if _, err := e.Read(some[:]); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// Batch returns some of the next data rows of the current record and how many bytes of their keys the rest follows; no rows
// after the last. They live until the next call.
func (r *Reader) Batch(limit int) (rows []store.Row, skip int, err error) {
	if r.rows == nil {
		return nil, 0, nil
	}
	return r.rows.Batch(limit)
}

// Reject classifies row i of the last batch, of which Check says what is wrong, or that is none of the record's.
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
			kind, wrong = findings.ValueKind(err), err
		}
	}
	r.malformed(i, kind, r.h.Key, row.Key, place, wrong)
}

var errNotOfType = errors.New("records of this type have no such row")

// Broken classifies row i of the last batch, which cannot be decoded.
func (r *Reader) Broken(row *store.Row, i int, kind string, err error) {
	r.malformed(r.cur.data, kind, r.h.Key, row.Key, r.rows.PlaceAt(i), err)
}

// RemarkAt reports something about row i of the last batch that leaves the record whole.
func (r *Reader) RemarkAt(i int, kind string, severity record.Severity, detail string) {
	r.Report(r.dataSpace(), record.Finding{Kind: kind, Severity: severity, Type: r.h.Type, Key: r.h.Key, Place: r.rows.PlaceAt(i), Detail: detail})
}

// Stale reports whether row i of the last batch is of another version than the current record, and classifies it then.
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

// Keep counts data rows that are part of the record, Lose others of its version that are not.
func (r *Reader) Keep(n int64) { r.alive += n }

// Lose counts data rows of the record's version that are no part of it.
func (r *Reader) Lose(n int64) { r.tallies[r.cur.data].Rows[record.Orphan] += n }

// Again reads the data rows of the current record once more; the rest follows skip bytes of their keys.
func (r *Reader) Again() (it store.Iterator, skip int, err error) {
	it, err = r.dataSpace().Rows(r.cur.DataRows.Range(r.h.Key))
	return it, len(r.prefixOf(r.cur.data)), err
}

// DamageAt reports an error of the current record at one of its data rows, or at the meta row when raw is nil.
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

// CheckCount compares the meta row with how many data rows there are of its version.
func (r *Reader) CheckCount(rows int64) {
	if r.m.Count != rows {
		r.Damage(&r.store.Metas, FindCountMismatch, r.Place(), "count is %d, rows found: %d", r.m.Count, rows)
	}
}

// Outside is how many rows of a list without bounds were passed over.
func (r *Reader) Outside() int64 { return r.outside }

// Memory is how many bytes may be buffered, beyond what reading rows takes.
func (r *Reader) Memory() int64 { return r.memory }

// TempDir is where spills go.
func (r *Reader) TempDir() string { return r.env.TempDir }
