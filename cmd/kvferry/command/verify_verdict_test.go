package command

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/fixtures"
)

// verdictOf is what verify says of a dataset in JSON.
type verdictOf struct {
	Records, Elements int64
	Verdict           *struct {
		Cause, Lost, Next string
		Sure              string `json:"how_sure"`
		Unread            int64  `json:"unread_bytes"`
		Data              int64  `json:"data_bytes"`
	}
}

func readVerdict(t *testing.T, args ...string) (v verdictOf) {
	t.Helper()
	r := kvferry(t, append([]string{"verify", "--format", "json"}, args...)...)
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil {
		t.Fatalf("exit %d: %v: %s%s", r.code, err, r.stdout, r.stderr)
	}
	return v
}

// TestVerdictOfDamage: the verdict on damaged goldens knows that rows were not read, and how many bytes of tables.
func TestVerdictOfDamage(t *testing.T) {
	t.Parallel()
	names := []string{"bw-basic", "ardb-leveldb-basic", "nemo-basic", "kvrocks-mixed", "ssdb-basic"}
	if testing.Short() {
		names = names[:2]
	}
	for _, name := range names {
		sound := readVerdict(t, golden(t, name))
		if v := sound.Verdict; v != nil && (v.Lost != "nothing" || v.Unread != 0) {
			t.Errorf("%s: a sound dataset lost %s", name, v.Lost)
		}
		for _, damage := range slices.Sorted(maps.Keys(damagesOf)) {
			dir := fixtures.Unpack(t, name)
			path, _ := damagesOf[damage](t, dir)
			got := readVerdict(t, dir)
			v := got.Verdict
			switch {
			case v == nil:
				t.Fatalf("%s, %s: no verdict", name, damage)
			case damage == "lost CURRENT":
				if v.Unread != 0 || !strings.HasPrefix(v.Lost, "no rows of tables") {
					t.Errorf("%s, %s: %+v", name, damage, v)
				}
			case strings.HasPrefix(v.Cause, "manifest-behind") && damage == "missing table": // another table is not listed
				if v.Lost == "" || !strings.Contains(v.Sure, "a missing table leaves no trace") {
					t.Errorf("%s, %s: %+v", name, damage, v)
				}
			case v.Unread == 0 || v.Unread > v.Data || !strings.HasPrefix(v.Lost, "the rows in ") ||
				!strings.HasPrefix(v.Sure, "a lower bound") ||
				!strings.Contains(v.Cause, filepath.Base(path)) || !strings.HasPrefix(v.Next, "kvferry convert --allow-loss damaged"):
				t.Errorf("%s, %s: %+v", name, damage, v)
			}
			few := readVerdict(t, "--max-findings", "0", dir)
			if *few.Verdict != *v {
				t.Errorf("%s, %s: with no findings listed: %+v, want %+v", name, damage, few.Verdict, v)
			}
		}
	}
}

// TestVerdictOfUnread: where keys were not read, the verdict says so, and never that everything was read.
func TestVerdictOfUnread(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const head, end = "REDIS0011\xfe\x00\xfb\x03\x00\x00\x01a\x011", "\xff\x00\x00\x00\x00\x00\x00\x00\x00"
	for name, c := range map[string]struct{ file, lost, sure, cause string }{
		"type.rdb": {head + "\xd0\x01b\x01x\x00\x01c\x01x" + end, "everything from offset 19 on, 19 B of 38 B (50 %): 2 of the 3 keys that the file announces (67 %)", "the file records", "newer in "},
		"cut.rdb":  {head + "\x00\x01b", "everything from offset 19 on: 2 of the 3 keys that the file announces (67 %)", "the file records", "damaged-file in "},
		"value.rdb": {head + "\x0b\x01s\x0a\x02\x00\x00\x00\x02\x00\x00\x00\x05\x00" + "\x00\x01c\x01x" + end,
			"rows and values not read, or not to their end: 1 (damaged-value 1)", "everything else was read", ""},
		"command.aof": {"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n*6\r\n$4\r\nVADD\r\n$1\r\nv\r\n$6\r\nVALUES\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\ne\r\n",
			"rows and values not read, or not to their end: 1 (aof-command 1)", "everything else was read", ""},
		"rest.aof": {"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\nnone\r\n*1\r\n$1\r\nx\r\n", "the log from offset 27 of rest.aof on, 17 B of 44 B (39 %)", "a log does not record", "aof-damaged in "},
		"header":   {"REDIS0011", "", "", ""},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		v := readVerdict(t, path).Verdict
		if v == nil || c.lost != "" && v.Lost != c.lost || !strings.HasPrefix(v.Sure, c.sure) ||
			!strings.HasPrefix(v.Cause, c.cause) ||
			strings.Contains(v.Lost, "no rows") || strings.HasPrefix(v.Sure, "everything was read") {
			t.Errorf("%s: %+v", name, v)
		}
	}
	path, out := filepath.Join(dir, "type.rdb"), filepath.Join(dir, "out")
	for _, form := range []string{"text", "json", "junit", "sarif"} {
		r := kvferry(t, "verify", "--format", form, "-o", out, path)
		if lines := strings.Split(strings.TrimSuffix(r.stderr, "\n"), "\n"); r.code != cli.ExitFindings || len(lines) != 1 ||
			!strings.HasPrefix(lines[0], "kvferry: "+path+": 1 error; cause: newer in ") ||
			!strings.Contains(lines[0], "; lost: everything from") ||
			!strings.Contains(lines[0], "; certainty: ") || !strings.Contains(lines[0], "; next: kvferry convert") {
			t.Errorf("%s: exit %d: %q", form, r.code, r.stderr)
		}
	}
	if r := kvferry(t, "verify", "-o", out, golden(t, "bw-basic")); r.code != cli.ExitOK || r.stderr != "" {
		t.Errorf("a sound dataset: exit %d: %q", r.code, r.stderr)
	}
}
