package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/convert"
	"kvferry/fixtures"
)

// goldens are databases of nemo and blackwidow, the formats of the main use case.
var goldens = []string{"nemo-basic", "nemo-basic-zlib", "bw-basic", "bw-edge"}

// lossyGoldens maps goldens that nemo cannot hold completely to their losses.
var lossyGoldens = map[string]string{"bw-basic": "score-range", "bw-edge": "empty-key,key-too-long,score-range"}

// sortedLines returns the sorted lines of a text.
func sortedLines(text []byte) []string {
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	slices.Sort(lines)
	return lines
}

func TestGoldensDumpAsTheirTruth(t *testing.T) {
	t.Parallel()
	for _, name := range goldens {
		got := sortedLines([]byte(ok(t, "dump", golden(t, name), "--encode", "base64")))
		want := sortedLines(fixtures.Truth(t, name))
		if len(got) != len(want) {
			t.Errorf("%s: %d lines, want %d", name, len(got), len(want))
			continue
		}
		for i := range got {
			if got[i] != want[i] && !sameRecord(t, got[i], want[i]) {
				t.Errorf("%s: got\n%.300s\nwant\n%.300s", name, got[i], want[i])
			}
		}
	}
}

// sameRecord compares two lines, with scores as numbers.
func sameRecord(t *testing.T, a, b string) bool {
	t.Helper()
	return bytes.Equal(normal(t, a), normal(t, b))
}

func normal(t *testing.T, line string) []byte {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(line), &v); err != nil {
		t.Fatalf("%v: %.200s", err, line)
	}
	if v["type"] == "zset" {
		for _, pair := range v["value"].([]any) {
			p := pair.([]any)
			if n, err := json.Number(p[1].(string)).Float64(); err == nil {
				p[1] = n
			}
		}
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// reportOf reads the published report of a conversion.
func reportOf(t *testing.T, target string) *convert.Report {
	t.Helper()
	rep, err := convert.ReadReport(convert.ReportPath(target))
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

func TestGoldensConvert(t *testing.T) {
	t.Parallel()
	for _, name := range goldens {
		src := golden(t, name)
		for _, to := range []string{"nemo", "blackwidow"} {
			t.Run(name+" to "+to, func(t *testing.T) {
				dst := filepath.Join(t.TempDir(), "dst")
				args := []string{"convert", src, to + ":" + dst, "--now", "1700100000"}
				loss := lossyGoldens[name]
				if to != "nemo" {
					loss = ""
				}
				if loss != "" {
					refused(t, loss, args)
					args = append(args, "--allow-loss", loss)
				}
				ok(t, args...)
				rep := reportOf(t, dst)
				if !rep.Proof.Done || rep.Records() == 0 {
					t.Errorf("report %+v", rep)
				}
				var kinds []string
				for _, l := range rep.Losses {
					if !l.Note {
						kinds = append(kinds, l.Kind)
					}
				}
				if got := strings.Join(kinds, ","); got != loss {
					t.Errorf("losses %s, want %s", got, loss)
				}
				if loss == "" && ok(t, "dump", dst) != ok(t, "dump", src) {
					t.Error("source and target dump differently")
				}
			})
		}
	}
}

// refused runs a conversion that must be refused for all these losses.
func refused(t *testing.T, loss string, args []string) {
	t.Helper()
	r := kvferry(t, args...)
	if r.code != cli.ExitLossy || !strings.Contains(r.stderr, "--allow-loss "+loss+"\n") {
		t.Errorf("exit %d, stderr %s", r.code, r.stderr)
	}
}

// TestWorkersWriteTheSameBytes: also of a database that a salvage puts together without its MANIFEST.
func TestWorkersWriteTheSameBytes(t *testing.T) {
	t.Parallel()
	for i, name := range append(slices.Clone(goldens[:3]), goldens[:3]...) {
		src, args := "", []string{"convert"}
		if i < 3 {
			src = golden(t, name)
		} else {
			src, args = fixtures.Unpack(t, name), append(args, "--allow-loss", "damaged")
			removeManifests(t, src)
		}
		var want string
		for _, workers := range []string{"1", "4"} {
			dst := filepath.Join(t.TempDir(), "dst")
			r := kvferry(t, append(slices.Clone(args), src, "blackwidow:"+dst, "--workers", workers)...)
			if r.code != cli.ExitOK {
				t.Fatalf("%s: exit %d: %s", name, r.code, r.stderr)
			}
			got := treeBytes(t, dst)
			if want == "" {
				want = got
			} else if got != want {
				t.Errorf("%s: another tree with %s workers", name, workers)
			}
		}
	}
}

// removeManifests removes the MANIFESTs of all databases below a directory.
func removeManifests(t *testing.T, root string) {
	t.Helper()
	n := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(d.Name(), "MANIFEST-") {
			n++
			err = os.Remove(path)
		}
		return err
	})
	if err != nil || n == 0 {
		t.Fatalf("%d files, %v", n, err)
	}
}

