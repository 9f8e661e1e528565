package dataset

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"kvferry/format"
	"kvferry/record"
)

func TestScores(t *testing.T) {
	var batch []record.Element
	for i, s := range []float64{1, math.NaN(), -1e13, math.Inf(1), math.Nextafter(1e13, 2e13), 0, math.Inf(-1)} {
		batch = append(batch, record.Element{Name: []byte{'a' + byte(i)}, Score: s})
	}
	for _, c := range []struct {
		engine string
		limit  float64
		kept   string
		losses []string
	}{
		{"nemo", 1e13, "acf", []string{
			`score-nan the score of member "b" is not a number`,
			`score-range member "d" has score +Inf; nemo accepts scores from -1e13 to 1e13`,
			`score-range member "e" has score 1.0000000000000002e+13; nemo accepts scores from -1e13 to 1e13`,
			`score-range member "g" has score -Inf; nemo accepts scores from -1e13 to 1e13`,
		}},
		{"Ardb", math.Inf(1), "acdefg", []string{`score-nan the score of member "b" is not a number`}},
	} {
		var kept string
		var losses []string
		a := &Adapter{Engine: c.engine, Limits: format.Limits{MaxScore: c.limit}}
		for _, e := range a.ElementLosses(&record.Header{Type: record.ZSet}, slices.Clone(batch), func(l record.Loss) {
			losses = append(losses, fmt.Sprint(l.Kind, " ", l.Detail))
			if !l.Drops {
				t.Errorf("%s: the loss %v drops nothing", c.engine, l)
			}
		}) {
			kept += string(e.Name)
		}
		if kept != c.kept || !slices.Equal(losses, c.losses) {
			t.Errorf("%s: kept %s and lost %q, want %s and %q", c.engine, kept, losses, c.kept, c.losses)
		}
	}
}

// TestStreamProgress: a stream loses the counts that servers cannot restore.
func TestStreamProgress(t *testing.T) {
	for _, c := range []struct {
		added   uint64
		len     int64
		deleted []byte
		want    []string
	}{
		{0, 0, nil, nil},
		{0, 3, nil, nil}, // the source does not know
		{3, 3, nil, nil},
		{3, -1, nil, nil},
		{2, 3, nil, nil},
		{5, 3, nil, []string{"entries ever added: 5, left: 3"}},
		{3, 3, make([]byte, 16), []string{"the largest deleted id"}},
		{1, 0, make([]byte, 16), []string{"entries ever added: 1, left: 0", "the largest deleted id"}},
	} {
		var got []string
		for _, l := range streamProgress(&record.Header{Type: record.Stream, Added: c.added, Len: c.len, MaxDeleted: c.deleted}) {
			got = append(got, l.Detail)
			if l.Kind != record.LossGroupProgress || !l.Note || l.Drops {
				t.Errorf("%+v", l)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%d added, %d there, deleted %x: %q, want %q", c.added, c.len, c.deleted, got, c.want)
		}
	}
}
