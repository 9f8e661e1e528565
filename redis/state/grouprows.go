package state

import (
	"bytes"

	"kvferry/record"
)

// groupRows yields the consumer groups of a stream: each group by name, its consumers and its pending entries.
type groupRows struct {
	v      *Value
	groups *cursor
	name   []byte
	g      *Group
	kind   byte    // of sub: c or p
	sub    *cursor // of the current group
	prefix int     // bytes of its keys that are not the name or id
}

// rowsOf returns the rows of a prefix.
func (s *State) rowsOf(prefix []byte) (*cursor, error) {
	return s.rows(prefix, successor(prefix), false)
}

// next sets e to the next element; false after the last.
func (x *groupRows) next(e *record.Element) (bool, error) {
	for {
		if x.sub != nil {
			if x.sub.Next() {
				x.element(e)
				return true, nil
			}
			if err := x.sub.Close(); err != nil {
				return false, err
			}
			if x.sub = nil; x.kind == 'c' {
				if err := x.open('p'); err != nil {
					return false, err
				}
				continue
			}
		}
		return x.group(e)
	}
}

// group moves to the next group.
func (x *groupRows) group(e *record.Element) (bool, error) {
	prefix := dataKey(x.v.id, []byte{'g'})
	if x.groups == nil {
		var err error
		if x.groups, err = x.v.s.rowsOf(prefix); err != nil {
			return false, err
		}
	}
	if !x.groups.Next() {
		return false, x.groups.Error()
	}
	x.name = bytes.Clone(x.groups.key[len(prefix):])
	x.g = x.v.decodeGroup(x.groups.value)
	*e = record.Element{Kind: record.Group, Name: x.name,
		Value: record.AppendGroup(nil, &record.GroupState{Last: x.g.Last.append(nil), Read: x.g.Read})}
	return true, x.open('c')
}

// open positions sub before the consumers or the pending entries of the group.
func (x *groupRows) open(kind byte) (err error) {
	prefix := x.g.key(kind, nil)
	x.kind, x.prefix = kind, len(prefix)
	x.sub, err = x.v.s.rowsOf(prefix)
	return err
}

func (x *groupRows) element(e *record.Element) {
	key, value := x.sub.key[x.prefix:], x.sub.value
	if x.kind == 'c' {
		c := decodeConsumer(value)
		*e = record.Element{Kind: record.Consumer, Name: x.name,
			Value: record.AppendConsumer(nil, &record.ConsumerState{Name: key, SeenMS: c.SeenMS, ActiveMS: c.ActiveMS})}
		return
	}
	p := decodePending(value)
	entry := record.PendingEntry{ID: key, DeliveredMS: p.DeliveredMS, Count: p.Count}
	if entry.Consumer = p.Consumer; p.None {
		entry.Consumer = nil
	}
	*e = record.Element{Kind: record.Pending, Name: x.name, Value: record.AppendPending(nil, &entry)}
}

// close releases the open iterators.
func (x *groupRows) close() {
	for _, r := range []*cursor{x.sub, x.groups} {
		if r != nil {
			x.v.s.closed(r)
		}
	}
}
