package compare

import (
	"bytes"

	"kvferry/record"
)

// pair compares two records of the same key and type.
func (d *differ) pair(a, b *side) error {
	x := Difference{Side: Changed, DB: d.db, Header: a.head, HeaderB: b.head}
	if !d.sameExpiry(a.head.ExpireMS, b.head.ExpireMS) {
		x.What = Expiry
		if err := d.tell(&x); err != nil {
			return err
		}
	}
	if !bytes.Equal(a.head.Last, b.head.Last) {
		x.What = LastID
		if err := d.tell(&x); err != nil {
			return err
		}
	}
	x.What = Element
	switch a.head.Type {
	case record.List:
		return d.byItem(a, b, &x)
	case record.String:
		return d.value(a, b, &x)
	}
	return d.byName(a, b, &x)
}

func (d *differ) sameExpiry(a, b int64) bool {
	if d.res.Seconds {
		return record.CeilSeconds(a) == record.CeilSeconds(b)
	}
	return a == b
}

// value compares strings, which have one element.
func (d *differ) value(a, b *side, x *Difference) error {
	ea, eb, err := peekBoth(a, b)
	if err != nil || ea != nil && eb != nil && bytes.Equal(ea.Value, eb.Value) {
		return err
	}
	return d.element(x, ea, eb)
}

// byName merges the elements by name. If a side has a name twice, the second one is extra.
func (d *differ) byName(a, b *side, x *Difference) error {
	for {
		ea, eb, err := peekBoth(a, b)
		if err != nil || ea == nil && eb == nil {
			return err
		}
		c := 0
		switch {
		case ea == nil:
			c = 1
		case eb == nil:
			c = -1
		default:
			c = record.CompareElements(ea, eb)
		}
		if c > 0 {
			ea = nil
		}
		if c < 0 {
			eb = nil
		}
		if c != 0 || !d.equal(ea, eb) {
			if err := d.element(x, ea, eb); err != nil {
				return err
			}
		}
		if ea != nil {
			a.nextRecord()
		}
		if eb != nil {
			b.nextRecord()
		}
	}
}

// equal compares elements with the same name.
func (d *differ) equal(a, b *record.Element) bool {
	if d.res.PlainZero && a.Score == 0 && b.Score == 0 {
		x, y := *a, *b
		x.Score, y.Score = 0, 0
		return record.EqualElements(&x, &y)
	}
	return record.EqualElements(a, b)
}

// element reports a difference in one element. nil means that a side does not have it.
func (d *differ) element(x *Difference, a, b *record.Element) error {
	x.A, x.B, x.Side = a, b, Changed
	switch {
	case b == nil:
		x.Side = OnlyA
	case a == nil:
		x.Side = OnlyB
	}
	return d.tell(x)
}

func peekBoth(a, b *side) (ea, eb *record.Element, err error) {
	if ea, err = a.peek(); err != nil {
		return nil, nil, err
	}
	eb, err = b.peek()
	return ea, eb, err
}
