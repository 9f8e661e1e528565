package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"kvferry/cmd/kvferry/cli"
	"kvferry/inspect"
	"kvferry/internal/pass/filter"
	"kvferry/internal/text/jsonl"
	"kvferry/nemo"
	"kvferry/record"
)

// renamed builds an Ardb dataset with named databases and a blackwidow copy with numbered ones.
func renamed(t *testing.T) (src, dst, file string) {
	t.Helper()
	src = golden(t, "ardb-leveldb-basic")
	dst = converted(t, src, "blackwidow", "--type", "string,hash,list,set,zset", "--allow-loss", "expiry-ms")
	file = filepath.Join(t.TempDir(), "f.json.gz")
	ok(t, "fingerprint", "--type", "string,hash,list,set,zset", src, "-o", file)
	return src, dst, file
}

// TestRenamedDatabases checks that --map-db matches renamed databases in every comparison, also of selected
// databases.
func TestRenamedDatabases(t *testing.T) {
	t.Parallel()
	src, dst, file := renamed(t)
	types, names := []string{"--type", "string,hash,list,set,zset"}, []string{"--map-db", "bar=2", "--map-db", "foo=3"}
	compare := func(what string, code int, out []string, more ...string) {
		t.Helper()
		for _, args := range [][]string{
			append([]string{"diff", src, dst}, types...), append([]string{"diff", "--direct", src, dst}, types...),
			append([]string{"verify", src, "--against", dst}, types...), {"fingerprint", "--check", file, dst},
		} {
			lines := out
			if args[0] == "fingerprint" && out != nil {
				lines = []string{`database foo (3) string: file: 5 records and 5 elements, dataset: 4 records and 4 elements`,
					"differs from " + file + ", both with --type string,hash,list,set,zset, --now "}
			}
			r := kvferry(t, append(args, more...)...)
			want := code
			if args[0] == "fingerprint" && code == cli.ExitOK && more == nil { // a file has no numbers
				want = cli.ExitFindings
			}
			if r.code != want {
				t.Errorf("%s: %q: exit %d\n%.600s%s", what, args[0], r.code, r.stdout, r.stderr)
			}
			for _, l := range lines {
				if !strings.Contains(r.stdout, l) {
					t.Errorf("%s: %q: no %q in\n%.600s", what, args[0], l, r.stdout)
				}
			}
		}
	}
	compare("without a map", cli.ExitOK, nil) // names without numbers have those of a conversion
	compare("with one", cli.ExitOK, nil, names...)
	compare("of a name twice", cli.ExitUsage, nil, "--map-db", "bar=2", "--map-db", "foo=2")
	compare("of no name", cli.ExitUsage, nil, append(names, "--map-db", "baz=0")...)
	compare("of no number", cli.ExitUsage, nil, "--map-db", "bar=77")
	alter(t, filepath.Join(dst, "db3", "strings"), func(r *rows) { r.del("default", []byte("a")) })
	compare("of what lost a record", cli.ExitFindings,
		[]string{`missing foo (3) string "a"`, "1 record missing, 0 extra, 0 differing"}, names...)
	for db, code := range map[string]int{"bar": cli.ExitOK, "0,1,bar": cli.ExitOK, "foo,bar": cli.ExitFindings} {
		if r := kvferry(t, append([]string{"diff", src, dst, "--db", db, "--type", "string,list"}, names...)...); r.code != code {
			t.Errorf("of %s: exit %d\n%s%s", db, r.code, r.stdout, r.stderr)
		}
		one := filepath.Join(t.TempDir(), "one.json")
		ok(t, "fingerprint", "--db", db, "--type", "string,list", src, "-o", one)
		if r := kvferry(t, append([]string{"fingerprint", "--check", one, dst}, names...)...); r.code != code {
			t.Errorf("file of %s: exit %d\n%s%s", db, r.code, r.stdout, r.stderr)
		}
	}
}

