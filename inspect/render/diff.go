package render

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"

	"kvferry/inspect"
	"kvferry/inspect/compare"
	"kvferry/internal/sys/bufpool"
	"kvferry/internal/text/escape"
	"kvferry/internal/text/jsonl"
	"kvferry/internal/text/page"
	"kvferry/record"
)

// DiffPrinter prints differences as they are found.
type DiffPrinter struct {
	out       *bufio.Writer
	format    string // text, patch or json
	max       int    // 0: all
	limit     string // the flag that set max
	n         int
	told      bool
	line      []byte
	enc       jsonl.Encoder
	key, name []byte // of the previous line; long ones with a common prefix look the same when cut
}

// NewDiffPrinter returns a printer that prints at most max differences, or all if max is 0. The comparison goes on
// behind them, for the totals; only a patch ends there. limit is the flag for max, such as "--max".
func NewDiffPrinter(w io.Writer, format string, max int, limit string) *DiffPrinter {
	if format == "text" {
		w = page.Painted(w)
	}
	p := &DiffPrinter{out: bufio.NewWriterSize(w, 64<<10), format: format, max: max, limit: limit}
	p.enc.SpillTo(p.spill)
	return p
}

// spill writes text in the middle of a line. The buffered writer returns its error on the next write.
func (p *DiffPrinter) spill(text []byte) []byte {
	p.told = true
	_, _ = p.out.Write(text)
	return text[:0]
}

// Written reports whether the printer may have written output.
func (p *DiffPrinter) Written() bool { return p.told }

// Difference prints one difference.
func (p *DiffPrinter) Difference(d *compare.Difference) error {
	if p.max > 0 && p.n >= p.max {
		if p.format == "patch" {
			return compare.ErrEnough
		}
		return nil
	}
	p.n++
	switch p.format {
	case "text":
		p.line = p.appendAlike(p.appendText(p.line[:0], d), d)
	case "patch":
		var err error
		if p.line, err = p.appendPatch(p.line[:0], d); err != nil {
			return err
		}
	default:
		return nil
	}
	p.told = true
	_, err := p.out.Write(append(p.line, '\n'))
	return err
}

// Finish prints the summary.
func (p *DiffPrinter) Finish(r *compare.Result) error {
	switch p.format {
	case "json":
		if err := indented(p.out, r); err != nil {
			return err
		}
	case "text":
		fmt.Fprintln(p.out, DiffSummary(r, p.max, p.limit))
	}
	return p.out.Flush()
}

// DiffSummary returns the totals in one line. At most max differences were printed, as limit says.
func DiffSummary(r *compare.Result, max int, limit string) string {
	unit := ""
	if r.Seconds {
		unit = " (expiry in seconds)"
	}
	if r.PlainZero {
		unit += " (-0 is 0, as servers make it)"
	}
	switch {
	case r.Equal && r.Fingerprints:
		return "equal: the fingerprints of " + record.Count(r.Alike, "record") + " are the same" + unit
	case r.Equal:
		return "equal: " + record.Count(r.Records, "record") + " compared" + unit
	}
	more := ""
	switch {
	case r.Stopped:
		more = ", and there are more (" + limit + ")"
	case max > 0 && r.Differences > int64(max):
		more = fmt.Sprintf(", the first %s shown (%s)", record.Number(int64(max)), limit)
	}
	return fmt.Sprintf("%s missing, %s extra, %s differing; %s%s%s", record.Count(r.Missing, "record"), record.Number(r.Extra),
		record.Number(r.Differing), record.Count(r.Differences, "difference"), more, unit)
}

// appendText appends a difference as a line of text.
func (p *DiffPrinter) appendText(dst []byte, d *compare.Difference) []byte {
	h := d.Header
	dst = fmt.Appendf(dst, "%-7s %s %s %s", d.Side, escape.Text(d.DB.String()), h.Type, record.Quote(h.Key))
	if h.Keyless != record.Keyed {
		dst = fmt.Appendf(dst, " (a %s, not a key)", h.Keyless)
	}
	switch d.What {
	case compare.Expiry:
		return fmt.Appendf(dst, ": expires %s in A, %s in B", expiry(h.ExpireMS), expiry(d.HeaderB.ExpireMS))
	case compare.LastID:
		return fmt.Appendf(dst, ": last id %s in A, %s in B", id(h.Last), id(d.HeaderB.Last))
	case compare.Element:
		dst = append(dst, ": "...)
		dst = appendName(dst, d)
		a, b := valueText(h.Type, d.A), valueText(h.Type, d.B)
		switch {
		case d.B == nil:
			return fmt.Appendf(dst, "%s only in A", spaced(a))
		case d.A == nil:
			return fmt.Appendf(dst, "%s only in B", spaced(b))
		}
		dst = fmt.Appendf(dst, " %s in A, %s in B", a, b)
		if a == b && d.A.Kind == record.Entry { // they look the same when cut
			dst = fmt.Appendf(dst, "; they differ from byte %d on: %s in A, %s in B", commonPrefix(d.A.Value, d.B.Value),
				record.Count(int64(len(d.A.Value)), "byte"), record.Number(int64(len(d.B.Value))))
		}
	}
	return dst
}

