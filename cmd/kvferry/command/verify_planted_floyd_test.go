package command

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/floyd"
	"kvferry/internal/shared/versioned"
	"kvferry/record"
)

// floydSet has a record of each type, each with its own name.
func floydSet() []small {
	id := []byte("\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00")
	entry := record.Element{Name: id, Value: record.AppendPair(nil, []byte("f"), []byte("v"))}
	return []small{
		smallRecord(record.String, "s", "v"),
		smallRecord(record.Hash, "h", "a=1", "b=2", "c=3"),
		smallRecord(record.List, "l", "x", "y", "z"),
		smallRecord(record.Set, "t", "a", "b", "c"),
		smallRecord(record.ZSet, "z", "a", "b", "c"),
		{typ: record.Stream, key: "x", elems: []record.Element{entry}},
	}
}

// instance returns the directory of a key in a dataset of three instances.
func instance(key string) string { return fmt.Sprint(floyd.Slot([]byte(key), 1024) % 3) }

// floydPlants are kinds of damage to rows of floydSet.
func floydPlants() []plant {
	const v, first = 1, math.MaxInt64 + 1
	meta := func(key string) []byte { return floyd.AppendMetaKey(nil, floyd.MetaKey{Key: []byte(key)}) }
	data := func(key, name string, version floyd.Version) []byte {
		return floyd.AppendDataKey(nil, floyd.DataKey{Key: []byte(key), Version: version, Name: []byte(name)})
	}
	byScore := func(member string, score float64) []byte {
		return floyd.AppendScoreKey(nil, floyd.ScoreKey{Key: []byte("z"), Version: v, Score: score, Member: []byte(member)})
	}
	none := make([]byte, 24)
	counted := func(t record.Type, count int32) []byte {
		return floyd.AppendMeta(nil, floyd.Meta{Type: t, Count: count, Version: v})
	}
	put := func(key, cf string, raw, value []byte, want string) plant {
		return plant{fmt.Sprintf("%s %s", cf, want), instance(key), func(r *rows) { r.put(cf, raw, value) }, want}
	}
	other := map[string]string{"0": "1", "1": "2", "2": "0"}[instance("h")]
	return []plant{
		put("t", "default", meta("t"), counted(record.Set, 7), "error count-mismatch"),
		put("t", "default", meta("t"), counted(record.Set, 0), "warning deleted-rows"),
		{"orphans", instance("h"), func(r *rows) { r.del("default", meta("h")) }, "note orphan-rows"},
		put("s", "default", meta("s"), []byte("\x00short"), "error short-value"),
		put("t", "set_data_cf", data("t", "a", v), []byte("none"), "error count-mismatch, error short-value"),
		put("l", "list_data_cf", data("l", "index", v), none, "error bad-row-key"),
		put("s", "default", []byte("no zeros"), none, "error newer"),
		put("s", "default", []byte("\x00\x00\x00\x00\x00\x00\x00\x00no end"), none, "error bad-key-length"),
		put("s", "default", append(meta("s"), 1), none, "error newer"),
		put("t", "set_data_cf", data("t", "a", v), append([]byte{1}, none[1:]...), "error count-mismatch, error newer"),
		put("h", "default", meta("h"), append([]byte{6}, counted(record.Hash, 3)[1:]...), "error newer"),
		put("h", "hash_data_cf", data("h", "d", 2), none, "warning newer-version"),
		put("h", "hash_data_cf", data("h", "d", 0), none, ""),
		put("h", "hash_data_cf", data("h", "a", v), []byte("12"), ""), // written by HINCRBY of 4.0.0
		{"no rank", instance("z"), func(r *rows) { r.del("zset_score_cf", byScore("b", 1)) }, "error zset-missing-score-row"},
		put("z", "zset_score_cf", byScore("ghost", 1), none, "error zset-missing-member-row"),
		{"hole", instance("l"), func(r *rows) { r.del("list_data_cf", data("l", string(le64(first+1)), v)) }, "error list-missing-index"},
		put("l", "list_data_cf", data("l", string(le64(first+9)), v), none, "error list-outside-bounds"),
		put("x", "stream_data_cf", data("x", "\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00", v), []byte("pairs"), "error count-mismatch, error short-value"),
		put("x", "default", meta("x"), floyd.AppendStreamMeta(nil, floyd.StreamMeta{Length: 1, Version: v,
			Stream: versioned.StreamMeta{Last: versioned.ID{15: 1}}}), "error stream-last-id"),
		put("s", "default", append(meta("n\x00"), "cut"...), floyd.AppendStringValue(nil, floyd.StringValue{}), "error truncated-key"),
		{"same key", "0", func(r *rows) {
			r.put("default", append(meta("{}\x00"), "cut"...), floyd.AppendStringValue(nil, floyd.StringValue{}))
			r.put("default", meta("{}\x00"), floyd.AppendStringValue(nil, floyd.StringValue{}))
		}, "error colliding-keys"},
		{"elsewhere", other, func(r *rows) { r.put("default", meta("h"), floyd.AppendStringValue(nil, floyd.StringValue{})) }, "error wrong-instance"},
	}
}

