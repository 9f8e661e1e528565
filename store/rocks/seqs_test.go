package rocks

import (
	"fmt"
	"slices"
	"testing"
)

// TestSeqRanges: the numbers of a log are kept as a bounded list of ranges.
func TestSeqRanges(t *testing.T) {
	var l seqSet
	for _, r := range []seqRange{{5, 6}, {7, 7}, {9, 12}, {12, 14}, {13, 13}, {30, 30}} {
		if any := r.first > 5; l.Any() != any {
			t.Errorf("any before %d: %t", r.first, !any)
		}
		l.Add(r, int64(r.first))
	}
	got := ""
	for seq := range uint64(40) {
		if l.Has(seq) {
			got += fmt.Sprint(seq, " ")
		}
	}
	if got != "5 6 7 9 10 11 12 13 14 30 " {
		t.Errorf("has %s", got)
	}
	if l.First != 5 || l.Last != 30 || l.Missing != 1+15 || l.Gap != (seqJump{9, 7, 9}) || l.Back != (seqJump{12, 12, 12}) {
		t.Errorf("%+v", l)
	}
	if maxRanges != 4096 {
		t.Errorf("up to %d stretches", maxRanges)
	}
	for i := range uint64(2 * maxRanges) {
		l.Add(seqRange{100 + 2*i, 100 + 2*i}, 0)
	}
	if len(l.ranges) != maxRanges || !l.Has(100) || l.Has(101) || !l.Has(100+4*maxRanges-2) || l.Has(100+4*maxRanges) {
		t.Errorf("%d stretches", len(l.ranges))
	}
}

// TestUnion: several logs together have what each has.
func TestUnion(t *testing.T) {
	var logs []*seqSet
	for _, ranges := range [][]seqRange{{{20, 25}, {40, 41}}, {{1, 3}, {22, 30}}, nil, {{31, 31}, {40, 40}}, {{2, 2}}} {
		s := new(seqSet)
		for _, r := range ranges {
			s.Add(r, 0)
		}
		logs = append(logs, s)
	}
	u := union(logs)
	for seq := range uint64(50) {
		want := slices.ContainsFunc(logs, func(s *seqSet) bool { return s.Has(seq) })
		if u.Has(seq) != want {
			t.Errorf("%d: %t", seq, !want)
		}
	}
	if union(nil).Has(0) {
		t.Error("no log has a number")
	}
}
