package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/floyd"
	"kvferry/record"
	"kvferry/store"
	"kvferry/store/rocks"
)

// commandsOf yields the indented commands of a docs page in order. It creates directories below root that the page
// assumes, just before the first command that needs them.
func commandsOf(t *testing.T, page, root string) iter.Seq[[]string] {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../../docs", page))
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func([]string) bool) {
		for line := range strings.Lines(string(data)) {
			if dirs, ok := strings.CutPrefix(line, "    mkdir -p "); ok {
				for _, dir := range strings.Fields(dirs) {
					if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
						t.Fatal(err)
					}
				}
			}
			if args, ok := strings.CutPrefix(line, "    kvferry "); ok && !yield(strings.Fields(args)) {
				return
			}
		}
	}
}

// TestMovingPika runs the commands of the page on a database of the original engine, including the way back.
func TestMovingPika(t *testing.T) {
	t.Parallel()
	root := fastDir(t)
	copied := func(from, to string) {
		if err := os.CopyFS(filepath.Join(root, to), os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	src := golden(t, "bw-basic")
	copied(src, "data/pika/dump/20261122")
	info := filepath.Join(root, "data/pika/dump/20261122/info")
	if err := os.WriteFile(info, []byte("3s\n192.168.1.5\n9221\n3\n4711\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	unchanged(t, filepath.Dir(info))
	moved := 0
	for args := range commandsOf(t, "moving-pika.md", root) {
		line, want := strings.Join(args, " "), cli.ExitOK
		switch {
		case args[0] == "diff":
			if _, err := os.Stat(filepath.Join(root, "data/pika4/db/0/info")); err == nil {
				t.Error("info lies in an instance")
			}
		case strings.Contains(line, "--dry-run"):
			want = cli.ExitLossy
		case strings.Contains(line, "pika4/dump"): // the server writes this dump
			dump := "data/" + strings.TrimPrefix(args[len(args)-2][strings.Index(args[len(args)-2], "/data/"):], "/data/")
			copied(filepath.Join(root, "data/pika4/db"), dump)
		}
		for i := range args {
			args[i] = strings.Replace(args[i], "/data/", root+"/data/", 1)
		}
		r := kvferry(t, args...)
		if r.code != want {
			t.Fatalf("kvferry %s: exit %d, want %d\n%s%s", line, r.code, want, r.stdout, r.stderr)
		}
		if args[0] == "convert" && want == cli.ExitOK {
			moved++
			data, err := os.ReadFile(filepath.Join(args[len(args)-1][strings.Index(args[len(args)-1], ":")+1:], "info"))
			if moved <= 2 && (err != nil || !strings.Contains(string(data), "4711")) {
				t.Errorf("kvferry %s: info is %q, %v", line, data, err)
			}
		}
	}
	if moved != 4 {
		t.Errorf("%d conversions of the page were made", moved)
	}
	ok(t, "diff", filepath.Join(root, "data/pika4/db"), filepath.Join(root, "data/eight/db"))
	// The way back must restore the content of 4.0.
	if r := kvferry(t, "diff", filepath.Join(root, "data/pika4/db"), filepath.Join(root, "data/back/db")); r.code != cli.ExitOK {
		t.Errorf("exit %d: %s", r.code, r.stdout)
	}
}

// TestReshardGolden converts a database of the original engine to eight instances and back to three: every key must
// be in the instance of its slot, and all else unchanged.
func TestReshardGolden(t *testing.T) {
	root, src := fastDir(t), golden(t, "pika4-edge")
	unchanged(t, src)
	eight, three := filepath.Join(root, "eight"), filepath.Join(root, "three")
	// The engine truncated keys and counts in this database.
	ok(t, "convert", "pika4:"+src, "pika4:"+eight, "--instances", "8", "--allow-loss", "damaged")
	ok(t, "convert", "pika4:"+eight, "pika4:"+three)
	for dir, n := range map[string]int{eight: 8, three: 3} {
		keys := 0
		for i := range n {
			keys += metaKeys(t, filepath.Join(dir, "db0", fmt.Sprint(i)), func(key []byte) {
				if right := floyd.Slot(key, 1024) % n; right != i {
					t.Errorf("%s: key %q lies in %d, it belongs to %d", dir, key, i, right)
				}
			})
		}
		if keys != 103 {
			t.Errorf("%s: %d keys", dir, keys)
		}
		if out := ok(t, "verify", dir); !strings.Contains(out, "sound") {
			t.Error(out)
		}
		if r := kvferry(t, "diff", src, dir); !strings.Contains(r.stdout, "equal") {
			t.Errorf("diff: exit %d: %s%s", r.code, r.stdout, r.stderr)
		}
	}
}

// metaKeys calls f for the user keys of an instance and returns their number.
func metaKeys(t *testing.T, dir string, f func(key []byte)) (n int) {
	t.Helper()
	s, err := rocks.Open(context.Background(), dir, &store.Options{Comparers: floyd.Comparers()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, ks := range s.Keyspaces() {
		if ks.Name() != "default" {
			continue
		}
		it, err := ks.Rows(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer it.Close()
		for ; ; n++ {
			raw, _, err := it.Next()
			if err == io.EOF {
				return n
			}
			k, kerr := floyd.DecodeMetaKey(raw)
			if err = errors.Join(err, kerr); err != nil || k.Lost > 0 {
				t.Fatalf("%s: key %q: %v", dir, raw, err)
			}
			f(k.Key)
		}
	}
	return n
}

// TestMovingKvrocks runs the commands of the page on databases of the original engines, including the ways back.
func TestMovingKvrocks(t *testing.T) {
	t.Parallel()
	root := fastDir(t)
	for from, to := range map[string]string{"bw-basic": "data/pika/dump/20261122", "ardb-rocksdb-basic": "data/ardb/data"} {
		dir := filepath.Join(root, to)
		if err := os.CopyFS(dir, os.DirFS(golden(t, from))); err != nil {
			t.Fatal(err)
		}
		unchanged(t, dir)
	}
	moved := 0
	for args := range commandsOf(t, "moving-kvrocks.md", root) {
		line, want := strings.Join(args, " "), cli.ExitOK
		switch {
		case strings.Contains(line, "--dry-run"):
			want = cli.ExitLossy
		case args[0] == "convert":
			moved++
		}
		for i := range args {
			args[i] = strings.Replace(args[i], "/data/", root+"/data/", 1)
		}
		if r := kvferry(t, args...); r.code != want {
			t.Fatalf("kvferry %s: exit %d, want %d\n%s%s", line, r.code, want, r.stdout, r.stderr)
		}
	}
	if moved != 9 {
		t.Errorf("%d conversions of the page were made", moved)
	}
	data := func(name string) string { return filepath.Join(root, "data", name) }
	if r := kvferry(t, "diff", data("ardb/data"), data("back/ardb")); !strings.Contains(r.stdout+r.stderr, "0 records missing, 0 extra, 2 differing") {
		t.Errorf("only HyperLogLogs that were sparse differ there and back: %s%s", r.stdout, r.stderr)
	}
	ok(t, "diff", data("kvrocks"), "kvrocks:"+data("kvrocks-node"))
	ok(t, "diff", data("kvrocks"), "kvrocks:"+data("load"))
	ok(t, "diff", "--map-db", "1=users", "--db", "1", data("ardb/data"), "kvrocks:"+data("kvrocks-users"))
	ok(t, "diff", "--map-db", "__namespace=0", data("kvrocks"), data("back/db"))
	if left := entries(t, data("load/sst")); !strings.HasPrefix(left, "1-default 2-zset_score") || !strings.HasSuffix(left, "4-metadata") {
		t.Errorf("sst holds %s", left)
	}
}

// TestReshard checks that every key is in the instance of its slot after a change of the number of instances, and
// that explain shows it there.
func TestReshard(t *testing.T) {
	dst := t.TempDir() + "/eight"
	ok(t, "convert", "pika4:"+buildSmall(t, floyd.New(), floydSet()...), "pika4:"+dst, "--instances", "8")
	for _, r := range floydSet() {
		out := ok(t, "explain", dst, r.key, "--type", r.typ.String())
		right := fmt.Sprintf("%d/", floyd.Slot([]byte(r.key), 1024)%8)
		if !strings.Contains(out, right+"default") {
			t.Errorf("%s is not in %s: %s", r.key, right, out)
		}
		if r.typ != record.String && !strings.Contains(out, right+strings.ToLower(r.typ.String())+"_data_cf") {
			t.Errorf("rows of %s are not in %s: %s", r.key, right, out)
		}
	}
	if out := ok(t, "verify", dst); strings.Contains(out, floyd.FindWrongInstance) {
		t.Error(out)
	}
}
