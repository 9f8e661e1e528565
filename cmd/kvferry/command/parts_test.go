package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"kvferry/cmd/kvferry/cli"
	"kvferry/convert"
	"kvferry/inspect"
)

const examplesDir = "../../../examples"

// sbatch plays Slurm: it runs the tasks of an array at once and kills the third one the first time.
const sbatch = `#!/bin/sh
for arg; do
	case $arg in
	--array=1-*) last=${arg#--array=1-} ;;
	--wrap=*) wrap=${arg#--wrap=} ;;
	--*) ;;
	*) break ;;
	esac
	shift
done
[ -z "$wrap" ] || set -- /bin/sh -c "$wrap"
[ -n "$last" ] || exec "$@" >&2
k=1
while [ $k -le $last ]; do
	export SLURM_ARRAY_TASK_ID=$k
	"$@" >&2 & job=$!
	[ $k = 3 ] && { sleep 0.01; kill -9 $job; "$@" >&2 & }
	k=$((k + 1))
done
wait
echo '7;cluster'
`

// TestSlurmExample checks that the scripts for Slurm, with a task that is killed and requeued, make the
// target of one run.
func TestSlurmExample(t *testing.T) {
	t.Parallel()
	src, dir := golden(t, "nemo-basic"), fastDir(t)
	args := []string{"--now", "2026-01-01T00:00:00Z", src, "blackwidow:" + filepath.Join(dir, "one")}
	ok(t, append([]string{"convert"}, args...)...)
	exe, err := os.Executable()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "sbatch"), []byte(sbatch), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	args[3] = "blackwidow:" + filepath.Join(dir, "many")
	cmd := exec.Command(filepath.Join(examplesDir, "slurm/convert.sh"), args...)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "KVFERRY="+exe, mainEnv+"=1", "PARTS=8")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if treeBytes(t, filepath.Join(dir, "many")) != treeBytes(t, filepath.Join(dir, "one")) {
		t.Error("the parts make something else")
	}
}

