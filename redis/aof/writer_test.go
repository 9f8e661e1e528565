package aof

import (
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/testkit/redistest"
	"kvferry/record"
)

// replayed opens a log and returns its records, findings about commands as "kind db/key", and whether reading without
// salvage succeeds.
func replayed(t *testing.T, log string) (records map[string]string, found []string, sound bool) {
	t.Helper()
	path := filepath.Join(tree(t, map[string]string{"a.aof": log}), "a.aof")
	src, _, err := open(t, path, false)
	if sound = err == nil; sound {
		src.Close()
	}
	src, findings, err := open(t, path, true)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	for _, f := range findings {
		found = append(found, fmt.Sprintf("%s %s/%s", f.Kind, f.DB, f.Key))
		if (f.Severity == record.Error) != (f.Kind == FindCommand) {
			t.Errorf("%+v", f)
		}
	}
	return contents(t, src, 1), found, sound
}

// TestWriter: a log has what its server executed. So a command that kvferry refuses is only a note if that server refuses
// it, too; from any other server it is an error, and its keys are lost.
func TestWriter(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	const note = "aof-refused /"
	zero, slots, moved := read("restore-zero-crc.aof"), read("restore-crc0-redis84.aof"), read("move-replace.aof")
	wrong := commandsOf("SET s 1\nSET a 1\nLPUSH s x")
	known := []string{"redis 2.8.24", "redis 6.0.16", "redis 7.0.15", "redis 8.0.5", "redis 8.2.1", "valkey 7.2.11",
		"valkey 8.1.4", "valkey 9.1.2"}
	newer := []string{"", "redis 8.8.0", "redis 8.10.1", "redis 8.12.0", "redis 9.0.0", "redis 255.255.255", "valkey 9.2.0", "valkey 10.0.0"}
	both := []string{"redis 8.4.0", "redis 8.6.3"}
	for _, x := range []struct {
		writers []string
		log     string
		keys    string
		found   string
	}{
		{known, zero, "0/a 0/c", note},
		{slices.Concat(newer, both), zero, "0/a 0/b 0/c", ""},
		{slices.Concat(newer, both), slots, "0/a 0/h", ""},
		{slices.Concat(known, both), wrong, "0/a 0/s", note},
		{newer, wrong, "0/a", "aof-command 0/s"},
		{newer, wrong + commandsOf("DEL s"), "0/a", ""},
		{slices.Concat(known, newer), moved, "1/a", ""},
		// What only a newer server has was written by it.
		{[]string{"redis 8.0.5"}, commandsOf("MSETEX 1 m v") + zero, "0/a 0/b 0/c 0/m", ""},
		{[]string{"redis 8.0.5", "valkey 9.1.2"}, commandsOf("SADD k m\nSPERSIST k MEMBERS 1 m\nDEL k") + wrong, "0/a", "aof-command 0/s"},
		{[]string{"redis 7.0.15"}, commandsOf("HEXPIREAT h 9999999999 FIELDS 1 f\nDELIFEQ h x") + zero, "0/a 0/c", note},
	} {
		for _, w := range x.writers {
			log := x.log
			if w != "" {
				log = writtenBy(w, log)
			}
			records, found, sound := replayed(t, log)
			var keys []string
			for id := range records {
				keys = append(keys, id)
			}
			slices.Sort(keys)
			got := strings.Join(keys, " ")
			if got != x.keys || strings.Join(found, " ") != x.found || sound != !strings.Contains(x.found, FindCommand) {
				t.Errorf("%q by %q: keys %s, found %q, sound %v; want %s, %q", x.log, w, got, found, sound, x.keys, x.found)
			}
		}
	}
	// A base written by kvferry names a server, but others write the commands behind it.
	base := snapshotOf(0, []byte("\xfa\x09redis-ver\x055.0.0"))
	if _, found, _ := replayed(t, base+wrong); strings.Join(found, " ") != "aof-command 0/s" {
		t.Errorf("behind kvferry's own base: %q", found)
	}
}

