package rdb

import "kvferry/record"

// listElement adds an element of a list: to the node being packed, or as one of its own when it is large.
func (e *Encoder) listElement(v []byte) {
	if e.Version.Number < 7 { // before quicklists
		e.count++
		e.body = appendString(e.body, v)
		return
	}
	if e.open && e.packer.size()+len(v)+15 > maxNode {
		e.closeNode()
	}
	if len(v) >= maxNode && e.Version.packing() == listpack {
		e.count++
		e.body = append(e.body, nodePlain)
		e.body = append(appendLen(e.body, uint64(len(v))), v...)
		return
	}
	if len(v) >= maxNode {
		e.count++
		e.body = e.packer.alone(e.body, v)
		return
	}
	if !e.open {
		e.packer.begin(e.Version.packing())
		e.open = true
	}
	e.packer.add(v)
}

// closeNode ends the node of a list.
func (e *Encoder) closeNode() {
	b := e.packer.end()
	e.open = false
	e.count++
	if e.Version.packing() == listpack {
		e.body = append(e.body, nodePacked)
	}
	e.body = append(appendLen(e.body, uint64(len(b))), b...)
}

func (e *Encoder) listType() Type {
	switch {
	case e.Version.Number < 7:
		return TypeList
	case e.Version.packing() == listpack:
		return TypeQuicklist2
	}
	return TypeQuicklist
}

func (e *Encoder) endList() (Value, bool, error) {
	if e.open {
		e.closeNode()
	}
	e.form = e.listType()
	return e.counted(), e.count > 0, nil
}

// spillType fixes the type of a value that grows too large, where that is not done at its end.
func (e *Encoder) spillType() {
	switch e.typ {
	case record.List:
		e.form = e.listType()
	case record.Stream:
		e.form = e.Version.streamType()
	}
}
