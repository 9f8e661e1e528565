package stats

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"sync"

	"kvferry/record"
)

// Count adds up the keys of a prefix.
type Count struct {
	Types  [record.NumTypes]Sum
	Expiry [1 + numBuckets]Sum // expired, then expiryBuckets; the others never expire
	// Skipped counts the expired records that are in no sum.
	Skipped int64  `json:",omitzero"`
	Largest BigKey `json:",omitzero"`
	// First and Last are the first and the last key, in Bounds. All keys begin like both of them do. Keys are cut to
	// longestKey.
	First, Last []byte
	Bounds      bool
}

// longestKey bounds the bytes of keys held for each prefix and value.
const longestKey = 256

func (c *Count) add(d *Count) {
	for t := range c.Types {
		c.Types[t].add(d.Types[t])
	}
	for b := range c.Expiry {
		c.Expiry[b].add(d.Expiry[b])
	}
	c.Skipped += d.Skipped
	c.rank(&d.Largest)
	if d.Bounds {
		c.reach(d.First, d.Last)
	}
}

// reach makes room for keys between two keys.
func (c *Count) reach(first, last []byte) {
	first, last = first[:min(len(first), longestKey)], last[:min(len(last), longestKey)]
	if !c.Bounds || bytes.Compare(first, c.First) < 0 {
		c.First = append(c.First[:0], first...)
	}
	if !c.Bounds || bytes.Compare(last, c.Last) > 0 {
		c.Last = append(c.Last[:0], last...)
	}
	c.Bounds = true
}

// same returns how all keys begin.
func (c *Count) same() []byte {
	n := 0
	for n < min(len(c.First), len(c.Last)) && c.First[n] == c.Last[n] {
		n++
	}
	return c.First[:n]
}

// rank keeps the largest key.
func (c *Count) rank(k *BigKey) {
	key, l := k.Key[:min(len(k.Key), longestKey)], &c.Largest
	switch {
	case k.Type == 0 || l.Type != 0 && k.Bytes < l.Bytes:
		return
	case l.Type == 0 || k.Bytes > l.Bytes:
	case cmp.Or(cmp.Compare(k.DB, l.DB), bytes.Compare(key, l.Key), cmp.Compare(k.Type, l.Type),
		cmp.Compare(k.Elements, l.Elements), cmp.Compare(k.ExpireMS, l.ExpireMS)) >= 0:
		return
	}
	key = append(l.Key[:0], key...)
	*l = *k
	l.Key = key
}

// Sum returns the sum over all types.
func (c *Count) Sum() (s Sum) {
	for t := range c.Types {
		s.add(c.Types[t])
	}
	return s
}

// Never returns the sum of the records that never expire.
func (c *Count) Never() Sum {
	s := c.Sum()
	for b := range c.Expiry {
		e := &c.Expiry[b]
		s.Records, s.Elements, s.Bytes, s.Redis = s.Records-e.Records, s.Elements-e.Elements, s.Bytes-e.Bytes, s.Redis-e.Redis
	}
	return s
}

// tree counts keys by prefix in bounded memory. It is a function of the keys alone: neither their order nor how they
// are shared among workers changes it.
//
// A node of level k has room for about 2^k nodes below it. Of each kind, prefixes and ends of keys, it names at most
// 2^(k/2) children; with one more, all of that kind merge into one, named *. This loses names, but never counts: the
// sum over all nodes is the sum of all keys. A child's level depends only on k and the number of its siblings, and never
// grows; merged children have the least level that each could have had. So it makes no difference whether nodes merge
// before or after keys are added to them.
type tree struct {
	level int
	mu    sync.Mutex       // held while nodes are added
	roots map[string]*node // by database
}

// node is a prefix. Its sums are its own and those of its children.
type node struct {
	own   *Count // of keys that end here; nil without any
	kinds [2]children
	bytes int64 // logical, once weighed
	disk  int64
}

// children are the nodes of one kind below a node, by part. The kinds are prefixes, and keys that end there.
type children struct {
	by      map[string]*node
	crowded bool
}

// nodeBytes is the approximate memory of a node.
const nodeBytes = 1 << 10

