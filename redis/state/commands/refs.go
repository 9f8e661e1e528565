package commands

import (
	"kvferry/internal/shared/argument"
	"kvferry/record"
	"kvferry/redis/state"
)

// policy determines how to treat references to a removed entry: its pending entries in groups.
type policy uint8

const (
	keepRefs policy = iota // they stay
	dropRefs               // they go, too
	acked                  // the entry stays unless all groups have read and acknowledged it
)

// read takes an argument that is the name of a policy.
func (p *policy) read(arg []byte) bool {
	for i, name := range []string{"KEEPREF", "DELREF", "ACKED"} {
		if argument.Is(arg, name) {
			*p = policy(i)
			return true
		}
	}
	return false
}

// refs removes entries of a stream by a policy.
type refs struct {
	policy policy
	groups []*state.Group // that may refer to entries; empty if references are kept
}

func referrers(v *state.Value, p policy) *refs {
	r := &refs{policy: p}
	if p != keepRefs {
		r.groups = v.Groups()
	}
	return r
}

// remove removes an existing entry, unless the policy keeps it.
func (r *refs) remove(v *state.Value, id state.StreamID) bool {
	for _, g := range r.groups {
		if r.policy == dropRefs {
			g.RemovePending(id)
		} else if _, pending := g.Pending(id); pending || id.After(g.Last) {
			return false
		}
	}
	v.RemoveEntry(id)
	return true
}

// delete is remove for an entry named by a command, which may not exist.
func (r *refs) delete(v *state.Value, id state.StreamID) {
	if v.HasEntry(id) && r.remove(v, id) && id.After(v.Deleted) {
		v.Deleted = id
	}
}

// deletion parses "[policy] IDS n id …". It returns the ids unparsed: a server without the stream does not
// check them.
func deletion(s *state.Server, a [][]byte) (p policy, list [][]byte, err error) {
	if p.read(a[0]) {
		a = a[1:]
	}
	if len(a) < 3 || !argument.Is(a[0], "IDS") {
		return 0, nil, s.Option("XDELEX", a[0])
	}
	n, err := argument.ParseInt(a[1])
	if err != nil || n != int64(len(a)-2) {
		return 0, nil, argument.Refuse("ERR The `numids` parameter must match the number of arguments")
	}
	return p, a[2:], nil
}

// cmdXdelex is XDELEX.
func cmdXdelex(s *state.Server, a [][]byte) error {
	return deleteEach(s, a, 2, func(*state.Value) (func(state.StreamID) bool, bool) {
		return func(state.StreamID) bool { return true }, true
	})
}

// cmdXackdel is XACKDEL: it acknowledges entries that are pending in a group, and deletes them by the policy.
func cmdXackdel(s *state.Server, a [][]byte) error {
	return deleteEach(s, a, 3, func(v *state.Value) (func(state.StreamID) bool, bool) {
		g := v.Group(a[2])
		return func(id state.StreamID) bool {
			_, pending := g.Pending(id)
			g.RemovePending(id)
			return pending
		}, g != nil
	})
}

// deleteEach deletes the entries in a[options:] for which goes returns true. in returns goes; ok is false if
// the command has no effect.
func deleteEach(s *state.Server, a [][]byte, options int, in func(*state.Value) (goes func(state.StreamID) bool, ok bool)) error {
	p, named, err := deletion(s, a[options:])
	if err != nil {
		return err
	}
	v, err := s.Find(a[1], record.Stream)
	if err != nil || v == nil {
		return err
	}
	goes, ok := in(v)
	if !ok {
		return nil
	}
	list, err := ids(named)
	if err != nil {
		return err
	}
	r := referrers(v, p)
	for _, id := range list {
		if goes(id) {
			r.delete(v, id)
		}
	}
	s.DB.Store(a[1], v)
	return nil
}
