package fleet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
)

// sbatch plays Slurm with --dependency=afterok: it runs all tasks of a job at once, unless an earlier job failed.
const sbatch = `#!/bin/sh
last=1
for arg; do
	case $arg in
	--array=1-*) last=${arg#--array=1-} ;;
	--wrap=*) wrap=${arg#--wrap=} ;;
	esac
done
k=1
while [ $k -le $last ] && [ ! -e failed ]; do
	SLURM_ARRAY_TASK_ID=$k sh -c "$wrap" >&2 || failed=1
	k=$((k + 1))
done
[ -z "$failed" ] || : >failed
echo 7
`

// kvferry plays kvferry: it notes its first and its part, and ends with $CODE if it reads a part.
const kvferry = `#!/bin/sh
for arg; do
	case $arg in --part=*) part=$arg ;; esac
done
echo "$1 $part" >>ran
[ -z "$part" ] || exit $CODE
`

// TestPartsWithFindings runs the printed scripts of a verification in parts. Findings end a part with 3, and it is
// done: the last step runs, and reports them. Any other error of a part stops the work.
func TestPartsWithFindings(t *testing.T) {
	programs := t.TempDir()
	for name, text := range map[string]string{"sbatch": sbatch, "kvferry": kvferry} {
		if err := os.WriteFile(filepath.Join(programs, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m := &move{command: "verify", name: "a", source: "rdb:x y", target: "/t/it's.json", parts: 3, memory: 64 << 20, workers: "1"}
	text, err := (&File{moves: []*move{m}}).Print("slurm")
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []int{cli.ExitOK, 1, 2, cli.ExitFindings, cli.ExitLossy, cli.ExitMissing, cli.ExitUsage, 137} {
		dir, env := t.TempDir(), append(os.Environ(), fmt.Sprint("CODE=", code), "PATH="+programs+":"+os.Getenv("PATH"))
		sh := func(script string) error {
			c := exec.Command("/bin/sh", "-c", script)
			c.Dir, c.Env = dir, env
			return c.Run()
		}
		done := code == cli.ExitOK || code == cli.ExitFindings
		if err := sh(text); err != nil {
			t.Fatal(err)
		}
		ran, err := os.ReadFile(filepath.Join(dir, "ran"))
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"verify --part=1/3", "verify --part=2/3", "verify --part=3/3"}
		if done {
			want = append(want, "merge ")
		}
		if got := strings.Split(strings.TrimSuffix(string(ran), "\n"), "\n"); !slices.Equal(got, want) {
			t.Errorf("parts end with %d: ran %q, want %q", code, got, want)
		}
		for _, s := range m.stages()[:1] { // of Kubernetes and Argo
			if err := sh(m.script(s, "kvferry", "2")); (err == nil) != done {
				t.Errorf("a part that ends with %d: %v", code, err)
			}
		}
	}
	convert := &move{command: "convert", name: "a", source: "x", target: "rdb:y", parts: 2}
	if s := convert.script(convert.stages()[0], "kvferry", "1"); !strings.HasPrefix(s, "exec kvferry convert ") ||
		strings.Contains(s, "$?") {
		t.Errorf("a part of a conversion: %s", s)
	}
}
