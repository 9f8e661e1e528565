package command

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/fixtures"
)

// exampleWorld creates the files that the examples of help texts name, below dir.
func exampleWorld(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "data/pika"), 0o755); err != nil {
		t.Fatal(err)
	}
	for place, name := range map[string]string{"data/pika/dump": "nemo-basic", "data/old": "nemo-basic", "data/ardb": "ardb-leveldb-basic"} {
		from, err := fixtures.Extract(name, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(from, filepath.Join(dir, place)); err != nil {
			t.Fatal(err)
		}
		unchanged(t, filepath.Join(dir, place))
	}
	ok(t, "convert", filepath.Join(dir, "data/old"), "blackwidow:"+filepath.Join(dir, "data/new"))
	ok(t, "convert", "--type", "hash", "--allow-loss", "expiry-ms", filepath.Join(dir, "data/ardb"),
		"blackwidow:"+filepath.Join(dir, "data/moved"))
	ok(t, "convert", "--type", "string", "--allow-loss", "inner-nul", filepath.Join(dir, "data/old"),
		"pika4:"+filepath.Join(dir, "data/pika4"))
	job := "type: [hash, zset]\nworkers: 2\n"
	if err := os.WriteFile(filepath.Join(dir, "job.yaml"), []byte(job), 0o644); err != nil {
		t.Fatal(err)
	}
	moves := "target: blackwidow:/data/fleet/{name}\npart: 64GiB\ndatasets:\n  - source: /data/pika/*\n"
	moves = strings.ReplaceAll(moves, "/data/", dir+"/data/")
	if err := os.WriteFile(filepath.Join(dir, "fleet.yaml"), []byte(moves), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "data/fleet"), 0o755); err != nil {
		t.Fatal(err)
	}
	ok(t, "convert", filepath.Join(dir, "data/pika/dump"), "blackwidow:"+filepath.Join(dir, "data/fleet/dump"))
}

// exampleNames maps keys and sizes in the examples to equivalents in the golden database.
var exampleNames = strings.NewReplacer("user:*", "s1:h*", "user:1", "s1:h1", "hex:00ff", "hex:73313a6831", "--min-bytes 1MiB", "--min-bytes 4")

// TestExamplesRun runs every example of every help text unchanged.
func TestExamplesRun(t *testing.T) {
	dir := t.TempDir()
	exampleWorld(t, dir)
	t.Chdir(dir)
	ran := 0
	root := testApp().Root()
	for _, cmd := range append(root.Commands(), root, cli.Help()) {
		if cmd.Example == "" {
			t.Errorf("%s has no example", cmd.Name())
		}
		for _, line := range strings.Split(cmd.Example, "\n") {
			if strings.Contains(line, " redis://") {
				continue // the tests of redis/live start a server
			}
			runExample(t, dir, strings.TrimSpace(line))
			ran++
		}
	}
	if ran < 35 {
		t.Errorf("%d examples", ran)
	}
}

// behind matches the rest of an example line that does not belong to kvferry.
var behind = regexp.MustCompile(` (?:\| redis-cli --pipe|\| Out-String.*|> \S+)$|\)$`)

func runExample(t *testing.T, dir, line string) {
	t.Helper()
	text := exampleNames.Replace(behind.ReplaceAllString(strings.TrimPrefix(line, "source <("), ""))
	args := commandWords(strings.ReplaceAll(text, "/data/", dir+"/data/"))
	if args[0] != "kvferry" {
		t.Errorf("%s: no command line of kvferry", line)
		return
	}
	if args[1] == "convert" || args[1] == "plan" { // their targets do not exist yet
		last := len(args) - 1
		target, _, _ := strings.Cut(args[last], ":")
		args[last] = target + ":" + filepath.Join(t.TempDir(), "new")
	}
	if args[1] == "serve" { // it serves until it is stopped
		if code := serveOn(t, args[2:]...).stop(); code != cli.ExitOK {
			t.Errorf("%s: exit %d", line, code)
		}
		return
	}
	r := kvferry(t, args[1:]...)
	if silent := strings.Contains(line, " -o ") || args[1] == "diff"; r.code != cli.ExitOK || r.stdout+r.stderr == "" && !silent {
		t.Errorf("%s: exit %d\n%s%s", line, r.code, r.stdout, r.stderr)
	}
	if _, file, to := strings.Cut(line, " > "); to && filepath.Base(file) == file { // another example reads it
		if err := os.WriteFile(file, []byte(r.stdout), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
