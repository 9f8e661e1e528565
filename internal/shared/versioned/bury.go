package versioned

import (
	"fmt"

	"kvferry/record"
)

// buryAll classifies the rows of a meta row that makes no record. Rows of its version get class. With Orphan and
// Malformed the meta row's version is unknown; with Filtered it does not matter.
func (r *Reader) buryAll(class record.Class) error {
	r.newer = 0
	var n int64
	for i, set := range []RowSet{r.rows, r.byScore} {
		if set == nil {
			continue
		}
		more, err := r.bury([]int{r.cur.data, r.cur.index}[i], set, class)
		if err != nil {
			return err
		}
		n += more
	}
	if r.store.Layout.Newer != NewerAlive { // with NewerAlive, newer rows are deleted, too
		r.reportNewer()
	}
	if class == record.Deleted {
		r.reportDeleted(n)
	}
	return nil
}

// buryTypes classifies the rows of a meta row of an unknown type, in all keyspaces.
func (r *Reader) buryTypes() error {
	for i, set := range r.sets {
		if set == nil {
			continue
		}
		if err := set.Seek(r.m.Key); err != nil {
			return err
		}
		if _, err := r.bury(i, set, record.Malformed); err != nil {
			return err
		}
	}
	return nil
}

// reportDeleted reports the n rows of a meta row that counts no elements.
func (r *Reader) reportDeleted(n int64) {
	f := record.Finding{Type: r.h.Type, Key: r.m.Key, Place: r.metas.Place()}
	k := &r.store.Metas
	switch {
	case r.m.Count < 0:
		f.Kind, f.Severity = FindCountMismatch, record.Error
		f.Detail = fmt.Sprintf("count %s, which makes the engine hide %s", record.Number(r.m.Count), record.Count(n, "row"))
	case n > 0:
		k = &r.store.data[r.cur.data].Keyspace
		f.Kind, f.Severity = FindDeletedRows, record.Warning
		f.Detail = "count is 0, but its version has " + record.Count(n, "row")
	default:
		return
	}
	r.Report(k, f)
}

func (r *Reader) bury(i int, set RowSet, class record.Class) (n int64, err error) {
	t := &r.tallies[i]
	var e record.Element
	for {
		rows, skip, err := set.Batch(record.BatchLen)
		if err != nil || len(rows) == 0 {
			return n, err
		}
		r.m.Arena = r.m.Arena[:0]
		for j := range rows {
			if class == record.Filtered {
				t.Rows[class]++
				continue
			}
			if _, ok := r.owner(i, rows[j].Key, rows[j].Value, set.PlaceAt(j)); !ok {
				continue
			}
			of := class
			if class == record.Deleted {
				of = r.deadClass(r.versionOf(i, &e, rows[j].Key[skip:], rows[j].Value), set, j)
			}
			t.Rows[of]++
			if of == class {
				n++
			}
		}
	}
}

// deadClass returns the class of row i of a batch below a meta row without elements.
func (r *Reader) deadClass(v int64, set RowSet, i int) record.Class {
	if v != r.m.Version {
		if c := r.otherVersion(v, set, i); c != record.Copied {
			return c
		}
	}
	return record.Deleted
}

// versionOf returns the version of a row that passed Check.
func (r *Reader) versionOf(i int, e *record.Element, rest, value []byte) (v int64) {
	if r.store.data[i].index {
		v, _, _, _ = r.cur.Entry(&r.m, rest, value)
	} else {
		v, _ = r.cur.Element(&r.m, e, rest, value)
	}
	return v
}