// newTree returns a tree that takes at most an eighth of the memory.
func newTree(memory int64, databases int) *tree {
	if memory <= 0 {
		memory = math.MaxInt64
	}
	nodes := min(memory/8/nodeBytes, 1<<15)
	return &tree{level: bits.Len64(uint64(max(nodes, 1))) - 1 - log2(databases), roots: make(map[string]*node)}
}

// log2 rounds up.
func log2(n int) int { return bits.Len(uint(max(n, 1) - 1)) }

// room is the number of children of a kind that a node names.
func room(level int) int { return 1 << (level / 2) }

// below returns the level of a node's children.
func (n *node) below(level int) int {
	if n.kinds[dirs].crowded {
		return level - 1 - level/2
	}
	return level - 1 - log2(len(n.kinds[dirs].by))
}

// add adds the keys of a path. It calls crowded with the start of the path that ends in the first crowd.
func (t *tree) add(db string, p KeyPath, c *Count, crowded func(start KeyPath, tail bool)) {
	n, level, rest := t.roots[db], t.level, p
	if n == nil {
		n = new(node)
		t.roots[db] = n
	}
	for told := false; len(rest) > 0 && level > 0; {
		start := p[:len(p)-len(rest)]
		part, after := rest.Next()
		n.insert(level, part)
		if set := &n.kinds[part.Kind()]; set.crowded {
			if !told && string(part.Text()) != string(part.Starred().Text()) {
				crowded(start, part.Tail())
				told = true
			}
			part = part.Starred()
		}
		n, level, rest = n.kinds[part.Kind()].by[string(part)], n.below(level), after
	}
	n.count(c)
}

func (n *node) count(c *Count) {
	if n.own == nil {
		n.own = new(Count)
	}
	n.own.add(c)
}

// insert makes sure that a node of a level has a child for a part.
func (n *node) insert(level int, part KeyPath) {
	set := &n.kinds[part.Kind()]
	if set.by[string(part)] != nil {
		return
	}
	if set.by == nil {
		set.by = make(map[string]*node)
	}
	if !set.crowded && len(set.by) == room(level) {
		n.crowd(level, part.Kind())
	}
	if set.crowded {
		part = part.Starred()
	}
	if set.by[string(part)] == nil {
		was := n.below(level)
		set.by[string(part)] = new(node)
		if now := n.below(level); now < was && len(set.by) > 1 {
			n.narrow(now)
		}
	}
}

// narrow reduces the level of the prefixes below a node.
func (n *node) narrow(level int) {
	for _, c := range n.kinds[dirs].by {
		c.fit(level)
	}
}

// crowd merges all children of a kind.
func (n *node) crowd(level, kind int) {
	set := &n.kinds[kind]
	set.crowded = true
	old := set.by
	set.by = make(map[string]*node)
	level = n.below(level)
	for part, c := range old {
		c.fit(level)
		star := string(KeyPath(part).Starred())
		if to := set.by[star]; to != nil {
			to.merge(level, c)
		} else {
			set.by[star] = c
		}
	}
}

// fit reduces a node to a level.
func (n *node) fit(level int) {
	if level <= 0 {
		for kind := range n.kinds {
			for _, c := range n.kinds[kind].by {
				c.fit(0)
				if c.own != nil {
					n.count(c.own)
				}
			}
			n.kinds[kind] = children{}
		}
		return
	}
	for kind := range n.kinds {
		if set := &n.kinds[kind]; !set.crowded && len(set.by) > room(level) {
			n.crowd(level, kind)
		}
	}
	n.narrow(n.below(level))
}

// merge adds a node of the same level.
func (n *node) merge(level int, m *node) {
	if m.own != nil {
		n.count(m.own)
	}
	if level <= 0 {
		return // m has no children
	}
	for kind := range m.kinds {
		set := &n.kinds[kind]
		if m.kinds[kind].crowded && !set.crowded {
			n.crowd(level, kind)
		}
		for part, c := range m.kinds[kind].by {
			n.insert(level, KeyPath(part))
			if set.crowded {
				part = string(KeyPath(part).Starred())
			}
			c.fit(n.below(level))
			set.by[part].merge(n.below(level), c)
		}
	}
}

