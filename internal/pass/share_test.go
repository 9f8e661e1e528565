package pass

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"kvferry/record"
)

// TestSharing checks that parts run in parallel while their rows are small. With large rows only as many run as fit
// in memory, the one with the largest rows first, the others after it is done.
func TestSharing(t *testing.T) { synctest.Test(t, testSharing) }

func testSharing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := newSharing(ctx, Memory{8000, 8}, 4)
	var parts []*share
	for range 4 {
		p := s.begin()
		p.begun()
		p.took(250)
		p.wait(ctx)
		parts = append(parts, p)
	}
	waits := func(p *share) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.waits(p)
	}
	parts[1].took(400) // two parts fit
	if waits(parts[1]) || !waits(parts[0]) || !waits(parts[2]) || !waits(parts[3]) {
		t.Error("the one that met the large row is the one to go on")
	}
	went := make(chan int, 4)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			parts[i].wait(ctx)
			went <- i
		}()
	}
	for range 2 { // the largest, and one next to it
		<-went
	}
	synctest.Wait()
	if len(went) != 0 {
		t.Errorf("part %d continues as the third", <-went)
	}
	parts[1].end()
	wg.Wait()
	if s.large.Load() || s.running != 3 {
		t.Errorf("large %t, %d running", s.large.Load(), s.running)
	}
	parts[0].took(5000)
	cancel()
	parts[2].wait(ctx)
	for _, i := range []int{0, 2, 3} {
		parts[i].end()
	}
	if len(s.tasks) != 0 || s.running != 0 {
		t.Errorf("%d parts left, %d running", len(s.tasks), s.running)
	}
}

// oneBatch returns the same batch again and again.
type oneBatch struct {
	record.Reader
	batch record.Batch
}

func (r *oneBatch) Next() (*record.Batch, error) { return &r.batch, nil }

// TestSharedBatches checks that what is read at once counts as held at once.
func TestSharedBatches(t *testing.T) {
	s := newSharing(context.Background(), Memory{8000, 8}, 2)
	p := Task{share: s.begin()}
	b := record.Batch{Records: []record.Record{{Header: record.Header{Key: make([]byte, 100)}, N: 1}, {First: 1, N: 1}},
		Elems: []record.Element{{}, {Value: make([]byte, 401)}}}
	r := p.Shared(context.Background(), &oneBatch{batch: b})
	if got, err := r.Next(); len(got.Records) != 2 || err != nil || p.share.largest != 501 || !s.large.Load() {
		t.Errorf("%v, largest %d", err, p.share.largest)
	}
	s.begin().end() // the first part has begun
	p.share.end()
}

// TestBeginOneByOne checks that a part does not begin before the previous one has read its first record, which may be one
// that is skipped.
func TestBeginOneByOne(t *testing.T) {
	skipped := record.Batch{Records: []record.Record{{Class: record.Filtered}}}
	s := newSharing(context.Background(), Memory{1 << 20, 8}, 2)
	p := s.begin()
	second := make(chan *share)
	go func() { second <- s.begin() }()
	if s.first.TryLock() {
		t.Fatal("a second part may begin before the first one has read a record")
	}
	if _, err := (&Task{share: p}).Shared(context.Background(), &oneBatch{batch: skipped}).Next(); err != nil {
		t.Fatal(err)
	}
	(<-second).end()
	p.end()
	if one := newSharing(context.Background(), Memory{1 << 20, 8}, 1); one != nil || one.begin() != nil {
		t.Error("one worker shares with nobody")
	}
	(*share)(nil).end()
}