// TestKubernetesExamples checks the fields that the manifests depend on, and that they go by exit codes that exist.
func TestKubernetesExamples(t *testing.T) {
	for _, name := range []string{"convert", "finish"} {
		data, err := os.ReadFile(filepath.Join(examplesDir, "kubernetes", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var job struct {
			APIVersion string `yaml:"apiVersion"`
			Kind       string
			Spec       struct {
				Completions, Parallelism int
				CompletionMode           string `yaml:"completionMode"`
				PodFailurePolicy         struct {
					Rules []struct {
						Action      string
						OnExitCodes struct {
							Operator string
							Values   []int
						} `yaml:"onExitCodes"`
					}
				} `yaml:"podFailurePolicy"`
				Template struct {
					Spec struct {
						RestartPolicy string `yaml:"restartPolicy"`
						Containers    []struct{ Command, Args []string }
					}
				}
			}
		}
		if err := yaml.Unmarshal(data, &job); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s := &job.Spec
		rules := s.PodFailurePolicy.Rules
		last := &rules[len(rules)-1]
		if job.APIVersion != "batch/v1" || job.Kind != "Job" || s.Template.Spec.RestartPolicy != "Never" ||
			len(s.Template.Spec.Containers) != 1 ||
			len(rules) < 2 || rules[0].Action != "Ignore" || last.Action != "FailJob" ||
			!slices.Equal(last.OnExitCodes.Values[len(last.OnExitCodes.Values)-2:], []int{cli.ExitLossy, cli.ExitUsage}) ||
			(last.OnExitCodes.Values[0] == cli.ExitFindings) != (name == "finish") ||
			(rules[1].Action != "Ignore" || !slices.Equal(rules[1].OnExitCodes.Values, []int{cli.ExitMissing})) ||
			(s.CompletionMode == "Indexed") != (name == "convert") ||
			name == "finish" && s.Parallelism != 1 || name == "convert" && s.Completions != 16 {
			t.Errorf("%s: %+v", name, job)
		}
	}
}

// TestFingerprintInParts checks that parts add up to the fingerprint of one run, with each record in one part.
func TestFingerprintInParts(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"nemo-basic", "kvrocks-mixed", "rdb"} {
		src, dir := packedRDB, t.TempDir()
		if name != "rdb" {
			src = golden(t, name)
		}
		now := []string{"--now", "2026-01-01T00:00:00Z", src}
		var whole inspect.FingerprintFile
		want := ok(t, append([]string{"fingerprint"}, now...)...)
		mustJSON(t, []byte(want), &whole)
		for _, n := range some([]int{3, 1, 8}, 1) {
			merge, records, most := []string{"merge"}, int64(0), 0
			for k := n; k >= 1; k-- {
				file := filepath.Join(dir, fmt.Sprintf("%d-%d.json", k, n))
				ok(t, append([]string{"fingerprint", "--workers", fmt.Sprint(1 + k%2), "-o", file, "--part",
					fmt.Sprintf("%d/%d", k, n)}, now...)...)
				part, err := readPart(file)
				if err != nil {
					t.Fatal(err)
				}
				merge, records, most = append(merge, file), records+fingerprintOf(t, part).Records(), max(most, part.Tasks)
				if part.Tasks == part.AllTasks && n > 1 && part.AllTasks > 2 {
					t.Errorf("%s: part %d/%d has all tasks", name, k, n)
				}
			}
			if got := ok(t, append(merge, merge[1])...); got != want || records != whole.Records() || records == 0 || most == 0 {
				t.Errorf("%s in %d parts: %d records\n%s\nwant %d\n%s", name, n, records, got, whole.Records(), want)
			}
		}
	}
}

// fingerprintOf returns the sums of a part.
func fingerprintOf(t *testing.T, f *inspect.PartFile) *inspect.FingerprintFile {
	out := new(inspect.FingerprintFile)
	mustJSON(t, f.Result, out)
	return out
}

// TestOtherReports checks that reports that differ in what identifies a run are refused by name.
func TestOtherReports(t *testing.T) {
	t.Parallel()
	src, dir := golden(t, "nemo-basic"), t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	ok(t, "fingerprint", "--now", "5", "--part", "1/2", "-o", a, src)
	data, err := os.ReadFile(a)
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*inspect.PartFile){
		"another source":                func(f *inspect.PartFile) { f.Source = "/other" },
		"another version of kvferry":    func(f *inspect.PartFile) { f.Tool = "other" },
		"another number of parts":       func(f *inspect.PartFile) { f.Parts = 3 },
		"another plan":                  func(f *inspect.PartFile) { f.Plan = "other" },
		"another state of the source's": func(f *inspect.PartFile) { f.Files = "other" },
		"another command line":          func(f *inspect.PartFile) { f.Command = []string{"other"} },
		"another --now":                 func(f *inspect.PartFile) { f.Now++ },
		"another set of filters":        func(f *inspect.PartFile) { f.Filters = map[string][]string{"db": {"1"}} },
		"both are part 1/2":             func(f *inspect.PartFile) { f.Result = []byte("{}") },
		"it has no kvferry_part":        func(f *inspect.PartFile) { f.Version = 0 },
		"report of version 9":           func(f *inspect.PartFile) { f.Version = 9 },
		`"3/2" is not a part`:           func(f *inspect.PartFile) { f.Part = 3 },
		"it has no command":             func(f *inspect.PartFile) { f.Command = nil },
	} {
		var f inspect.PartFile
		mustJSON(t, data, &f)
		change(&f)
		other, err := json.Marshal(&f)
		if err == nil {
			err = os.WriteFile(b, other, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		r := kvferry(t, "merge", a, b)
		if r.code != cli.ExitUsage || !strings.Contains(r.stderr, want) || !strings.Contains(r.stderr, b) {
			t.Errorf("%s: exit %d: %s", want, r.code, r.stderr)
		}
	}
}

// TestInspectInParts checks that parts add up to the output and exit code of one run, in every format, and that parts
// differ.
func TestInspectInParts(t *testing.T) {
	t.Parallel()
	for _, c := range some([][]string{
		{golden(t, "nemo-basic")},
		{golden(t, "nemo-basic"), "--sample", "2", "--redis", "--top", "3"},
		{golden(t, "kvrocks-mixed"), "--delimiter", "", "--prefix-depth", "2"},
		{golden(t, "kvrocks-mixed"), "--type", "hash", "--expired", "keep"},
		{golden(t, "ssdb-odd"), "--salvage"},
		{packedRDB, "--db", "0"},
	}, 2) {
		args := append([]string{"--now", "2026-01-01T00:00:00Z"}, c...)
		for _, n := range []int{1, 4} {
			dir, merge, bad, seen := t.TempDir(), []string{"merge"}, false, map[string]bool{}
			for k := n; k >= 1; k-- {
				file := filepath.Join(dir, fmt.Sprint(k))
				r := kvferry(t, append([]string{"inspect", "--workers", fmt.Sprint(1 + k%2), "--memory",
					fmt.Sprintf("%dMiB", 700+k), "-o", file, "--part", fmt.Sprintf("%d/%d", k, n)}, args...)...)
				bad, merge = bad || r.code == cli.ExitFindings, append(merge, file)
				data, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err, r.stderr)
				}
				seen[string(data)] = true
			}
			for _, form := range []string{"text", "json", "html"} {
				want := kvferry(t, append([]string{"inspect", "--format", form}, args...)...)
				got := kvferry(t, append(merge, "--format", form)...)
				if got.stdout != want.stdout || got.code != want.code || bad != (want.code == cli.ExitFindings) ||
					len(seen) != n || got.stdout == "" {
					t.Errorf("%s in %d parts: exit %d, want %d, %s\n%s\nwant\n%s", c, n, got.code, want.code, got.stderr,
						got.stdout, want.stdout)
				}
			}
		}
	}
	if r := kvferry(t, "inspect", "--part", "1/2", "--now", "5", "--html", "x",
		golden(t, "nemo-basic")); r.code != cli.ExitUsage || !strings.Contains(r.stderr, "--part --html") {
		t.Errorf("exit %d, %s", r.code, r.stderr)
	}
}

