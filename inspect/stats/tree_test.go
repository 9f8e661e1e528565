package stats

import (
	"bytes"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

// someKey returns a key of parts that are told apart, and of ones that are not.
func someKey(r *rand.Rand) []byte {
	var key []byte
	for range 1 + r.Intn(4) {
		switch r.Intn(7) {
		case 0:
			key = fmt.Appendf(key, "%d", r.Intn(2000))
		case 1:
			key = fmt.Appendf(key, "%08x", r.Uint32())
		case 2:
			key = fmt.Appendf(key, "%08x-%04x-4%03x-a%03x-%012x", r.Uint32(), r.Intn(1<<16), r.Intn(1<<12), r.Intn(1<<12),
				r.Int63n(1<<48))
		case 3:
			key = fmt.Appendf(key, "n%c%c", 'a'+r.Intn(26), 'a'+r.Intn(26))
		default:
			key = append(key, []string{"user", "cart", "a-1", "x.y", "é", "\xff", "#", "*"}[r.Intn(8)]...)
		}
		if r.Intn(4) > 0 {
			key = append(key, ":::/|."[r.Intn(6)])
		}
	}
	return key
}

// walk checks that a node holds to its level, and returns a text of all nodes and their sum.
func (n *node) walk(t *testing.T, level int, indent string, sum *Count) (text string) {
	if n.own != nil {
		sum.add(n.own)
		text = fmt.Sprintf("%s %v\n", indent, *n.own)
	}
	parts := n.parts()
	if level <= 0 && len(parts) > 0 {
		t.Errorf("%s: a node of level %d has children", indent, level)
	}
	for kind := range n.kinds {
		if set := &n.kinds[kind]; !set.crowded && len(set.by) > room(level) || set.crowded && len(set.by) > 5 {
			t.Errorf("%s: %d children at level %d", indent, len(set.by), level)
		}
	}
	for _, p := range parts {
		text += n.at(p).walk(t, n.below(level), indent+"["+string(p.Text())+"]", sum)
	}
	return text
}

// TestTreeIsAFunctionOfItsKeys checks that neither order nor workers change a tree of any budget, that its sum is that
// of all keys, and that the sum of a prefix is that of its children and its own keys.
func TestTreeIsAFunctionOfItsKeys(t *testing.T) {
	r := rand.New(rand.NewSource(5))
	stars := 0
	for round := range 150 {
		var want Count
		var keys [][]byte
		counts := map[string]*Count{}
		for range 1 + r.Intn(1<<r.Intn(12)) {
			key := someKey(r)
			if counts[string(key)] != nil {
				continue
			}
			c := new(Count)
			typ, sum := record.Type(1+r.Intn(6)), Sum{1, r.Int63n(50), int64(len(key)) + r.Int63n(30), r.Int63n(500)}
			c.Types[typ] = sum
			if r.Intn(3) == 0 {
				c.Expiry[r.Intn(1+numBuckets)] = sum
			}
			c.reach(key, key)
			c.rank(&BigKey{DB: "0", Type: typ, Key: key, Bytes: sum.Bytes, Elements: sum.Elements})
			counts[string(key)], keys = c, append(keys, key)
			want.add(c)
		}
		memory := int64(8*nodeBytes) << r.Intn(14)
		trees := make([]string, 4)
		for workers := range trees {
			to := newTree(memory, 1)
			parts := make([]*places, workers+1)
			for i := range parts {
				parts[i] = newPlaces(to, Auto, 0, "0")
			}
			r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
			for _, key := range keys {
				parts[r.Intn(len(parts))].of(key).add(counts[string(key)])
			}
			for _, p := range parts {
				p.flush()
			}
			var sum Count
			trees[workers] = to.roots["0"].walk(t, to.level, "", &sum)
			if !reflect.DeepEqual(sum, want) {
				t.Fatalf("round %d: the sum is\n%+v, want\n%+v", round, sum, want)
			}
			if !reflect.DeepEqual(*to.sum(), want) {
				t.Fatalf("round %d: the sum of the tree is\n%+v, want\n%+v", round, *to.sum(), want)
			}
			if workers == 0 {
				o := &Options{Scan: *scanOf(fake.New()), Top: 1 + r.Intn(3)}
				if root := to.prefixes(aboutOf(o)); !reflect.DeepEqual(root.Count, want) {
					t.Fatalf("round %d: the root has\n%+v, want\n%+v", round, root.Count, want)
				} else {
					sums(t, root)
				}
			}
		}
		for _, other := range trees[1:] {
			if other != trees[0] {
				t.Fatalf("round %d, %d bytes: one worker has\n%s\nseveral have\n%s", round, memory, trees[0], other)
			}
		}
		stars += strings.Count(trees[0], "*")
	}
	if stars < 1000 {
		t.Errorf("%d nodes were crowded", stars)
	}
}

// sums checks that the children of a prefix have at most its sums, and all of them if all are listed and it has no keys.
func sums(t *testing.T, p *Prefix) {
	t.Helper()
	var all Count
	var disk int64
	for i, c := range p.Children {
		all.add(&c.Count)
		disk += c.Disk
		if c.Rank <= p.Rank || i > 0 && c.Rank <= p.Children[i-1].Rank {
			t.Errorf("%q, rank %d, is below %q, rank %d", c.Pattern, c.Rank, p.Pattern, p.Rank)
		}
		sums(t, c)
	}
	all.Largest = p.Largest
	if s, of := all.Sum(), p.Sum(); s.Records > of.Records || s.Bytes > of.Bytes || s.Elements > of.Elements || disk > p.Disk {
		t.Errorf("%q has %+v, and its children %+v", p.Pattern, of, s)
	}
}

// TestFolded checks that a prefix that lost names has the first and the last key.
func TestFolded(t *testing.T) {
	to := newTree(0, 1)
	p := newPlaces(to, Auto, 0, "0")
	for i := range 400 {
		key := fmt.Appendf(nil, "q:%c%c:%d", 'g'+i/20, 'g'+i%20, i)
		at := p.of(key)
		at.reach(key, key)
		at.Types[record.Set].Records++
	}
	p.flush()
	root := to.prefixes(aboutOf(&Options{Scan: *scanOf(fake.New()), Top: 9, Delimiter: Auto}))
	c := root.Children
	if len(c) != 1 || string(c[0].Pattern) != "q:*:#" || !c[0].Folded || string(c[0].First) != "q:gg:0" || string(c[0].Last) != "q:zz:399" {
		t.Errorf("%+v", c)
	}
}

// TestPatterns checks that a pattern has the text of all keys where they have the same.
func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		keys, want string
	}{
		{"v1:user:1 v1:user:2 v1:cart", "v1: v1:user:# v1:cart"},
		{"v1:user:1 v2:user:1", "v#:user:#"},
		{"v1:user:1 v2:user:1 v2:list:7", "v#: v#:user:# v2:list:7"},
		{"a.1.x a.2.x", "a.#.x"},
		{"k1 k2", "k#"},
		{"k12", "k12"},
		{"k1", "k1"},
		{"1:1 1:11", "1:#"},
		{"a:#:x", "a:#:x"},
	} {
		to := newTree(0, 1)
		p := newPlaces(to, Auto, 0, "0")
		for key := range strings.FieldsSeq(c.keys) {
			at := p.of([]byte(key))
			at.reach([]byte(key), []byte(key))
			at.Types[record.Set].Records++
		}
		p.flush()
		o := &Options{Scan: *scanOf(fake.New()), Top: 9, Delimiter: Auto}
		var got []string
		var list func(*Prefix)
		list = func(p *Prefix) {
			for _, c := range p.Children {
				got = append(got, string(c.Pattern))
				if c.Folded {
					t.Errorf("%s: folded", c.Pattern)
				}
				list(c)
			}
		}
		list(to.prefixes(aboutOf(o)))
		slices.Sort(got)
		want := strings.Fields(c.want)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", c.keys, got, want)
		}
	}
}

