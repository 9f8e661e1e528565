package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kvferry/cmd/kvferry/cli"
	"kvferry/internal/testkit/redistest"
	"kvferry/internal/testkit/s3test"
)

// serverDir makes the directory of a server with a dump of keys and a log of commands: in one file, or in several ones. The
// dump was written an hour after the log, or before it.
func serverDir(t *testing.T, keys string, log []byte, several, dumpNewer bool) string {
	t.Helper()
	dir := t.TempDir()
	dump := filepath.Join(dir, "dump.rdb")
	set := redistest.Append(nil, "SELECT", "0")
	for _, key := range strings.Fields(keys) {
		set = redistest.Append(set, "SET", key, "of the dump")
	}
	source := filepath.Join(t.TempDir(), "set.aof")
	if err := os.WriteFile(source, set, 0o644); err != nil {
		t.Fatal(err)
	}
	ok(t, "convert", source, "rdb:"+dump)
	if err := os.Remove(dump + ".kvferry-report.json"); err != nil {
		t.Fatal(err)
	}
	if several {
		redistest.WriteAOF(t, dir, log)
	} else if err := os.WriteFile(filepath.Join(dir, "appendonly.aof"), log, 0o644); err != nil {
		t.Fatal(err)
	}
	err := filepath.Walk(dir, func(path string, _ os.FileInfo, err error) error {
		when := testNow.Add(-time.Hour)
		if path == dump && dumpNewer {
			when = testNow
		} else if path == dump {
			when = testNow.Add(-2 * time.Hour)
		}
		if err == nil {
			err = os.Chtimes(path, when, when)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// logCommands are the commands of logs with keys l1 and l2.
func logCommands() []byte {
	return redistest.Append(redistest.Append(nil, "SET", "l1", "of the log"), "SET", "l2", "of the log")
}

// TestBeside: of a log and a dump in one directory every command reads the newer one, and names the other with the number
// of its records; a location that names one of them is what it names.
func TestBeside(t *testing.T) {
	const byLog, byDump = "an RDB file with 3 records of 2023-11-1", "an append-only log with 2 records, last written 2023-11-16T01:00:00Z"
	for _, several := range []bool{false, true} {
		for _, dumpNewer := range []bool{false, true} {
			dir := serverDir(t, "d1 d2 d3", logCommands(), several, dumpNewer)
			log := filepath.Join(dir, "appendonly.aof")
			locations := map[string]bool{dir: !dumpNewer, "aof:" + dir: true, "rdb:" + filepath.Join(dir, "dump.rdb"): false,
				filepath.Join(dir, "dump.rdb"): false}
			if several {
				log = filepath.Join(dir, "appendonlydir")
				locations[filepath.Join(log, "appendonly.aof.manifest")] = true
				locations[filepath.Join(log, "appendonly.aof.1.incr.aof")] = true
			}
			locations[log], locations["aof:"+log] = true, true
			for location, isLog := range locations {
				note, key, keys := byDump, "d1", "d1 d2 d3"
				if isLog {
					note, key, keys = byLog, "l1", "l1 l2"
				}
				commands := [][]string{{"verify", location}, {"keys", "--format", "names", location}}
				if location == dir {
					commands = append(commands, [][]string{{"get", dir, key}, {"inspect", dir}, {"dump", dir},
						{"fingerprint", dir}, {"diff", dir, dir},
						{"convert", "--dry-run", dir, "rdb:" + filepath.Join(t.TempDir(), "x.rdb")}}...)
				}
				for _, args := range commands {
					r := kvferry(t, args...)
					if r.code != cli.ExitOK || !strings.Contains(r.stdout+r.stderr, note) {
						t.Errorf("%s: exit %d\n%s%s, want %s", strings.Join(args, " "), r.code, r.stdout, r.stderr, note)
					}
					if args[0] == "keys" && strings.Join(strings.Fields(r.stdout), " ") != keys ||
						args[0] == "inspect" && strings.Count(r.stderr, note) != 1 {
						t.Errorf("%s: %s%s, want %s", strings.Join(args, " "), r.stdout, r.stderr, keys)
					}
				}
			}
		}
	}
}

// TestBesideServed: serve and object stores use the same detection.
func TestBesideServed(t *testing.T) {
	dir := serverDir(t, "d1 d2 d3", logCommands(), true, true)
	addr, end := serveAt(t, "serve", dir)
	client, err := redistest.Dial(addr)
	if err != nil {
		t.Fatal(err)
	}
	if n := client.Must(t, "DBSIZE"); n != int64(3) {
		t.Errorf("%v keys are served", n)
	}
	client.Close()
	if r := end(); !strings.Contains(r.stderr, "an append-only log with 2 records") {
		t.Error(r.stderr)
	}
	f := s3test.NewFake(t)
	at := f.PutTree(t, dir) // the log has the time of the upload, the dump that in its field
	if r := kvferry(t, "keys", "--format", "names", at); !strings.Contains(r.stderr,
		"an RDB file with 3 records of 2023-11-16") || !strings.Contains(r.stdout, "l2") {
		t.Errorf("%s%s", r.stdout, r.stderr)
	}
	if r := kvferry(t, "keys", f.PutTree(t, serverDir(t, "d1", nil, true, true))); r.code != cli.ExitFailed ||
		!strings.Contains(r.stderr, "the append-only log is empty") {
		t.Errorf("%s%s", r.stdout, r.stderr)
	}
}

// TestEmptyLog: an empty log beside a dump with records is an error, which names both. Commands that go on with damage read
// the dump, and one that the location names is read.
func TestEmptyLog(t *testing.T) {
	for _, several := range []bool{false, true} {
		for _, dumpNewer := range []bool{false, true} {
			dir := serverDir(t, "d1 d2 d3", nil, several, dumpNewer)
			dump, target := filepath.Join(dir, "dump.rdb"), "rdb:"+filepath.Join(t.TempDir(), "x.rdb")
			for _, args := range [][]string{{"keys", dir}, {"get", dir, "d1"}, {"dump", dir}, {"fingerprint", dir},
				{"inspect", dir}} {
				r := kvferry(t, args...)
				if r.code != cli.ExitFailed || !strings.Contains(r.stderr, "the append-only log is empty") ||
					!strings.Contains(r.stderr, "rdb:"+dump) || strings.Contains(r.stdout, "d1") {
					t.Errorf("%s: exit %d\n%s%s", strings.Join(args, " "), r.code, r.stdout, r.stderr)
				}
			}
			for _, x := range []struct {
				args []string
				code int
				want string
			}{
				{[]string{"verify", dir}, cli.ExitFindings, "3 records"},
				{[]string{"verify", "aof:" + dir}, cli.ExitFindings, "aof-empty"},
				{[]string{"keys", "--salvage", dir}, cli.ExitFindings, "d2"},
				{[]string{"convert", dir, target}, cli.ExitLossy, "aof-empty"},
				{[]string{"convert", "--allow-loss", "damaged", dir, target}, cli.ExitOK, "3         3"},
				{[]string{"keys", dump}, cli.ExitOK, "d3"},
			} {
				if r := kvferry(t, x.args...); r.code != x.code || !strings.Contains(r.stdout+r.stderr, x.want) {
					t.Errorf("%s: exit %d, want %d and %s\n%s%s", strings.Join(x.args, " "), r.code, x.code, x.want, r.stdout,
						r.stderr)
				}
			}
		}
	}
}
