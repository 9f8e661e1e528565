package parquet

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"kvferry/parquet/columns"
	"kvferry/record"
)

// openGroup opens the columns of a row group at the first row of the span, if there is one. Those that the type does not
// use must be null. Of a row group that is read as a whole all bytes are verified, else the pages that are read.
func (r *reader) openGroup(g int) error {
	file := r.file.cols
	keys, err := file.Pages(g, colKey)
	part := err == nil && r.cuts(keys)
	switch {
	case err != nil:
	case part:
		file = r.file.seek
	case r.room != nil:
		file, err = file.Held(r.line.section(g), r.room)
	default:
		err = file.CheckSum(r.line.section(g))
	}
	if err != nil {
		return err
	}
	first, found := int64(0), true
	if part {
		if first, found, err = r.firstRow(file, g, keys); err != nil || !found {
			return err
		}
	}
	used := append([]int{colDB, colKey, colExpire, colKind}, usedColumns[r.t.typ]...)
	r.cols, r.keyID = [numColumns]*columns.Reader{}, -1
	for _, i := range used {
		r.cols[i] = &r.own[i]
	}
	for i, c := range r.cols {
		switch {
		case c == nil:
			err = r.unused(file, g, i, part)
		case part:
			err = errors.Join(c.Open(file, g, i), c.SeekRow(first))
		default:
			err = c.Open(file, g, i)
		}
		if err != nil {
			return err
		}
	}
	for _, i := range used {
		r.used = append(r.used, r.cols[i])
	}
	return nil
}

// cuts reports whether a row group may have keys outside of the span.
func (r *reader) cuts(keys []columns.Page) bool {
	if len(keys) == 0 {
		return false
	}
	return r.span.Lo != nil && string(keys[0].Least) < string(r.span.Lo) ||
		r.span.Hi != nil && string(keys[len(keys)-1].Most) >= string(r.span.Hi)
}

// unused checks that a column has no values: by its pages, or by the index of them.
func (r *reader) unused(file *columns.File, g, column int, part bool) error {
	null, err := false, error(nil)
	if part {
		pages, e := file.Pages(g, column)
		null, err = !slices.ContainsFunc(pages, func(p columns.Page) bool { return !p.Null }), e
	} else {
		null, err = file.AllNull(g, column)
	}
	if err == nil && !null {
		err = record.Unknown(record.NoOffset, "column "+columnNames[column], "values of type "+r.t.typ.String())
	}
	return err
}

// firstRow finds the first row of the span in a row group. It reads the pages of keys in which that may be.
func (r *reader) firstRow(file *columns.File, g int, pages []columns.Page) (row int64, found bool, err error) {
	i := 0
	for i < len(pages) && string(pages[i].Most) < string(r.span.Lo) {
		i++
	}
	if i == len(pages) || r.span.Hi != nil && string(pages[i].Least) >= string(r.span.Hi) {
		return 0, false, nil
	}
	row = pages[i].Row
	keys := &r.keys
	defer keys.Close()
	if err = keys.Open(file, g, colKey); err == nil {
		err = keys.SeekRow(row)
	}
	for err == nil {
		if err = keys.More(); err != nil {
			break
		}
		i, ok := keys.Next()
		if key := keys.Value(i); !ok || bytes.Compare(key, r.span.Lo) >= 0 {
			return row, !ok || r.span.Hi == nil || bytes.Compare(key, r.span.Hi) < 0, nil
		}
		row++
	}
	if err == io.EOF {
		err = nil
	}
	return 0, false, err
}
