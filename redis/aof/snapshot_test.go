package aof

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/internal/testkit/redistest"
	"kvferry/record"
	"kvferry/redis"
)

// TestSnapshotItems: items of an RDB part are read as in a file, and unreadable ones are reported.
func TestSnapshotItems(t *testing.T) {
	item := func(s string) []byte { return []byte(s) }
	const expiry = "\xfc\x00\x00\x00\x00\x00\x04\x00\x00" // 2^42 ms
	member := func(name, when string) string {
		return "\xfa\x13keydb-subexpire-key" + string(rune(len(name))) + name + "\xfa\x14keydb-subexpire-when" +
			string(rune(len(when))) + when
	}
	library := "\xf5\x0e#!lua name=l\nx"
	str := func(v string) string { return redistest.Form("string", 0, []string{v}) }
	for name, x := range map[string]struct {
		items   string
		salvage bool
		want    map[string]string
		kind    string
		err     string
	}{
		"an expiry before other items": {items: expiry + "\xfa\x01n\x01v\xfe\x00" + library + "\x00\x01a\x011\x00\x01b\x012",
			want: map[string]string{"0/a": redistest.Form("string", 1<<42, []string{"1"}), "0/b": str("2")}},
		"members that expire": {items: "\x02\x01s\x03\x01a\x01b\x01c" + member("a", "4000000000000") + member("b", "1"),
			want: map[string]string{"0/s": redistest.Form("set", 0, []string{"a", "c"})}, kind: redis.FindMemberExpiry},
		"templates":          {items: "\xf2\x01\x01\x01f\x20\x01h\x01\x01v", want: map[string]string{"0/h": redistest.Form("hash", 0, []string{"f=v"})}},
		"a library twice":    {items: library + library + "\x00\x01a\x011", want: map[string]string{"0/a": str("1")}, kind: redis.FindDuplicateKey},
		"a library of 7.0rc": {items: "\xf6\x01l\x03LUA\x00\x01x\x00\x01a\x011", want: map[string]string{"0/a": str("1")}, kind: record.FindNewer},
		"an unknown value":   {items: "\x12\x01l\x01\x07\x01x\x00\x01a\x011", want: map[string]string{"0/a": str("1")}, kind: record.FindNewer},
		"an unknown type":    {items: "\x00\x01a\x011\x3f\x01l\x01x\x00\x01b\x012", want: map[string]string{"0/a": str("1")}, kind: record.FindNewer},
		"a damaged value":    {items: "\x0b\x01s\x01x\x00\x01a\x011", err: "intset"},
		"passed over":        {items: "\x0b\x01s\x01x\x00\x01a\x011", salvage: true, want: map[string]string{"0/a": str("1")}, kind: redis.FindDamagedValue},
	} {
		log := snapshotOf(0, item(x.items)) + commandsOf("SET z 1")
		src, found, err := open(t, filepath.Join(tree(t, map[string]string{"a.aof": log}), "a.aof"), x.salvage)
		if x.err != "" || err != nil {
			if x.err == "" || !strings.Contains(fmt.Sprint(err), x.err) {
				t.Errorf("%s: %v, want %s", name, err, x.err)
			}
			continue
		}
		if name != "an unknown type" { // the offset of the commands is unknown then
			x.want["0/z"] = str("1")
		}
		got := contents(t, src, 1)
		delete(got, "0/FUNCTION l")
		for _, d := range redistest.Diff(x.want, got, 3) {
			t.Errorf("%s: %s", name, d)
		}
		if (len(found) > 0) != (x.kind != "") || len(found) > 0 && found[0].Kind != x.kind {
			t.Errorf("%s: findings %v", name, found)
		}
		if err := src.Close(); err != nil {
			t.Error(err)
		}
	}
}