// TestUnnamed: a command of unknown effect whose arguments do not tell its keys may have changed any key.
func TestUnnamed(t *testing.T) {
	for line, want := range map[string]string{
		"COPY k c FOO": "aof-command 0/c", "COPY k c DB x": "aof-command 0/ aof-command 0/k", "COPY k c FOO DB 3": "aof-command 3/c",
		"COPY k": "aof-command 0/ aof-command 0/k", "FLUSHALL FOO": "aof-command 0/", "FLUSHDB FOO BAR": "aof-command 0/", "SWAPDB 0 1 x": "aof-command 0/",
		"MOVE k x": "aof-command 0/ aof-command 0/k", "MOVE k 1 FOO": "aof-command 0/k aof-command 1/k", "MSETEX k a 1": "aof-command 0/ aof-command 0/k",
		"SET k": "aof-command 0/ aof-command 0/k", "SETEX k 1 v x": "aof-command 0/k", "GETDEL k x": "aof-command 0/k", "GET k x": "aof-command 0/ aof-command 0/k",
		"SORT k FOO": "aof-command 0/ aof-command 0/k", "SELECT x": "aof-command 0/", "RENAME k c x": "aof-command 0/c aof-command 0/k",
		"XREADGROUP GROUP g c COUNT 1 k": "aof-command 0/ aof-command 0/k", "XGROUP NEW k g": "aof-command 0/ aof-command 0/NEW aof-command 0/k",
		"XGROUP CREATE k": "aof-command 0/ aof-command 0/k", "ZUNIONSTORE k 1 k AGGREGATE COUNT": "aof-command 0/k", "TRIMSLOTS FOO 1 0 1": "aof-command 0/",
		"BITCONVERT k": "aof-command 0/k", "BITROAROP OR d k": "aof-command 0/d", "PHSET k p FIELDS 1 f v": "aof-command 0/k", "SPEXPIREAT k 1 MEMBERS 1 m": "aof-command 0/k",
		"SADDEX k EX 1 MEMBERS 1 m": "aof-command 0/k", "INCREX k": "aof-command 0/k", "ARSET k 0 v": "aof-command 0/k",
		"CLUSTER SYNCSLOTS ESTABLISH SOURCE x": "", "BLESS SET k NO-EVICT": "", "MOVE k 1 REPLACE": "", "DELEX k IFEQ x": "",
	} {
		_, found, sound := replayed(t, commandsOf("SET k v\n"+line))
		slices.Sort(found)
		if got := strings.Join(found, " "); got != want || sound != (want == "") {
			t.Errorf("%s: %q, want %q; sound %v", line, got, want, sound)
		}
	}
}

// TestServerLogs reads what servers write to their logs for random commands, half of them broken: nothing in it is refused
// or of unknown effect, and the records are the server's.
func TestServerLogs(t *testing.T) {
	engines := redistest.Engines()
	if path, err := exec.LookPath("redis-server"); err == nil {
		engines = append(engines, redistest.Found{Name: redistest.Version(path), Path: path})
	}
	if len(engines) == 0 {
		t.Skip("SKIPPED: needs redis-server (Debian: apt install redis-server)")
	}
	for _, e := range engines {
		for _, preamble := range []string{"yes", "no"} {
			t.Run(e.Name+"/"+preamble, func(t *testing.T) {
				serverLog(t, e.Path, preamble, rand.New(rand.NewSource(1)))
			})
		}
	}
}

// executed are commands that servers log by their effects.
const executed = "SPOP T|SPOP T 2|INCRBYFLOAT S 1.5|HINCRBYFLOAT H F 1.5|LMPOP 2 L L LEFT|ZMPOP 1 Z MIN COUNT 2|GEOADD G 13 38 M|BLPOP L L 0.01|" +
	"BLMOVE L L LEFT RIGHT 0.01|XADD X * F V|XADD X MAXLEN ~ 2 * F V|XAUTOCLAIM X Q U 0 0|XREADGROUP GROUP Q U COUNT 2 STREAMS X >|SET S V EX 100000|" +
	"EXPIRE K 100000|MIGRATE 127.0.0.1 1 K 0 1 COPY|FLUSHDB|PFADD P M"

// undefined reports whether the result of a command depends on the server's build.
func undefined(words []string) bool {
	line := strings.Join(words, " ")
	return strings.Contains(line, "BYLEX") || strings.HasPrefix(line, "GEO")
}

func serverLog(t *testing.T, path, preamble string, r *rand.Rand) {
	// With fsync every second, a server on a slow disk holds commands back for up to two seconds.
	s := redistest.StartEngine(t, path, "--appendonly", "yes", "--appendfsync", "no", "--aof-use-rdb-preamble", preamble)
	c := s.Client()
	known, err := c.Known() // not by Redis 6.0
	old := err != nil
	list := redistest.PatternsOf(known)
	list = append(list, executed, executed)
	n := 4000
	if testing.Short() {
		n = 1500
	}
	for range n {
		words := redistest.Command(r, list)
		if words[0] == "FLUSHDB" && r.Intn(40) > 0 || redistest.Gone(words) || undefined(words) {
			continue
		}
		if r.Intn(3) == 0 && words[0][0] != 'B' && words[0] != "MIGRATE" { // a broken timeout blocks
			words = redistest.Broken(r, words)
		}
		var answer redistest.Error
		if _, err := c.Do(words...); err != nil && !errors.As(err, &answer) {
			t.Fatalf("%q: %v", words, err)
		}
	}
	src, found, err := open(t, s.Dir, true)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	for _, f := range found {
		if f.Kind != FindNear {
			t.Errorf("%+v", f)
		}
	}
	if old { // records are read with newer commands
		return
	}
	want, got := c.Records(t), contents(t, src, 1)
	redistest.WithoutConsumers(want)
	redistest.WithoutConsumers(got)
	for _, d := range redistest.Diff(want, got, 5) {
		t.Error(d)
	}
}
