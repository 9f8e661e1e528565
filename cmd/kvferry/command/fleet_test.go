package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"kvferry/cmd/kvferry/cli"
	"kvferry/cmd/kvferry/fleet"
	"kvferry/convert"
	"kvferry/fixtures"
	"kvferry/internal/sys/object"
	"kvferry/internal/testkit/s3test"
)

// fleetWorld creates datasets in dir and in a server of objects, and a file that lists them. The third is refused.
func fleetWorld(t *testing.T) (dir, file string) {
	t.Helper()
	dir = fastDir(t)
	f := s3test.NewFake(t)
	rdb, err := os.ReadFile(packedRDB)
	if err != nil {
		t.Fatal(err)
	}
	f.Put("shops/shop-b/dump.rdb", rdb)
	f.Put("shops/other/dump.rdb", rdb)
	for place, name := range map[string]string{"in/shop-a": "nemo-basic", "in/Edge 1": "bw-edge"} {
		err := os.CopyFS(filepath.Join(dir, place, "dump"), os.DirFS(fixtures.Unpack(t, name)))
		if err != nil {
			t.Fatal(err)
		}
	}
	file = filepath.Join(dir, "fleet.yaml")
	text := fmt.Sprintf(`target: blackwidow:%[1]s/new/{name}
options: {now: "2026-01-01T00:00:00Z", workers: 1}
image: registry/kvferry:1
claim: shops
datasets:
  - source: %[1]s/in/shop-*/dump
    part: 800KiB
  - source: rdb:s3://%[2]s/shops/shop-?/dump.rdb
    options: {workers: 3, s3-endpoint: %[3]s, allow-loss: [expiry-2038, expiry-ms, field-expiry], type: [hash, set]}
  - source: %[1]s/in/[E]*/dump
    target: nemo:%[1]s/new/refused
`, dir, s3test.Bucket, f.URL)
	if err := errors.Join(os.WriteFile(file, []byte(text), 0o600),
		os.WriteFile(filepath.Join(dir, "in", "shop-list"), nil, 0o600), os.Mkdir(filepath.Join(dir, "new"), 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir, file
}

// TestFleet runs the printed commands, one after the other, and checks the state between them.
func TestFleet(t *testing.T) {
	dir, file := fleetWorld(t)
	lines := strings.Split(strings.TrimSpace(ok(t, "fleet", file)), "\n")
	state := func(want string) (all []fleet.State) {
		t.Helper()
		r := kvferry(t, "fleet", "--reports", dir+"/**", "--format", "json", file)
		mustJSON(t, []byte(r.stdout), &all)
		var got []string
		for _, s := range all {
			got = append(got, fmt.Sprintf("%s %s %d/%d %d", s.Name, s.State, s.PartsDone, s.Parts, s.Exit))
		}
		text := strings.Join(got, "; ")
		if text != want || (r.code == cli.ExitOK) != !strings.Contains(text, "failed") && !strings.Contains(text, "open") {
			t.Errorf("exit %d: %s\nwant %s\n%s", r.code, text, want, r.stderr)
		}
		return all
	}
	all := state("shop-a open 0/4 0; shop-b open 0/1 0; Edge 1 open 0/1 0")
	if len(lines) != 12 {
		t.Fatalf("%d lines, want 12: %s", len(lines), lines)
	}
	missing := func(line, want string) {
		t.Helper()
		if r := kvferry(t, commandWords(line)[1:]...); r.code != cli.ExitMissing || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: exit %d: %s", line, r.code, r.stderr)
		}
	}
	if next := slices.Concat(all[0].Next, all[1].Next, all[2].Next); !slices.Equal(next, lines) {
		t.Errorf("what is next of an open dataset: %s\nwant %s", next, lines)
	}
	missing(lines[9], "no part of it has run")
	for i, line := range slices.Concat(lines[1:4], lines[10:]) {
		if r := kvferry(t, commandWords(line)[1:]...); r.code != cli.ExitOK && (i != 4 || r.code != cli.ExitLossy) {
			t.Fatalf("%s: exit %d: %s%s", line, r.code, r.stdout, r.stderr)
		}
	}
	all = state("shop-a open 3/4 0; shop-b done 1/1 0; Edge 1 failed 0/1 4")
	if !slices.Equal(all[0].Next, append([]string{lines[0]}, lines[4:10]...)) ||
		!strings.HasPrefix(all[2].Next[0], "kvferry convert --dry-run ") || all[2].Next[1] != lines[11] {
		t.Errorf("what is next: %q, %q", all[0].Next, all[2].Next)
	}
	if s := all[1]; s.Records == 0 || s.SourceBytes == 0 || s.TargetBytes == 0 || s.Seconds == 0 || all[0].Records == 0 ||
		all[2].Error == "" {
		t.Errorf("the states have no figures: %+v", all)
	}
	page := kvferry(t, "fleet", "--reports", filepath.Join(dir, "new"), "--format", "html", file).stdout
	for _, want := range []string{"1 done, 1 failed, 1 open", "<td class=\"text\">shop-a</td>", "<th scope=\"col\">records</th>",
		"<td class=\"text\">failed (4)", "3 of 4"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s:\n%s", want, page)
		}
	}
	missing(lines[4], "1 of 4 parts are missing")
	ok(t, commandWords(lines[0])[1:]...)
	missing(lines[5], "not assembled yet")
	missing(lines[9], "not assembled yet")
	ok(t, commandWords(lines[4])[1:]...)
	missing(lines[9], "4 of 4 parts of the proof are missing")
	for _, line := range lines[5:10] {
		ok(t, commandWords(line)[1:]...)
	}
	state("shop-a done 4/4 0; shop-b done 1/1 0; Edge 1 failed 0/1 4")
	if left, _ := filepath.Glob(filepath.Join(dir, "new", "shop*failure*")); left != nil {
		t.Errorf("a failure that is over is still there: %s", left)
	}
	for _, want := range []string{"shop-a   done", "3 datasets: 2 done, 1 failed, 0 open", "Edge 1: failed: "} {
		if text := kvferry(t, "fleet", "--reports", dir, file).stdout; !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
}

// TestFleetManifests checks that the manifests are the examples with the numbers and command lines of the datasets, and
// that the script for Slurm makes the targets.
func TestFleetManifests(t *testing.T) {
	dir, file := fleetWorld(t)
	var names []string
	for _, as := range []string{"kubernetes", "argo"} {
		docs := yaml.NewDecoder(strings.NewReader(ok(t, "fleet", "--as", as, file)))
		for {
			var doc struct {
				Kind     string
				Metadata struct{ Name string }
				Spec     struct {
					Completions int
					Templates   []struct {
						Container struct{ Args []string }
						Steps     [][]struct {
							Arguments struct {
								Parameters []struct{ Name, Value string }
							}
							WithSequence map[string]string `yaml:"withSequence"`
						}
					}
					Template struct {
						Spec struct {
							Containers []struct {
								Image     string
								Args      []string
								Resources struct{ Limits struct{ Memory string } }
							}
						}
					}
				}
			}
			err := docs.Decode(&doc)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, fmt.Sprint(doc.Kind, " ", doc.Metadata.Name, " ", doc.Spec.Completions))
			if as == "argo" {
				for _, step := range doc.Spec.Templates[0].Steps {
					line, sequence := step[0].Arguments.Parameters[0].Value, step[0].WithSequence["end"]
					names[len(names)-1] += " " + strings.Join(commandWords(line)[4:5], "") + sequence
				}
				if args := doc.Spec.Templates[1].Container.Args; !slices.Equal(args, []string{"{{inputs.parameters.line}}"}) {
					t.Errorf("%q", args)
				}
				continue
			}
			c := doc.Spec.Template.Spec.Containers[0]
			all := strings.Join(c.Args, " ")
			if c.Image != "registry/kvferry:1" || c.Resources.Limits.Memory != "2Gi" ||
				!strings.Contains(all, "--failure-report") || !strings.Contains(all, dir) {
				t.Errorf("%+v", c)
			}
		}
	}
	want := []string{"Job kvferry-shop-a-parts 4", "Job kvferry-shop-a-assemble 1", "Job kvferry-shop-a-proofs 4",
		"Job kvferry-shop-a-finish 1", "Job kvferry-shop-b 1",
		"Job kvferry-" + fleet.JobName("Edge 1") + " 1", "Workflow kvferry-shop-a 0 --part={{item}}/44 --assemble --prove={{item}}/44 --finish",
		"Workflow kvferry-shop-b 0 --allow-loss=expiry-2038,expiry-ms,field-expiry", "Workflow kvferry-" + fleet.JobName("Edge 1") + " 0 --memory=1536MiB"}
	if !slices.Equal(names, want) || fleet.JobName("Edge 1") == fleet.JobName("edge-1") {
		t.Errorf("%q\nwant %q", names, want)
	}
	script := ok(t, "fleet", "--as", "slurm", file)
	exe, err := os.Executable()
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "sbatch"), []byte(sbatch), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "KVFERRY="+exe, mainEnv+"=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !bytes.Contains(out, []byte("lossy")) && !bytes.Contains(out, []byte("loss")) {
		t.Errorf("the last conversion is refused: %v\n%s", err, out)
	}
	for _, name := range []string{"shop-a", "shop-b"} {
		if _, err := os.Stat(filepath.Join(dir, "new", name)); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// TestFleetRefused checks that mistakes in a file are refused with the line.
func TestFleetRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "f.yaml")
	for text, want := range map[string]string{
		"":                                       "it lists no datasets",
		"datasets: []":                           "datasets: want a list",
		"sets: 1\ndatasets: [1]":                 `line 1: unknown key "sets"`,
		"datasets:\n  - 1":                       "line 2: want a map with the keys command, target, part, options, source, name",
		"datasets:\n  - source: /\n    sorce: /": `line 3: unknown key "sorce"; did you mean`,
		"datasets:\n  - source: /\n    source: /":                                               "line 3: source is already set in line 2",
		"datasets:\n  - source: /\n    target: [1]":                                             "line 3: target: want a value",
		"datasets:\n  - source: /":                                                              "line 2: a dataset needs a source, and a target",
		"datasets:\n  - source: a\n    target: nemo:/x":                                         "line 2: a: want an absolute path",
		"datasets:\n  - source: DIR\n    target: nemo:x":                                        "line 2: target nemo:x: want an absolute path",
		"datasets:\n  - source: DIR\n    target: /x":                                            "line 2: target /x: name its format",
		"datasets:\n  - source: DIR/no*\n    target: nemo:/x":                                   "no dataset found",
		"datasets:\n  - source: DIR/[\n    target: nemo:/x":                                     "syntax error in pattern",
		"datasets:\n  - source: DIR\n    target: nemo:/x\n    part: much":                       "part: want a number of bytes",
		"datasets:\n  - source: DIR\n    target: nemo:/x\n    options: 1":                       "line 4: want a map of flags",
		"datasets:\n  - source: DIR\n    target: nemo:/x\n    options:\n      typ: hash":        `options: line 5: convert has no flag "typ"`,
		"datasets:\n  - source: DIR\n    target: nemo:/x\n    options: {part: 1/2}":             "--part is not an option of a fleet",
		"datasets:\n  - source: DIR\n    target: nemo:/x\n    options: {estimate: yes}":         "--estimate is not an option",
		"datasets:\n  - source: DIR\n    target: /x\n    command: vrify":                        `unknown command "vrify": want convert, dump, fingerprint, inspect or verify`,
		"datasets:\n  - source: DIR\n    target: s3://data/x\n    command: verify":              "kvferry writes this file to the local disk only",
		"datasets:\n  - source: DIR\n    target: /x\n    command: verify\n    part: 1":          "parts of verify need a time in common",
		"datasets:\n  - source: DIR\n    target: x\n    command: dump":                          "target x: want an absolute path",
		"datasets:\n  - source: DIR\n    target: nemo:/x\n  - source: DIR\n    target: ssdb:/x": "have the same target, /x",
		"datasets:\n  - source: DIR\n    target: nemo:/x\n  - source: DIR\n    target: nemo:/y": "have the same name",
		"datasets:\n  - source: DIR\n    target: \"nemo:/x\\ty\"":                               `"nemo:/x\ty" has characters that are not printable`,
	} {
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := kvferry(t, "fleet", file); r.code != cli.ExitUsage || !strings.Contains(r.stderr, want) {
			t.Errorf("%s: exit %d: %s, want %s", text, r.code, r.stderr, want)
		}
	}
	if r := kvferry(t, "fleet", "--format", "json", file); r.code != cli.ExitUsage {
		t.Errorf("--format without --reports: exit %d", r.code)
	}
}

