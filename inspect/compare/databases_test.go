package compare

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/pass/filter"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

func dbMap(t *testing.T, pairs string) (m DBMap) {
	t.Helper()
	for _, p := range strings.Fields(pairs) {
		a, b, _ := strings.Cut(p, "=")
		if err := m.Add(DBNames{a, b}); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func TestPairs(t *testing.T) {
	for _, c := range []struct{ as, bs, m, want string }{
		{"0 1", "0 1", "", "0|1"},
		{"0 1", "1 2", "", "0 -|1|- 2"},
		{"main", "0", "", "main (0)"},
		{"0 bar foo", "0 2 3", "bar=2 foo=3", "0|bar (2)|foo (3)"},
		{"0 bar", "0 2 5", "bar=2", "0|bar (2)|- 5"},
		{"0 bar x", "0 2", "bar=2", "0|bar (2)|x -"},
		{"1 2", "1 2", "1=2 2=1", "1 (2)|2 (1)"},
		{"1 2", "2", "1=2", "1 (2)|2 -"}, // 2 is taken
		{"1", "1", "1=1", "1"},
		{"0", "0 2", "bar=2", "0|- 2"}, // bar is not selected
	} {
		pairs, err := dbMap(t, c.m).pairs(strings.Fields(c.as), strings.Fields(c.bs))
		if err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		var got []string
		for _, p := range pairs {
			text := p.String()
			if !p.InA {
				text = "- " + text
			}
			if !p.InB {
				text += " -"
			}
			got = append(got, text)
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestDBMapRefuses(t *testing.T) {
	var wrong *DBMapError
	m := dbMap(t, "bar=2")
	for _, n := range []DBNames{{"bar", "3"}, {"foo", "2"}, {"bar", "2"}} {
		if err := m.Add(n); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "bar=2 and "+n.String()) || len(m) != 1 {
			t.Errorf("%s: %v", n, err)
		}
	}
	sides := DBNames{"the file", "the dataset"}
	for _, c := range []struct{ m, want string }{
		{"0=0 bar=2", ""}, {"none=2", `none=2: no database "none" in the file: want "0" or "bar"`},
		{"bar=9", `bar=9: no database "9" in the dataset: want "0" or "2"`},
	} {
		err := dbMap(t, c.m).fits([]string{"0", "bar"}, []string{"0", "2"}, sides)
		if c.want != "" && (!errors.As(err, &wrong) || err.Error() != c.want) || c.want == "" && err != nil {
			t.Errorf("%s: %v", c.m, err)
		}
	}
	if _, err := dbMap(t, "1=2").pairs([]string{"1", "3"}, []string{"1", "2"}); !errors.As(err, &wrong) ||
		!strings.Contains(err.Error(), `1=2: database "1" of the second`) {
		t.Errorf("a name for two: %v", err)
	}
	if _, err := m.Second([]string{"0", "2"}); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "bar=2: --db 2 selects by") {
		t.Errorf("selected by the second side's name: %v", err)
	}
	if got, err := dbMap(t, "1=2 2=1").Second([]string{"0", "2"}); err != nil || !slices.Equal(got, []string{"0", "1"}) {
		t.Errorf("exchanged: %q, %v", got, err)
	}
}

func TestDBNamesInJSON(t *testing.T) {
	got, err := json.Marshal([]DBNames{{"bar", "2"}, {"\xff", "3"}})
	if want := `[{"a":"bar","b":"2"},{"a":{"base64":"/w=="},"b":"3"}]`; err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
}

// TestDiffMapped checks that the map pairs databases with different names, under any selection.
func TestDiffMapped(t *testing.T) {
	a, b := fake.Named("0", "bar", "foo"), fake.Named("0", "2", "3")
	for _, direct := range []bool{false, true} {
		for _, c := range []struct {
			dbs     string
			renamed int
		}{{"", 2}, {"bar", 1}, {"0 foo", 1}, {"0", 0}} {
			compare := func(b *fake.Source) ([]string, *Result) {
				return diffOf(t, a, b, func(o *Options) {
					o.Direct, o.Map = direct, dbMap(t, "bar=2 foo=3")
					o.A.Selection = &filter.Selection{Filter: filter.Filter{DBs: strings.Fields(c.dbs)}}
					o.B.Selection = o.A.Selection
					tell := o.Tell
					o.Tell = func(d *Difference) error {
						if d.DB.String() != "bar (2)" {
							t.Errorf("the database is called %s", d.DB)
						}
						return tell(d)
					}
				})
			}
			if got, res := compare(b); !res.Equal || len(res.Renamed) != c.renamed {
				t.Errorf("%q, direct %v: %q, %+v", c.dbs, direct, got, res)
			}
			other := fake.Named("0", "2", "3")
			other.Held["2"] = []fake.Record{fake.Rec(record.String, "k", fake.Value("other")).In("2"),
				fake.Rec(record.String, "new", fake.Value("v")).In("2")}
			got, _ := compare(other)
			want := []string{"differs string k #0 =v1/0 =other/0", "extra string new", "missing set s"}
			if c.dbs == "0" || c.dbs == "0 foo" {
				want = nil
			}
			if !slices.Equal(got, want) {
				t.Errorf("%q, direct %v: %q", c.dbs, direct, got)
			}
		}
	}
}

// TestDBMapHint checks that an error about a missing database on the second side suggests --map-db.
func TestDBMapHint(t *testing.T) {
	none := &filter.NoDatabaseError{DB: "bar"}
	if err := DBMap(nil).Hint(none); !errors.Is(err, none) || !strings.HasSuffix(err.Error(), "; if it has another name there: --map-db bar=NAME") {
		t.Errorf("%v", err)
	}
	if err := dbMap(t, "x=bar").Hint(none); err != error(none) {
		t.Errorf("a name that was mapped: %v", err)
	}
	other := errors.New("other")
	if err := DBMap(nil).Hint(other); err != other {
		t.Errorf("%v", err)
	}
}

// TestDiffRefuses checks that an impossible comparison is refused before any data is read.
func TestDiffRefuses(t *testing.T) {
	a, b := fake.Named("0", "1"), fake.Named("0", "2")
	for m, dbs := range map[string]string{"none=2": "", "1=2": "2"} {
		o := &Options{A: scanOf(a), B: scanOf(b), Map: dbMap(t, m)}
		o.A.Selection = &filter.Selection{Filter: filter.Filter{DBs: strings.Fields(dbs)}}
		o.B.Selection = o.A.Selection
		var wrong *DBMapError
		if _, err := Diff(context.Background(), o); !errors.As(err, &wrong) {
			t.Errorf("%s, --db %s: %v", m, dbs, err)
		}
	}
	file := fileOf(t, scanOf(a))
	scan := scanOf(b)
	scan.Selection = &filter.Selection{Filter: filter.Filter{DBs: []string{"2"}}}
	if _, err := Match(file, scan, dbMap(t, "1=2")); err == nil || !strings.Contains(err.Error(), "selects by the names on the first side") {
		t.Errorf("a file: %v", err)
	}
}

// TestPartDifference describes expiries that differ by less than a second.
func TestPartDifference(t *testing.T) {
	d := PartDifference{DB: DBPair{DBNames{"0", "0"}, true, true}, Type: record.Set}
	d.File.Millis.Lo = 1
	if got := d.String(); !strings.HasPrefix(got, "database 0 set: expiries differ below the second: file: digest_ms 0") {
		t.Errorf("%s", got)
	}
}
