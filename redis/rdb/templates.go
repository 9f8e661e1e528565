package rdb

import (
	"bytes"
	"errors"

	"kvferry/internal/sys/bufpool"
	"kvferry/record"
	"kvferry/redis/rdb/pack"
)

// Hashes of Redis 8.10 may share the names of their fields. Files store these names before the keys, DUMP payloads
// inside the value:
//
//	F2   len id | len n | n × string                                      a template: names, shorter ones first
//	30   string: listpack of id, n values        32   len id | n strings
//	29   names | string: listpack of an integer, n values
//	31   names | n strings
//
//	names   00 | string: listpack of n names, or 01 | len n | n strings

// template holds the field names of hashes.
type template struct {
	off   int64 // offset of its definition
	names [][]byte
	err   error // set if the template is invalid
}

// templates holds the templates of a file. Masters of a cluster may reuse an id: the last one before a value counts.
type templates struct{ byID map[uint64][]template }

var (
	errNoTemplate    = errors.New("no template has this id")
	errTemplateOrder = errors.New("the names of a template do not ascend")
)

// find returns the names of a template id at an offset.
func (t *templates) find(id uint64, off int64) ([][]byte, error) {
	if t != nil {
		list := t.byID[id]
		for i := len(list) - 1; i >= 0; i-- {
			if list[i].off < off {
				return list[i].names, list[i].err
			}
		}
	}
	return nil, errNoTemplate
}

// template reads a template. A section skips it, because the first scan has read it.
func (s *Scanner) template() {
	in := &s.in
	t := template{off: in.offset()}
	id := in.len("template id")
	n := in.count("fields", 1)
	if s.sectioned {
		in.skipStrings(n)
		return
	}
	for ; n > 0 && in.err == nil; n-- {
		name, _ := in.str("field", nil)
		name = bytes.Clone(name)
		if last := len(t.names) - 1; last >= 0 && !ascend(t.names[last], name) {
			t.err = errTemplateOrder
		}
		t.names = append(t.names, name)
	}
	if in.err != nil {
		return
	}
	if s.Header.templates == nil {
		s.Header.templates = &templates{byID: map[uint64][]template{}}
	}
	s.Header.templates.byID[id] = append(s.Header.templates.byID[id], t)
}

func ascend(a, b []byte) bool {
	return len(a) < len(b) || len(a) == len(b) && bytes.Compare(a, b) < 0
}

// Encodings of field names in a value.
const (
	namesPacked = 0
	namesPlain  = 1
)

// skipTemplated skips a templated hash.
func (in *input) skipTemplated(t Type, h Header) {
	off := in.offset()
	switch t {
	case TypeHashTemplPack:
		in.skipString("value")
	case TypeHashTempl:
		names, err := h.templates.find(in.len("template id"), off)
		if err != nil {
			in.fail(off, "template id", err) // the number of values is unknown
		}
		in.skipStrings(uint64(len(names)))
	default:
		names, _, err := in.fieldNames(nil, nil)
		if err != nil {
			in.fail(off, "fields", err)
		}
		if t == TypeHashDumpPacked {
			in.skipString("value")
		} else {
			in.skipStrings(uint64(len(names)))
		}
	}
}

// fieldNames appends the names before a value to names, and their bytes to text.
func (in *input) fieldNames(names [][]byte, text []byte) (_ [][]byte, _ []byte, err error) {
	off := in.offset()
	switch kind := in.byte("fields"); kind {
	case namesPacked:
		var blob []byte
		s, _ := in.str("fields", nil)
		if in.err != nil {
			return names, text, nil
		}
		var p pack.Reader
		err = p.Open(pack.Listpack, s)
		for more := err == nil; more; {
			var e pack.Item
			if more, err = p.Next(&e); more && err == nil {
				blob, text = e.AppendTo(text)
				names = append(names, bytes.Clone(blob))
			}
			more = more && err == nil
		}
	case namesPlain:
		for n := in.count("fields", 1); n > 0 && in.err == nil; n-- {
			var s []byte
			s, text = in.str("field", text)
			names = append(names, bytes.Clone(s))
		}
	default:
		in.newer(off, "fields", "encoding %d", kind)
	}
	return names, text, err
}

// beginTemplate finds the names of a templated hash, and its values.
func (d *Decoder) beginTemplate(t Type, h *record.Header) {
	in, off := &d.in, d.in.offset()
	var err error
	d.fields = d.fields[:0]
	switch t {
	case TypeHashDumpPacked, TypeHashDump:
		d.fields, d.text, err = in.fieldNames(d.fields, bufpool.Reset(d.text))
	case TypeHashTempl:
		d.fields, err = d.header.templates.find(in.len("template id"), off)
	}
	if err != nil {
		in.fail(off, "template", err)
	}
	if d.form == formTemplatePacked {
		d.openPacked(pack.Listpack, "value")
		if in.err == nil {
			d.packedTemplate(t, off)
		}
		d.inside = false // templated reads the values
	}
	d.left = uint64(len(d.fields))
	h.Len = int64(d.left)
}

// packedTemplate reads the integer before packed values, which is a template id in files.
func (d *Decoder) packedTemplate(t Type, off int64) {
	var id pack.Item
	err := d.packed.Must(&id)
	switch {
	case err != nil:
	case !id.IsInt:
		err = errNoTemplate
	case t == TypeHashTemplPack:
		d.fields, err = d.header.templates.find(uint64(id.N), off)
	}
	if err != nil {
		d.in.fail(off, "template", err)
	}
}

// templated reads values of a templated hash.
func (d *Decoder) templated(dst []record.Element) (n int) {
	for n < len(dst) && d.left > 0 && len(d.text) < maxText {
		e := &dst[n]
		*e = record.Element{Name: d.fields[len(d.fields)-int(d.left)]}
		if d.form == formTemplate {
			e.Value, d.text = d.in.str("value", d.text)
		} else {
			var v pack.Item
			if err := d.packed.Must(&v); err != nil {
				d.in.fail(d.in.offset(), "value", err)
			}
			e.Value, d.text = v.AppendTo(d.text)
		}
		if d.in.err != nil {
			return n
		}
		d.left--
		if !d.isTwin(e.Name) {
			n++
		}
	}
	if d.left == 0 && d.form == formTemplatePacked {
		if done, err := d.packed.Done(); err != nil {
			d.in.fail(d.in.offset(), "value", err)
		} else if !done {
			d.in.newer(d.in.offset(), "value", "more values than names")
		}
	}
	return n
}
