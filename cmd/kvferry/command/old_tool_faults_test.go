package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/blackwidow"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/nemo"
	"kvferry/record"
	"kvferry/store/rocks"
	"kvferry/store/rocks/build"
)

// given is a record defined by a test.
type given struct {
	typ    record.Type
	key    string
	expire int64 // Unix seconds
	elems  []record.Element
}

// givenReader yields given records in order.
type givenReader struct {
	records []given
	h       record.Header
	read    bool
}

func (r *givenReader) Next() (*record.Header, error) {
	r.read = false
	if len(r.records) == 0 {
		return nil, io.EOF
	}
	g := r.records[0]
	r.records = r.records[1:]
	r.h = record.Header{DB: "0", Type: g.typ, Key: []byte(g.key), ExpireMS: g.expire * 1000, Len: -1}
	r.records = append([]given{g}, r.records...)
	return &r.h, nil
}

func (r *givenReader) Read(dst []record.Element) (int, error) {
	elems := r.records[0].elems
	if len(elems) == 0 {
		r.records = r.records[1:]
		return 0, io.EOF
	}
	n := copy(dst, elems)
	r.records[0].elems = elems[n:]
	return n, nil
}

func (r *givenReader) Heavy() bool { return false }

func (r *givenReader) End(*record.Record) error { return nil }
func (r *givenReader) Close() error             { return nil }

