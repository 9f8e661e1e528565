package command

import (
	"path/filepath"
	"strings"
	"testing"

	"kvferry/blackwidow"
	"kvferry/cmd/kvferry/cli"
	"kvferry/format"
	"kvferry/nemo"
	"kvferry/record"
)

// TestUndeleteGoldens checks that records that the engines deleted are restored from rows still on disk. Both engines
// ran the same commands, so the result must be the same.
func TestUndeleteGoldens(t *testing.T) {
	var lists [2]string
	for i, name := range []string{"nemo-basic", "bw-basic"} {
		src := golden(t, name)
		r := kvferry(t, "dump", "--dead", "--match", "s1:stale[45]", src)
		if r.code != cli.ExitOK || r.stderr != "" {
			t.Fatalf("%s: exit %d, %s", name, r.code, r.stderr)
		}
		lists[i] = r.stdout
		if live := ok(t, "dump", "--match", "s1:stale[45]", src); live != "" {
			t.Errorf("%s: the keys are alive: %.100s", name, live)
		}
	}
	if lists[0] != lists[1] {
		t.Errorf("nemo:\n%.500s\nblackwidow:\n%.500s", lists[0], lists[1])
	}
	for _, want := range []string{`"type":"string","key":"s1:stale4","expire_at_ms":0,"value":"stale string"`,
		`"type":"list","key":"s1:stale5","expire_at_ms":0,"value":["old23","old21",`, `"type":"zset"`, `"type":"set"`, `"type":"hash"`} {
		if !strings.Contains(lists[0], want) {
			t.Errorf("not there: %s", want)
		}
	}
	if n := strings.Count(lists[0], "\n"); n != 10 {
		t.Errorf("%d records, want 10", n)
	}
}

// plantDelete changes a store like DEL of the collection k.
func plantDelete(t *testing.T, f format.Format, dir string) {
	t.Helper()
	if f.Name() == "nemo" {
		for _, typ := range []string{"hash", "set", "zset"} {
			alter(t, filepath.Join(dir, typ), func(r *rows) {
				r.put("default", []byte(strings.ToUpper(typ[:1])+"k"),
					nemo.AppendMeta(nil, nemo.Meta{Suffix: nemo.Suffix{Version: 2}}))
			})
		}
		alter(t, filepath.Join(dir, "list"), func(r *rows) {
			r.put("default", []byte("Lk"), nemo.AppendListMeta(nil, nemo.ListMeta{NextSeq: 1, Suffix: nemo.Suffix{Version: 2}}))
		})
		return
	}
	for _, typ := range []string{"hashes", "sets", "zsets"} {
		alter(t, filepath.Join(dir, typ), func(r *rows) {
			r.put("default", nk, blackwidow.AppendMeta(nil, blackwidow.Meta{Version: 2}))
		})
	}
	alter(t, filepath.Join(dir, "lists"), func(r *rows) {
		r.put("default", nk, blackwidow.AppendListMeta(nil, blackwidow.ListMeta{Version: 2, Left: 1<<63 - 1, Right: 1 << 63}))
	})
}

// TestUndeleteWithoutMeta checks that elements are restored without the old meta row, and that unknown details are
// reported.
func TestUndeleteWithoutMeta(t *testing.T) {
	for _, f := range []format.Format{nemo.New(), blackwidow.New()} {
		records := append(smallSet(), smallRecord(record.Hash, "other", "f=v"))[1:]
		dir := buildSmall(t, f, records...)
		want := ok(t, "dump", dir, "--match", "k")
		plantDelete(t, f, dir)
		unchanged(t, dir)
		if live := ok(t, "dump", dir, "--match", "k"); live != "" {
			t.Errorf("%s: still alive: %s", f.Name(), live)
		}
		r := kvferry(t, "dump", "--dead", dir)
		if r.stdout != want {
			t.Errorf("%s:\n%swant\n%s", f.Name(), r.stdout, want)
		}
		for _, typ := range []string{"hash", "list", "set", "zset"} {
			line := "kvferry: " + typ + ` "k" in database 0: its meta row is gone: its expiry is unknown`
			if !strings.Contains(r.stderr, line) {
				t.Errorf("%s: not said: %s\n%s", f.Name(), line, r.stderr)
			}
		}
		if r := kvferry(t, "dump", "--dead", "--type", "set", dir); strings.Count(r.stdout, "\n") != 1 ||
			strings.Contains(r.stderr, "hash") {
			t.Errorf("of sets alone: %s%s", r.stdout, r.stderr)
		}
	}
}

