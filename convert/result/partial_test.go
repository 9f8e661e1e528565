package result

import (
	"testing"

	"kvferry/record"
)

func TestPartial(t *testing.T) {
	rows := func(copied, index, lost int64) (t record.Tally) {
		t.Rows[record.Copied], t.Rows[record.Index], t.Rows[record.Lost] = copied, index, lost
		t.Visible, t.Entries = t.Total(), t.Total()
		return t
	}
	ledger := map[string]record.Tally{
		"db0/zsets/default":  rows(3, 0, 7),
		"db0/zsets/data_cf":  rows(505, 0, 3012),
		"db0/zsets/score_cf": rows(0, 505, 3012),
		"db0/sets/data_cf":   rows(9000, 9000, 0),
		"rows":               rows(10, 4, 0),
	}
	p := Partial{}
	p.Add([]string{"zsets/score_cf", "zsets/default", "zsets/data_cf", "zsets/data_cf"}, 300)
	p.Add([]string{"zsets/default", "zsets/score_cf", "zsets/data_cf"}, 200)
	p.Add([]string{"rows"}, 6)
	p.Add([]string{"nowhere"}, 1)
	p.Correct(ledger)
	for name, want := range map[string]record.Tally{
		"db0/zsets/default":  rows(3, 0, 7),
		"db0/zsets/data_cf":  rows(5, 0, 3512),
		"db0/zsets/score_cf": rows(0, 5, 3512),
		"db0/sets/data_cf":   rows(9000, 9000, 0),
		"rows":               rows(4, 0, 10),
	} {
		if got := ledger[name]; got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}
