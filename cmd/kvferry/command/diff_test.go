package command

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"kvferry/blackwidow"
	"kvferry/cmd/kvferry/cli"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/nemo"
	"kvferry/record"
)

// TestDiffPlanted compares a nemo dataset with a blackwidow copy that has one difference for each type and property.
func TestDiffPlanted(t *testing.T) {
	at := func(s small, ms int64) small { s.expire = ms; return s }
	base := []small{
		smallRecord(record.String, "s", "one"), smallRecord(record.Hash, "h", "a=1", "b=2", "c=3"),
		smallRecord(record.List, "l", "x", "y", "z"), smallRecord(record.Set, "m", "a", "b", "c"),
		smallRecord(record.ZSet, "z", "a", "b", "c"), at(smallRecord(record.String, "t", "v"), 1800000000000),
		smallRecord(record.Hash, "gone", "f=v"), smallRecord(record.Set, "same", "a"),
	}
	changed := []small{
		smallRecord(record.String, "s", "two"), smallRecord(record.Hash, "h", "a=1", "b=9", "d=4"),
		smallRecord(record.List, "l", "x", "Y", "z", "w"), smallRecord(record.Set, "m", "a", "c", "d"),
		smallRecord(record.ZSet, "z", "a", "c"), at(smallRecord(record.String, "t", "v"), 1900000000000),
		smallRecord(record.List, "new", "1"), smallRecord(record.Set, "same", "a"),
	}
	a, b := buildSmall(t, nemo.New(), base...), buildSmall(t, blackwidow.New(), changed...)
	unchanged(t, a)
	unchanged(t, b)
	const want = `missing 0 hash "gone"
differs 0 hash "h": field "b" "2" in A, "9" in B
missing 0 hash "h": field "c" "3" only in A
extra   0 hash "h": field "d" "4" only in B
differs 0 list "l": index 1 "y" in A, "Y" in B
extra   0 list "l": index 3 "w" only in B
missing 0 set "m": member "b" only in A
extra   0 set "m": member "d" only in B
extra   0 list "new"
differs 0 string "s": value "one" in A, "two" in B
differs 0 string "t": expires at 2027-01-15T08:00:00Z in A, at 2030-03-17T17:46:40Z in B
missing 0 zset "z": member "b" score 1 only in A
differs 0 zset "z": member "c" score 2 in A, score 1 in B
1 record missing, 1 extra, 6 differing; 13 differences (expiry in seconds)
`
	for _, args := range [][]string{{"diff", a, b}, {"diff", "--direct", a, b}, {"verify", a, "--against", b}} {
		if r := kvferry(t, args...); r.code != cli.ExitFindings || r.stdout != want || r.stderr != "" {
			t.Errorf("%q: exit %d, %s\n%s", args[0], r.code, r.stderr, r.stdout)
		}
	}
	if r := kvferry(t, "diff", a, b, "--type", "set", "--match", "same"); r.code != cli.ExitOK {
		t.Errorf("of an equal record: exit %d\n%s", r.code, r.stdout)
	}
	if r := kvferry(t, "diff", a, b, "--max", "2"); r.code != cli.ExitFindings || strings.Count(r.stdout, "\n") != 3 ||
		!strings.Contains(r.stdout, "; 13 differences, the first 2 shown (--max) (expiry in seconds)") {
		t.Errorf("the first two:\n%s", r.stdout)
	}
	if r := kvferry(t, "verify", a, "--against", b, "--max-findings", "2"); r.code != cli.ExitFindings ||
		!strings.Contains(r.stdout, "; 13 differences, the first 2 shown (--max-findings) (expiry in seconds)") {
		t.Errorf("the first two, by verify:\n%s", r.stdout)
	}
	if r := kvferry(t, "diff", a, b, "--max", "13"); strings.Contains(r.stdout, "shown") {
		t.Errorf("all thirteen:\n%s", r.stdout)
	}
	if r := kvferry(t, "diff", a, b, "--max", "2", "--format", "patch"); r.code != cli.ExitFindings ||
		!strings.Contains(r.stderr, "does not turn A into B") ||
		!strings.Contains(r.stderr, "1 difference, and there are more (--max)") {
		t.Errorf("a patch that is cut: exit %d, %q", r.code, r.stderr)
	}
	if r := kvferry(t, "diff", a, b, "--format", "patch"); r.stderr != "kvferry: "+want[strings.LastIndex(want, "1 record"):] ||
		!strings.Contains(r.stdout, `{"op":"insert","db":"0","type":"list","key":"l","index":3,"value":"w"}`) {
		t.Errorf("a patch and its totals: %q\n%s", r.stderr, r.stdout)
	}
	if r := kvferry(t, "diff", a, b, "--format", "json"); r.code != cli.ExitFindings || !strings.Contains(r.stdout, `"records_differing": 6`) {
		t.Errorf("as JSON: exit %d\n%s", r.code, r.stdout)
	}
}

