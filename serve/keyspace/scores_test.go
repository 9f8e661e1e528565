package keyspace_test

import (
	"math"
	"strings"
	"testing"

	"kvferry/blackwidow"
	"kvferry/floyd"
	"kvferry/format"
	"kvferry/internal/testkit/formattest"
	"kvferry/kvrocks"
	"kvferry/nemo"
	"kvferry/record"
)

// TestZeroScores: ranges from 0 and from -0 have the members of both, whichever the engine sorts first.
func TestZeroScores(t *testing.T) {
	for _, f := range []format.Format{nemo.New(), blackwidow.New(), floyd.New(), kvrocks.New()} {
		zset := put(record.ZSet, "z", "a", "b", "c", "d")
		for i, score := range []float64{0, math.Copysign(0, -1), -1, 1} {
			zset.elems[i].Score = score
		}
		do := doer(t, open(t, f, nil, nil, zset))
		for _, line := range []string{"ZRANGEBYSCORE z 0 0", "ZRANGEBYSCORE z -0 0", "ZRANGEBYSCORE z 0 +inf LIMIT 0 2", "ZRANGEBYSCORE z (-1 (1", "ZRANGE z 1 2"} {
			if got := do(line); got != "*2\r\n$1\r\na\r\n$1\r\nb\r\n" {
				t.Errorf("%s: %s: %q", f.Name(), line, got)
			}
		}
		if got := do("ZCOUNT z 0 0"); got != ":2\r\n" {
			t.Errorf("%s: %q", f.Name(), got)
		}
	}
}

// TestOtherScore: a member that has another score in its own row is not served by a range, and others are.
func TestOtherScore(t *testing.T) {
	k := open(t, blackwidow.New(), nil, func(m *formattest.Memory) {
		key := blackwidow.AppendDataKey(nil, blackwidow.DataKey{Key: []byte("z"), Version: 1, Name: []byte("m0100")})
		m.Store("zsets").Put("data_cf", key, blackwidow.AppendScore(nil, 7))
	}, put(record.ZSet, "z", some("m", 200)...))
	do := doer(t, k)
	for line, want := range map[string]string{
		"ZCOUNT z 80 84": ":5\r\n", "ZCOUNT z 99 101": `-ERR the value of "z" is damaged: zset-score-mismatch: `, "ZRANGEBYSCORE z 100 100": `-ERR the value of "z" is damaged: `,
	} {
		if got := do(line); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// TestStaleMember: a row by score whose member is of an earlier life of the set is not served.
func TestStaleMember(t *testing.T) {
	k := open(t, nemo.New(), nil, func(m *formattest.Memory) {
		key := nemo.AppendScoreKey(nil, nemo.ScoreKey{Key: []byte("z"), Member: []byte("m0100")})
		m.Store("zset").Put("default", key, nemo.AppendScore(nil, nemo.Score{Score: 100}))
	}, put(record.ZSet, "z", some("m", 200)...))
	do := doer(t, k)
	for line, want := range map[string]string{
		"ZCOUNT z 80 84": ":5\r\n", "ZCOUNT z 99 101": `-ERR the value of "z" is damaged: zset-missing-member-row: `, "ZRANGE z 100 100": `-ERR the value of "z" is damaged: `,
	} {
		if got := do(line); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
