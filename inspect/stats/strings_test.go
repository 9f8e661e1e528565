package stats

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand"
	"reflect"
	"slices"
	"testing"
	"time"

	"kvferry/inspect"
	"kvferry/inspect/internal/fake"
	"kvferry/internal/pass/filter"
	"kvferry/record"
)

// oneValue is a reader of one element per record.
type oneValue struct {
	record.Reader
	value []byte
	read  bool
}

func (r *oneValue) Read(dst []record.Element) (int, error) {
	if r.read {
		return 0, io.EOF
	}
	r.read = true
	dst[0] = record.Element{Value: r.value}
	return 1, nil
}

// someStrings returns strings with and without prefixes and expiries, sorted if ascending.
func someStrings(rnd *rand.Rand, ascending bool) (all []record.StringRecord) {
	prefixes := []string{"", "a:", "a:b:", "user:", "user", "user:x:", ":"}
	for i := range rnd.Intn(300) {
		s := record.StringRecord{DB: "0", Key: fmt.Appendf(nil, "%s%d", prefixes[rnd.Intn(len(prefixes))], rnd.Intn(100000)),
			Value: make([]byte, rnd.Intn(1<<rnd.Intn(12)))}
		if i%7 == 0 {
			s.Key = s.Key[:rnd.Intn(len(s.Key)+1)]
		}
		if rnd.Intn(3) == 0 {
			s.ExpireMS = fake.Now.UnixMilli() + int64(time.Duration(rnd.Int63n(int64(2*365*day))-int64(day)).Milliseconds()>>rnd.Intn(20))
			s.Expired = s.ExpireMS < fake.Now.UnixMilli()
		}
		all = append(all, s)
	}
	if ascending {
		slices.SortFunc(all, func(a, b record.StringRecord) int { return bytes.Compare(a.Key, b.Key) })
		all = slices.CompactFunc(all, func(a, b record.StringRecord) bool { return bytes.Equal(a.Key, b.Key) })
	}
	return all
}

// TestStatsOfStrings checks that strings in batches count like strings one by one.
func TestStatsOfStrings(t *testing.T) {
	rnd := rand.New(rand.NewSource(11))
	for round := range 200 {
		ascending := round%2 == 0
		o := &Options{Scan: *scanOf(fake.New()), Top: rnd.Intn(5), Delimiter: []string{":", "", "::"}[rnd.Intn(3)], Depth: rnd.Intn(3), Redis: rnd.Intn(2) == 0}
		visitor := func() *counter {
			v := newCounter(o, "0")
			v.ascending, v.byBytes.ascending, v.byElem.ascending, v.byRedis.ascending = ascending, ascending, ascending, ascending
			return v
		}
		batches, single := visitor(), visitor()
		for all := someStrings(rnd, ascending); len(all) > 0; {
			n := 1 + rnd.Intn(len(all))
			batches.Strings(all[:n])
			for i := range all[:n] {
				var h record.Header
				all[i].Header(&h)
				if err := single.Record(&h, inspect.NewElements(context.Background(), &oneValue{value: all[i].Value})); err != nil {
					t.Fatal(err)
				}
			}
			all = all[n:]
		}
		if got, want := batches.result(o), single.result(o); !reflect.DeepEqual(got, want) {
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
