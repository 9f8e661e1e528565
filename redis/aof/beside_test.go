package aof

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"kvferry/redis/rdb"
)

// dumpOf returns an RDB file with a key. made is its field ctime; 0: none.
func dumpOf(made int64, keys ...string) string {
	v := rdb.Version{Number: 6}
	b := rdb.AppendHead(nil, v, 0)
	if made > 0 {
		b = rdb.AppendAux(b, "ctime", fmt.Sprint(made))
	}
	b = rdb.AppendDatabase(b, v, 0, 1, 0)
	for _, key := range keys {
		b = append(append(b, 0, byte(len(key))), key...)
		b = append(b, 1, 'v')
	}
	return string(rdb.AppendEOF(b)) + "\x00\x00\x00\x00\x00\x00\x00\x00"
}

// TestLogOlder compares exact times with each other, and else those of the files.
func TestLogOlder(t *testing.T) {
	const manifest = "appendonlydir/appendonly.aof.manifest"
	const increment = "appendonlydir/appendonly.aof.1.incr.aof"
	set := commandsOf("SET k v")
	at := func(s int64) string { return fmt.Sprintf("#TS:%d\r\n", s) }
	for _, x := range []struct {
		name          string
		made          int64  // field of the dump
		base          int64  // field of the base; 0: no base
		log           string // increment
		dumpAt, logAt int64  // times of the files
		older         bool
	}{
		{"files", 0, 0, set, 2000, 1000, true},
		{"files, the other way", 0, 0, set, 1000, 2000, false},
		{"the same second", 0, 0, set, 1000, 1000, false},
		{"written while the dump was made", 1000, 0, set, 1500, 1200, false},
		{"written before the dump began", 1300, 0, set, 1500, 1200, true},
		{"the times of files are of a copy", 1300, 0, at(1200) + set, 9000, 9000, true},
		{"the last annotation counts", 1300, 0, at(1200) + set + at(1400) + set, 9000, 8000, false},
		{"a value is no annotation", 1300, 0, at(1400) + commandsOf("SET k #TS:1000"), 9000, 8000, false},
		{"an annotation and a dump without a field", 0, 0, at(100) + set, 1000, 2000, false},
		{"a base that is newer", 1300, 1400, set, 9000, 1000, false},
		{"a field later than the file", 5000, 0, set, 1000, 2000, false},
		{"the base of a copy", 1300, 1200, at(1250) + set, 9000, 9000, true},
	} {
		files := map[string]string{"dump.rdb": dumpOf(x.made, "k"), increment: x.log, manifest: "file appendonly.aof.1.incr.aof seq 1 type i\n"}
		if x.base > 0 {
			files["appendonlydir/appendonly.aof.1.base.rdb"] = dumpOf(x.base, "k")
			files[manifest] = "file appendonly.aof.1.base.rdb seq 1 type b\n" + files[manifest]
		}
		dir := tree(t, files)
		for name := range files {
			when := time.Unix(x.logAt, 0)
			if name == "dump.rdb" {
				when = time.Unix(x.dumpAt, 0)
			}
			if err := os.Chtimes(filepath.Join(dir, name), when, when); err != nil {
				t.Fatal(err)
			}
		}
		b, err := FindDumpOf(dir)
		if err != nil || b.Dump == "" || b.LogOlder() != x.older {
			t.Errorf("%s: older %v, %v", x.name, !x.older, err)
		}
	}
}

// TestEmpty: an empty log has neither keys nor commands.
func TestEmpty(t *testing.T) {
	for text, want := range map[string]bool{
		"":                            true,
		"#TS:1000\r\n":                true,
		commandsOf("SELECT 3"):        true,
		commandsOf("SELECT 3\nDEL k"): false,
		"*1\r\n$3\r\nSE":              true, // servers truncate it
		commandsOf("MULTI\nSET k v"):  true,
		commandsOf("MULTI\nSET k v") + "*1\r\n$4\r\nEX": true,
		commandsOf("MULTI\nSET k v\nEXEC"):              false,
		"x":                                             false,
		dumpOf(1):                                       true,
		dumpOf(1, "k"):                                  false,
		dumpOf(1) + commandsOf("SET k v"):               false,
		dumpOf(1) + "#TS:1000\r\n":                      true,
		dumpOf(1)[:12]:                                  false,
	} {
		path := filepath.Join(tree(t, map[string]string{"f": text}), "f")
		if got := isEmpty(path); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestBeside finds the dump beside a log, and the reverse, from any location of either.
func TestBeside(t *testing.T) {
	const increment, manifest = "appendonlydir/appendonly.aof.1.incr.aof", "appendonlydir/appendonly.aof.manifest"
	several := map[string]string{"dump.rdb": dumpOf(1, "k"), increment: commandsOf("SET k v"), manifest: "file appendonly.aof.1.incr.aof seq 1 type i\n"}
	one := map[string]string{"dump.rdb": dumpOf(1, "k"), "appendonly.aof": commandsOf("SET k v")}
	other := map[string]string{"backup.rdb": dumpOf(1, "k"), "temp-1.rdb": dumpOf(1, "k"), "log.aof": commandsOf("SET k v")}
	for _, x := range []struct {
		files            map[string]string
		location         string
		dump, at, server string
	}{
		{several, ".", "dump.rdb", "appendonlydir", "true"},
		{several, "appendonlydir", "dump.rdb", "appendonlydir", "false"},
		{several, manifest, "dump.rdb", "appendonlydir", "false"},
		{several, increment, "dump.rdb", "appendonlydir", "false"},
		{several, "dump.rdb", "dump.rdb", "appendonlydir", "false"},
		{one, ".", "dump.rdb", "appendonly.aof", "true"},
		{one, "appendonly.aof", "dump.rdb", "appendonly.aof", "false"},
		{one, "dump.rdb", "dump.rdb", "appendonly.aof", "false"},
		{other, ".", "backup.rdb", "log.aof", "true"},
		{other, "log.aof", "", "log.aof", "false"},
		{other, "backup.rdb", "", "", ""}, // a directory of files, not of a server
		{other, "temp-1.rdb", "", "", ""},
	} {
		dir := tree(t, x.files)
		location := filepath.Join(dir, filepath.FromSlash(x.location))
		find := FindDumpOf
		if filepath.Ext(location) == ".rdb" {
			find = FindLogOf
		}
		b, err := find(location)
		if err != nil {
			t.Errorf("%s: %v", x.location, err)
			continue
		}
		var got [3]string
		if b != nil {
			got = [3]string{b.Dump, b.At, fmt.Sprint(b.Server)}
			for i := range got[:2] {
				if rel, err := filepath.Rel(dir, got[i]); err == nil && got[i] != "" {
					got[i] = filepath.ToSlash(rel)
				}
			}
		}
		if want := [3]string{x.dump, x.at, x.server}; got != want {
			t.Errorf("%s: %q, want %q", x.location, got, want)
		}
	}
}
