package rocks

import (
	"testing"

	"kvferry/store/rocks/base"
)

// TestPassed: entries that a flush drops are not missed in tables: single deletions, the puts that they delete, and
// deletions of empty ranges.
func TestPassed(t *testing.T) {
	put := func(seq uint64, family uint32, key string) logEntry {
		return logEntry{Seq: seq, Family: family, Kind: base.KindPut, Key: []byte(key)}
	}
	single := func(seq uint64, family uint32, key string) logEntry {
		return logEntry{Seq: seq, Family: family, Kind: base.KindSingleDelete, Key: []byte(key)}
	}
	ranged := func(seq uint64, from, to string) logEntry {
		return logEntry{Seq: seq, Kind: base.KindRangeDelete, Key: []byte(from), Value: []byte(to)}
	}
	for _, c := range []struct {
		list []logEntry
		want uint64
	}{
		{nil, 0},
		{[]logEntry{put(1, 0, "a"), put(2, 0, "b")}, 2},
		{[]logEntry{put(1, 0, "a"), put(2, 0, "b"), single(3, 0, "a")}, 2},
		{[]logEntry{put(1, 0, "a"), put(2, 0, "b"), single(3, 0, "b")}, 1},
		{[]logEntry{put(1, 0, "a"), put(2, 0, "b"), single(3, 0, "b"), single(4, 0, "a")}, 0},
		{[]logEntry{put(1, 0, "a"), put(2, 1, "a"), single(3, 0, "a")}, 2},
		{[]logEntry{put(1, 0, "a"), ranged(2, "a", "b")}, 2},
		{[]logEntry{put(1, 0, "a"), ranged(2, "b", "b")}, 1},
	} {
		var l logFile
		for i := range c.list {
			l.pass(&c.list[i])
		}
		if got := l.lastPassed(); got != c.want {
			t.Errorf("%+v: %d, want %d", c.list, got, c.want)
		}
	}
	var l logFile
	for i := range uint64(10 * maxPassed) {
		e := put(i, 0, string(rune('a'+i%7)))
		l.pass(&e)
	}
	if len(l.passed) > maxPassed || l.lastPassed() != 10*maxPassed-1 {
		t.Errorf("%d entries are kept, the last is %d", len(l.passed), l.lastPassed())
	}
}
