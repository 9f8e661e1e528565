package redismem

import "kvferry/record"

const (
	streamSize = 80
	maxEntries = 100 // entries in a node
	maxBytes   = 4 << 10

	rax     = 24
	raxID   = 16      // bytes of each element, as MEMORY USAGE assumes
	raxNode = 4 + 240 // bytes of a node, as MEMORY USAGE assumes

	groupSize    = 40
	consumerSize = 32
	pendingSize  = 24 // the entry is in the trees of both group and consumer
)

// stream estimates a stream: a radix tree whose leaves are listpack nodes of entries.
type stream struct {
	nodes, entries, node int64 // number of full nodes; entries and bytes of the current one
	packed               int64 // bytes of full nodes
	names                int64 // bytes of the first entry's field names, shared by entries with the same names
	groups               int64
}

func (s *stream) element(e *record.Element) {
	switch e.Kind {
	case record.Group:
		s.groups += groupSize + sds(len(e.Name)) + tree(0) + tree(0)
	case record.Consumer:
		s.groups += consumerSize + tree(0) + 2*raxNode
		if c, err := record.DecodeConsumer(e.Value); err == nil {
			s.groups += sds(len(c.Name))
		}
	case record.Pending:
		s.groups += pendingSize + 2*(raxID+raxNode)
	default:
		s.entry(e)
	}
}

func (s *stream) entry(e *record.Element) {
	if s.entries == maxEntries || s.entries > 0 && s.node+int64(len(e.Value)) > maxBytes {
		s.endNode()
	}
	names, values, n := int64(0), int64(0), int64(0)
	for rest := e.Value; len(rest) > 0; n++ {
		name, value, more, err := record.DecodePair(rest)
		if err != nil {
			break
		}
		names, values, rest = names+entryOf(name), values+entryOf(value), more
	}
	if s.entries == 0 {
		s.node, s.names = listpackHead+4*3+names, names
	}
	s.node += values + 3 + 3 + 4 + 3 // flags, both parts of the id, number of elements
	if names != s.names {
		s.node += names + 3
	}
	s.entries++
}

func (s *stream) endNode() {
	s.nodes++
	s.packed += class(s.node)
	s.entries, s.node = 0, 0
}

// tree returns the bytes of a radix tree of n elements.
func tree(n int64) int64 { return rax + n*raxID + (2*n+1)*raxNode }

func (s *stream) bytes() int64 {
	if s.entries > 0 {
		s.endNode()
	}
	return streamSize + tree(s.nodes) + s.packed + s.groups
}
