package stats

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"kvferry/inspect"
	"kvferry/internal/text/jsonl"
	"kvferry/record"
)

// Partial is what one part of a run has counted. Merge makes the result of one run from those of all parts.
//
// All counts add up exactly: sums, sketches, the largest keys, and the tree of prefixes, which is a function of the keys
// and of its level alone. The level depends on the memory. Of parts with different memory, the tree is that of one run
// with the least.
type Partial struct {
	About
	Types                           []partialType
	TopBytes, TopElements, TopRedis []BigKey
	Values                          []partialValue
	Level                           int
	Roots                           []partialNode
	Ledger                          []partialRows
}

// Names of databases and keyspaces may be no text.
type (
	partialType struct {
		DB   jsonl.Text
		Type record.Type
		Sum
		Expiring, Expired        int64
		Sizes, Lengths, KeySizes Histogram
		Largest                  []BigKey
	}
	partialValue struct {
		Size   int
		Hi, Lo uint64
		Count  int64
		Keys   []BigKey
	}
	// partialNode is a node of the tree, or the root of a database.
	partialNode struct {
		DB      jsonl.Text     `json:",omitzero"`
		Part    []byte         `json:",omitempty"`
		Own     *Count         `json:",omitempty"`
		Crowded [2]bool        `json:",omitzero"`
		Below   []*partialNode `json:",omitempty"`
	}
	partialRows struct {
		Keyspace jsonl.Text
		record.Tally
	}
)

// CollectPart is Collect for the share of the scan, and returns all tasks, too.
func CollectPart(ctx context.Context, o *Options) (*Partial, []inspect.Part, error) {
	v, ledger, tasks, err := collect(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	p := &Partial{About: *aboutOf(o), TopBytes: v.byBytes.list(), TopElements: v.byElem.list(), TopRedis: v.byRedis.list(),
		Values: v.values.partial(), Level: v.places.to.level}
	for at, c := range v.types {
		p.Types = append(p.Types, partialType{jsonl.Text(at.DB), at.Type, c.Sum, c.expiring, c.expired,
			c.sizes, c.lengths, c.keySizes, c.largest.list()})
	}
	slices.SortFunc(p.Types, func(a, b partialType) int { return cmp.Or(cmp.Compare(a.DB, b.DB), cmp.Compare(a.Type, b.Type)) })
	roots := v.places.to.roots
	for _, db := range slices.Sorted(maps.Keys(roots)) {
		root := roots[db].partial()
		root.DB = jsonl.Text(db)
		p.Roots = append(p.Roots, *root)
	}
	for name, t := range ledger.Snapshot() {
		p.Ledger = append(p.Ledger, partialRows{jsonl.Text(name), t})
	}
	slices.SortFunc(p.Ledger, func(a, b partialRows) int { return cmp.Compare(a.Keyspace, b.Keyspace) })
	return p, tasks, nil
}

// partial returns the values that one run may list.
func (v *values) partial() (out []partialValue) {
	v.cut()
	for _, t := range v.list() {
		out = append(out, partialValue{t.id.size, t.id.hi, t.id.lo, t.count, t.keys})
	}
	return out
}

// partial returns the node and all below it.
func (n *node) partial() *partialNode {
	out := &partialNode{Own: n.own, Crowded: [2]bool{n.kinds[0].crowded, n.kinds[1].crowded}}
	for _, part := range n.parts() {
		below := n.at(part).partial()
		below.Part = part
		out.Below = append(out.Below, below)
	}
	return out
}

// errPartial means that the report of a part was changed.
var errPartial = errors.New("not the report of a part of inspect")

// node returns a node of the tree.
func (p *partialNode) node() (*node, error) {
	n := &node{own: p.Own}
	for kind, crowded := range p.Crowded {
		n.kinds[kind].crowded = crowded
	}
	for _, b := range p.Below {
		part := KeyPath(b.Part)
		if !part.IsPart() {
			return nil, errPartial
		}
		below, err := b.node()
		if err != nil {
			return nil, err
		}
		set := &n.kinds[part.Kind()]
		if set.by == nil {
			set.by = make(map[string]*node)
		}
		set.by[string(part)] = below
	}
	return n, nil
}

// addTree adds the tree of a part.
func (t *tree) addTree(db string, p *partialNode) error {
	n, err := p.node()
	if err != nil {
		return err
	}
	n.fit(t.level)
	if to := t.roots[db]; to != nil {
		to.merge(t.level, n)
	} else {
		t.roots[db] = n
	}
	return nil
}

// Merge returns the result of one run from those of all its parts.
func Merge(parts []*Partial) (*Result, error) {
	if len(parts) == 0 {
		return nil, errors.New("no parts")
	}
	about, to := &parts[0].About, &tree{level: parts[0].Level, roots: make(map[string]*node)}
	for _, p := range parts {
		to.level = min(to.level, p.Level)
	}
	o := &Options{Top: about.Top, Delimiter: string(about.Delimiter), Redis: about.Redis}
	o.Scan.Now = time.UnixMilli(about.NowMS)
	v, ledger := newCounter(o, "", to), new(record.Ledger)
	for _, p := range parts {
		if err := v.addPart(p); err != nil {
			return nil, err
		}
		for _, r := range p.Ledger {
			ledger.Add(string(r.Keyspace), &r.Tally)
		}
	}
	return v.result(about, ledger), nil
}

// addPart adds a part.
func (v *counter) addPart(p *Partial) error {
	for i := range p.Types {
		t := &p.Types[i]
		if t.Type == 0 || int(t.Type) >= record.NumTypes || t.Records < 0 || t.Expiring < 0 {
			return errPartial
		}
		c := v.count(record.Part{DB: string(t.DB), Type: t.Type})
		c.merge(&typeCount{Sum: t.Sum, expiring: t.Expiring, expired: t.Expired, sizes: t.Sizes, lengths: t.Lengths,
			keySizes: t.KeySizes, largest: top{keys: t.Largest}})
	}
	for _, list := range []struct {
		to   *top
		keys []BigKey
	}{{&v.byBytes, p.TopBytes}, {&v.byElem, p.TopElements}, {&v.byRedis, p.TopRedis}} {
		list.to.merge(&top{keys: list.keys})
	}
	for _, t := range p.Values {
		if t.Size < leastValue || len(t.Keys) == 0 || t.Count > 1 && len(t.Keys) < 2 {
			return errPartial
		}
		v.values.count(&twin{valueID{t.Size, t.Hi, t.Lo}, t.Count, t.Keys})
	}
	for i := range p.Roots {
		if err := v.places.to.addTree(string(p.Roots[i].DB), &p.Roots[i]); err != nil {
			return err
		}
	}
	return nil
}

// bigKey has the fields of a BigKey.
type bigKey BigKey

// wireKey is a BigKey in JSON: the name of a database may be no text.
type wireKey struct {
	bigKey
	DB jsonl.Text
}

// MarshalJSON writes the key.
func (k BigKey) MarshalJSON() ([]byte, error) {
	return json.Marshal(wireKey{bigKey(k), jsonl.Text(k.DB)})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (k *BigKey) UnmarshalJSON(data []byte) error {
	var w wireKey
	err := json.Unmarshal(data, &w)
	if err == nil && int(w.Type) >= record.NumTypes {
		err = errPartial
	}
	*k = BigKey(w.bigKey)
	k.DB = string(w.DB)
	return err
}

// IsZero reports whether there is no key.
func (k BigKey) IsZero() bool { return k.Type == 0 && k.Bytes == 0 && len(k.Key) == 0 }