func le64(n uint64) []byte {
	var b []byte
	for range 8 {
		b, n = append(b, byte(n)), n>>8
	}
	return b
}

func TestVerifyPlantedFloyd(t *testing.T) {
	for _, p := range floydPlants() {
		t.Run(p.name, func(t *testing.T) { p.check(t, buildSmall(t, floyd.New(), floydSet()...)) })
	}
}

// TestUnknownFormEverywhere checks that every command reports a row in an unknown form and reads the other rows.
func TestUnknownFormEverywhere(t *testing.T) {
	t.Parallel()
	dir, sound := buildSmall(t, floyd.New(), floydSet()...), buildSmall(t, floyd.New(), floydSet()...)
	alter(t, filepath.Join(dir, instance("s")), func(r *rows) {
		v := floyd.AppendStringValue(nil, floyd.StringValue{Bytes: []byte("v")})
		v[2] = 0x01 // the first reserved byte
		r.put("default", floyd.AppendMetaKey(nil, floyd.MetaKey{Key: []byte("s")}), v)
	})
	for _, args := range [][]string{{"verify", dir}, {"dump", dir}, {"inspect", dir}, {"explain", dir, "s"}, {"fingerprint", dir},
		{"diff", dir, sound}, {"diff", dir, dir}, {"convert", dir, "pika3:" + t.TempDir() + "/out"}} {
		if r := kvferry(t, args...); r.code == cli.ExitOK || !strings.Contains(r.stdout+r.stderr, record.FindNewer) {
			t.Errorf("%s: exit %d: %s%s", args, r.code, r.stdout, r.stderr)
		}
	}
	out := t.TempDir() + "/out"
	ok(t, "convert", dir, "pika3.5:"+out, "--allow-loss", record.LossNewer)
	for key, want := range map[string]bool{"s": false, "h": true, "x": true} {
		if r := kvferry(t, "explain", out, key); (r.code == cli.ExitOK) != want {
			t.Errorf("%s: exit %d: %s%s", key, r.code, r.stdout, r.stderr)
		}
	}
}

// TestVerifyOtherSlots checks that keys distributed by another number of slots are accepted.
func TestVerifyOtherSlots(t *testing.T) {
	t.Parallel()
	src, dst := golden(t, "nemo-basic"), t.TempDir()+"/dst"
	ok(t, "convert", src, "pika4:"+dst, "--slots", "1", "--instances", "4", "--on-conflict", "keep=", "--allow-loss", "inner-nul")
	r := kvferry(t, "verify", dst)
	if r.code != cli.ExitOK || !strings.Contains(r.stdout, floyd.FindSlots) {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	again := t.TempDir() + "/again"
	ok(t, "convert", "pika4:"+dst, "pika4:"+again, "--instances", "8")
	ok(t, "diff", dst, again)
	ok(t, "verify", again)
}