// appendAlike appends where a key or name starts to differ from the previous line's, if both look the same when cut.
func (p *DiffPrinter) appendAlike(dst []byte, d *compare.Difference) []byte {
	var name []byte
	if d.What == compare.Element {
		name = named(d).Name
	}
	dst = appendApart(dst, "key", p.key, d.Header.Key)
	if bytes.Equal(p.key, d.Header.Key) {
		dst = appendApart(dst, "name", p.name, name)
	}
	p.key = append(bufpool.Room(p.key, len(d.Header.Key)), d.Header.Key...)
	p.name = append(bufpool.Room(p.name, len(name)), name...)
	return dst
}

// appendApart appends the offset at which a long name differs from the previous one with the same prefix.
func appendApart(dst []byte, what string, before, now []byte) []byte {
	n := commonPrefix(before, now)
	if n < maxShown || len(now) <= maxShown || n == len(before) && n == len(now) {
		return dst
	}
	return fmt.Appendf(dst, "; this %s differs from the previous %[1]s at byte %d: %s here, %s there", what, n,
		record.Count(int64(len(now)), "byte"), record.Number(int64(len(before))))
}

// commonPrefix returns the length of the common prefix.
func commonPrefix(a, b []byte) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

func spaced(s string) string {
	if s == "" {
		return ""
	}
	return " " + s
}

// named returns the element that differs: A's if A has it, else B's.
func named(d *compare.Difference) *record.Element {
	if d.A == nil {
		return d.B
	}
	return d.A
}

// appendName names the element that differs.
func appendName(dst []byte, d *compare.Difference) []byte {
	e := named(d)
	if e.Kind != record.Entry {
		return appendGrouped(dst, e)
	}
	switch d.Header.Type {
	case record.Hash:
		return append(append(dst, "field "...), record.Quote(e.Name)...)
	case record.List:
		return appendIndex(append(dst, "index "...), d)
	case record.Set, record.ZSet:
		return append(append(dst, "member "...), record.Quote(e.Name)...)
	case record.Stream:
		return append(append(dst, "entry "...), id(e.Name)...)
	}
	return append(dst, "value"...)
}

// appendIndex appends the position of an item on the side that has it, and the one in B if it is another.
func appendIndex(dst []byte, d *compare.Difference) []byte {
	switch {
	case d.A == nil:
		return strconv.AppendInt(dst, d.IndexB, 10)
	case d.B != nil && d.Index != d.IndexB:
		return fmt.Appendf(dst, "%d (%d in B)", d.Index, d.IndexB)
	}
	return strconv.AppendInt(dst, d.Index, 10)
}

func valueText(t record.Type, e *record.Element) string {
	switch {
	case e == nil, t == record.Set:
		return ""
	case t == record.ZSet:
		return "score " + string(appendScore(nil, e))
	case e.Kind != record.Entry:
		return groupedText(e)
	case e.ExpireMS != 0:
		return record.Quote(e.Value) + " expiring " + expiry(e.ExpireMS)
	}
	return record.Quote(e.Value)
}

func expiry(ms int64) string {
	if ms == 0 {
		return "never"
	}
	return "at " + jsonl.TimeText(ms)
}

func id(b []byte) string {
	text, err := jsonl.AppendID(nil, b)
	if err != nil {
		return "none"
	}
	return string(text)
}

