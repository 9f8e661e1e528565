package rdb

import (
	"errors"
	"fmt"
	"io"
	"math"

	"kvferry/internal/sys/bufpool"
	"kvferry/internal/sys/extsort"
	"kvferry/record"
	"kvferry/redis/rdb/pack"
)

// Decoder decodes values one by one, element by element. The zero value is usable, but not concurrently.
type Decoder struct {
	in   input
	form form
	left uint64 // remaining elements, nodes or consumers

	packed pack.Reader
	inside bool   // packed has entries left
	blob   []byte // buffer for decompressed packed encodings
	text   []byte // buffer for texts of a batch: integers and decompressed strings
	expiry int64  // base of relative field expiries; of packed fields, the last expiry
	header Header // of the file
	stream streamDecoder
	native []byte   // type name of an opaque value
	typ    Type     // of an opaque value
	fields [][]byte // field names of a templated hash
	// members holds the member expiries that follow the value
	members memberExpiries

	// TempDir holds hashes of names of large values; "" means os.TempDir.
	TempDir string
	Memory  int64             // for these hashes, at least 1 MiB
	names   extsort.SeenNames // of elements, or of the consumers of a group
	groups  extsort.SeenNames
	skipped bool // Read skipped a repeated name
	odd     error
}

// Close removes temporary files.
func (d *Decoder) Close() error { return errors.Join(d.names.Close(), d.groups.Close()) }

// Begin starts to decode a value in memory, without its type byte and key; off is its file offset, for errors. It sets
// Type, Len, Last, Added, MaxDeleted and ByName of h. Elements are views of value, or valid until the next Read.
func (d *Decoder) Begin(t Type, hd Header, value []byte, off int64, h *record.Header) error {
	d.in.reset(value, off)
	return d.begin(t, hd, h)
}

// BeginAt starts to decode a value in a file.
func (d *Decoder) BeginAt(t Type, hd Header, r io.ReaderAt, from, to int64, h *record.Header) error {
	d.in.open(r, from, to)
	d.in.fresh = true
	return d.begin(t, hd, h)
}

func (d *Decoder) begin(t Type, hd Header, h *record.Header) error {
	sh := hd.shape(t)
	h.Type = sh.typ
	h.Len, h.ByName, h.Last, h.Added, h.MaxDeleted = -1, false, nil, 0, nil
	d.form, d.inside, d.expiry, d.header, d.odd = formNone, false, 0, hd, nil
	d.members.list, d.members.lost = d.members.list[:0], 0
	if err := errors.Join(d.names.Reset(), d.groups.Reset()); err != nil {
		return err
	}
	if sh.form == formNone {
		d.in.newer(d.in.offset(), "type", "%s", t.Name(hd))
		return d.in.err
	}
	d.form = sh.form
	switch {
	case d.form == formString:
		d.left, h.Len = 1, 1
	case d.form == formOpaque:
		d.left, h.Len = 1, 1
		d.native, d.typ = d.opaqueName(t), t
	case d.form == formStream:
		d.beginStream(t, h)
	case d.form == formTemplate, d.form == formTemplatePacked:
		d.beginTemplate(t, h)
	case d.form >= formPackedList && d.form <= formPackedExpiring:
		if t == TypeHashPackedExp {
			d.in.uint64("least expiry") // redundant
		}
		d.beginPacked(sh.pack, h)
	default:
		d.beginCounted(h)
	}
	if d.in.err == nil && d.form != formStream {
		d.names.Expect(h.Len)
	}
	return d.in.err
}

// sizes holds the minimum encoded size of an element.
var sizes = map[form]uint64{formList: 1, formSet: 1, formZSetText: 2, formZSet: 9, formHash: 2, formHashAfter: 10,
	formHashBefore: 3, formHashDelta: 3, formQuicklist: 1, formQuicklist2: 2, formHashMember: 3, formSetMember: 2}

// beginCounted reads the number of elements or nodes.
func (d *Decoder) beginCounted(h *record.Header) {
	if d.form == formHashDelta {
		d.expiry = int64(d.in.uint64("least expiry"))
	}
	d.left = d.in.count("count", sizes[d.form])
	if d.form != formQuicklist && d.form != formQuicklist2 {
		h.Len = int64(d.left)
	}
}

