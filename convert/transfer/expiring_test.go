package transfer

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"kvferry/convert/result"
	"kvferry/internal/pass"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

// TestLapse checks that a record is left out of a proof as soon as all records of its step may have expired, but not
// before.
func TestLapse(t *testing.T) {
	began := time.UnixMilli(1_700_000_000_123)
	l := NewLapse(began)
	after := func(d time.Duration) int64 { return began.Add(d).UnixMilli() }
	for d, want := range map[time.Duration]time.Duration{
		-time.Hour: 0, 0: 0, time.Millisecond: fineStep, fineStep: fineStep, fineStep + 1e6: 2 * fineStep, fineUntil: fineUntil,
		fineUntil + 1e6: fineUntil + coarseStep, coarseUntil - 1e6: coarseUntil, coarseUntil: coarseUntil,
	} {
		if got := l.until(after(d)); got != after(want) {
			t.Errorf("what expires after %v is kept by %v, want %v", d, time.Duration(got-began.UnixMilli())*time.Millisecond,
				want)
		}
	}
	if l.until(0) != 0 || l.until(after(coarseUntil+1e6)) != 0 {
		t.Error("what does not expire soon is left out")
	}
	for d := time.Duration(0); d < coarseUntil; d += 7 * time.Minute { // records that may have expired are not compared
		if at := began.Add(d); l.until(at.UnixMilli()) > l.Gone(at) {
			t.Fatalf("what expires after %v is compared then", d)
		}
	}
	var none *Lapse
	if none.until(after(0)) != 0 {
		t.Error("on disk something expires")
	}
}

// hashes reads hashes like a server at a given time: without expired fields.
type hashes struct {
	list []fake.Record
	at   int64
	cur  *fake.Record
}

func (r *hashes) Next() (*record.Header, error) {
	for len(r.list) > 0 {
		r.cur, r.list = &r.list[0], r.list[1:]
		elems := r.cur.Elems
		r.cur = &fake.Record{Key: r.cur.Key, ExpireMS: r.cur.ExpireMS}
		for _, e := range elems {
			if e.ExpireMS == 0 || e.ExpireMS > r.at {
				r.cur.Elems = append(r.cur.Elems, e)
			}
		}
		if len(r.cur.Elems) > 0 && (r.cur.ExpireMS == 0 || r.cur.ExpireMS > r.at) {
			return &record.Header{DB: "0", Type: record.Hash, Key: r.cur.Key, ExpireMS: r.cur.ExpireMS}, nil
		}
	}
	return nil, io.EOF
}

func (r *hashes) Read(dst []record.Element) (int, error) {
	n := copy(dst, r.cur.Elems)
	r.cur.Elems = r.cur.Elems[n:]
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (r *hashes) Heavy() bool              { return false }
func (r *hashes) End(*record.Record) error { return nil }
func (r *hashes) Close() error             { return nil }

// TestFieldsLapse checks at many times that the data left on a server equals the written data without the part that
// the proof leaves out, whether a hash has lost some fields, all of them, or its key.
func TestFieldsLapse(t *testing.T) {
	began := time.UnixMilli(1_700_000_000_000)
	after := func(minutes int) int64 {
		if minutes == 0 {
			return 0
		}
		return began.Add(time.Duration(minutes) * time.Minute).UnixMilli()
	}
	var list []fake.Record
	for i, key := range []int{0, 0, 0, 25, 60, 100_000} {
		r := fake.Record{Key: []byte{byte(i)}, ExpireMS: after(key)}
		for j, field := range []int{3, 17, 18, 90, 0, 100_000} {
			if i == 1 && field == 0 || i == 2 && field != 0 {
				continue // in hash 1 all fields expire, in hash 2 none
			}
			r.Elems = append(r.Elems, record.Element{Name: fmt.Appendf(nil, "f%d", j), Value: make([]byte, j*2000),
				ExpireMS: after(field)})
		}
		list = append(list, r)
	}
	rules := &Rules{Lapse: &Lapse{began.UnixMilli()}}
	x := &task{Task: &pass.Task{}, Rules: rules, expiring: expiringDigests{}}
	var full record.Digest
	written := &hashes{list: list}
	for {
		h, err := written.Next()
		if err == io.EOF {
			break
		}
		x.hasher.Begin(h)
		x.hasher.Elements(written.cur.Elems)
		x.fading.note(x.Lapse, written.cur.Elems)
		d := x.hasher.End(h)
		full.Add(d)
		x.expiring.addAll(x.lapses(nil, h, d))
	}
	if full.Records != int64(len(list)) {
		t.Fatalf("%d records", full.Records)
	}
	tot := result.Totals{Expiring: x.expiring.list("0")}
	tot.Fingerprint.Add(record.Part{DB: "0", Type: record.Hash}, full)
	seen := map[[2]int64]bool{}
	for minute := 1; minute < 46_000; minute += max(1, minute/50) {
		now := began.Add(time.Duration(minute) * time.Minute)
		rules.Gone = rules.Lapse.Gone(now)
		p := prover{Rules: rules}
		err := each(record.Gather(&hashes{list: list, at: now.UnixMilli()}, nil), context.Background().Err, p.batch)
		if err != nil {
			t.Fatal(err)
		}
		var back record.Fingerprint
		back.Add(record.Part{DB: "0", Type: record.Hash}, p.digests[record.Hash])
		want, gone := tot.Without(rules.Gone)
		if diff := want.Diff(&back, false); len(diff) > 0 || gone["0"] != full.Records-p.digests[record.Hash].Records {
			t.Fatalf("after %d minutes: written %+v, read back %+v, %d gone", minute, want.Parts(), back.Parts(), gone["0"])
		}
		seen[[2]int64{p.digests[record.Hash].Records, p.digests[record.Hash].Elements}] = true
	}
	if len(seen) < 5 {
		t.Errorf("only %d states were compared: %v", len(seen), seen)
	}
}

// TestExpiringDigests checks that digests are summed by step and type, and listed in order.
func TestExpiringDigests(t *testing.T) {
	e := expiringDigests{}
	e.add(200, record.Set, record.Digest{Records: 4}, 0)
	e.add(100, record.Hash, record.Digest{Records: 2}, 3)
	e.add(100, record.Hash, record.Digest{Records: 1}, 1)
	const none = "00000000000000000000000000000000"
	want := "[{100 {hash {3 0 " + none + " " + none + " false} 1} 4} {200 {set {4 0 " + none + " " + none + " false} 1} 0}]"
	if got := fmt.Sprint(e.list("1")); got != want {
		t.Error(got)
	}
}