// TestErrorsOfReports checks that errors that a part has met are not lost.
func TestErrorsOfReports(t *testing.T) {
	t.Parallel()
	src, file := golden(t, "ssdb-odd"), filepath.Join(t.TempDir(), "1.json")
	r := kvferry(t, "fingerprint", "--now", "5", "--part", "1/1", "-o", file, src)
	if m := kvferry(t, "merge", file); r.code != cli.ExitFindings || m.code != cli.ExitFindings || !strings.Contains(m.stdout, "kvferry_fingerprint") {
		t.Errorf("exit %d, and merge: exit %d\n%s%s", r.code, m.code, m.stdout, m.stderr)
	}
}

// TestVerifyInParts checks that parts of sound, odd and damaged datasets add up to the output and exit code of one run.
func TestVerifyInParts(t *testing.T) {
	t.Parallel()
	damaged := filepath.Join(t.TempDir(), "damaged")
	if err := os.CopyFS(damaged, os.DirFS(golden(t, "nemo-basic"))); err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Glob(filepath.Join(damaged, "*/*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	for _, file := range tables {
		data, err := os.ReadFile(file)
		if err == nil && len(data) > 4000 {
			data[len(data)/3] ^= 1
			err = os.WriteFile(file, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		src, files string
		look       bool // the files must be looked at again
	}{{golden(t, "ssdb-odd"), "auto", false}, {packedRDB, "auto", false}, {damaged, "auto", true}, {damaged, "always", false}} {
		args := []string{"--now", "2026-01-01T00:00:00Z", "--max-findings", "7", "--files", c.files, c.src}
		dir, merge, bad := t.TempDir(), []string{"merge", "--format", "json"}, false
		for k := 3; k >= 1; k-- {
			file := filepath.Join(dir, fmt.Sprint(k))
			r := kvferry(t, append([]string{"verify", "--workers", fmt.Sprint(k), "-o", file, "--part", fmt.Sprintf("%d/3", k)},
				args...)...)
			bad, merge = bad || r.code == cli.ExitFindings, append(merge, file)
		}
		got := kvferry(t, merge...)
		if c.look {
			if got.code != cli.ExitMissing || !strings.Contains(got.stderr, "kvferry verify --part 3/3 --files=always") {
				t.Errorf("no second look: exit %d, %s", got.code, got.stderr)
			}
			continue
		}
		want := kvferry(t, append([]string{"verify", "--format", "json"}, args...)...)
		if got.stdout != want.stdout || got.code != want.code || bad != (want.code == cli.ExitFindings) {
			t.Errorf("%s: exit %d, want %d, %s\n%s\nwant\n%s", c.src, got.code, want.code, got.stderr, got.stdout, want.stdout)
		}
	}
}

// TestProofInParts checks that a target whose parts were proved by several commands is that of one run, and what is said
// of steps out of order.
func TestProofInParts(t *testing.T) {
	t.Parallel()
	src, dir := golden(t, "nemo-basic"), fastDir(t)
	for _, to := range []string{"blackwidow", "rdb", "aof"} {
		one, many := filepath.Join(dir, to+"-one"), to+":"+filepath.Join(dir, to+"-many")
		args := []string{"convert", "--now", "2026-01-01T00:00:00Z", "--allow-loss", "same-name", src}
		ok(t, append(args, to+":"+one)...)
		args = append(args, many)
		for _, k := range []int{1, 2} {
			ok(t, append(args, "--part", fmt.Sprintf("%d/2", k))...)
		}
		r := kvferry(t, append(args, "--prove", "1/2")...)
		if r.code != cli.ExitMissing || !strings.Contains(r.stderr,
			"not assembled yet; run this first:\n  kvferry convert --assemble --now") || strings.Contains(r.stderr, "--prove") {
			t.Errorf("before the target is assembled: exit %d, %s", r.code, r.stderr)
		}
		if out := ok(t, append(args, "--assemble")...); !strings.Contains(out, "assembled: run --prove") {
			t.Errorf("%s", out)
		}
		scans, err := filepath.Glob(filepath.Join(dir, to+"-many.kvferry/parts/scan-*"))
		if err != nil || (len(scans) == 1) != (to != "blackwidow") {
			t.Errorf("%s: scans %q, %v", to, scans, err)
		}
		var proof convert.ProofPart
		mustJSON(t, []byte(ok(t, append(args, "--prove", "1/2", "--format", "json")...)), &proof)
		if out := ok(t, append(args, "--prove", "1/2")...); proof.Part != 1 || proof.Parts != 2 || out != "proof 1/2: done already\n" {
			t.Errorf("%+v, again %s", proof, out)
		}
		r = kvferry(t, append(args, "--finish", "--proofs", "2")...)
		if r.code != cli.ExitMissing ||
			!strings.Contains(r.stderr, "1 of 2 parts of the proof are missing; run\n  kvferry convert --prove 2/2 --now") ||
			strings.Contains(r.stderr, "--proofs") {
			t.Errorf("before the proof is whole: exit %d, %s", r.code, r.stderr)
		}
		if out := ok(t, append(args, "--prove", "2/2")...); !strings.HasPrefix(out, "proof 2/2: ") || !strings.Contains(out, "read back") {
			t.Errorf("%s", out)
		}
		if out := ok(t, append(args, "--finish", "--proofs=2")...); !strings.Contains(out, "proved: read back in 2 parts, and") {
			t.Errorf("%s", out)
		}
		if treeBytes(t, filepath.Join(dir, to+"-many")) != treeBytes(t, one) {
			t.Errorf("%s: another target", to)
		}
		for _, step := range []string{"--assemble", "--finish", "--prove=1/2"} {
			ok(t, append(args, step)...)
		}
	}
	for want, flags := range map[string][]string{
		"--part --assemble: run the steps": {"--part", "1/2", "--assemble"},
		"--prove --finish: run the steps":  {"--prove", "1/2", "--finish"},
		"--assemble and a dry run do not":  {"--assemble", "--dry-run"},
		"--proofs 2 needs --finish":        {"--part", "1/2", "--proofs", "2"},
		"--prove keeps finished work":      {"--prove", "1/2", "--resume"},
		"--prove and --no-prove do not go": {"--prove", "1/2", "--no-prove"},
		"no part of it has run; run ea":    {"--prove", "1/2"},
	} {
		r := kvferry(t, append([]string{"convert", src, "blackwidow:" + filepath.Join(dir, "new")}, flags...)...)
		if r.code != cli.ExitUsage && r.code != cli.ExitMissing || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: exit %d, %s", want, r.code, r.stderr)
		}
	}
}

// TestProofScansOnce checks that an RDB file is scanned when it is assembled, and not by each process that proves a part:
// those notice a change after the scan where they read, and scan the file if the scan is damaged.
func TestProofScansOnce(t *testing.T) {
	t.Parallel()
	src, dir := golden(t, "nemo-basic"), fastDir(t)
	many := filepath.Join(dir, "many")
	args := []string{"convert", "--now", "2026-01-01T00:00:00Z", "--allow-loss", "same-name", src, "rdb:" + many}
	ok(t, append(args, "--part", "1/1")...)
	ok(t, append(args, "--assemble")...)
	file := filepath.Join(many+".kvferry", "data")
	scans, err := filepath.Glob(filepath.Join(many+".kvferry", "parts", "scan-*"))
	if err != nil || len(scans) != 1 {
		t.Fatal(scans, err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	change := func(at int) {
		t.Helper()
		other := slices.Clone(data)
		if at > 0 {
			other[at] ^= 1
		}
		if err := errors.Join(os.WriteFile(file, other, 0o644), os.Chtimes(file, st.ModTime(), st.ModTime())); err != nil {
			t.Fatal(err)
		}
	}
	scan := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(scans[0], text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	good, err := os.ReadFile(scans[0])
	if err != nil {
		t.Fatal(err)
	}
	fails := func(want string) {
		t.Helper()
		if r := kvferry(t, append(args, "--prove", "1/1")...); r.code == 0 || !strings.Contains(r.stderr, want) {
			t.Errorf("exit %d, want %q: %s", r.code, want, r.stderr)
		}
	}
	change(len(data) / 2)
	fails("changed")
	scan(good[:len(good)/2])
	fails("the checksum is wrong")
	scan(good)
	change(len(data) - 1)
	fails("the file changed after the scan")
	change(0)
	ok(t, append(args, "--prove", "1/2")...)
	scan(good[1:])
	ok(t, append(args, "--prove", "2/2")...)
	if err := os.Remove(scans[0]); err != nil {
		t.Fatal(err)
	}
	ok(t, append(args, "--prove", "2/3")...)
	if again, err := os.ReadFile(scans[0]); err != nil || string(again) != string(good) {
		t.Errorf("the first process that proves made another scan: %v", err)
	}
	if out := ok(t, append(args, "--finish", "--proofs=2")...); !strings.Contains(out, "proved: read back in 2 parts") {
		t.Errorf("%s", out)
	}
}
