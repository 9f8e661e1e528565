package command

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kvferry/cmd/kvferry/cli"
	"kvferry/internal/testkit/redistest"
)

// killedWhen runs a command line in another process and kills it when a condition becomes true.
func killedWhen(t *testing.T, what string, is func() bool, args ...string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), argsEnv+"="+strings.Join(args, "\n"))
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); !is() && time.Now().Before(end); {
		time.Sleep(2 * time.Millisecond)
	}
	_ = cmd.Process.Kill()                                          // it may have exited
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() { // it exited by itself
		t.Fatalf("%s: %v\n%s", what, err, out.String())
	}
}

// calls returns how often a server ran a command since CONFIG RESETSTAT.
func calls(t *testing.T, c *redistest.Client, command string) string {
	t.Helper()
	for _, line := range strings.Split(redistest.Text(c.Must(t, "INFO", "commandstats")), "\r\n") {
		if rest, ok := strings.CutPrefix(line, "cmdstat_"+command+":calls="); ok {
			n, _, _ := strings.Cut(rest, ",")
			return n
		}
	}
	return "0"
}

// TestLiveResume kills a conversion into a server in the middle of a large list and during the proof, and then kills
// the server, which loses all data. Each time --resume must continue, write exactly the missing data, and pass the
// proof.
func TestLiveResume(t *testing.T) {
	s := redistest.Start(t)
	t.Chdir(t.TempDir())
	c := s.Client()
	random := rand.NewChaCha8([32]byte{})
	for i := range 40 {
		value := make([]byte, 30_000) // larger than the other database, so it is written first
		random.Read(value)
		c.Must(t, "SET", fmt.Sprint("string", i), string(value))
	}
	c.Must(t, "SELECT", "1")
	for i := range 30 {
		c.Must(t, "HSET", fmt.Sprint("hash", i), "f", "v", "g", fmt.Sprint(i))
	}
	c.Must(t, "SET", "soon", "gone", "PX", "1000")
	expired := time.Now().Add(1100 * time.Millisecond)
	for i := range 30 {
		args := []string{"RPUSH", "list"}
		for j := range 1000 {
			args = append(args, fmt.Sprintf("element %d of %d, which is not so short", j, i))
		}
		c.Must(t, args...)
	}
	c.Must(t, "SAVE")
	src, server := "rdb:"+filepath.Join(s.Dir, "source.rdb"), "redis://"+s.Addr
	if err := os.Rename(filepath.Join(s.Dir, "dump.rdb"), src[4:]); err != nil {
		t.Fatal(err)
	}
	c.Must(t, "FLUSHALL")
	args := []string{"convert", "--verify", "--workers", "1", src, server}

	temporary := func() bool {
		keys := c.Strings(t, "KEYS", "kvferry-*")
		return len(keys) > 0
	}
	killedWhen(t, "a large list is on its way", temporary, append(args, "--rate", "4MiB")...)
	if r := kvferry(t, args...); r.code == cli.ExitOK || !strings.Contains(r.stderr, "--resume") {
		t.Fatalf("unfinished work is passed over: exit %d: %s", r.code, r.stderr)
	}
	c.Must(t, "CONFIG", "RESETSTAT")
	c.Must(t, "CONFIG", "SET", "repl-diskless-sync-delay", "30")
	work, err := filepath.Glob("redis-*.kvferry")
	if err != nil || len(work) != 1 {
		t.Fatal(work, err)
	}
	args = append(args, "--resume")
	reading := func() bool {
		data, err := os.ReadFile(filepath.Join(work[0], "journal"))
		return err == nil && bytes.Contains(data, []byte(`"finishing":true`))
	}
	killedWhen(t, "it is read back", reading, args...)
	if n := calls(t, c, "set"); n != "1" { // the key with an expiry in the other database
		t.Errorf("%s strings were written again", n)
	}
	if temporary() {
		t.Error("temporary names are left")
	}

	c.Must(t, "CONFIG", "SET", "repl-diskless-sync-delay", "0")
	time.Sleep(time.Until(expired))
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	out := ok(t, args...)
	rep := reportOf(t, strings.TrimSuffix(work[0], ".kvferry"))
	if !rep.Timings.Resumed || !rep.Proof.Done || rep.Proof.Expired != 1 || !strings.Contains(out, "1 record expired meanwhile") {
		t.Errorf("resumed %v, proof %+v\n%s", rep.Timings.Resumed, rep.Proof, out)
	}
	if n := calls(t, s.Client(), "set"); n != "41" {
		t.Errorf("%s strings were written to a server that had lost them", n)
	}
}
