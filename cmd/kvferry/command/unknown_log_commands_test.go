package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
)

// TestScriptedLog checks that the error about an unknown command of an append-only file gives advice on continuing
// without it.
func TestScriptedLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := filepath.Join(dir, "e.aof")
	text := "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\n1\r\n*3\r\n$4\r\nEVAL\r\n$8\r\nreturn 1\r\n$1\r\n0\r\n"
	if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	const salvage, convert = "; --salvage skips such commands and lists them\n", "convert it with --allow-loss aof-command and use the copy\n"
	for line, want := range map[string]string{"dump": salvage, "inspect": salvage, "fingerprint": convert, "diff " + log: convert,
		"verify --against " + log: convert} {
		if r := kvferry(t, append(strings.Fields(line), log)...); r.code != cli.ExitFailed || !strings.HasSuffix(r.stderr, want) {
			t.Errorf("%s: exit %d: %s", line, r.code, r.stderr)
		}
	}
	if r := kvferry(t, "dump", "--salvage", log); r.code != cli.ExitFindings || strings.Count(r.stdout, "\n") != 1 {
		t.Errorf("exit %d: %s%s", r.code, r.stdout, r.stderr)
	}
	ok(t, "convert", "--allow-loss", "aof-command", log, "rdb:"+filepath.Join(dir, "copy.rdb"))
}