// whereRowsLie are the members of a raw row that say so, each up to the next.
var whereRowsLie = []string{`"file":`, `"offset":`, `"level":`}

// rowsAlone drops the locations of rows.
func rowsAlone(raw string) string {
	var out strings.Builder
	for line := range strings.Lines(raw) {
		for _, member := range whereRowsLie {
			before, after, found := strings.Cut(line, member)
			if i := strings.IndexAny(after, ",}"); found && i >= 0 {
				line = before + after[i:]
			}
		}
		out.WriteString(line)
	}
	return out.String()
}

func TestThereAndBackAgain(t *testing.T) {
	t.Parallel()
	for _, name := range goldens[:2] {
		src, dir := golden(t, name), t.TempDir()
		there, back, again := filepath.Join(dir, "there"), filepath.Join(dir, "back"), filepath.Join(dir, "again")
		ok(t, "convert", src, "blackwidow:"+there)
		ok(t, "convert", there, "nemo:"+back)
		ok(t, "convert", back, "blackwidow:"+again)
		if want := ok(t, "dump", src); ok(t, "dump", there) != want || ok(t, "dump", back) != want {
			t.Errorf("%s: the dumps differ", name)
		}
		// Tables contain an id of the run that wrote them and of its source, so compare only their rows.
		if rowsAlone(ok(t, "dump", "--raw", there)) != rowsAlone(ok(t, "dump", "--raw", again)) {
			t.Errorf("%s: the same records give other rows", name)
		}
		for _, dst := range []string{there, back, again} {
			rep := reportOf(t, dst)
			if len(rep.Losses) > 0 && !rep.Losses[0].Note || rep.Records() != reportOf(t, there).Records() {
				t.Errorf("%s: %+v", dst, rep.Losses)
			}
		}
	}
}

