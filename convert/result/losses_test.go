package result

import (
	"fmt"
	"testing"

	"kvferry/record"
)

// TestLossSet checks that a kind drops data if any of its losses does, and is a note only if all of them are.
func TestLossSet(t *testing.T) {
	h := &record.Header{Type: record.Set, Key: []byte("k")}
	for _, list := range [][]record.Loss{
		{{Drops: true}, {}, {}}, {{}, {}, {Drops: true}}, {{Note: true}, {}, {Drops: true}}, {{Drops: true}, {Note: true}, {}}, {{Note: true}, {Note: true}, {Note: true}}, {{}, {}, {}},
	} {
		want := LossKind{Note: true}
		for _, l := range list {
			want.Drops, want.Note = want.Drops || l.Drops, want.Note && l.Note
		}
		one, all := Losses{}, Losses{}
		for i, l := range list {
			l.Kind, l.Detail = "k", fmt.Sprint(i)
			one.Add(l, "0", h)
			all.Merge(one.List()[:min(i, 1)]) // 2 and 3 of them
			want.Samples = append(want.Samples, Sample{DB: "0", Type: "set", Key: []byte("k"), Detail: l.Detail})
		}
		got := all.List()[0]
		if got.Count != 5 || got.Drops != want.Drops || got.Note != want.Note {
			t.Errorf("%+v: %+v, want %+v", list, got, want)
		}
		if text := fmt.Sprint(got.Samples); text != fmt.Sprint(append(want.Samples[:2:2], want.Samples...)) {
			t.Errorf("%+v: samples %s", list, text)
		}
	}
}
