package convert

import (
	"testing"
	"time"

	"kvferry/record"
)

// TestLapse: a record is left out of a proof as soon as all that expire in its time may have, and not before.
func TestLapse(t *testing.T) {
	began := time.UnixMilli(1_700_000_000_123)
	l := newLapse(&Options{Target: Output{Address: "redis://x"}}, began)
	after := func(d time.Duration) int64 { return began.Add(d).UnixMilli() }
	for d, want := range map[time.Duration]time.Duration{
		-time.Hour: 0, 0: 0, time.Millisecond: fineStep, fineStep: fineStep, fineStep + 1e6: 2 * fineStep, fineUntil: fineUntil,
		fineUntil + 1e6: fineUntil + coarseStep, coarseUntil - 1e6: coarseUntil, coarseUntil: coarseUntil,
	} {
		if got := l.until(after(d)); got != after(want) {
			t.Errorf("what expires after %v is kept by %v, want %v", d, time.Duration(got-began.UnixMilli())*time.Millisecond, want)
		}
	}
	if l.until(0) != 0 || l.until(after(coarseUntil+1e6)) != 0 {
		t.Error("what does not expire soon is left out")
	}
	for d := time.Duration(0); d < coarseUntil; d += 7 * time.Minute { // no record that may be gone is compared
		if at := began.Add(d); l.until(at.UnixMilli()) > l.gone(at) {
			t.Fatalf("what expires after %v is compared then", d)
		}
	}
	var none *lapse
	if none.until(after(0)) != 0 || newLapse(&Options{}, began) != nil {
		t.Error("on disk something expires")
	}
}

func TestWithout(t *testing.T) {
	digest := func(n uint64) (d record.Digest) {
		for range n {
			d.Add(record.Digest{Records: 1, Elements: 2, Millis: record.Sum128{Hi: 3, Lo: 1<<63 - 1}, Seconds: record.Sum128{Lo: 1}})
		}
		return d
	}
	part := func(db string, typ record.Type) record.Part { return record.Part{DB: db, Type: typ} }
	e := expiringDigests{}
	e.add(100, record.Hash, digest(2))
	e.add(100, record.Hash, digest(1))
	e.add(200, record.Set, digest(4))
	tot := totals{expiring: e.list("1")}
	for p, n := range map[record.Part]uint64{part("1", record.Hash): 3, part("1", record.Set): 9, part("0", record.Other): 5} {
		tot.fingerprint.Add(p, digest(n))
	}
	for until, want := range map[int64]map[record.Part]uint64{
		99:  {part("1", record.Hash): 3, part("1", record.Set): 9, part("0", record.Other): 5},
		100: {part("1", record.Set): 9, part("0", record.Other): 5},
		200: {part("1", record.Set): 5, part("0", record.Other): 5},
	} {
		left, gone := tot.without(until)
		var f record.Fingerprint
		sum := int64(17)
		for p, n := range want {
			f.Add(p, digest(n))
			sum -= int64(n)
		}
		if diff := left.Diff(&f, false); len(diff) > 0 || gone["1"] != sum {
			t.Errorf("until %d: %v differ, %v have expired", until, diff, gone)
		}
	}
	if given := tot.given(); given["1"] != 12 || given["0"] != 0 {
		t.Errorf("given %v", given)
	}
}