func TestDatabasesAndLayouts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	src := filepath.Join(dir, "src")
	for db, name := range map[string]string{"db0": "nemo-basic", "db3": "nemo-basic-zlib"} {
		from, err := fixtures.Extract(name, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(src, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(from, filepath.Join(src, db)); err != nil {
			t.Fatal(err)
		}
	}
	info := []byte("2s\n192.168.1.5\n9221\n3\n4711\n")
	if err := os.WriteFile(filepath.Join(src, "info"), info, 0o644); err != nil {
		t.Fatal(err)
	}
	unchanged(t, src)
	both := filepath.Join(dir, "both")
	out := ok(t, "convert", src, "blackwidow:"+both)
	if !strings.Contains(out, "slaveof 192.168.1.5 9221 3 4711\n  only if the new server is Pika 3.0.6,") {
		t.Errorf("no slaveof line with its conditions in\n%s", out)
	}
	out = ok(t, "convert", both, "nemo:"+filepath.Join(dir, "again"), "--allow-loss", "score-range,empty-key,key-too-long")
	if strings.Contains(out, "slaveof") {
		t.Errorf("a slaveof line on the way back, which no server understands:\n%s", out)
	}
	if got := entries(t, both); got != "db0 db3 info" {
		t.Errorf("target holds %s", got)
	}
	if ok(t, "dump", both) != ok(t, "dump", src) {
		t.Error("the dumps differ")
	}
	flat := filepath.Join(dir, "flat")
	if r := kvferry(t, "convert", src, "blackwidow:"+flat, "--layout", "flat"); r.code != cli.ExitFailed {
		t.Errorf("two databases into a flat directory: exit %d, %s", r.code, r.stderr)
	}
	ok(t, "convert", src, "blackwidow:"+flat, "--layout", "flat", "--db", "3")
	if got := entries(t, flat); got != "hashes info lists sets strings zsets" {
		t.Errorf("flat target holds %s", got)
	}
	one := strings.ReplaceAll(ok(t, "dump", src, "--db", "3"), `{"db":"3"`, `{"db":"0"`)
	if ok(t, "dump", flat) != one {
		t.Error("the dumps of one database differ")
	}
	db := filepath.Join(dir, "db")
	ok(t, "convert", flat, "nemo:"+db, "--layout", "db")
	if got := entries(t, db); got != "db0 info" {
		t.Errorf("target holds %s", got)
	}
}

// TestInfoIsAFile checks that an info file is published if it is a regular file of the dump, and that a link out of the
// dump, a directory or a broken link is a warning and is not followed.
func TestInfoIsAFile(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("2s\n192.168.1.5\n9221\n3\n4711\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, plant := range map[string]func(dir string) error{
		"": func(dir string) error { return os.Link(secret, filepath.Join(dir, "info")) },
		"inside": func(dir string) error {
			return errors.Join(os.Link(secret, filepath.Join(dir, "other")), os.Symlink("other", filepath.Join(dir, "info")))
		},
		"out":         func(dir string) error { return os.Symlink(secret, filepath.Join(dir, "info")) },
		"broken":      func(dir string) error { return os.Symlink("gone", filepath.Join(dir, "info")) },
		"a directory": func(dir string) error { return os.Mkdir(filepath.Join(dir, "info"), 0o755) },
	} {
		src, dir := fixtures.Unpack(t, "bw-basic"), t.TempDir()
		if err := plant(src); err != nil {
			t.Skip(err)
		}
		published, warned := name == "" || name == "inside", ""
		if !published {
			warned = "warning not-a-file"
		}
		if got := strings.Join(foundIn(t, src), ", "); got != warned {
			t.Errorf("%s: found %q, want %q", name, got, warned)
		}
		for _, target := range []string{"blackwidow", "nemo"} {
			out := ok(t, "convert", src, target+":"+filepath.Join(dir, target), "--allow-loss", "score-range,empty-key,key-too-long")
			if got := entries(t, filepath.Join(dir, target)); strings.Contains(got, "info") != published {
				t.Errorf("%s to %s: target holds %s", name, target, got)
			}
			if !published && strings.Contains(out, "192.168.1.5") {
				t.Errorf("%s to %s: reveals what the link leads to:\n%s", name, target, out)
			}
		}
	}
}

// TestCancelledLeavesNothing checks that a conversion cancelled before it begins leaves no files.
func TestCancelledLeavesNothing(t *testing.T) {
	src, dir := golden(t, "nemo-basic"), t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var stdout, stderr bytes.Buffer
	dst := filepath.Join(dir, "dst")
	code := testApp().Run(ctx, []string{"convert", "--type", "hash,set", src, "blackwidow:" + dst}, &stdout, &stderr)
	want := "kvferry: cancelled; " + dst + ".kvferry was removed\n"
	if code != cli.ExitCancelled || stderr.String() != want || stdout.Len() > 0 {
		t.Errorf("exit %d: %s%s", code, &stdout, &stderr)
	}
	if got := entries(t, dir); got != "" {
		t.Errorf("left %s", got)
	}
}

// cancelAt is a writer that cancels when it receives a text.
type cancelAt struct {
	bytes.Buffer
	text   string
	cancel func()
}

func (w *cancelAt) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.text)) {
		w.cancel()
	}
	return w.Buffer.Write(p)
}

