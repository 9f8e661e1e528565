package command

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"kvferry/cmd/kvferry/cli"
	"kvferry/format"
	"kvferry/internal/testkit/redistest"
	"kvferry/record"
)

// TestKvrocksToRedis checks that a real server loads the RDB file of a database that Kvrocks wrote and returns its
// content, except values that only Kvrocks understands.
func TestKvrocksToRedis(t *testing.T) {
	for name, least := range map[string]int{"kvrocks-mixed": 400, "kvrocks-cluster": 300, "kvrocks-modules": 40} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src := place{format: "kvrocks", store: "rocksdb", path: golden(t, name)}
			dir := t.TempDir()
			out := ok(t, "convert", src.String(), "rdb:"+filepath.Join(dir, "dump.rdb"), "--rdb-version", "10", "--allow-loss",
				record.LossModule)
			if name == "kvrocks-modules" && !strings.Contains(out, "loss module: 42 left out") { // counts values, not rows
				t.Errorf("other losses: %s", out)
			}
			want := readForRedis(t, src)
			got := redistest.StartIn(t, dir, "--dbfilename", "dump.rdb").Client().Records(t)
			if diff := redistest.Diff(want, got, 5); len(diff) > 0 || len(want) < least {
				t.Errorf("%d records: the server answers something else: %q", len(want), diff)
			}
		})
	}
}

// TestCommandsOfModules checks that a dump as commands reports module values left out, also by its exit code. Without
// such values it is complete.
func TestCommandsOfModules(t *testing.T) {
	t.Parallel()
	src, file := golden(t, "kvrocks-modules"), filepath.Join(t.TempDir(), "out.resp")
	r := kvferry(t, "dump", "-o", file, src)
	st, err := os.Stat(file)
	if r.code != cli.ExitLossy || !strings.Contains(r.stderr, "records left out: no Redis command can recreate") ||
		err != nil || st.Size() == 0 {
		t.Errorf("exit %d: %s, %v", r.code, r.stderr, err)
	}
	if r := kvferry(t, "dump", "--format", "resp", "--type", "string,hash", src); r.code != cli.ExitOK || r.stderr != "" {
		t.Errorf("without them: exit %d: %s", r.code, r.stderr)
	}
}

// TestFieldExpiryThere checks that field expiries survive a round trip through Kvrocks 2.17; other versions do not
// hold them.
func TestFieldExpiryThere(t *testing.T) {
	t.Parallel()
	src, there, back := filepath.Join("..", "..", "..", "fixtures", "golden", "rdb-v90-basic.rdb.gz"), filepath.Join(t.TempDir(),
		"kvrocks"), filepath.Join(t.TempDir(), "back.rdb")
	for _, args := range [][]string{
		{"convert", "--allow-loss", "module,stream-id", src, "kvrocks2.17:" + there},
		{"convert", "--allow-loss", "module", "--rdb-version", "valkey80", there, "rdb:" + back},
		{"diff", "--type", "hash", src, "rdb:" + back},
		{"diff", "--type", "hash", "--map-db", "0=__namespace", "--map-db", "1=db1", "--map-db", "5=db5", "--map-db", "15=db15", src, there},
	} {
		if r := kvferry(t, args...); r.code != cli.ExitOK {
			t.Fatalf("%q: exit %d: %s%s", args, r.code, r.stdout, r.stderr)
		}
	}
	if r := kvferry(t, "dump", "--type", "hash", "--db", "__namespace",
		there); len(regexp.MustCompile(`,[0-9]{13}\]`).FindAllString(r.stdout, -1)) < 10 {
		t.Errorf("fields do not expire: %.200s", r.stdout)
	}
	expiring := regexp.MustCompile(`"key":"([^"]+)",.*,[0-9]{13}\]`).FindStringSubmatch(
		kvferry(t, "dump", "--type", "hash", "--db", "__namespace", there).stdout)
	for now, want := range map[string]bool{"2001-01-01T00:00:00Z": false, "2200-01-01T00:00:00Z": true} {
		r := kvferry(t, "explain", "--now", now, there, expiring[1])
		gone := strings.Contains(r.stdout, "the field expired at ") && strings.Contains(r.stdout, " expired, ")
		if r.code != cli.ExitOK || gone != want {
			t.Errorf("explain as of %s: exit %d: %s%s", now, r.code, r.stdout, r.stderr)
		}
	}
	for _, to := range []string{"kvrocks", "kvrocks2.15", "kvrocks2.9"} {
		r := kvferry(t, "convert", "--dry-run", there, to+":"+filepath.Join(t.TempDir(), "old"))
		if r.code != cli.ExitLossy || !strings.Contains(r.stdout, "loss field-expiry: ") {
			t.Errorf("%s: exit %d: %s%s", to, r.code, r.stdout, r.stderr)
		}
	}
}

// TestModuleIsOneLoss checks that a value that the target cannot hold is one loss, without another loss for its
// expiry.
func TestModuleIsOneLoss(t *testing.T) {
	t.Parallel()
	r := kvferry(t, "convert", "--dry-run", golden(t, "kvrocks-modules"), "kvrocks2.3:"+filepath.Join(t.TempDir(), "new"))
	_, text, found := strings.Cut(r.stdout, "loss expiry-ms: ")
	if text, _, _ = strings.Cut(text, "\nloss "); !found || !strings.HasPrefix(text, "6 changed") || strings.Contains(text, " other ") {
		t.Errorf("exit %d: %s%s", r.code, text, r.stderr)
	}
}

// TestMatrixLogs converts databases of each engine to append-only files and back, and starts a server from the files.
func TestMatrixLogs(t *testing.T) {
	for name, src := range map[string]place{"bw-edge": matrixTargets[1], "pika4-edge": matrixTargets[6]} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			src.path = golden(t, name)
			log := place{format: "aof", path: filepath.Join(t.TempDir(), "log")}
			there := crossed(t, readModel(t, src), src, log, keepAll, "--rdb-version", "10")
			want := readForRedis(t, log)
			back := src
			back.path = filepath.Join(t.TempDir(), "back")
			crossed(t, there, log, back, keepAll)
			got := redistest.StartIn(t, log.path, "--appendonly", "yes").Client().Records(t)
			if diff := redistest.Diff(want, got, 5); len(diff) > 0 || len(want) < 13 {
				t.Errorf("%d records: the server answers something else: %q", len(want), diff)
			}
		})
	}
}

// readForRedis reads a dataset in the form of a server's replies.
func readForRedis(t *testing.T, p place) map[string]string {
	t.Helper()
	src := p.open(t)
	defer src.Close()
	limits := formatOf(t, "rdb").Limits()
	names := (&model{dbs: src.Databases(), home: homeOf(p.limits(t))}).names(&limits)
	out := map[string]string{}
	for _, db := range src.Databases() {
		r, err := src.Records(context.Background(), db, record.RedisTypes, format.Span{},
			&format.Env{Now: time.Now(), TempDir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		own := map[string]string{}
		redistest.Read(t, own, r)
		for key, text := range own {
			out[names[db]+"/"+strings.TrimPrefix(key, db+"/")] = text
		}
	}
	return out
}
