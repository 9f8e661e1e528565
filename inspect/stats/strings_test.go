package stats

import (
	"bytes"
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"testing"
	"time"

	"kvferry/internal/pass/filter"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

// someStrings returns a batch of strings with and without prefixes and expiries, sorted if ascending.
func someStrings(rnd *rand.Rand, ascending bool) *record.Batch {
	prefixes := []string{"", "a:", "a:b:", "user:", "user", "user:x:", ":"}
	var all []record.Header
	for i := range rnd.Intn(300) {
		s := record.Header{DB: "0", Type: record.String, Len: 1,
			Key: fmt.Appendf(nil, "%s%d", prefixes[rnd.Intn(len(prefixes))], rnd.Intn(100000))}
		if i%7 == 0 {
			s.Key = s.Key[:rnd.Intn(len(s.Key)+1)]
		}
		if rnd.Intn(3) == 0 {
			s.ExpireMS = fake.Now.UnixMilli() + int64(
				time.Duration(rnd.Int63n(int64(2*365*day))-int64(day)).Milliseconds()>>rnd.Intn(20))
			s.Expired = s.ExpireMS < fake.Now.UnixMilli()
		}
		all = append(all, s)
	}
	if ascending {
		slices.SortFunc(all, func(a, b record.Header) int { return bytes.Compare(a.Key, b.Key) })
		all = slices.CompactFunc(all, func(a, b record.Header) bool { return bytes.Equal(a.Key, b.Key) })
	}
	b := new(record.Batch)
	for i, h := range all {
		b.Records = append(b.Records, record.Record{Header: h, First: i, N: 1, Class: record.Copied})
		b.Elems = append(b.Elems, record.Element{Value: make([]byte, rnd.Intn(1<<rnd.Intn(12)))})
	}
	return b
}

// TestStatsOfStrings checks that strings in batches count like strings one by one.
func TestStatsOfStrings(t *testing.T) {
	rnd := rand.New(rand.NewSource(11))
	for round := range 200 {
		ascending := round%2 == 0
		o := &Options{Scan: *scanOf(fake.New()), Top: rnd.Intn(5),
			Delimiter: []string{":", "", "::", "1", Auto}[rnd.Intn(5)], Depth: rnd.Intn(3), Redis: rnd.Intn(2) == 0}
		memory := int64(8*nodeBytes) << rnd.Intn(12)
		visitor := func() *counter {
			v := newCounter(o, "0", newTree(memory, 1))
			v.ascending = ascending
			return v
		}
		batches, single := visitor(), visitor()
		for all := someStrings(rnd, ascending); len(all.Records) > 0; {
			n := 1 + rnd.Intn(len(all.Records))
			some := &record.Batch{Records: all.Records[:n], Elems: all.Elems}
			batches.Batch(some)
			for i := range some.Records {
				single.piece(some, i)
			}
			all.Records = all.Records[n:]
		}
		batches.places.flush()
		single.places.flush()
		got, want := batches.result(aboutOf(o), new(record.Ledger)), single.result(aboutOf(o), new(record.Ledger))
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d, %+v: in batches\n%+v\none by one\n%+v", round, o, got, want)
		}
	}
}

// TestStatsByExpiry checks that records in no bucket never expire.
func TestStatsByExpiry(t *testing.T) {
	at := func(d time.Duration) int64 { return fake.Now.Add(d).UnixMilli() }
	src := fake.New(
		fake.Rec(record.String, "a", fake.Value("1")),
		fake.Rec(record.Set, "b", fake.Member("1")).Expires(at(-time.Second)),
		fake.Rec(record.String, "c", fake.Value("1")).Expires(at(time.Hour-time.Millisecond)),
		fake.Rec(record.String, "d", fake.Value("1")).Expires(at(time.Hour)),
		fake.Rec(record.Hash, "e", fake.Pair("f", "v")).Expires(at(365*day-time.Millisecond)),
		fake.Rec(record.Hash, "f", fake.Pair("f", "v")).Expires(at(365*day)),
		fake.Rec(record.Hash, "g", fake.Pair("f", "v")),
	)
	for _, keep := range []bool{false, true} {
		s := statsOf(t, src, func(o *Options) {
			o.Redis = true
			o.Scan.Selection = &filter.Selection{KeepExpired: keep}
		})
		got, redis := "", int64(0)
		for _, b := range s.Expiry {
			got += fmt.Sprintf("%s %d, ", b.Name, b.Records)
			redis += b.Redis
		}
		want := "expired 1, within an hour 1, within a day 1, within a week 0, within 30 days 0, within 90 days 0, within a year 1, later 1, never 2, "
		if got != want {
			t.Errorf("expired records kept: %v: %s, want %s", keep, got, want)
		}
		var sum int64
		for _, c := range s.Types {
			sum += c.Redis
		}
		if redis != sum {
			t.Errorf("expired records kept: %v: buckets have %d bytes in Redis, types %d", keep, redis, sum)
		}
	}
}