// beginPacked opens a value that is a single packed encoding.
func (d *Decoder) beginPacked(kind pack.Kind, h *record.Header) {
	d.openPacked(kind, "value")
	h.Len = -1
	if d.in.err == nil && d.packed.Count() >= 0 {
		h.Len = int64(d.packed.Count()) / d.perElement()
	}
}

func (d *Decoder) perElement() int64 {
	switch d.form {
	case formPackedZSet, formPackedHash:
		return 2
	case formPackedExpiring:
		return 3
	}
	return 1
}

// openPacked reads a string that holds a packed encoding, and opens it.
func (d *Decoder) openPacked(kind pack.Kind, field string) {
	off := d.in.offset()
	s, blob := d.in.str(field, bufpool.Reset(d.blob))
	d.blob = blob
	if d.in.err != nil {
		return
	}
	if err := d.packed.Open(kind, s); err != nil {
		d.in.fail(off, field, err)
		return
	}
	d.inside = true
}

// Read fills dst from the front and returns the number of elements; 0, io.EOF after the last element. Elements read
// before an error are valid.
func (d *Decoder) Read(dst []record.Element) (n int, err error) {
	if d.in.err != nil {
		return 0, d.in.err
	}
	if len(dst) == 0 {
		return 0, nil
	}
	for d.skipped = true; n == 0 && d.skipped && d.in.err == nil; {
		d.text, d.skipped = bufpool.Reset(d.text), false
		n = d.some(dst)
	}
	if len(d.members.list) > 0 {
		d.members.set(dst[:n])
	}
	switch {
	case n > 0:
		return n, nil // the next call returns an error
	case d.in.err != nil:
		return 0, d.in.err
	}
	return 0, d.finish()
}

// some reads elements. It returns 0 at the end, after an error, or if it read only repeated names.
func (d *Decoder) some(dst []record.Element) int {
	switch d.form {
	case formString, formOpaque:
		return d.readOnly(dst)
	case formStream:
		return d.readStream(dst)
	case formQuicklist, formQuicklist2:
		return d.nodes(dst)
	case formPackedList, formPackedSet, formPackedZSet, formPackedHash, formPackedExpiring:
		return d.entries(dst)
	case formTemplate, formTemplatePacked:
		return d.templated(dst)
	}
	return d.counted(dst)
}

// ErrTwins means that a field or member occurs more than once. Read has returned the first of each, and all other
// elements; only very large values may return repeated ones.
var ErrTwins = errors.New("elements of a name that an earlier one has")

// ErrOdd means that redundant data in a value is wrong, such as the number of entries in a node. Read has returned all
// elements.
var ErrOdd = errors.New("the value contradicts itself")

// AllRead reports whether all elements of a value were returned before an error.
func AllRead(err error) bool { return errors.Is(err, ErrTwins) || errors.Is(err, ErrOdd) }

// oddly records the first inconsistency; finish returns it after the last element.
func (d *Decoder) oddly(field, format string, args ...any) {
	if d.odd == nil && d.in.err == nil {
		d.odd = &record.CorruptError{Off: d.in.offset(), Field: field,
			Err: fmt.Errorf("%w: %s", ErrOdd, fmt.Sprintf(format, args...))}
	}
}

// isTwin reports whether an earlier element has the same name. Servers keep a name once, and some reject such a value.
func (d *Decoder) isTwin(name []byte) bool {
	switch d.form {
	case formList, formQuicklist, formQuicklist2, formPackedList:
		return false
	case formPackedSet:
		if d.packed.Kind() == pack.Intset { // sorted, so unique
			return false
		}
	}
	twin, err := d.names.IsTwin(name, d.Memory, d.TempDir)
	if err != nil {
		d.in.err = err
	}
	d.skipped = d.skipped || twin
	return twin
}

