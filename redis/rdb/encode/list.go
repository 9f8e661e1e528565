package encode

import (
	"kvferry/record"
	"kvferry/redis/rdb"
	"kvferry/redis/rdb/pack"
)

// listElement adds a list element to the current node, or as a plain node if it is large.
func (e *Encoder) listElement(v []byte) {
	if e.Version.Number < 7 { // before quicklists
		e.count++
		e.body = rdb.AppendString(e.body, v)
		return
	}
	if e.open && e.packer.Size()+len(v)+15 > maxNode {
		e.closeNode()
	}
	if len(v) >= maxNode && packing(e.Version) == pack.Listpack {
		e.count++
		e.body = append(e.body, rdb.NodePlain)
		e.body = append(rdb.AppendLen(e.body, uint64(len(v))), v...)
		return
	}
	if len(v) >= maxNode {
		e.count++
		e.body = e.packer.Alone(e.body, v, rdb.AppendLen)
		return
	}
	if !e.open {
		e.packer.Begin(packing(e.Version))
		e.open = true
	}
	e.packer.Add(v)
}

// closeNode ends the current list node.
func (e *Encoder) closeNode() {
	b := e.packer.End()
	e.open = false
	e.count++
	if packing(e.Version) == pack.Listpack {
		e.body = append(e.body, rdb.NodePacked)
	}
	e.body = append(rdb.AppendLen(e.body, uint64(len(b))), b...)
}

func (e *Encoder) listType() rdb.Type {
	switch {
	case e.Version.Number < 7:
		return rdb.TypeList
	case packing(e.Version) == pack.Listpack:
		return rdb.TypeQuicklist2
	}
	return rdb.TypeQuicklist
}

func (e *Encoder) endList() (Value, bool, error) {
	if e.open {
		e.closeNode()
	}
	e.form = e.listType()
	return e.counted(), e.count > 0, nil
}

// spillType fixes the type of a spilled value if End would do so.
func (e *Encoder) spillType() {
	switch e.typ {
	case record.List:
		e.form = e.listType()
	case record.Stream:
		e.form = streamType(e.Version)
	}
}
