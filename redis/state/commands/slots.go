package commands

import (
	"kvferry/internal/shared/argument"
	"kvferry/internal/shared/keyslot"
	"kvferry/redis/state"
)

var errSlot = argument.Refuse("ERR Invalid or out of range slot")

// slotSet is some of the slots of a cluster.
type slotSet [keyslot.Count]bool

// add adds the slots from one argument to another.
func (x *slotSet) add(first, last []byte) error {
	n, err := argument.ParseInts(first, last)
	if err != nil || n[0] < 0 || n[0] > n[1] || n[1] >= keyslot.Count {
		return errSlot
	}
	for i := n[0]; i <= n[1]; i++ {
		x[i] = true
	}
	return nil
}

// flush removes the keys of the slots, as a cluster node does after handing them over.
func (x *slotSet) flush(s *state.Server) {
	s.DB.FlushWhere(func(key []byte) bool { return x[keyslot.Of(key)] })
}

// cmdTrimslots is TRIMSLOTS RANGES n first last … of Redis.
func cmdTrimslots(s *state.Server, a [][]byte) error {
	if !argument.Is(a[1], "RANGES") {
		return s.Option("TRIMSLOTS", a[1])
	}
	ranges := a[3:]
	if n, err := argument.ParseInt(a[2]); err != nil || n != int64(len(ranges)/2) || len(ranges)%2 != 0 {
		return argument.ErrArgs
	}
	var x slotSet
	for i := 0; i < len(ranges); i += 2 {
		if err := x.add(ranges[i], ranges[i+1]); err != nil {
			return err
		}
	}
	x.flush(s)
	return nil
}

// cmdFlushslot is CLUSTER FLUSHSLOT slot … of Valkey.
func cmdFlushslot(s *state.Server, a [][]byte) error {
	list := a[2:]
	if last := list[len(list)-1]; len(list) > 1 && flushing(s, a[0], [][]byte{last}) == nil {
		list = list[:len(list)-1]
	}
	var x slotSet
	for _, slot := range list {
		if err := x.add(slot, slot); err != nil {
			return err
		}
	}
	x.flush(s)
	return nil
}

// importName is the length of the name of an import.
const importName = 40

// cmdSyncslots is CLUSTER SYNCSLOTS of Valkey: ESTABLISH begins to import slots from another node, FINISH ends it. It ignores
// what servers refuse, and what nodes tell each other besides.
func cmdSyncslots(s *state.Server, a [][]byte) error {
	var name, state string
	var slots keyslot.Ranges
	for i := 3; i+1 < len(a); i += 2 {
		switch {
		case argument.Is(a[i], "NAME"):
			name = string(a[i+1])
		case argument.Is(a[i], "STATE"):
			state = string(s.Upper(a[i+1]))
		case argument.Is(a[i], "SLOTSRANGE"):
			for ; i+2 < len(a); i += 2 {
				n, err := argument.ParseInts(a[i+1], a[i+2])
				if err != nil {
					break
				}
				slots = append(slots, [2]uint64{uint64(n[0]), uint64(n[1])})
			}
			i--
		}
	}
	switch {
	case len(name) != importName:
	case argument.Is(a[2], "ESTABLISH") && len(slots) > 0:
		s.Import(name, slots)
	case argument.Is(a[2], "FINISH") && (state == "SUCCESS" || state == "FAILED"):
		s.EndImport(name, state == "FAILED")
	}
	return nil
}
