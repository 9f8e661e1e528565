package result

import (
	"testing"

	"kvferry/record"
)

func TestWithout(t *testing.T) {
	digest := func(n uint64) (d record.Digest) {
		for range n {
			d.Add(record.Digest{Records: 1, Elements: 2, Millis: record.Sum128{Hi: 3, Lo: 1<<63 - 1},
				Seconds: record.Sum128{Lo: 1}})
		}
		return d
	}
	part := func(db string, typ record.Type) record.Part { return record.Part{DB: db, Type: typ} }
	tot := Totals{Expiring: []Expiring{
		{Until: 100, PartDigest: PartDigest{DB: "1", Type: "hash", Digest: digest(2)}},
		{Until: 100, PartDigest: PartDigest{DB: "1", Type: "hash", Digest: digest(1)}},
		{Until: 200, PartDigest: PartDigest{DB: "1", Type: "set", Digest: digest(4)}},
	}}
	for p, n := range map[record.Part]uint64{part("1", record.Hash): 3, part("1", record.Set): 9, part("0", record.Other): 5} {
		tot.Fingerprint.Add(p, digest(n))
	}
	for until, want := range map[int64]map[record.Part]uint64{
		99:  {part("1", record.Hash): 3, part("1", record.Set): 9, part("0", record.Other): 5},
		100: {part("1", record.Set): 9, part("0", record.Other): 5},
		200: {part("1", record.Set): 5, part("0", record.Other): 5},
	} {
		left, gone := tot.Without(until)
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
	if given := tot.Given(); given["1"] != 12 || given["0"] != 0 {
		t.Errorf("given %v", given)
	}
}
