package codec

import (
	"bytes"
	"fmt"

	"kvferry/record"
)

// MaxFields is the maximum number of fields of a stream entry with its own names: one byte counts names and
// values.
const MaxFields = 127

// Fields are the fields of a stream entry, or the names in a stream's META row.
//
//	entry   +----+------------+---------------------+---------------+- - - - - - - -+
//	        | 0d | count (1B) | fields n, tag 1     | n values      | n names       |
//	        +----+------------+---------------------+---------------+- - - - - - - -+
//	        count is 1 + n without the names, which are omitted if they equal META's; else 1 + 2n
//
//	META    … count n (1B), then the n names of the entry that made the stream
type Fields struct {
	N      int
	Names  []byte // data elements: strings
	Values []byte // data elements
}

// Encode sets f to the fields of an entry's pairs in the form of records.
func (f *Fields) Encode(pairs []byte) error {
	f.N, f.Names, f.Values = 0, f.Names[:0], f.Values[:0]
	for ; len(pairs) > 0; f.N++ {
		name, value, rest, err := record.DecodePair(pairs)
		if err != nil {
			return err
		}
		f.Names, f.Values, pairs = AppendText(f.Names, name), AppendCanon(f.Values, value), rest
	}
	return nil
}

// CountPairs counts the pairs of a stream entry in the form of records.
func CountPairs(packed []byte) int {
	n := 0
	for len(packed) > 0 {
		_, _, rest, err := record.DecodePair(packed)
		if err != nil {
			return n
		}
		packed = rest
		n++
	}
	return n
}

// AppendEntryHead appends the value of an entry of a stream whose META row names meta, up to f.Values, and
// returns the names to append after the values: nil if META has them.
func AppendEntryHead(dst []byte, f, meta *Fields) (_, names []byte) {
	data := 1 + f.N
	if f.N != meta.N || !bytes.Equal(f.Names, meta.Names) {
		data, names = data+f.N, f.Names
	}
	return AppendInt(append(dst, byte(KindEntry), byte(data)), int64(f.N)), names
}

// AppendPairs appends the fields of an entry's value in the form of records. meta are the names in META.
func AppendPairs(dst, value []byte, meta []Data) ([]byte, error) {
	values, err := SplitValue(value)
	if err != nil {
		return dst, err
	}
	if values.Kind != KindEntry {
		return dst, fmt.Errorf("a %s row with a value of kind %s", KindEntry, values.Kind)
	}
	n, err := values.Next("field count")
	if err != nil {
		return dst, err
	}
	k := values.Count - 1
	switch {
	case n.Tag != TagInt || n.Int < 0:
		return dst, fmt.Errorf("a field count that is not a number")
	case n.Int == int64(k) && k == len(meta):
		return appendPairs(dst, k, &values, &values, meta)
	case n.Int == int64(k/2) && k%2 == 0:
		names := values
		for range k / 2 {
			if _, err := names.Next("field value"); err != nil {
				return dst, err
			}
		}
		return appendPairs(dst, k/2, &values, &names, nil)
	}
	return dst, fmt.Errorf("%d fields with %d data, META names %d", n.Int, k, len(meta))
}

// appendPairs appends k pairs. Without META's names, the names follow the values. last must be exhausted at the end.
func appendPairs(dst []byte, k int, values, last *Value, meta []Data) ([]byte, error) {
	var value, name [maxFloatText]byte
	for i := range k {
		v, err := values.Next("field value")
		if err != nil {
			return dst, err
		}
		var n Data
		if meta != nil {
			n = meta[i]
		} else if n, err = last.Next("field name"); err != nil {
			return dst, err
		}
		dst = record.AppendPair(dst, n.served(name[:0]), v.served(value[:0]))
	}
	return dst, last.End()
}

// served returns the server's reply for d: a view, or appended to dst.
func (d *Data) served(dst []byte) []byte {
	if d.IsText() {
		return d.Text
	}
	return AppendServed(dst, *d)
}

// LastID returns the last id that a stream generated, as in META: at least the id of its last entry.
func LastID(last, entry []byte) []byte {
	if len(last) != IDSize || bytes.Compare(last, entry) < 0 {
		last = entry
	}
	if len(last) != IDSize {
		return make([]byte, IDSize)
	}
	return last
}