func (w *cancelAt) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// TestCancelledAndContinued checks that a cancelled conversion reports where its work is kept, and that the command
// line it prints continues it.
func TestCancelledAndContinued(t *testing.T) {
	src, dir := golden(t, "nemo-basic"), filepath.Join(t.TempDir(), "a place")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	dst := filepath.Join(dir, "dst")
	cancelled := func(args ...string) string {
		t.Helper()
		ctx, cancel := context.WithCancel(context.Background())
		stderr := &cancelAt{text: "prove", cancel: cancel}
		if code := testApp().Run(ctx, args, io.Discard, stderr); code != cli.ExitCancelled {
			t.Fatalf("exit %d: %s", code, stderr)
		}
		return stderr.String()
	}
	args := []string{"convert", "--resume", "--progress", "bar", "--workers", "1", src, "blackwidow:" + dst}
	if said := cancelled(slices.Insert(slices.Clone(args[2:]), 0, "convert", "--discard")...); entries(t, dir) != "" ||
		!strings.HasSuffix(said, ".kvferry was removed\n") {
		t.Errorf("--discard leaves %s: %s", entries(t, dir), said)
	}
	stderr := cancelled(slices.Insert(slices.Clone(args[2:]), 0, "convert")...)
	said, line, found := strings.Cut(stderr, "; continue with\n  kvferry ")
	if !found || !strings.HasSuffix(said, "kvferry: cancelled; the work so far is kept in "+dst+".kvferry") ||
		entries(t, dir) != "dst.kvferry" {
		t.Fatalf("%s is left: %s", entries(t, dir), stderr)
	}
	again := commandWords(strings.TrimSuffix(line, "\n"))
	if !slices.Equal(again, args) {
		t.Errorf("%q, want %q", again, args)
	}
	if r := kvferry(t, slices.Delete(slices.Clone(args), 1, 2)...); r.code != cli.ExitFailed || !strings.Contains(r.stderr, "continue it with --resume, or start over with --discard") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	if out := ok(t, again...); !strings.Contains(out, ", resumed") {
		t.Errorf("it began again: %s", out)
	}
	if got := entries(t, dir); got != "dst dst.kvferry-report.json" {
		t.Errorf("left %s", got)
	}
	if err := os.Rename(dst, dst+"1"); err != nil {
		t.Fatal(err)
	}
	cancelled(args...)
	if out := ok(t, "convert", "--discard", src, "blackwidow:"+dst); strings.Contains(out, ", resumed") ||
		treeBytes(t, dst) != treeBytes(t, dst+"1") {
		t.Errorf("it went on: %s", out)
	}
}

func TestCommandLine(t *testing.T) {
	got := cli.CommandLine([]string{"dump", "--match", "a*", "it's", "", "nemo:/x,y_z"})
	if want := `kvferry dump --match 'a*' 'it'\''s' '' nemo:/x,y_z`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestProgressJSON(t *testing.T) {
	src := golden(t, "nemo-basic")
	r := kvferry(t, "convert", src, "blackwidow:"+filepath.Join(t.TempDir(), "dst"), "--progress", "json")
	if r.code != cli.ExitOK {
		t.Fatal(r.stderr)
	}
	var last string
	for _, line := range sortedLines([]byte(r.stderr)) {
		var p convert.Progress
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Errorf("%s: %v", line, err)
		}
		last = p.Phase
	}
	if last == "" {
		t.Error("no progress")
	}
}

func TestProgressBar(t *testing.T) {
	src := golden(t, "nemo-basic")
	r := kvferry(t, "convert", src, "blackwidow:"+filepath.Join(t.TempDir(), "dst"), "--progress", "bar")
	if r.code != cli.ExitOK || !strings.Contains(r.stderr, "convert") {
		t.Errorf("exit %d: %q", r.code, r.stderr)
	}
}

func TestCommandsReturnErrors(t *testing.T) {
	app := testApp()
	for _, cmd := range append(app.commands(), app.Root()) {
		if cmd.RunE == nil || cmd.Run != nil {
			t.Errorf("%s has no RunE", cmd.Name())
		}
	}
	if out := ok(t); !strings.Contains(out, "Commands:") {
		t.Errorf("no help: %s", out)
	}
}

