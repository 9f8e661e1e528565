package circle

// What LevelDB's memtable (db/skiplist.h, util/random.h) is made with. The seed is the same for every
// memtable, so the order of insertion alone decides where an entry comes to stand.
const (
	skipMaxHeight = 12
	skipBranching = 4
	skipSeed      = 0xdeadbeef & (1<<31 - 1)
)

// skipRandom is the engine's generator: x' = 16807 x mod 2^31-1.
type skipRandom uint64

// height draws the height of the next node: each level more has a chance of 1 in skipBranching.
func (r *skipRandom) height() int {
	h := 1
	for ; h < skipMaxHeight; h++ {
		if *r = *r * 16807 % (1<<31 - 1); *r%skipBranching != 0 {
			break
		}
	}
	return h
}

// skipList holds entries where LevelDB's memtable has them, also when compare is no order: an entry stands
// where the search for it ended when it was inserted, and the search depends on the heights of the nodes
// before it.
//
// It need not hold all entries. Those that compare alike with all that are in it never turn a search within
// it aside; they only draw a height, so they are skipped with skip.
type skipList struct {
	compare func(a, b []byte) int
	random  skipRandom
	head    skipNode
}

// skipNode is an entry of a skipList.
type skipNode struct {
	key   []byte
	tr    uint64
	shown bool // a scan shows it
	next  []*skipNode
}

// skipNodeSize is about what a node takes beside its key.
const skipNodeSize = 96

func newSkipList(compare func(a, b []byte) int) *skipList {
	return &skipList{compare: compare, random: skipSeed, head: skipNode{next: make([]*skipNode, skipMaxHeight)}}
}

// skip skips an entry that is not in the list.
func (s *skipList) skip() { s.random.height() }

// insert adds an entry; key is kept.
func (s *skipList) insert(key []byte, tr uint64) *skipNode {
	n := &skipNode{key: key, tr: tr, next: make([]*skipNode, s.random.height())}
	at := &s.head
	for level := skipMaxHeight - 1; level >= 0; level-- {
		for x := at.next[level]; x != nil && s.before(x, n); x = at.next[level] {
			at = x
		}
		if level < len(n.next) {
			n.next[level], at.next[level] = at.next[level], n
		}
	}
	return n
}

// before reports whether x comes before n: by key, and then the newest first.
func (s *skipList) before(x, n *skipNode) bool {
	c := s.compare(x.key, n.key)
	return c < 0 || c == 0 && x.tr > n.tr
}

// first returns the first entry; next[0] leads on.
func (s *skipList) first() *skipNode { return s.head.next[0] }
