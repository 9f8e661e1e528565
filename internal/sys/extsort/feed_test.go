package extsort

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/sys/disk"
)

// TestFeed: rows that come from a Feeder are found one by one, whether they stay in memory or not. Their keys begin alike,
// and some are the beginning of others, or differ in zero bytes alone.
func TestFeed(t *testing.T) {
	for _, memory := range []int64{8 << 10, 64 << 20} {
		s := New(Options{Memory: memory, TempDir: t.TempDir(), Points: true})
		r := rand.New(rand.NewPCG(3, 4))
		var all []string
		feed := Feed(s)
		for i := range 20000 {
			key := fmt.Sprintf("user:%08d", r.IntN(1<<20))
			switch i % 5 {
			case 1:
				key = key[:r.IntN(len(key))]
			case 2:
				key += strings.Repeat("\x00", r.IntN(20))
			case 3:
				key = strings.Repeat("x", 70) + key
			}
			all = append(all, key)
			value := fmt.Appendf([]byte(key), " %d", i)
			if i%1000 == 0 {
				value = append(value, make([]byte, 3*feedBytes)...)
			}
			if err := feed.Add([]byte(key), value); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(feed.Close(), s.Prepare()); err != nil {
			t.Fatal(err)
		}
		if most := memory > 1<<20; (len(s.runs) == 0) != most || len(s.runs) > 1 {
			t.Errorf("%d bytes: %d runs", memory, len(s.runs))
		}
		slices.Sort(all)
		if got := rangeOf(t, s, nil, nil); !slices.Equal(got, all) {
			t.Errorf("%d bytes: the rows differ", memory)
		}
		for range 300 {
			key := all[r.IntN(len(all))]
			n := 0
			for _, k := range all {
				if k == key {
					n++
				}
			}
			if got := rangeOf(t, s, []byte(key), []byte(key+"\x00")); len(got) != n || got[0] != key {
				t.Errorf("%q: %q", key, got)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestPointsRead: of a run of small frames, a row needs one frame.
func TestPointsRead(t *testing.T) {
	s := New(Options{Memory: 1 << 20, TempDir: t.TempDir(), Points: true})
	defer s.Close()
	value := bytes.Repeat([]byte("v"), 50)
	for i := range 60000 {
		if err := s.Add(0, fmt.Appendf(nil, "%08d", i), value); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Prepare(); err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 1, 777, 30000, 59999} {
		key := fmt.Appendf(nil, "%08d", i)
		it, err := s.Range(key, append(key, 0))
		if err != nil {
			t.Fatal(err)
		}
		if _, got, _, err := it.Next(); err != nil || !bytes.Equal(got, key) {
			t.Errorf("%s: %s, %v", key, got, err)
		}
		if c := it.heap[0]; len(c.ahead) > pointFrame+frameHeader || len(s.runs) != 1 {
			t.Errorf("%s: %d bytes were read of %d runs", key, len(c.ahead), len(s.runs))
		}
	}
}

// TestFeedFails: an error of the sorter reaches whoever adds rows, once.
func TestFeedFails(t *testing.T) {
	failed := errors.New("no room")
	undo := disk.Inject(func(op, _ string) error {
		if op == "write" {
			return failed
		}
		return nil
	})
	defer undo()
	s := New(Options{Memory: 8 << 10, TempDir: t.TempDir(), Points: true})
	feed := Feed(s)
	var err error
	for i := 0; err == nil && i < 100000; i++ {
		err = feed.Add(fmt.Appendf(nil, "%08d", i), make([]byte, 100))
	}
	if !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	if err := feed.Close(); !errors.Is(err, failed) {
		t.Errorf("closed: %v", err)
	}
	_ = s.Close()
}