// TestConversionPrintsTheComparison checks that a conversion that renames databases prints the command that compares
// source and copy, under any selection.
func TestConversionPrintsTheComparison(t *testing.T) {
	t.Parallel()
	src, tmp := golden(t, "ardb-leveldb-basic"), t.TempDir()
	keys := filepath.Join(tmp, "it's keys")
	if err := os.WriteFile(keys, []byte("a\nb\nonlyB\nhash:big\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for i, args := range [][]string{
		{"--type", "string,hash,list,set,zset", "--expired", "keep"},
		{"--db", "1,bar,foo", "--now", "1700000000.5"},
		{"--db", "foo", "--match", "?", "--match", "x y", "--sample", "1"},
		{"--db", "10", "--layout", "flat"},
		{"--key-file", keys, "--min-bytes", "2", "--resort"},
		{"--type", "string,hash,list,set,zset", "--ttl-from", "0s", "--db", "0,foo,bar"},
	} {
		dst := filepath.Join(tmp, fmt.Sprint("copy ", i))
		convert := append([]string{"convert", src, "blackwidow:" + dst, "--allow-loss", "expiry-ms"}, args...)
		const before = "\nto compare source and copy: kvferry "
		if dry := ok(t, append(convert, "--dry-run")...); strings.Contains(dry, before) {
			t.Errorf("%v: there is no copy: %s", args, dry)
		}
		_, line, found := strings.Cut(ok(t, convert...), before)
		line, _, _ = strings.Cut(line, "\n")
		if !found {
			t.Errorf("%v: no command", args)
			continue
		}
		words, err := exec.Command("sh", "-c", `for w in `+line+`; do printf '%s\n' "$w"; done`).Output()
		if err != nil {
			t.Fatal(err)
		}
		r := kvferry(t, strings.Split(strings.TrimSuffix(string(words), "\n"), "\n")...)
		if r.code != cli.ExitOK || !strings.Contains(r.stdout, "\nequal as converted") {
			t.Errorf("%s: exit %d\n%.600s%s", line, r.code, r.stdout, r.stderr)
		}
	}
	out := ok(t, "convert", buildSmall(t, nemo.New(), smallRecord(record.String, "a", "b")), "blackwidow:"+filepath.Join(tmp, "same"))
	if strings.Contains(out, "to compare") {
		t.Errorf("without need: %s", out)
	}
}

// TestFingerprintOrder checks that a fingerprint file lists the databases of its dataset, and the parts in their
// order.
func TestFingerprintOrder(t *testing.T) {
	_, dst, _ := renamed(t)
	var f inspect.FingerprintFile
	mustJSON(t, []byte(ok(t, "fingerprint", dst)), &f)
	var parts []string
	for _, p := range f.Parts {
		parts = append(parts, string(p.DB)+" "+p.Type)
	}
	wanted := "0 string,0 hash,0 list,0 set,0 zset,1 string,1 hash,1 list,2 string,2 list,3 string,3 set,3 zset,10 string"
	if strings.Join(parts, ",") != wanted {
		t.Errorf("parts %q", parts)
	}
	if want := []jsonl.Text{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}; !slices.Equal(f.Databases, want) {
		t.Errorf("databases %q", f.Databases)
	}
}

// TestCheckTakesTheMoment checks that --check uses the time of the file: keys that have expired since count on both
// sides.
func TestCheckTakesTheMoment(t *testing.T) {
	at := func(ms int64) string { return filter.MomentText(time.UnixMilli(ms)) }
	soon := smallRecord(record.String, "t", "v")
	soon.expire = testNow.UnixMilli() - 10_000
	dir := buildSmall(t, nemo.New(), append(ardbSet(), soon)...)
	before, after := at(soon.expire-1000), at(soon.expire+1000)
	file := filepath.Join(t.TempDir(), "f.json")
	ok(t, "fingerprint", dir, "--now", before, "-o", file)
	if out := ok(t, "fingerprint", dir, "--check", file); !strings.HasSuffix(out, ", both with --now "+before+"\n") {
		t.Errorf("at the clock: %s", out)
	}
	ok(t, "fingerprint", dir, "--check", file, "--now", before)
	r := kvferry(t, "fingerprint", dir, "--check", file, "--now", after)
	want := " was taken with --now " + before + ", and this run has --now " + after + ": leave out --now to "
	if r.code != cli.ExitUsage || !strings.Contains(r.stderr, want) {
		t.Errorf("at another moment: exit %d, %s", r.code, r.stderr)
	}
	ok(t, "fingerprint", dir, "--expired", "keep", "--ttl-from", "-60s", "--now", before, "-o", file)
	for _, more := range [][]string{nil, {"--expired", "keep"}, {"--now", after}, {"--ttl-from", "-60s"}} {
		ok(t, append([]string{"fingerprint", dir, "--check", file}, more...)...)
	}
	if r := kvferry(t, "fingerprint", dir, "--check", file, "--expired", "drop"); r.code != cli.ExitUsage ||
		!strings.Contains(r.stderr, " was taken with --expired keep, and this run has --expired drop: ") {
		t.Errorf("another rule: exit %d, %s", r.code, r.stderr)
	}
}

// TestCheckOfAnOlderFile checks fingerprint files of older versions, which do not record filters or --expired: the
// user must give the same again.
func TestCheckOfAnOlderFile(t *testing.T) {
	dir := buildSmall(t, nemo.New(), ardbSet()...)
	var doc map[string]any
	mustJSON(t, []byte(ok(t, "fingerprint", dir, "--type", "set", "--now", "1700000000")), &doc)
	for _, name := range []string{"expired", "filters", "databases"} {
		if _, has := doc[name]; !has {
			t.Errorf("the file has no %s", name)
		}
		delete(doc, name)
	}
	data, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "f.json")
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if out := ok(t, "fingerprint", dir, "--type", "set", "--check", file); out != dir+": equal to "+file+"\n" {
		t.Error(out)
	}
	r := kvferry(t, "fingerprint", dir, "--check", file)
	if r.code != cli.ExitFindings ||
		!strings.Contains(r.stdout, "database 0 hash: file: 0 records and 0 elements, dataset: 1 record and 2 elements\n") ||
		!strings.Contains(r.stderr, "does not list its filters") || strings.Contains(r.stderr, "--now") {
		t.Errorf("exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	r = kvferry(t, "fingerprint", dir, "--check", file, "--now", "1700000001")
	if r.code != cli.ExitFindings || !strings.Contains(r.stderr, "--now 2023-11-14T22:13:20Z compares as of that time") {
		t.Errorf("at another moment: exit %d, %s", r.code, r.stderr)
	}
}

// TestCheckTakesTheFilters checks that --check takes the filters from the file, except --key-file, of which it has
// only a digest.
func TestCheckTakesTheFilters(t *testing.T) {
	dir, tmp := buildSmall(t, nemo.New(), ardbSet()...), t.TempDir()
	file, keys, others := filepath.Join(tmp, "f.json"), filepath.Join(tmp, "keys"), filepath.Join(tmp, "others")
	for path, text := range map[string]string{keys: "h\nl\ns\n", others: "h\nl\n"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ok(t, "fingerprint", dir, "--type", "hash,string", "--match", "?", "--match", "x y", "-o", file)
	for _, more := range []string{"", "--type hash,string", "--type string --type hash", "--match x*y --match ?"} {
		args := append([]string{"fingerprint", dir, "--check", file},
			strings.Fields(strings.ReplaceAll(more, "x*y", "x\x00y"))...)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "\x00", " ")
		}
		if out := ok(t, args...); !strings.Contains(out, "both with --type string,hash, --match '?' --match 'x y', --now ") {
			t.Errorf("%s: %s", more, out)
		}
	}
	ok(t, "fingerprint", dir, "--key-file", keys, "--type", "hash,list", "-o", file)
	ok(t, "fingerprint", dir, "--check", file, "--key-file", keys)
	for more, want := range map[string]string{
		"":                                   "and this run has no --key-file: give the same keys with --key-file (see",
		"--key-file " + others:               "and this run has --key-file of 2 keys, digest ",
		"--key-file " + keys + " --sample 2": "was taken with no --sample, and this run has --sample 2: leave out --sample to compare as the file was taken (see",
		"--type list":                        "; leave out --type to",
	} {
		r := kvferry(t, append([]string{"fingerprint", dir, "--check", file}, strings.Fields(more)...)...)
		if r.code != cli.ExitUsage || r.stdout != "" || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, want) {
			t.Errorf("%q: exit %d, %s%s", more, r.code, r.stdout, r.stderr)
		}
	}
	for name, want := range map[string]string{"sample": `filters: sample "0": want a whole number`, "type": `filters: type "0": `} {
		data := strings.Replace(ok(t, "fingerprint", dir, "--min-bytes", "1"), `"min-bytes": [
      "1"`, `"`+name+`": [
      "0"`, 1)
		if err := os.WriteFile(file, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
		if r := kvferry(t, "fingerprint", dir, "--check", file); r.code != cli.ExitFailed || !strings.Contains(r.stderr, want) {
			t.Errorf("damaged %s: exit %d, %s", name, r.code, r.stderr)
		}
	}
}

// TestFiltersComeBackFromAFile checks that the recorded form of every filter restores the same selection.
func TestFiltersComeBackFromAFile(t *testing.T) {
	given := []string{"--type", "set,hash", "--db", "bar", "--db", `"a,b",`, "--db", "\xff", "--match", "a b*", "--match", "'",
		"--regex", `^\d+$`,
		"--sample", "7", "--ttl-from", "90m", "--ttl-to", "999999999999", "--min-bytes", "1536", "--min-elements", "3",
		"--range", "b..hex:ff", "--exclude", "a?", "--exclude", "b", "--max-bytes", "4k"}
	parse := func(args []string, file *inspect.FingerprintFile) filter.Conditions {
		t.Helper()
		var f ReadFlags
		cmd := &cobra.Command{}
		f.Register(cmd)
		if err := cmd.ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		if file != nil {
			if _, err := f.asTaken(cmd.Flags(), file, "file"); err != nil {
				t.Fatal(err)
			}
		}
		sel, err := f.Selection(testNow)
		if err != nil {
			t.Fatal(err)
		}
		return sel.Conditions(testNow)
	}
	want := parse(given, nil)
	if len(want) != len(filter.Names())-2 { // all except key-file and no-expiry, which excludes ttl-from
		t.Errorf("given are %v", want)
	}
	data, err := json.Marshal(&inspect.FingerprintFile{Version: 1, Unit: "s", Expired: "drop", Now: testNow.UnixMilli(),
		Filters: want})
	if err != nil {
		t.Fatal(err)
	}
	file, err := inspect.ReadFingerprint(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if got := parse(nil, file); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if got := parse(given, file); !reflect.DeepEqual(got, want) {
		t.Errorf("given again: %v", got)
	}
}
