package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"gopkg.in/yaml.v3"
)

const examplesDir = "../../../examples"

// sbatch plays Slurm: it runs the tasks of an array at once and kills the third one the first time.
const sbatch = `#!/bin/sh
for arg; do
	case $arg in
	--array=1-*) last=${arg#--array=1-} ;;
	--*) ;;
	*) break ;;
	esac
	shift
done
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

// TestSlurmExample checks that the scripts for Slurm, with a task that is killed and requeued, make the target of one run.
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
		if job.APIVersion != "batch/v1" || job.Kind != "Job" || s.Template.Spec.RestartPolicy != "Never" || len(s.Template.Spec.Containers) != 1 ||
			len(rules) != 2 || rules[0].Action != "Ignore" || rules[1].Action != "FailJob" ||
			!slices.Equal(rules[1].OnExitCodes.Values, []int{ExitLossy, ExitUsage}) || (s.CompletionMode == "Indexed") != (name == "convert") ||
			name == "finish" && s.Parallelism != 1 || name == "convert" && s.Completions != 16 {
			t.Errorf("%s: %+v", name, job)
		}
	}
}