// appendPatch appends an operation that turns A into B as a JSON line; docs/diff.md lists the
// operations.
func (p *DiffPrinter) appendPatch(dst []byte, d *compare.Difference) ([]byte, error) {
	h := d.Header
	op := "set"
	switch {
	case d.What == compare.Record && d.Side == compare.OnlyA:
		op = "remove"
	case d.What == compare.Record:
		op = "add"
	case d.What == compare.Expiry:
		op = "expire"
	case d.What == compare.LastID:
		op = "last-id"
	case d.Side == compare.OnlyA:
		op = "unset"
	case d.Side == compare.OnlyB && h.Type == record.List && d.HeaderB != nil:
		op = "insert"
	}
	dst = fmt.Appendf(dst, `{"op":"%s","db":`, op)
	dst = p.appendDB(dst, &d.DB)
	dst = append(append(append(dst, `,"type":"`...), h.Type.String()...), `","key":`...)
	dst = jsonl.AppendKeyless(p.enc.AppendText(dst, h.Key), h.Keyless)
	switch op {
	case "add":
		dst = strconv.AppendInt(append(dst, `,"expire_at_ms":`...), h.ExpireMS, 10)
		if h.Last != nil {
			dst = fmt.Appendf(dst, `,"last_id":"%s"`, id(h.Last))
		}
	case "expire":
		dst = fmt.Appendf(dst, `,"expire_at_ms":%d,"old":%d`, d.HeaderB.ExpireMS, h.ExpireMS)
	case "last-id":
		dst = fmt.Appendf(dst, `,"last_id":"%s","old":"%s"`, id(d.HeaderB.Last), id(h.Last))
	case "set", "unset", "insert":
		return p.appendElement(dst, d)
	}
	return append(dst, '}'), nil
}

// appendDB appends the name of a database in A, to which a patch applies, and the name in B if it differs.
func (p *DiffPrinter) appendDB(dst []byte, db *compare.DBPair) []byte {
	if !db.InA {
		return p.enc.AppendText(dst, []byte(db.B))
	}
	dst = p.enc.AppendText(dst, []byte(db.A))
	if db.InB && db.A != db.B {
		dst = p.enc.AppendText(append(dst, `,"db_b":`...), []byte(db.B))
	}
	return dst
}

// appendElement appends the element to set, insert or unset, with its new and old values. What precedes an item of a
// list is as in B when the operation is applied, so its position is the one in B.
func (p *DiffPrinter) appendElement(dst []byte, d *compare.Difference) ([]byte, error) {
	e := d.A
	if e == nil {
		e = d.B
	}
	switch d.Header.Type {
	case record.Hash:
		dst = p.enc.AppendText(append(dst, `,"field":`...), e.Name)
	case record.List:
		dst = strconv.AppendInt(append(dst, `,"index":`...), d.IndexB, 10)
	case record.Set, record.ZSet:
		dst = p.enc.AppendText(append(dst, `,"member":`...), e.Name)
	case record.Stream:
		if e.Kind != record.Entry {
			return p.appendGroupOp(dst, d, e)
		}
		dst = append(append(append(dst, `,"id":"`...), id(e.Name)...), '"')
	case record.Other:
		dst = p.enc.AppendText(append(dst, `,"native":`...), e.Name)
	}
	var err error
	if d.B != nil {
		if dst, err = p.appendValue(dst, d.Header.Type, "", d.B); err != nil {
			return dst, err
		}
	}
	if d.A != nil {
		if dst, err = p.appendValue(dst, d.Header.Type, "old_", d.A); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// appendScore appends the score of a member, the exact one if it was read.
func appendScore(dst []byte, e *record.Element) []byte {
	if len(e.Value) > 0 {
		return append(dst, e.Value...)
	}
	return jsonl.AppendScore(dst, e.Score)
}

func (p *DiffPrinter) appendValue(dst []byte, t record.Type, prefix string, e *record.Element) ([]byte, error) {
	switch t {
	case record.Set:
		return dst, nil
	case record.ZSet:
		dst = fmt.Appendf(dst, `,"%sscore":"`, prefix)
		return append(appendScore(dst, e), '"'), nil
	case record.Stream:
		dst = fmt.Appendf(dst, `,"%sentry":[`, prefix)
		for packed := e.Value; len(packed) > 0; {
			field, value, rest, err := record.DecodePair(packed)
			if err != nil {
				return dst, err
			}
			if len(packed) < len(e.Value) {
				dst = append(dst, ',')
			}
			dst = append(p.enc.AppendText(append(dst, '['), field), ',')
			dst = append(p.enc.AppendText(dst, value), ']')
			packed = rest
		}
		return append(dst, ']'), nil
	}
	dst = p.enc.AppendText(fmt.Appendf(dst, `,"%svalue":`, prefix), e.Value)
	if e.ExpireMS != 0 {
		dst = fmt.Appendf(dst, `,"%sexpire_at_ms":%d`, prefix, e.ExpireMS)
	}
	return dst, nil
}

// Fingerprint writes a fingerprint file, which does not depend on the version of kvferry.
func Fingerprint(w io.Writer, _ string, f *inspect.FingerprintFile) error { return indented(w, f) }
