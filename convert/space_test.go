package convert

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"kvferry/format"
	"kvferry/internal/disk"
	"kvferry/store"
)

// TestVolumes: the target and temporary files share a disk, or have one each.
func TestVolumes(t *testing.T) {
	free := map[string]disk.Space{"/a": {Free: 100, Device: 1}, "/b": {Free: 10, Device: 2}, "/a/tmp": {Free: 100, Device: 1}, "/full": {Free: 0, Device: 3}, "/just": {Free: 70, Device: 4}}
	defer disk.FakeSpace(func(dir string) (disk.Space, error) {
		s, ok := free[dir]
		if !ok {
			return s, errors.New("unknown")
		}
		return s, nil
	})()
	for _, c := range []struct {
		target, temp string
		want         string
		fits         bool
	}{
		{"/a/dst", "", "[{/a true true 70 100}]", true},
		{"/a/dst", "/a/tmp", "[{/a true true 70 100}]", true},
		{"/a/dst", "/b", "[{/a true false 50 100} {/b false true 20 10}]", false},
		{"/b/dst", "/a", "[{/b true false 50 10} {/a false true 20 100}]", false},
		{"/a/dst", "/full", "[{/a true false 50 100} {/full false true 20 0}]", false},
		{"/full/dst", "/a", "[{/full true false 50 0} {/a false true 20 100}]", false},
		{"/just/dst", "", "[{/just true true 70 70}]", true},
		{"/c/dst", "", "[{/c true true 70 -1}]", true},
	} {
		e := &Estimate{DiskBytes: 50, TempBytes: 20}
		e.volumes(&Options{Target: Output{Path: c.target}, TempDir: c.temp})
		if got := fmt.Sprint(e.Volumes); got != c.want || e.Fits != c.fits {
			t.Errorf("%s, %s: %s, fits %v", c.target, c.temp, got, e.Fits)
		}
		text := (&SpaceError{Estimate: e}).Error()
		if c.fits {
			continue
		}
		if other := strings.Contains(text, "another one for temporary files"); other != (c.temp == "/b" || c.temp == "/full") || !strings.Contains(text, " has 10 B free") && !strings.Contains(text, " has 0 B free") {
			t.Error(text)
		}
	}
}

// TestNoAdviceForNothing: another place for temporary files helps only when there are some.
func TestNoAdviceForNothing(t *testing.T) {
	for temp, want := range map[int64]bool{0: false, 1: true} {
		e := &Estimate{DiskBytes: 500, TempBytes: temp, Volumes: []Volume{{Path: "/a", Temp: true, Needed: 500, Free: 10}}}
		if text := (&SpaceError{Estimate: e}).Error(); strings.Contains(text, "--temp-dir") != want {
			t.Errorf("%d bytes of temporary files: %s", temp, text)
		}
	}
}

// TestPick: a place is chosen as often as its bytes say, and the weights make a sum over what is chosen one over all.
func TestPick(t *testing.T) {
	var keys []store.Weighted
	for i := range 1000 {
		size := int64(10)
		if i == 500 {
			size = 10_000 // half of all, as one large record
		}
		for range size / 10 {
			keys = append(keys, store.Weighted{Key: fmt.Appendf(nil, "%04d", i), Bytes: 10})
		}
	}
	cells := keyCells(keys)
	if len(cells) != 1000 || cells[0].span.Lo != nil || cells[999].span.Hi != nil || string(cells[1].span.Lo) != "0001" {
		t.Fatalf("%d cells", len(cells))
	}
	picked := pick(cells, 8, 0.05)
	var sum, read float64
	large := 0
	last := ""
	for _, p := range picked {
		if string(p.span.Lo) < last {
			t.Errorf("%q comes twice", p.span.Lo)
		}
		last = string(p.span.Hi)
		sum += p.weight * p.share
		read += p.share
		if p.share > 0.4 {
			large++
		}
	}
	if sum < 0.999 || sum > 1.001 || large != 1 || read > 0.55 || len(picked) > 6 {
		t.Errorf("%d of 8 places, weights sum up to %v, %d times the large one, %.2f read", len(picked), sum, large, read)
	}
	spans := []format.Span{{From: 0, To: 10}, {From: 10, To: 20}, {From: 20, To: 30}}
	if got := fmt.Sprint(pick(cut(spans, func(s format.Span) int64 { return s.To - s.From }), 1, 0.6)); got != "[{{[] [] 10 30} 0.6666666666666666 1.5}]" {
		t.Error(got)
	}
}