// finish checks for trailing bytes, repeated names and inconsistencies.
func (d *Decoder) finish() error {
	if err := d.names.All(); err != nil {
		d.in.err = err
		return err
	}
	if n := d.names.Twins; n > 0 && d.in.left() == 0 {
		text := record.Count(n, "element")
		if d.names.First != "" {
			text += ", such as " + d.names.First
		}
		d.in.failf(d.in.offset(), "value", "%w: %s", ErrTwins, text)
		return d.in.err
	}
	if n := d.in.left(); n > 0 {
		d.in.newer(d.in.offset(), "value", "%d %s", n, record.ErrTrailing)
		return d.in.err
	}
	if d.odd != nil {
		d.in.err = d.odd
		return d.odd
	}
	return io.EOF
}

// readOnly reads the only element of a string or opaque value.
func (d *Decoder) readOnly(dst []record.Element) int {
	if d.left == 0 {
		return 0
	}
	d.left = 0
	e := record.Element{}
	if d.form == formOpaque {
		e.Name = d.native
		e.Value = d.in.opaque(d.typ)
	} else {
		e.Value, d.text = d.in.str("value", d.text)
	}
	if d.in.err != nil {
		return 0
	}
	dst[0] = e
	return 1
}

// counted reads elements of an unpacked encoding.
func (d *Decoder) counted(dst []record.Element) (n int) {
	in := &d.in
	for held := 0; n < len(dst) && d.left > 0 && len(d.text) < maxText && held < maxText; {
		e := &dst[n]
		*e = record.Element{}
		switch d.form {
		case formList:
			e.Value, d.text = in.str("element", d.text)
		case formSet:
			e.Name, d.text = in.str("member", d.text)
		case formSetMember:
			e.Name, d.text = in.str("member", d.text)
			e.ExpireMS, d.text = in.memberExpiry(d.text)
		case formZSet:
			e.Name, d.text = in.str("member", d.text)
			e.Score = math.Float64frombits(in.uint64("score"))
		case formZSetText:
			e.Name, d.text = in.str("member", d.text)
			e.Score = in.textScore()
		default:
			d.field(e)
		}
		if in.err != nil {
			return n
		}
		held += len(e.Name) + len(e.Value)
		d.left--
		if !d.isTwin(e.Name) {
			n++
		}
	}
	return n
}

// field reads a field of a hash.
func (d *Decoder) field(e *record.Element) {
	in := &d.in
	switch d.form {
	case formHashBefore:
		e.ExpireMS = d.expires(in.len("expiry"))
	case formHashDelta:
		e.ExpireMS = d.expires(in.len("expiry"))
	}
	e.Name, d.text = in.str("field", d.text)
	e.Value, d.text = in.str("value", d.text)
	switch d.form {
	case formHashAfter:
		off := in.offset()
		if ms := int64(in.uint64("expiry")); ms != -1 {
			e.ExpireMS = d.fieldExpiry(off, ms)
		}
	case formHashMember:
		e.ExpireMS, d.text = in.memberExpiry(d.text)
	}
}

// fieldExpiry validates the expiry of a field.
func (d *Decoder) fieldExpiry(off, ms int64) int64 {
	if ms < 0 {
		d.in.failf(off, "expiry", "%d is before 1970", ms)
	}
	return max(ms, 1) // 0 would mean no expiry
}

// maxFieldExpiry is the largest field expiry in Redis, which rejects a file with a later one.
const maxFieldExpiry = 1<<48 - 1

// expires decodes a field expiry: 0 means never; formHashDelta stores the distance to the least expiry plus 1.
func (d *Decoder) expires(n uint64) int64 {
	if n == 0 {
		return 0
	}
	if d.form == formHashDelta {
		n--
	}
	ms := uint64(d.expiry) + n
	if ms < n || ms > maxFieldExpiry {
		d.in.failf(d.in.offset(), "expiry", "%d ms after %d", n, uint64(d.expiry))
	}
	return int64(ms)
}

// textScore reads a score stored as text.
func (in *input) textScore() float64 {
	off := in.offset()
	n := in.byte("score")
	switch n {
	case scoreNaN:
		return math.NaN()
	case scoreInf:
		return math.Inf(1)
	case scoreNInf:
		return math.Inf(-1)
	}
	b := in.takeBytes(uint64(n), "score")
	if in.err != nil {
		return 0
	}
	f, err := pack.ParseScore(b)
	if err != nil {
		in.fail(off, "score", err)
	}
	return f
}