// create starts a target of a format.
func create(t *testing.T, f format.Format, dir string) format.Target {
	t.Helper()
	target, err := f.Create(context.Background(), dir, &format.CreateOptions{Create: build.Create,
		Layout: format.LayoutFlat, DBs: []string{"0"}, Memory: 16 << 20, TempDir: t.TempDir(), Now: testNow,
		Reopen: &format.OpenOptions{Store: rocks.Open}})
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// datasetOf writes records, given in (key, type) order, to a dataset of a format.
func datasetOf(t *testing.T, f format.Format, records ...given) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), f.Name())
	err := fixtures.BuildFrom(context.Background(), create(t, f, dir), 16<<20, func(group record.TypeSet) record.Reader {
		var mine []given
		for _, g := range records {
			if group.Has(g.typ) {
				mine = append(mine, g)
			}
		}
		return record.Gather(&givenReader{records: mine}, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	unchanged(t, dir)
	return dir
}

// converted converts a dataset and returns the path of the target.
func converted(t *testing.T, src, to string, flags ...string) string {
	t.Helper()
	dst := filepath.Join(t.TempDir(), to)
	ok(t, append([]string{"convert", src, to + ":" + dst}, flags...)...)
	return dst
}

func one(name, value string) []record.Element {
	return []record.Element{{Name: []byte(name), Value: []byte(value), Score: 1}}
}

// TestEachTypeKeepsItsExpiry: the old migration tool gave all types of a name the same expiry.
func TestEachTypeKeepsItsExpiry(t *testing.T) {
	later := testNow.Unix() + 1000
	var records []given
	for typ := record.String; typ <= record.ZSet; typ++ {
		g := given{typ, "same", later + int64(typ), one("m", "v")}
		if typ == record.Set {
			g.expire, g.elems[0].Value = 0, nil
		}
		records = append(records, g)
	}
	src := datasetOf(t, nemo.New(), records...)
	for _, dst := range []string{src, converted(t, src, "blackwidow"), converted(t, converted(t, src, "blackwidow"), "nemo")} {
		got := map[string]int64{}
		for _, line := range sortedLines([]byte(ok(t, "dump", dst, "--keys-only"))) {
			var v struct {
				Type       string
				ExpireAtMS int64 `json:"expire_at_ms"`
			}
			if err := json.Unmarshal([]byte(line), &v); err != nil {
				t.Fatal(err)
			}
			got[v.Type] = v.ExpireAtMS
		}
		for _, g := range records {
			if got[g.typ.String()] != g.expire*1000 {
				t.Errorf("%s: %s expires at %d, want %d", filepath.Base(dst), g.typ, got[g.typ.String()], g.expire*1000)
			}
		}
	}
}

// TestScoresSurviveToTheLastBit: the old migration tool converted scores through text.
func TestScoresSurviveToTheLastBit(t *testing.T) {
	modest := []float64{3.14159265358979, 1e13, -1e13, math.Copysign(0, -1), 0, 1e-300, math.Nextafter(1, 2), -0.1}
	wild := append(modest[:len(modest):len(modest)], 1<<53+2, math.Inf(1), math.Inf(-1), 1e300, -1e300, math.MaxFloat64)
	for _, c := range []struct {
		from   format.Format
		to     string
		scores []float64
	}{
		{nemo.New(), "blackwidow", modest}, {nemo.New(), "nemo", modest}, {blackwidow.New(), "nemo", modest},
		{blackwidow.New(), "blackwidow", wild},
	} {
		g := given{typ: record.ZSet, key: "z"}
		for i, s := range c.scores {
			g.elems = append(g.elems, record.Element{Name: []byte(fmt.Sprintf("m%02d", i)), Score: s})
		}
		dst := converted(t, datasetOf(t, c.from, g), c.to)
		f, err := testApp().Format(c.to)
		if err != nil {
			t.Fatal(err)
		}
		got := scores(t, f, dst)
		for i, s := range c.scores {
			if bits := math.Float64bits(got[fmt.Sprintf("m%02d", i)]); bits != math.Float64bits(s) {
				t.Errorf("%s to %s: %v came out as %v", c.from.Name(), c.to, s, math.Float64frombits(bits))
			}
		}
	}
}

// scores returns the scores of a dataset's only zset.
func scores(t *testing.T, f format.Format, dir string) map[string]float64 {
	t.Helper()
	src, err := f.Open(context.Background(), dir, &format.OpenOptions{Store: rocks.Open})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	r, err := formattest.Walk(src.Records(context.Background(), "0", record.Of(record.ZSet), format.Span{},
		&format.Env{Now: testNow}))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	elems := make([]record.Element, 5)
	for {
		n, err := r.Read(elems)
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range elems[:n] {
			out[string(e.Name)] = e.Score
		}
	}
}

// TestExpiryDuringTheRun checks that a single clock, read at the start, decides about expiry. Keys that expire later
// keep their expiry, also in the proof. The wall clock is years ahead of that clock here.
func TestExpiryDuringTheRun(t *testing.T) {
	now := testNow.Unix()
	src := datasetOf(t, nemo.New(), given{record.String, "alive", now, one("", "v")},
		given{record.String, "gone", now - 1, one("", "v")}, given{record.Hash, "soon", now + 1, one("f", "v")})
	dst := converted(t, src, "blackwidow")
	want := fmt.Sprintf(`{"db":"0","type":"string","key":"alive","expire_at_ms":%d,"elements":1,"bytes":6}
{"db":"0","type":"hash","key":"soon","expire_at_ms":%d,"elements":1,"bytes":6}
`, now*1000, (now+1)*1000)
	if got := ok(t, "dump", dst, "--keys-only"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := ok(t, "dump", dst, "--keys-only", "--now", fmt.Sprint(now+2)); got != "" {
		t.Errorf("later still there: %s", got)
	}
	kept := converted(t, src, "blackwidow", "--expired", "keep")
	if got := ok(t, "dump", kept, "--keys-only", "--expired", "keep"); !strings.Contains(got, `"gone"`) {
		t.Errorf("not kept: %s", got)
	}
}

// TestListLinkedAtRandom: the old migration tool took quadratic time for lists with shuffled links.
func TestListLinkedAtRandom(t *testing.T) {
	t.Parallel()
	nodes := 1_000_000
	if testing.Short() {
		nodes = 50_000
	}
	list := fixtures.NewLinked(7, nodes)
	src := filepath.Join(t.TempDir(), "src")
	if err := list.Build(src, build.Create); err != nil {
		t.Fatal(err)
	}
	dst := converted(t, src, "blackwidow", "--memory", "64MiB")
	want, err := fixtures.Sum(list.Records())
	if err != nil {
		t.Fatal(err)
	}
	rep := reportOf(t, dst)
	if rep.Elements() != int64(nodes) || len(rep.Parts) != 1 {
		t.Fatalf("parts %+v", rep.Parts)
	}
	for _, d := range want.Parts() {
		if !rep.Parts[0].Digest.Equal(d, true) {
			t.Errorf("fingerprint %+v, want %+v", rep.Parts[0], d)
		}
	}
}

// TestRandomRecordsGoRound converts random records with extreme values back and forth.
func TestRandomRecordsGoRound(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		src := filepath.Join(t.TempDir(), "src")
		o := fixtures.Options{Limits: nemo.New().Limits(), Now: testNow}
		err := fixtures.BuildFrom(context.Background(), create(t, nemo.New(), src), 16<<20, func(g record.TypeSet) record.Reader {
			o.Types = g
			return fixtures.Records(seed, 200, o)
		})
		if err != nil {
			t.Fatal(err)
		}
		there := converted(t, src, "blackwidow", "--version-epoch", "77")
		back := converted(t, there, "nemo", "--memory", "32MiB")
		want := ok(t, "dump", src)
		if ok(t, "dump", there) != want || ok(t, "dump", back) != want {
			t.Errorf("seed %d: the dumps differ", seed)
		}
		for _, dst := range []string{there, back} {
			for _, l := range reportOf(t, dst).Losses {
				if !l.Note {
					t.Errorf("seed %d: loss %+v", seed, l)
				}
			}
		}
	}
}