// TestOneNameUnderOneType converts to Ardb, which has one type per name, from nemo, which has five.
func TestOneNameUnderOneType(t *testing.T) {
	src := golden(t, "nemo-basic")
	r := kvferry(t, "convert", src, "ardb:"+filepath.Join(t.TempDir(), "dst"))
	if r.code != cli.ExitLossy || !strings.Contains(r.stderr, "221 × same-name") || !strings.Contains(r.stderr, "--on-conflict rename") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	all := reportOf(t, converted(t, src, "blackwidow"))
	kept := reportOf(t, converted(t, src, "ardb", "--on-conflict", "keep=zset,set"))
	if kept.Records() != all.Records()-221 {
		t.Errorf("kept %d of %d records", kept.Records(), all.Records())
	}
	dst := converted(t, src, "ardb", "--on-conflict", "rename")
	if got := reportOf(t, dst); got.Records() != all.Records() || got.Elements() != all.Elements() {
		t.Errorf("renamed: %d records, %d elements", got.Records(), got.Elements())
	}
	if got := ok(t, "dump", dst, "--match", "k:*", "--keys-only"); !strings.Contains(got, `"key":"k:hash"`) {
		t.Errorf("no k:hash in %s", got)
	}
}

// TestNamespacesGetNumbers converts named databases of Ardb to blackwidow, which numbers them.
func TestNamespacesGetNumbers(t *testing.T) {
	dst := converted(t, golden(t, "ardb-leveldb-basic"), "blackwidow", "--allow-loss", "expiry-ms,stream")
	rep := reportOf(t, dst)
	if strings.Join(rep.Source.DBs, " ") != "0 1 10 bar foo" || strings.Join(rep.Target.DBs, " ") != "0 1 10 2 3" {
		t.Errorf("%q as %q", rep.Source.DBs, rep.Target.DBs)
	}
	if got := entries(t, dst); got != "db0 db1 db10 db2 db3 db4 db5 db6 db7 db8 db9" {
		t.Errorf("target holds %s", got)
	}
}

// TestRefusalEndsWithCommands checks that a refusal ends with two complete command lines: the first keeps all keys by
// renaming them, the second loses them. The target is called by the name in its location.
func TestRefusalEndsWithCommands(t *testing.T) {
	for _, c := range []struct {
		target, aim, rename string
		flags               []string
	}{
		{"rdb", "to lose nothing, rename the keys:", "convert --on-conflict rename ", nil},
		{"rdb", "to lose nothing, rename the keys:", "convert --on-conflict rename ", []string{"--on-conflict=error"}},
		{"pika4", "to lose only inner-nul, rename the keys:", "convert --on-conflict rename --allow-loss inner-nul ", nil},
		{"pika4", "to lose only inner-nul, rename the keys:", "convert --on-conflict rename --allow-loss inner-nul ", []string{"--allow-loss", "inner-nul"}},
	} {
		src, dst := golden(t, "nemo-basic"), c.target+":"+filepath.Join(t.TempDir(), "dst")
		r := kvferry(t, append(append([]string{"convert"}, c.flags...), src, dst)...)
		lines := strings.Split(strings.TrimSuffix(r.stderr, "\n"), "\n")
		if r.code != cli.ExitLossy || len(lines) < 5 {
			t.Fatalf("exit %d, %s", r.code, r.stderr)
		}
		end := lines[len(lines)-5:]
		if !strings.Contains(end[0], "refused: "+c.target+" cannot hold everything") || end[1] != c.aim ||
			!strings.Contains(end[2], c.rename) {
			t.Errorf("%s", strings.Join(end, "\n"))
		}
		renamed := strings.Fields(end[2])
		ok(t, renamed[1:]...)
		if got := ok(t, "fingerprint", dst); !strings.Contains(got, "zset") {
			t.Errorf("%.200s", got)
		}
		lossy := strings.Fields(end[4])
		lossy[len(lossy)-1] += "-lossy"
		ok(t, lossy[1:]...)
	}
}
