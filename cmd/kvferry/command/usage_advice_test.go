package command

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
)

// packedRDB is a compressed RDB file.
var packedRDB = filepath.Join("..", "..", "..", "fixtures", "golden", "rdb-v90-basic.rdb.gz")

// TestAdvice checks that wrong usage is answered with what is right.
func TestAdvice(t *testing.T) {
	dir, empty := t.TempDir(), t.TempDir()
	link, data := filepath.Join(dir, "link"), golden(t, "nemo-basic")
	if err := os.Symlink("/nowhere", link); err != nil {
		t.Fatal(err)
	}
	near := filepath.Join(t.TempDir(), "backup")
	if err := errors.Join(os.Mkdir(near, 0o755), os.WriteFile(filepath.Join(near, "dump.rdb"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(near, "half.kvferry")
	if err := errors.Join(os.Mkdir(half, 0o755), os.WriteFile(filepath.Join(half, "journal"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"ls", "a"}, `no command "ls"; use kvferry keys SRC`},
		{[]string{"info", "a"}, "use kvferry inspect SRC"},
		{[]string{"stats", "a"}, "use kvferry inspect SRC"},
		{[]string{"scan", "a"}, "use kvferry keys SRC PREFIX"},
		{[]string{"import", "a", "b"}, "use kvferry convert SRC DST"},
		{[]string{"help", "moving"}, `want moving-ardb, moving-kvrocks, moving-pika, `},
		{[]string{"help", "movin"}, `want moving-ardb, `},
		{[]string{"help", "movng"}, `want moving-ardb, `},
		{[]string{"verify", filepath.Join(near, "dmp.rdb")}, `no such file or directory; did you mean "` + filepath.Join(near, "dump.rdb") + `"?`},
		{[]string{"verify", "nemo:" + filepath.Join(near, "dmp.rdb")}, `no such directory; did you mean "` + filepath.Join(near, "dump.rdb") + `"?`},
		{[]string{"verify", filepath.Join(near+"s", "dump.rdb")}, "there is no directory " + near + `s; did you mean "` + filepath.Join(near, "dump.rdb") + `"?`},
		{[]string{"dump", "--key-file", filepath.Join(near, "dmp.rdb"), data}, `did you mean "` + filepath.Join(near, "dump.rdb") + `"?`},
		{[]string{"inspect", "--memory", "512", "MB", data}, "in one word with its unit, such as 512MiB"},
		{[]string{"explain", data, "hex:zz"}, "such as hex:00ff"},
		{[]string{"explain", data, "base64:zz"}, "such as base64:AP8="},
		{[]string{"dump", "--ttl-from", "tomorrow", data}, "a date (its start in UTC)"},
		{[]string{"verify", link}, link + ": a link to /nowhere, which does not exist"},
		{[]string{"convert", data, "nemo:" + filepath.Join(link, "x")}, "/nowhere"},
		{[]string{"convert", data, "nemo:" + link}, "/nowhere"},
		{[]string{"convert", golden(t, "ardb-lmdb-basic"), "ssdb:" + filepath.Join(dir, "new")},
			"kvferry: target " + filepath.Join(dir, "new") + `: database "1": SSDB has a single database, "0"; convert it alone with --db 1`},
		{[]string{"verify", filepath.Join(near, "half")}, "does not exist yet, because its conversion is unfinished; run it again with --resume"},
		{[]string{"verify", half}, "the work directory of an unfinished conversion; run that conversion again with --resume"},
		{[]string{"dump", "--dead", packedRDB}, "leave out --dead"},
		{[]string{"dump", "rdb:" + data}, "name it nemo:" + data},
		{[]string{"dump", "rdb:" + filepath.Dir(packedRDB)}, "is a directory; name the RDB file in it"},
		{[]string{"dump", empty}, "the directory is empty; name the directory of the dataset"},
		{[]string{"dump", "aof:" + empty}, "name the file or its directory"},
	} {
		r := kvferry(t, c.args...)
		if r.code == cli.ExitOK || !strings.Contains(r.stderr, c.want) {
			t.Errorf("%q: exit %d, %s", c.args, r.code, r.stderr)
		}
	}
	ok(t, "dump", "--ttl-to", "2027-01-01", "--keys-only", data)
}

// TestCutRDB checks that every command says that an RDB file is cut off, in which key, and what to do.
func TestCutRDB(t *testing.T) {
	whole := filepath.Join(t.TempDir(), "whole.rdb")
	ok(t, "convert", "--allow-loss", "field-expiry,module", packedRDB, "rdb:"+whole)
	data, err := os.ReadFile(whole)
	cut := filepath.Join(t.TempDir(), "cut.rdb")
	if err == nil {
		err = os.WriteFile(cut, data[:len(data)/2], 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	head := filepath.Join(t.TempDir(), "head.rdb")
	if err := os.WriteFile(head, data[:5], 0o644); err != nil {
		t.Fatal(err)
	}
	if r := kvferry(t, "verify", head); r.code == cli.ExitOK || !strings.Contains(r.stderr, "cut off in its header, after 5 bytes; copy it again") {
		t.Errorf("a header: exit %d, %s", r.code, r.stderr)
	}
	for _, args := range [][]string{{"verify", cut}, {"dump", cut}, {"inspect", cut}, {"fingerprint", cut}} {
		r := kvferry(t, args...)
		if r.code == cli.ExitOK || !strings.Contains(r.stdout+r.stderr, `the file is cut off in the key "`) ||
			!strings.Contains(r.stdout+r.stderr, "copy it again") {
			t.Errorf("%q: exit %d, %.300s%s", args, r.code, r.stdout, r.stderr)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string // "": no suggestion
	}{
		{[]string{"convret", "a", "b"}, `"convert"`},
		{[]string{"fingerprnt", "a"}, `"fingerprint"`},
		{[]string{"frobnicate"}, ""},
		{[]string{"dump", "--formt", "csv", "a"}, `"--format"`},
		{[]string{"dump", "--format", "cvs", "a"}, `"csv"`},
		{[]string{"dump", "--zzzzzz", "a"}, ""},
		{[]string{"dump", "--mach", "x", "a"}, `"--match"`},
		{[]string{"dump", "--json", "a"}, "did you mean --format json?"},
		{[]string{"verify", "--jsn", "a"}, "did you mean --format json?"},
		{[]string{"convert", "a", "blackwidw:b"}, `"blackwidow"`},
		{[]string{"convert", "a", "pika5:b"}, `did you mean "pika2", "pika3" or "pika4"?`},
		{[]string{"convert", "a", "ardb+lvldb:b"}, `"leveldb"`},
		{[]string{"convert", "a", "blackwidow:b", "--allow-loss", "damged"}, `"damaged"`},
		{[]string{"convert", "a", "blackwidow:b", "--on-conflict", "renam"}, `"rename"`},
		{[]string{"convert", "a", "blackwidow:b", "--on-conflict", "keep=hahs"}, `"hash"`},
		{[]string{"dump", "--type", "hahs", "a"}, `did you mean "hash"?`},
		{[]string{"dump", "--format", "jsno", "a"}, `did you mean "json"?`},
		{[]string{"completion", "bsh"}, `"bash"`},
		{[]string{"hlep"}, `"help"`},
		{[]string{"help", "format"}, `did you mean "formats"?`},
	} {
		r := kvferry(t, c.args...)
		if r.code != cli.ExitUsage || !strings.Contains(r.stderr, c.want) || (c.want == "") == strings.Contains(r.stderr, "did you mean") {
			t.Errorf("%q: exit %d, %s", c.args, r.code, r.stderr)
		}
	}
}
