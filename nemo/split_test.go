package nemo_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/nemo"
	"kvferry/record"
)

// checkSpans checks that spans cover all keys in order, at most n of them.
func checkSpans(t *testing.T, spans []format.Span, n int) {
	t.Helper()
	if len(spans) == 0 || len(spans) > n || spans[0].Lo != nil || spans[len(spans)-1].Hi != nil {
		t.Fatalf("spans %v for %d", spans, n)
	}
	for i := range spans[1:] {
		if !bytes.Equal(spans[i].Hi, spans[i+1].Lo) || bytes.Compare(spans[i].Lo, spans[i].Hi) >= 0 {
			t.Fatalf("span %v is followed by %v", spans[i], spans[i+1])
		}
	}
}

// TestSplitAddsUp reads a damaged dataset in one piece and in many: records, ledger and findings are the same,
// and each finding is reported once.
func TestSplitAddsUp(t *testing.T) {
	src := formattest.OpenGolden(t, nemo.New(), goldens[0])
	for _, name := range []string{"golden", "damaged"} {
		if name == "damaged" {
			src = damagedRandom(t).Open(t)
		}
		for _, types := range []record.TypeSet{record.AllTypes, record.Of(record.String), record.Of(record.ZSet, record.List)} {
			for _, n := range []int{1, 2, 7, 64} {
				t.Run(fmt.Sprintf("%s %s in %d", name, types, n), func(t *testing.T) { checkSplit(t, src, types, n) })
			}
		}
	}
}

func checkSplit(t *testing.T, src format.Source, types record.TypeSet, n int) {
	var f, fs formattest.Findings
	var l, ls record.Ledger
	want := formattest.Lines(t, formattest.RecordsOf(t, src, "0", types, format.Span{},
		&format.Env{Ledger: &l, Report: f.Report}))
	spans, err := src.Split("0", types, n)
	if err != nil {
		t.Fatal(err)
	}
	checkSpans(t, spans, n)
	again, err := src.Split("0", types, n)
	if err != nil || fmt.Sprint(again) != fmt.Sprint(spans) {
		t.Errorf("split twice, differently: %v", err)
	}
	var got []byte
	for _, s := range spans {
		got = append(
			got, formattest.Lines(t, formattest.RecordsOf(t, src, "0", types, s, &format.Env{Ledger: &ls, Report: fs.Report}))...)
	}
	if !bytes.Equal(got, want) {
		t.Error("records differ")
	}
	formattest.CheckLedger(t, &ls)
	for name, tally := range l.Snapshot() {
		if part := ls.Snapshot()[name]; part.Rows != tally.Rows || part.Visible != tally.Visible {
			t.Errorf("%s: ledger of spans %+v, of the whole %+v", name, part, tally)
		}
	}
	if got, want := describeAll(fs.All), describeAll(f.All); !slices.Equal(got, want) {
		t.Errorf("findings of spans %d, of the whole %d", len(got), len(want))
	}
}

func describeAll(all []record.Finding) []string {
	var out []string
	for _, x := range all {
		out = append(out, fmt.Sprintf("%s %q %s", x.Kind, x.Key, x.Detail))
	}
	slices.Sort(out)
	return out
}

// damagedRandom is a random dataset with rows removed, truncated or altered at random.
func damagedRandom(t testing.TB) *memory {
	m := newMemory(t)
	formattest.Fill(t, m.Create(t, format.CreateOptions{}), 0, func(types record.TypeSet) record.Reader {
		o := randomOptions()
		o.Types, o.Short = types, true
		return fixtures.Records(3, 300, o)
	})
	rng := fixtures.NewRand(11)
	for _, name := range []string{"kv", "hash", "list", "set", "zset"} {
		s := m.Store(name)
		var keys [][]byte
		it, err := s.Keyspaces()[0].Rows(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for {
			k, _, err := it.Next()
			if err != nil {
				break
			}
			keys = append(keys, bytes.Clone(k))
		}
		for _, k := range keys {
			if rng.Intn(20) > 0 {
				continue
			}
			v := bytes.Clone(s.Get("default", k))
			switch rng.Intn(4) {
			case 0:
				s.Delete("default", k)
			case 1:
				s.Put("default", k, v[:rng.Intn(len(v))])
			case 2:
				v[rng.Intn(len(v))] ^= 1 << rng.Intn(8)
				s.Put("default", k, v)
			case 3:
				if len(k) > 0 {
					s.Delete("default", k)
					k[rng.Intn(len(k))] ^= 1 << rng.Intn(8)
				}
				s.Put("default", k[:rng.Intn(len(k)+1)], v)
			}
		}
	}
	return m
}

func TestSplitIsEven(t *testing.T) {
	m := newMemory(t)
	formattest.Fill(t, m.Create(t, format.CreateOptions{}), 0, func(types record.TypeSet) record.Reader {
		return fixtures.Mix(1, 20_000).Records(types.Types()[0])
	})
	src := m.Open(t)
	for _, typ := range src.Types("0").Types() {
		types := record.Of(typ)
		spans, err := src.Split("0", types, 4)
		if err != nil {
			t.Fatal(err)
		}
		checkSpans(t, spans, 4)
		for _, s := range spans {
			var l record.Ledger
			skim(t, formattest.RecordsOf(t, src, "0", types, s, &format.Env{Ledger: &l}))
			var rows, all int64
			for _, tally := range l.Snapshot() {
				rows += tally.Visible
			}
			var whole record.Ledger
			skim(t, formattest.RecordsOf(t, src, "0", types, format.Span{}, &format.Env{Ledger: &whole}))
			for _, tally := range whole.Snapshot() {
				all += tally.Visible
			}
			if share := float64(rows) / float64(all); len(spans) != 4 || share < 0.15 || share > 0.35 {
				t.Errorf("%s: %d spans, one of them has %.0f %% of the rows", typ, len(spans), 100*share)
			}
		}
	}
}