// TestFleetOddReports: what is no report, and cannot be read, is named, and the state is printed all the same.
func TestFleetOddReports(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "f.yaml")
	for name, text := range map[string]string{"f.yaml": "datasets:\n  - source: DIR\n    target: nemo:DIR/new",
		"a.kvferry-report.json": "no JSON \u009b",
		"b.kvferry-report.json": "[1]", "c\u202e.kvferry-failure.json": `{"part": "x"}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, format := range []string{"text", "json", "html"} {
		r := kvferry(t, "fleet", "--reports", dir, "--format", format, file)
		named := r.stderr
		if format == "html" {
			named += r.stdout
		}
		for _, want := range []string{"a.kvferry-report.json", "b.kvferry-report.json", `c\u202e.kvferry-failure.json`} {
			if r.code != cli.ExitMissing || !strings.Contains(r.stderr, "not read: "+filepath.Join(dir, want)) ||
				strings.Contains(named, "\u202e") {
				t.Errorf("%s: exit %d: %s", want, r.code, named)
			}
		}
		if (format == "html") != strings.Contains(r.stdout, "b.kvferry-report.json") || !strings.Contains(r.stdout, "open") {
			t.Errorf("%s: %s", format, r.stdout)
		}
	}
	if r := kvferry(t, "fleet", "--reports", filepath.Join(dir, "none"), file); r.code != cli.ExitUsage {
		t.Errorf("exit %d of a directory that does not exist: %s", r.code, r.stderr)
	}
}

// TestFleetCommands exports, checks and uploads a dataset by the commands of a fleet, printed for a shell and for
// Kubernetes: the outputs are those of one run.
func TestFleetCommands(t *testing.T) {
	dir, file := fleetWorld(t)
	t.Chdir(dir)
	text := fmt.Sprintf(`options: {now: "2026-01-01T00:00:00Z", workers: 1}
part: 800KiB
datasets:
  - {source: %[1]s/in/shop-*/dump, command: dump, target: "%[1]s/new/{name} export"}
  - {source: %[1]s/in/shop-*/dump, command: verify, name: "{name}-verify", target: "%[1]s/new/{name}.json", options: {format: json}}
  - {source: %[1]s/in/shop-*/dump, command: inspect, name: "{name}-inspect", target: "%[1]s/new/{name}.txt"}
  - {source: %[1]s/in/shop-*/dump, name: up, target: "pika3.5:s3://%[2]s/up/{name}", options: {on-conflict: rename}}
  - {source: %[1]s/in/shop-*/dump, command: dump, name: up-dump, target: "s3://%[2]s/up/{name}"}
`, dir, s3test.Bucket)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	state := func(want string) {
		t.Helper()
		var all []fleet.State
		mustJSON(t, []byte(kvferry(t, "fleet", "--reports", dir+"/**", "--format", "json", file).stdout), &all)
		got := ""
		for _, s := range all {
			got += fmt.Sprintf("%s %d/%d %t; ", s.State, s.PartsDone, s.Parts, s.Records > 0)
		}
		if got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	state("open 0/4 false; open 0/4 false; open 0/4 false; open 0/1 false; open 0/1 false; ")
	lines := strings.Split(strings.TrimSpace(ok(t, "fleet", file)), "\n")
	if len(lines) != 17 {
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	if r := kvferry(t, commandWords(lines[9])[1:]...); r.code != cli.ExitMissing || !strings.Contains(r.stderr, "run the command of this part first") {
		t.Errorf("%s: exit %d, %s", lines[9], r.code, r.stderr)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for n, script := range parallelScripts(t, ok(t, "fleet", "--as", "kubernetes", file)) {
		for k := range 4 {
			cmd := exec.Command("/bin/sh", "-c", fmt.Sprintf("kvferry() { %s=\"$(printf '%%s\\n' \"$@\")\" %s; }\n%s", argsEnv,
				exe, strings.TrimPrefix(script, "exec ")))
			cmd.Env = append(os.Environ(), fmt.Sprint("JOB_COMPLETION_INDEX=", k))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v, %s", script, err, out)
			}
		}
		state([]string{"open 4/4 true; open 0/4 false; open 0/4 false; open 0/1 false; open 0/1 false; ",
			"open 4/4 true; open 4/4 false; open 0/4 false; open 0/1 false; open 0/1 false; ",
			"open 4/4 true; open 4/4 false; open 4/4 false; open 0/1 false; open 0/1 false; "}[n])
	}
	for _, line := range lines {
		if r := kvferry(t, commandWords(line)[1:]...); r.code != cli.ExitOK && r.code != cli.ExitFindings {
			t.Errorf("%s: exit %d, %s", line, r.code, r.stderr)
		}
	}
	state("done 4/4 false; done 4/4 false; done 4/4 false; done 1/1 true; done 1/1 false; ")
	src, now, one := filepath.Join(dir, "in/shop-a/dump"), "--now=2026-01-01T00:00:00Z", filepath.Join(dir, "one")
	ok(t, "dump", "--format", "parquet", "--memory", "1536MiB", now, "-o", one, src)
	if treeBytes(t, one) != treeBytes(t, filepath.Join(dir, "new/shop-a export")) {
		t.Error("the parts of the dump make something else")
	}
	for name, want := range map[string]result{"new/shop-a-verify.json": kvferry(t, "verify", "--format", "json", now, src),
		"new/shop-a-inspect.txt": kvferry(t, "inspect", now, src)} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want.stdout {
			t.Errorf("%s: %v\n%s\nwant\n%s", name, err, got, want.stdout)
		}
	}
	ok(t, "verify", "s3://"+s3test.Bucket+"/up/up-dump")
}

// parallelScripts returns the scripts of the Jobs with several pods.
func parallelScripts(t *testing.T, manifests string) (out []string) {
	docs := yaml.NewDecoder(strings.NewReader(manifests))
	for {
		var doc struct {
			Spec struct {
				Completions int
				Template    struct {
					Spec struct{ Containers []struct{ Args []string } }
				}
			}
		}
		err := docs.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if doc.Spec.Completions > 1 {
			out = append(out, doc.Spec.Template.Spec.Containers[0].Args[0])
		}
	}
}

// TestFleetReportFirst: a report without its target, as a process leaves it that dies in between, is not that of a done
// dataset.
func TestFleetReportFirst(t *testing.T) {
	dir, f := fastDir(t), s3test.NewFake(t)
	rdb, err := os.ReadFile(packedRDB)
	t.Chdir(dir)
	file := filepath.Join(dir, "fleet.yaml")
	text := fmt.Sprintf(`options: {now: "2026-01-01T00:00:00Z", workers: 1, rdb-version: 12}
datasets:
  - {source: "rdb:%[1]s/dump.rdb", name: file, target: "rdb:s3://%[2]s/up.rdb"}
  - {source: "rdb:%[1]s/dump.rdb", name: tree, target: "aof:s3://%[2]s/up"}
  - {source: "rdb:%[1]s/dump.rdb", name: local, target: "rdb:%[1]s/new.rdb"}
`, dir, s3test.Bucket)
	if err := errors.Join(err, os.WriteFile(file, []byte(text), 0o600), os.WriteFile("dump.rdb", rdb, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(ok(t, "fleet", file)), "\n") {
		ok(t, commandWords(line)[1:]...)
	}
	state := func(want string) (all []fleet.State) {
		t.Helper()
		mustJSON(t, []byte(kvferry(t, "fleet", "--reports", dir+"/**", "--format", "json", file).stdout), &all)
		for _, s := range all {
			if s.State != want {
				t.Errorf("%s is %s, want %s", s.Name, s.State, want)
			}
		}
		return all
	}
	state("done")
	f.Delete("up.rdb")
	f.Put("up/"+object.IncompleteName, nil)
	if err := os.Mkdir(convert.WorkPath("new.rdb"), 0o700); err != nil {
		t.Fatal(err)
	}
	if all := state("open"); !strings.Contains(all[2].Next[0], "--resume") {
		t.Errorf("%q", all[2].Next)
	}
}
