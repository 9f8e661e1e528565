package stats

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"reflect"
	"strings"
	"testing"

	"kvferry/internal/pass"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

// someSource returns a source of records whose prefixes are crowded in a small tree.
func someSource(r *rand.Rand, n int) *fake.Source {
	var recs []fake.Record
	seen := map[string]bool{}
	for range n {
		key := string(someKey(r))
		if seen[key] {
			continue
		}
		seen[key] = true
		rec := fake.Rec(record.String, key, fake.Value(strings.Repeat("v", r.Intn(3)*leastValue)))
		if r.Intn(2) == 0 {
			rec = fake.Rec(record.Set, key, fake.Member("a"), fake.Member(fmt.Sprint(r.Int())))
		}
		if r.Intn(3) == 0 {
			rec = rec.Expires(fake.Now.UnixMilli() + r.Int63n(1e11) - 1e9)
		}
		recs = append(recs, rec)
	}
	return fake.New(recs...)
}

// inJSON returns what is read of the JSON of a part.
func inJSON(t *testing.T, p *Partial) *Partial {
	t.Helper()
	data, err := json.Marshal(p)
	out := new(Partial)
	if err == nil {
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestMerge checks that parts add up to the result of one run, with a tree of any size: that of the part with the least
// memory.
func TestMerge(t *testing.T) {
	r := rand.New(rand.NewSource(8))
	stars := 0
	for round := range 40 {
		src, n := someSource(r, 1+r.Intn(1<<r.Intn(11))), 1+r.Intn(5)
		options := func(k int, memory int64) *Options {
			o := &Options{Scan: *scanOf(src), Location: "there\xff", Top: 1 + round%30, Delimiter: Auto, Redis: true}
			o.Scan.Memory, o.Scan.Workers = memory, 2
			if k > 0 {
				o.Scan.Share = pass.Part{K: k, N: n}
			}
			return o
		}
		var parts []*Partial
		var records int64
		least := int64(8*nodeBytes) << r.Intn(12)
		for k := 1; k <= n; k++ {
			memory := least
			if k != 1+round%n {
				memory <<= r.Intn(6)
			}
			p, _, err := CollectPart(context.Background(), options(k, memory))
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, inJSON(t, p))
			for _, c := range p.Types {
				records += c.Records
			}
		}
		want, err := Collect(context.Background(), options(0, least))
		if err != nil {
			t.Fatal(err)
		}
		got, err := Merge(parts)
		if err != nil {
			t.Fatal(err)
		}
		if records != want.Records() || !reflect.DeepEqual(shown(got), shown(want)) {
			t.Fatalf("round %d, %d parts of %d of %d records:\n%s\nwant\n%s", round, n, records, want.Records(), shown(got),
				shown(want))
		}
		stars += strings.Count(shown(want), `"Folded":true`)
	}
	if stars < 20 {
		t.Errorf("%d prefixes lost names", stars)
	}
}

// shown returns all of a result as text.
func shown(s *Result) string {
	data, err := json.Marshal(s)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// TestChangedPart checks that reports that were changed are errors.
func TestChangedPart(t *testing.T) {
	r := rand.New(rand.NewSource(9))
	p, _, err := CollectPart(context.Background(), &Options{Scan: *scanOf(someSource(r, 50)), Top: 3, Delimiter: Auto})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Partial){
		"part of a path": func(p *Partial) { p.Roots[0].Below[0].Part = []byte{9, 1} },
		"type":           func(p *Partial) { p.Types[0].Type = record.Type(record.NumTypes) },
		"records":        func(p *Partial) { p.Types[0].Records = -1 },
		"value":          func(p *Partial) { p.Values = []partialValue{{Size: 0}} },
		"twins":          func(p *Partial) { p.Values = []partialValue{{Size: leastValue, Count: 2, Keys: make([]BigKey, 1)}} },
	} {
		changed := inJSON(t, p)
		change(changed)
		if _, err := Merge([]*Partial{changed}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Merge(nil); err == nil {
		t.Error("no parts: no error")
	}
	if json.Unmarshal([]byte(`{"Type": 99}`), new(BigKey)) == nil {
		t.Error("a key of no type: no error")
	}
}