// dataModel is a dataset as a map, to apply patches to.
type dataModel map[string]string

func dataModelOf(t *testing.T, dir string) dataModel {
	t.Helper()
	m := dataModel{}
	for _, l := range strings.Split(strings.TrimSuffix(ok(t, "dump", dir, "--expired", "keep"), "\n"), "\n") {
		var r struct {
			Type   string
			Key    any
			Expire int64 `json:"expire_at_ms"`
			Value  any
		}
		mustJSON(t, []byte(l), &r)
		name := fmt.Sprintf("%s %v", r.Type, r.Key)
		m[name] = fmt.Sprintf("expires %d", r.Expire)
		if r.Type == "string" {
			m[name+" value"] = fmt.Sprint(r.Value)
			continue
		}
		for i, v := range r.Value.([]any) {
			switch r.Type {
			case "list":
				m[fmt.Sprintf("%s %d", name, i)] = fmt.Sprint(v)
			case "set":
				m[fmt.Sprintf("%s %v", name, v)] = ""
			default:
				p := v.([]any)
				m[fmt.Sprintf("%s %v", name, p[0])] = fmt.Sprint(p[1])
			}
		}
	}
	return m
}

// shift moves the items of a list from position at on.
func (m dataModel) shift(list string, at, by int) {
	var items []string
	for i := at; ; i++ {
		v, ok := m[fmt.Sprintf("%s %d", list, i)]
		if !ok {
			break
		}
		items = append(items, v)
		delete(m, fmt.Sprintf("%s %d", list, i))
	}
	for i, v := range items {
		m[fmt.Sprintf("%s %d", list, at+by+i)] = v
	}
}

// apply applies a line of a patch.
func (m dataModel) apply(t *testing.T, line []byte) {
	t.Helper()
	var p struct {
		Op, Type      string
		Key           any
		Expire        int64 `json:"expire_at_ms"`
		Field, Member any
		Index         *int
		Value         any
		Score         any
		OldValue      any `json:"old_value"`
		OldScore      any `json:"old_score"`
	}
	mustJSON(t, line, &p)
	name := fmt.Sprintf("%s %v", p.Type, p.Key)
	elem := name + " value"
	switch p.Type {
	case "list":
		if p.Index != nil {
			elem = fmt.Sprintf("%s %d", name, *p.Index)
			if p.Op == "insert" {
				m.shift(name, *p.Index, 1)
			} else if p.Op == "unset" && m[name] != "" { // not of a record that was removed
				defer m.shift(name, *p.Index+1, -1)
			}
		}
	case "hash":
		elem = fmt.Sprintf("%s %v", name, p.Field)
	case "set", "zset":
		elem = fmt.Sprintf("%s %v", name, p.Member)
	}
	old, had := m[elem]
	want := map[string]any{"zset": p.OldScore, "set": nil}[p.Type]
	if p.Type != "zset" && p.Type != "set" {
		if (p.Op == "set" || p.Op == "unset") && had && p.OldValue != nil && fmt.Sprint(p.OldValue) != old {
			t.Errorf("%s: was %v, the patch says %v", elem, old, p.OldValue)
		}
	} else if want != nil && fmt.Sprint(want) != old {
		t.Errorf("%s: was %v, the patch says %v", elem, old, want)
	}
	switch p.Op {
	case "add", "expire":
		m[name] = fmt.Sprintf("expires %d", p.Expire)
	case "remove":
		maps.DeleteFunc(m, func(k, _ string) bool { return k == name })
	case "unset":
		delete(m, elem)
	case "set", "insert":
		v := p.Value
		if p.Type == "zset" {
			v = p.Score
		}
		if p.Type == "set" {
			m[elem] = ""
		} else {
			m[elem] = fmt.Sprint(v)
		}
	default:
		t.Errorf("operation %q", p.Op)
	}
}