// places counts the keys of one part of a scan, and adds them to the tree when it has seen many paths. Keys mostly
// come in order, so it tries the last template first.
type places struct {
	KeyShaper
	to       *tree
	db       string
	by       map[string]*Count
	free     []*Count // with room for keys
	slots    []slot
	last     *slot  // of the last key; nil: it has no template
	template bool   // keys of this delimiter have templates
	all      *Count // of all keys, if keys have no parts
}

type slot struct {
	KeyTemplate
	at *Count
}

// maxCrowded bounds the crowds that a part of a scan knows of, to spare the tree their names.
const maxCrowded = 1 << 10

// maxPlaces is the number of paths that are counted before they are added to the tree.
const maxPlaces = 128

func newPlaces(to *tree, delimiter string, depth int, db string) *places {
	p := &places{KeyShaper: KeyShaper{Delimiter: delimiter, Depth: cmp.Or(depth, MaxDepth),
		Crowded: make(map[string]bool)}, to: to, db: db, by: make(map[string]*Count)}
	p.template = hasTemplates(delimiter)
	return p
}

// of returns the count of a key's path. It is valid until the next call.
func (p *places) of(key []byte) *Count {
	if p.Delimiter == "" {
		if p.all == nil {
			p.all = p.at(nil)
		}
		return p.all
	}
	if p.last != nil && p.last.Matches(key, 0) {
		return p.last.at
	}
	p.last = nil
	if !p.template || len(key) > maxKey {
		return p.at(key)
	}
	if p.slots == nil {
		p.slots = make([]slot, 1<<slotBits)
	}
	s := &p.slots[slotOf(key)]
	if s.at == nil || !s.Matches(key, 0) {
		at := p.at(key)
		if p.Stars {
			return at
		}
		s.Set(key, p.Folded)
		s.at = at
	}
	p.last = s
	return s.at
}

// run returns the count of the path of the first key, and the number of first keys that have it. In ascending order, all
// keys begin like the first and the last one do.
func (p *places) run(keys [][]byte, ascending bool) (at *Count, n int) {
	at = p.of(keys[0])
	switch {
	case p.Delimiter == "":
		return at, len(keys)
	case p.last == nil:
		return at, 1
	}
	if !ascending {
		return at, p.last.Run(keys, 0)
	}
	between := Count{First: keys[0], Last: keys[len(keys)-1]}
	return at, p.last.Run(keys, len(between.same())/8)
}

func (p *places) at(key []byte) *Count {
	p.Find(key)
	c := p.by[string(p.Path)]
	if c == nil {
		if len(p.by) == maxPlaces {
			p.flush()
		}
		if n := len(p.free); n > 0 {
			c, p.free = p.free[n-1], p.free[:n-1]
		} else {
			c = new(Count)
		}
		p.by[string(p.Path)] = c
	}
	return c
}

// flush adds all counts to the tree.
func (p *places) flush() {
	p.to.mu.Lock()
	defer p.to.mu.Unlock()
	for at, c := range p.by {
		p.to.add(p.db, KeyPath(at), c, func(start KeyPath, tail bool) {
			kind := byte(dirs)
			if tail {
				kind = tails
			}
			if len(p.Crowded) < maxCrowded {
				p.Crowded[string(append(bytes.Clone(start), kind))] = true
			}
		})
		*c = Count{Largest: BigKey{Key: c.Largest.Key[:0]}, First: c.First[:0], Last: c.Last[:0]}
		p.free = append(p.free, c)
	}
	clear(p.by)
	clear(p.slots)
	p.last, p.all = nil, nil
}

// slots is the number of templates that are kept, by a hash of length and first bytes of their keys.
const slotBits = 7

func slotOf(key []byte) int {
	h := uint64(len(key))
	if len(key) >= 4 {
		h |= uint64(binary.LittleEndian.Uint32(key)) << 8
	}
	return int(bits.RotateLeft64(h*0x9e3779b97f4a7c15, slotBits) & (1<<slotBits - 1))
}