// entries reads elements of a packed encoding.
func (d *Decoder) entries(dst []record.Element) (n int) {
	for n < len(dst) && d.inside && len(d.text) < maxText {
		e := &dst[n]
		*e = record.Element{}
		if !d.entry(e) {
			break
		}
		if !d.isTwin(e.Name) {
			n++
		}
	}
	return n
}

// entry reads an element and reports whether it found one.
func (d *Decoder) entry(e *record.Element) bool {
	var first, second, third pack.Item
	ok, err := d.packed.Next(&first)
	if err == nil && ok && d.form >= formPackedZSet && d.form <= formPackedExpiring {
		err = d.packed.Must(&second)
		if err == nil && d.form == formPackedExpiring {
			err = d.packed.Must(&third)
		}
	}
	switch {
	case err != nil || !ok:
	case d.form == formPackedZSet:
		e.Score, err = second.Score()
	case d.form == formPackedExpiring:
		err = d.packedExpiry(&third)
	}
	if err != nil {
		d.in.fail(d.in.offset(), d.packed.Kind().String(), err)
		return false
	}
	if !ok {
		d.inside = false
		return false
	}
	switch d.form {
	case formPackedSet, formPackedZSet:
		e.Name, d.text = first.AppendTo(d.text)
	case formPackedHash, formPackedExpiring:
		e.Name, d.text = first.AppendTo(d.text)
		e.Value, d.text = second.AppendTo(d.text)
		e.ExpireMS = third.N
	default:
		e.Value, d.text = first.AppendTo(d.text)
	}
	return true
}

// packedExpiry validates the expiry of a field. Fields with an expiry come first, in ascending order.
func (d *Decoder) packedExpiry(e *pack.Item) error {
	if !e.IsInt || e.N < 0 || e.N > maxFieldExpiry {
		return errFieldExpiry
	}
	last := d.expiry
	d.expiry = e.N
	if e.N == 0 {
		d.expiry = math.MaxInt64
	} else if e.N < last {
		d.oddly("expiry", "fields are not in the order of their expiry")
	}
	return nil
}

var errFieldExpiry = errors.New("the expiry of a field is not a time")

// Containers of a quicklist node.
const (
	NodePlain  = 1
	NodePacked = 2
)

// nodes reads elements of a quicklist.
func (d *Decoder) nodes(dst []record.Element) (n int) {
	for held := 0; n < len(dst) && d.in.err == nil && (held < maxText || n == 0); {
		if d.inside {
			held += d.packed.Size()
			n += d.entries(dst[n:])
			if d.inside {
				return n // dst or the text buffer is full, or an error occurred
			}
			if d.packed.Seen() == 0 {
				d.oddly("node", "it is empty")
			}
			if n > 0 && cap(d.blob) > 0 {
				return n // decompressing the next node may overwrite the views
			}
			continue
		}
		if d.left == 0 {
			return n
		}
		d.left--
		container, at := uint64(NodePacked), d.in.offset()
		if d.form == formQuicklist2 {
			container = d.in.len("container")
		}
		switch {
		case container == NodePlain:
			dst[n] = record.Element{}
			dst[n].Value, d.text = d.in.str("element", d.text)
			if d.in.err == nil {
				if len(dst[n].Value) == 0 { // servers reject it
					d.oddly("node", "it is empty")
				}
				held += len(dst[n].Value)
				n++
			}
		case container != NodePacked:
			d.in.newer(at, "container", "value %d", container)
		case d.form == formQuicklist:
			d.openPacked(pack.Ziplist, "node")
		default:
			d.openPacked(pack.Listpack, "node")
		}
	}
	return n
}

// opaqueName returns the type name of an opaque value.
func (d *Decoder) opaqueName(t Type) []byte {
	switch t {
	case TypeModule:
	case TypeArray:
		return []byte(NativeArray)
	case TypeCron:
		return []byte(NativeCron)
	default:
		return []byte(NativeDF)
	}
	at := d.in.offset()
	id := d.in.len("module id")
	d.in.seek(at)
	return []byte(ModuleName(id))
}