// TestDiffPatch checks that a patch turns A into B, for random datasets that share some records.
func TestDiffPatch(t *testing.T) {
	for seed := uint64(1); seed <= 3; seed++ {
		limits := nemo.New().Limits()
		make := func(seed uint64, n int) []small {
			r := record.Walk(fixtures.Records(seed, n, fixtures.Options{Limits: limits, MaxElements: 8, Short: true}))
			var out []small
			for {
				h, err := r.Next()
				if err != nil {
					return out
				}
				s := small{typ: h.Type, key: string(h.Key), expire: h.ExpireMS}
				var batch [16]record.Element
				for {
					n, err := r.Read(batch[:])
					if err != nil {
						break
					}
					for _, e := range batch[:n] {
						s.elems = append(s.elems, record.Element{Name: slices.Clone(e.Name), Value: slices.Clone(e.Value),
							Score: e.Score})
					}
				}
				out = append(out, sortedByName(s))
			}
		}
		shared := make(seed, 40)
		a := buildSmall(t, nemo.New(), merged(shared, make(seed+100, 30))...)
		b := buildSmall(t, blackwidow.New(), merged(mutated(shared), make(seed+200, 30))...)
		r := kvferry(t, "diff", "--format", "patch", "--expired", "keep", a, b)
		if r.code != cli.ExitFindings {
			t.Fatalf("exit %d, %s", r.code, r.stderr)
		}
		m, want := dataModelOf(t, a), dataModelOf(t, b)
		lines := bufio.NewScanner(strings.NewReader(r.stdout))
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if !json.Valid(lines.Bytes()) {
				t.Fatalf("no JSON: %s", lines.Text())
			}
			m.apply(t, lines.Bytes())
		}
		if !maps.Equal(m, want) {
			for k, v := range want {
				if m[k] != v {
					t.Errorf("seed %d: %s is %q, want %q", seed, k, m[k], v)
				}
			}
			for k := range m {
				if _, ok := want[k]; !ok {
					t.Errorf("seed %d: %s is left over", seed, k)
				}
			}
		}
		if r := kvferry(t, "diff", "--expired", "keep", a, a); r.code != cli.ExitOK {
			t.Errorf("a dataset differs from itself:\n%s", r.stdout)
		}
	}
}

func sortedByName(s small) small {
	if s.typ != record.List && s.typ != record.String {
		slices.SortFunc(s.elems, func(a, b record.Element) int { return strings.Compare(string(a.Name), string(b.Name)) })
	}
	return s
}

// merged merges lists. Of two records with the same name and type it keeps the first.
func merged(lists ...[]small) (out []small) {
	seen := map[string]bool{}
	for _, l := range lists {
		for _, s := range l {
			if id := s.typ.String() + " " + s.key; !seen[id] {
				seen[id] = true
				out = append(out, s)
			}
		}
	}
	return out
}

// mutated changes every other record slightly and drops some.
func mutated(in []small) (out []small) {
	for i, s := range in {
		s.elems = slices.Clone(s.elems)
		switch {
		case i%5 == 0:
			continue
		case i%5 == 1 && len(s.elems) > 1:
			s.elems = s.elems[:len(s.elems)-1]
		case i%5 == 2:
			s.elems[0].Value, s.elems[0].Score = []byte("changed"), s.elems[0].Score+1
			if s.typ == record.Set || s.typ == record.ZSet {
				s.elems[0].Value = nil
			}
		case i%5 == 3:
			s.expire = 1900000000000
		}
		out = append(out, s)
	}
	return out
}

// TestDiffOfCopies checks that the fingerprints of copies made by convert are equal, in any format.
func TestDiffOfCopies(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"nemo-basic", "bw-basic"} {
		src := golden(t, name)
		f := format.Format(blackwidow.New())
		dst := t.TempDir() + "/dst"
		ok(t, "convert", src, f.Name()+":"+dst, "--expired", "keep", "--progress", "none")
		for _, args := range [][]string{{"--expired", "keep"}, {"--expired", "keep", "--direct"}} {
			r := kvferry(t, append([]string{"diff", src, dst}, args...)...)
			if r.code != cli.ExitOK || !strings.HasPrefix(r.stdout, "equal") {
				t.Errorf("%s %v: exit %d\n%.500s", name, args, r.code, r.stdout)
			}
		}
		saved := t.TempDir() + "/f.json"
		ok(t, "fingerprint", src, "-o", saved)
		if out := ok(t, "fingerprint", "--check", saved, dst); !strings.Contains(out, "equal to") {
			t.Errorf("%s: %s", name, out)
		}
		other := kvferry(t, "fingerprint", "--check", saved, dst, "--type", "hash")
		if other.code != cli.ExitUsage || !strings.Contains(other.stderr, "was taken with no --type, and this run has --type hash: leave out --type") {
			t.Errorf("of hashes alone: exit %d, %s", other.code, other.stderr)
		}
	}
}
