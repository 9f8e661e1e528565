package command

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"kvferry/cmd/kvferry/cli"
)

// TestUnnamed checks that an empty name for a flag is a usage error, as from an unset variable: --check "$FILE"
// without a file would report success.
func TestUnnamed(t *testing.T) {
	var tried []string
	for _, cmd := range testApp().Root().Commands() {
		cmd.InheritedFlags()
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			switch what, _ := pflag.UnquoteUsage(f); what {
			case "file", "directory", "location", "name":
			default:
				return
			}
			tried = append(tried, f.Name)
			args := []string{cmd.Name()}
			for range cli.ArgNames(cmd) {
				args = append(args, "nemo:nowhere")
			}
			r := kvferry(t, append(args, "--"+f.Name, "")...)
			if r.code != cli.ExitUsage || r.stdout != "" || !strings.HasPrefix(r.stderr, "kvferry: --"+f.Name+": no ") {
				t.Errorf("kvferry %s --%s '': exit %d: %s%s", strings.Join(args, " "), f.Name, r.code, r.stderr, r.stdout)
			}
		})
	}
	for _, name := range []string{"file", "key-file", "check", "against", "db", "keyspace", "wal-dir", "wal-dir-b", "temp-dir",
		"output", "html"} {
		if !strings.Contains(" "+strings.Join(tried, " ")+" ", " "+name+" ") {
			t.Errorf("--%s was not tried", name)
		}
	}
}
