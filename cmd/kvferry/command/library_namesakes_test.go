package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/internal/testkit/redistest"
	"kvferry/redis/rdb"
)

// moduleValue returns a module value in the form of files: its id and an integer.
func moduleValue(name string, n uint64) []byte {
	const chars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	id := uint64(0)
	for _, c := range name {
		id = id<<6 | uint64(strings.IndexRune(chars, c))
	}
	b := rdb.AppendLen(rdb.AppendLen(nil, id<<10), 1)
	return rdb.AppendLen(rdb.AppendLen(b, n), 0)
}

// namesakes returns a file with a function library and module data, before or after keys with the same names that
// hold module values.
func namesakes(t *testing.T, behind bool, leaveOut string) string {
	t.Helper()
	version, err := rdb.ParseVersion("11")
	if err != nil {
		t.Fatal(err)
	}
	b := rdb.AppendHead(nil, version, 1)
	add := func(name string, item []byte) {
		if name != leaveOut {
			b = append(b, item...)
		}
	}
	bare := func() {
		add("library", rdb.AppendFunction(nil, []byte("#!lua name=x\nreturn 1")))
		add("aux", rdb.AppendModuleAux(nil, moduleValue("ReJSON-RL", 7)))
	}
	if !behind {
		bare()
	}
	b = rdb.AppendDatabase(b, version, 0, 3, 1)
	key := func(name string, n uint64, expire int64) {
		add(name, append(rdb.AppendKey(nil, rdb.TypeModule, []byte(name), expire), moduleValue("ReJSON-RL", n)...))
	}
	key("FUNCTION x", 1, 4102444800000)
	key("MODULE_AUX ReJSON-RL", 2, 0)
	key("FUNCTION alone", 3, 0)
	if behind {
		bare()
	}
	path := filepath.Join(t.TempDir(), "dump.rdb")
	if err := os.WriteFile(path, append(rdb.AppendEOF(b), make([]byte, 8)...), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestNamesakesOfLibraries checks that every command treats a key named like a function library or module data as a
// key, at any position in the file.
func TestNamesakesOfLibraries(t *testing.T) {
	const want = `{"db":"0","type":"other","key":"FUNCTION alone","expire_at_ms":0
{"db":"0","type":"other","key":"FUNCTION x","expire_at_ms":4102444800000
{"db":"0","type":"other","key":"FUNCTION x","keyless":"function","expire_at_ms":0
{"db":"0","type":"other","key":"MODULE_AUX ReJSON-RL","expire_at_ms":0
{"db":"0","type":"other","key":"MODULE_AUX ReJSON-RL","keyless":"module-aux","expire_at_ms":0
`
	front, behind := namesakes(t, false, ""), namesakes(t, true, "")
	for _, src := range []string{front, behind} {
		copied := filepath.Join(t.TempDir(), "copied.rdb")
		ok(t, "convert", "--rdb-version", "11", src, "rdb:"+copied)
		log := filepath.Join(t.TempDir(), "log")
		ok(t, "convert", "--allow-loss", "module", "--rdb-version", "11", src, "aof:"+log)
		for _, file := range []string{src, copied} {
			for _, keysOnly := range []bool{false, true} {
				args, end := []string{"dump", "--type", "other", file}, `,"native"`
				if keysOnly {
					args, end = append(args, "--keys-only"), `,"elements"`
				}
				var got strings.Builder
				for _, line := range sortedLines([]byte(ok(t, args...))) {
					head, _, _ := strings.Cut(line, end)
					got.WriteString(head + "\n")
				}
				if got.String() != want {
					t.Errorf("%s: %s\nwant %s", file, got.String(), want)
				}
			}
		}
		for _, other := range []string{front, behind, copied, log} {
			if out := ok(t, "diff", "--direct", src, other); !strings.Contains(out, "equal: 5 records") {
				t.Errorf("%s", out)
			}
		}
		if out := ok(t, "diff", src, copied); !strings.HasPrefix(out, "equal: the fingerprints") {
			t.Errorf("%s", out)
		}
		for _, x := range []struct{ without, missing string }{
			{"library", `"key":"FUNCTION x","keyless":"function"}`}, {"FUNCTION x", `"key":"FUNCTION x"}`},
			{"aux", `"key":"MODULE_AUX ReJSON-RL","keyless":"module-aux"}`}, {"FUNCTION alone", `"key":"FUNCTION alone"}`},
		} {
			r := kvferry(t, "diff", "--format", "patch", src, namesakes(t, src == behind, x.without))
			if r.code != cli.ExitFindings || !strings.HasPrefix(r.stdout, `{"op":"remove","db":"0","type":"other",`+x.missing) ||
				strings.Count(r.stdout, `"op":"remove"`) != 1 {
				t.Errorf("without %s: exit %d, %s", x.without, r.code, r.stdout)
			}
		}
		for without, line := range map[string]string{"library": `missing 0 other "FUNCTION x" (a function, not a key)`,
			"FUNCTION x": `missing 0 other "FUNCTION x"`} {
			if r := kvferry(t, "diff", src, namesakes(t, src == behind, without)); !strings.HasPrefix(r.stdout, line+"\n") {
				t.Errorf("without %s: %s", without, r.stdout)
			}
		}
		out := ok(t, "explain", src, "FUNCTION x")
		for _, want := range []string{`other alive, 1 element, expires at 2100-01-01T00:00:00Z`,
			`other alive, a function, not a key, 1 element, never expires`, "2 rows, 2 alive"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in %s", want, out)
			}
		}
		out = ok(t, "explain", "--now", "2100-01-02T00:00:00Z", src, "FUNCTION x")
		if !strings.Contains(out, "2 rows, 1 alive") {
			t.Errorf("expired: %s", out)
		}
	}
}

// TestPatchNamesakes checks that data that only the server has is deleted as a key or as a library, by the kind in
// the patch.
func TestPatchNamesakes(t *testing.T) {
	s := redistest.Start(t)
	c, server := s.Client(), "redis://"+s.Addr
	dir := t.TempDir()
	t.Chdir(dir) // for reports
	c.Must(t, "FUNCTION", "LOAD", "#!lua name=x\nredis.register_function('f', function() return 1 end)")
	c.Must(t, "SET", "FUNCTION x", "precious")
	ok(t, "convert", "--rdb-version", "10", "--type", "string", server, "rdb:"+filepath.Join(dir, "a.rdb"))
	if r := kvferry(t, "diff", "--format", "patch", "-o", "p", "a.rdb", server); r.code != cli.ExitFindings {
		t.Fatalf("exit %d: %s", r.code, r.stderr)
	}
	patch, err := os.ReadFile("p")
	if err != nil || !strings.Contains(string(patch), `{"op":"delete","db":"0","type":"other","key":"FUNCTION x","keyless":"function"}`) {
		t.Fatalf("%v: %s", err, patch)
	}
	ok(t, "patch", "p", server)
	if list := c.Must(t, "FUNCTION", "LIST").([]any); len(list) != 0 || redistest.Text(c.Must(t, "GET", "FUNCTION x")) != "precious" {
		t.Errorf("libraries %v, key %v", list, c.Must(t, "GET", "FUNCTION x"))
	}
}