// TestLargestOfLongKeys checks that keys which are cut are equal, whichever comes first.
func TestLargestOfLongKeys(t *testing.T) {
	long := bytes.Repeat([]byte("k"), longestKey)
	keys := []BigKey{{Type: record.Set, Key: append(slices.Clone(long), 'a'), Bytes: 9, Elements: 2},
		{Type: record.Set, Key: append(slices.Clone(long), 'b'), Bytes: 9, Elements: 1}}
	for range 2 {
		var c Count
		c.rank(&keys[0])
		c.rank(&keys[1])
		if c.Largest.Elements != 1 || len(c.Largest.Key) != longestKey {
			t.Errorf("%+v", c.Largest)
		}
		slices.Reverse(keys)
	}
}

// TestValues checks that the largest values are counted exactly, in any order and by any number of workers.
func TestValues(t *testing.T) {
	r := rand.New(rand.NewSource(6))
	var want []*twin
	for round := range 6 {
		order := r.Perm(3 * maxValues)
		parts := make([]values, 1+round%3)
		for _, i := range order {
			value := bytes.Repeat([]byte{byte(i)}, leastValue+i/2-1) // pairs of equal sizes
			value[0] = byte(i / 6)
			v := &parts[r.Intn(len(parts))]
			v.add("0", fmt.Appendf(nil, "k%d", i), value)
			if i%10 == 0 {
				v.add("1", fmt.Appendf(nil, "twin%d", i), value)
			}
		}
		var all values
		for i := range parts {
			all.merge(&parts[i])
		}
		got := all.twins()
		if round == 0 {
			want = got
			if len(got) != (maxValues+9)/10 && len(got) != maxValues/10 {
				t.Fatalf("%d values are there twice", len(got))
			}
			last := 3*maxValues - 1
			if first := got[0]; first.count != 2 || first.id.size != leastValue+last/10*10/2-1 || first.keys[1].DB != "1" {
				t.Errorf("the largest: %+v", first)
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d: other values", round)
		}
	}
	var none values
	none.add("0", make([]byte, longestKey+1), make([]byte, leastValue))
	none.add("0", nil, make([]byte, leastValue-1))
	if len(none.by) > 0 {
		t.Error("a short value, or one of a long key, is counted")
	}
}
