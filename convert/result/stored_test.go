package result

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"kvferry/record"
)

// TestStoredOrder checks that the order of findings depends only on their contents, also at the same place.
func TestStoredOrder(t *testing.T) {
	var want []record.Finding
	for _, file := range []string{"a", "b"} {
		for _, off := range []int64{record.NoOffset, 0, 4096} {
			for _, seq := range []uint64{1, 2} {
				for _, kind := range []string{"key-twice", "lost-page"} {
					for i := range 5 {
						want = append(want, record.Finding{Kind: kind, Keyspace: "0", Key: fmt.Appendf(nil, "key %d", i),
							Place: record.Place{File: file, Off: off, Level: -1, Seq: seq}})
					}
				}
			}
		}
	}
	for range 5 {
		mixed := slices.Clone(want)
		rand.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		var s Stored
		for _, f := range mixed {
			s.Report(f)
		}
		n := 0
		s.Tell(func(f record.Finding) {
			if w := want[n]; identityOf(&f) != identityOf(&w) {
				t.Fatalf("finding %d is %+v, want %+v", n, f, w)
			}
			n++
		})
		if n != len(want) {
			t.Fatalf("%d findings, want %d", n, len(want))
		}
	}
}

// TestStoredErrors checks that OnError is called once per error, and OnLoss for each report of one.
func TestStoredErrors(t *testing.T) {
	errs, losses := 0, ""
	s := Stored{OnError: func() { errs++ }, OnLoss: func(kind string) { losses += kind + " " }}
	at := func(off int64, severity record.Severity) record.Finding {
		return record.Finding{Kind: "k", Severity: severity, Place: record.Place{File: "f", Off: off}}
	}
	for _, f := range []record.Finding{at(1, record.Error), at(2, record.Warning), at(1, record.Error), at(3, record.Error),
		at(4, record.Note)} {
		s.Report(f)
	}
	if errs != 2 || losses != "damaged damaged damaged " {
		t.Errorf("%d errors, losses %s", errs, losses)
	}
	if n := len(s.Unwritten()); n != 4 || s.Unwritten() != nil {
		t.Errorf("%d are not in the journal", n)
	}
	quiet := Stored{OnLoss: func(string) {}}
	quiet.Report(at(1, record.Error))
	if lost := s.PassedOver(); len(lost) != 0 {
		t.Errorf("passed over: %v", lost)
	}
}

// TestStoredLosses checks that OnLoss is called before the finding can be written to the journal, because the run may
// be refused.
func TestStoredLosses(t *testing.T) {
	s := new(Stored)
	told := 0
	s.OnLoss = func(kind string) {
		told++
		if len(s.Unwritten()) > 0 || kind != record.LossDamaged {
			t.Errorf("%s: the journal had it before", kind)
		}
	}
	s.Report(record.Finding{Kind: record.FindDamagedBlock, Severity: record.Error})
	if fresh := s.Unwritten(); told != 1 || len(fresh) != 1 {
		t.Errorf("told %d times, %d for the journal", told, len(fresh))
	}
}