// TestUndeleteGoldensArdb restores deleted keys of Ardb. Its server ran the same commands on both engines: LevelDB
// kept the deleted keys completely, RocksDB what its flushes left.
func TestUndeleteGoldensArdb(t *testing.T) {
	lines := func(name string) (head []string, said string) {
		r := kvferry(t, "dump", "--dead", golden(t, name))
		if r.code != cli.ExitOK {
			t.Fatalf("%s: exit %d, %s", name, r.code, r.stderr)
		}
		for _, l := range strings.Split(strings.TrimSuffix(r.stdout, "\n"), "\n") {
			key, _, _ := strings.Cut(strings.SplitN(l, `"key":"`, 2)[1], `"`)
			head = append(head, key)
		}
		return head, r.stderr
	}
	level, said := lines("ardb-leveldb-basic")
	if got := strings.Join(level, " "); got != "del:h l:left ren:src s:str str:rnd:0002 ttl:del" {
		t.Errorf("LevelDB: %s", got)
	}
	if !strings.Contains(said, `hash "del:h" in database 0: its META row has no element count; 200 elements are still on disk`) {
		t.Errorf("LevelDB: said %s", said)
	}
	if rocks, said := lines("ardb-rocksdb-basic"); strings.Join(rocks, " ") != "l:left s:str str:rnd:0002" || said != "" {
		t.Errorf("RocksDB: %s, said %s", rocks, said)
	}
}

// TestUndeleteAsCommands checks that the output of dump --dead can be piped into a server.
func TestUndeleteAsCommands(t *testing.T) {
	got := ok(t, "dump", "--dead", "--format", "resp", "--type", "string", "--match", "s1:stale4", golden(t, "nemo-basic"))
	if want := "*3\r\n$3\r\nSET\r\n$9\r\ns1:stale4\r\n$12\r\nstale string\r\n"; got != want {
		t.Errorf("got %q", got)
	}
}

// TestUndeleteOrphans checks collections whose meta row a compaction has dropped before the data rows. The data rows
// determine type and key. Keys must come in key order, which differs from the order of data rows, merged with those
// that have a meta row.
func TestUndeleteOrphans(t *testing.T) {
	for _, f := range []format.Format{nemo.New(), blackwidow.New()} {
		var records []small
		for _, key := range []string{"aaa", "b", "cc", "ddd", "k", strings.Repeat("x", 200), "y"} {
			for _, r := range smallSet()[1:] {
				r.key = key
				records = append(records, r)
			}
		}
		if f.Name() == "blackwidow" {
			records = append(records, smallRecord(record.Set, "", "of the empty key"),
				smallRecord(record.List, strings.Repeat("l", 300), "x"))
		}
		dir := buildSmall(t, f, records...)
		want := ok(t, "dump", dir)
		plantDelete(t, f, dir)
		keep := string(nk) // its meta row remains, with count 0
		for store, first := range map[string]string{"hash": "H", "list": "L", "set": "S", "zset": "Z", "hashes": "", "lists": "",
			"sets": "", "zsets": ""} {
			if (first != "") != (f.Name() == "nemo") {
				continue
			}
			alter(t, filepath.Join(dir, store), func(r *rows) {
				for k := range r.kv["default"] {
					if strings.HasPrefix(k, first) && k != first+keep {
						delete(r.kv["default"], k)
					}
				}
			})
		}
		unchanged(t, dir)
		if live := ok(t, "dump", dir); live != "" {
			t.Errorf("%s: still alive: %s", f.Name(), live)
		}
		r := kvferry(t, "dump", "--dead", dir)
		if r.code != cli.ExitOK || r.stdout != want {
			t.Errorf("%s: exit %d\n%swant\n%s", f.Name(), r.code, r.stdout, want)
		}
		if n := strings.Count(r.stderr, ": its meta row is gone: its expiry is unknown\n"); n != len(records) {
			t.Errorf("%s: said of %d records, want %d:\n%s", f.Name(), n, len(records), r.stderr)
		}
	}
}
