package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"kvferry/cmd/kvferry/cli"
)

// completed requests completions like a shell and returns the values and the directive.
func completed(t *testing.T, args ...string) ([]string, string) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(ok(t, append([]string{"__complete"}, args...)...), "\n"), "\n")
	last := len(lines) - 1
	return lines[:last], lines[last]
}

// Directives returned to the shell.
const (
	ofFiles    = ":0"
	ofNothing  = ":4"
	ofPlaces   = ":6"
	ofDirs     = ":16"
	ofChoices  = ":36"
	ofListings = ":38"
)

// TestFlagsCompleteWhatTheyTake checks that every flag accepts the values it suggests, and rejects other values of
// the same kind.
func TestFlagsCompleteWhatTheyTake(t *testing.T) {
	choices := 0
	for _, cmd := range testApp().Root().Commands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() == "bool" || f.NoOptDefVal != "" { // what follows is no value of it
				return
			}
			values, directive := completed(t, cmd.Name(), "--"+f.Name, "")
			name, _ := pflag.UnquoteUsage(f)
			if _, choice := f.Value.(cli.Suggester); choice {
				choices++
				if len(values) < 2 || directive != ofChoices && directive != ofListings {
					t.Errorf("%s --%s completes %q %s", cmd.Name(), f.Name, values, directive)
				}
				takes(t, cmd, f, values)
				return
			}
			want := map[string]string{"file": ofFiles, "directory": ofDirs, "location": ofPlaces, "use=name": ofListings}[name]
			if want == "" {
				want = ofNothing
			}
			if directive != want {
				t.Errorf("%s --%s %s completes %q %s, want %s", cmd.Name(), f.Name, name, values, directive, want)
			}
		})
	}
	if choices < 20 {
		t.Errorf("%d flags with known values", choices)
	}
}

func takes(t *testing.T, cmd *cobra.Command, f *pflag.Flag, values []string) {
	t.Helper()
	for _, v := range values {
		v, _, _ = strings.Cut(v, "\t")
		if err := cmd.Flags().Set(f.Name, v); err != nil {
			t.Errorf("%s --%s %s is suggested and refused: %v", cmd.Name(), f.Name, v, err)
		}
	}
	if f.Name == "delimiter" { // any text
		return
	}
	if err := cmd.Flags().Set(f.Name, "nonsense"); err == nil {
		t.Errorf("%s --%s takes nonsense", cmd.Name(), f.Name)
	}
}

// TestFlagsWithFixedValues lists flags with known values, so that none silently escapes the test above.
func TestFlagsWithFixedValues(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"dump --format ", "jsonl json csv sql resp hex parquet arrow :36"},
		{"dump --format j", "jsonl json :36"},
		{"dump --format=c", "csv :36"},
		{"dump --encode ", "text base64 :36"},
		{"dump --on-conflict ", "error first :36"},
		{"dump --expired ", "drop keep :36"},
		{"dump --store ", "native rocksdb :36"},
		{"diff --format ", "text patch json :36"},
		{"verify --format ", "text json junit sarif :36"},
		{"verify --fail-on ", "error warning note :36"},
		{"verify --files ", "auto always never :36"},
		{"convert --layout ", "auto flat db :36"},
		{"convert --progress ", "auto bar lines json none :36"},
		{"convert --on-conflict ", "error rename keep= :36"},
		{"convert --on-conflict ke", "keep= :38"},
		{"convert --on-conflict keep=z", "keep=zset :38"},
		{"convert --on-conflict keep=zset,s", "keep=zset,string keep=zset,set keep=zset,stream :38"},
		{"explain --type ", "string hash list set zset stream other :38"},
		{"dump --type hash,", "hash,string hash,list hash,set hash,zset hash,stream hash,other :38"},
		{"dump --type hash,l", "hash,list :38"},
		{"dump --type hash,hash", ":38"},
		{"inspect --delimiter ", ": / . - _ | # :36"},
		{"completion ", "bash zsh fish powershell :4"},
		{"completion bash ", ":4"},
		{"help fi", "fingerprint filters findings :4"},
		{"help formats ", ":4"},
	} {
		head, last := c.args[:strings.LastIndex(c.args, " ")], c.args[strings.LastIndex(c.args, " ")+1:]
		values, directive := completed(t, append(strings.Fields(head), last)...)
		var got []string
		for _, v := range values {
			v, _, _ = strings.Cut(v, "\t")
			got = append(got, v)
		}
		if text := strings.Join(append(got, directive), " "); text != c.want {
			t.Errorf("%s: %s, want %s", c.args, text, c.want)
		}
	}
}

// TestLossesAreCompleted checks that kinds of losses, including those of a single target, are completed with their
// descriptions.
func TestLossesAreCompleted(t *testing.T) {
	values, directive := completed(t, "convert", "--allow-loss", "score-range,s")
	text := strings.Join(values, "\n")
	for _, want := range []string{"score-range,same-name\t", "score-range,stream-groups\t", "score-range,stream\t"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, ",score-range") || strings.Contains(text, ",empty-key") || directive != ofListings {
		t.Errorf("%s\n%s", directive, text)
	}
}

// TestPlacesAreCompleted checks that a source is completed as a directory, with or without a format, and a target
// with a format.
func TestPlacesAreCompleted(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	for _, d := range []string{"data/dump/kv", "nest", "data/.hidden"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile("data/file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("dump", "data/latest"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"dump |", "nemo: pika2: blackwidow: pika3: pika3.5: floyd: pika4: ardb: ardb+rocksdb: ardb+leveldb: ardb+lmdb: ardb0.9.6: kvrocks: kvrocks2.3: kvrocks2.9: kvrocks2.15: kvrocks2.17: ssdb: keydbflash: rdb: aof: redis:// rediss:// unix:/// redis+cluster:// parquet: s3:// https:// data/ nest/"},
		{"dump |ne", "nemo: nest/"},
		{"dump |data/", "data/dump/ data/file data/latest/"},
		{"dump |data/.", "data/.hidden/"},
		{"dump |nemo:data/d", "nemo:data/dump/"},
		{"dump |nemo+rocksdb:d", "nemo+rocksdb:data/"},
		{"dump |valkey:d", ""},
		{"dump |rdb:data/", "rdb:data/dump/ rdb:data/file rdb:data/latest/"},
		{"dump |rdb:s", "rdb:s3://"},
		{"dump |s3", "s3://"},
		{"dump |redis", "redis:// rediss:// redis+cluster://"},
		{"convert a |rdb:data/", "rdb:data/dump/ rdb:data/latest/"},
		{"dump |~/da", "~/data/"},
		{"dump |" + dir + "/n", dir + "/nest/"},
		{"dump |no/such/", ""},
		{"verify --against |nemo:n", "nemo:nest/"},
		{"diff a |n", "nemo: nest/"},
		{"convert a |", "nemo: pika2: blackwidow: pika3: pika3.5: floyd: pika4: ardb: ardb+rocksdb: ardb+leveldb: ardb0.9.6: kvrocks: kvrocks2.3: kvrocks2.9: kvrocks2.15: kvrocks2.17: ssdb: rdb: aof: redis:// rediss:// unix:/// redis+cluster://"},
		{"convert a |ne", "nemo:"},
		{"convert a |ardb+leveldb:d", "ardb+leveldb:data/"},
	} {
		args, last, _ := strings.Cut(c.args, "|")
		values, directive := completed(t, append(strings.Fields(args), last)...)
		for i := range values {
			var means string
			values[i], means, _ = strings.Cut(values[i], "\t")
			if means == "" && !strings.Contains(values[i], "/") && values[i][len(values[i])-1] == ':' {
				t.Errorf("%s: nothing says what %s is", c.args, values[i])
			}
		}
		if got := strings.Join(values, " "); got != c.want || directive != ofPlaces {
			t.Errorf("%s: %s %s, want %s", c.args, got, directive, c.want)
		}
	}
	if values, directive := completed(t, "verify", "data/fi"); len(values) != 1 || values[0] != "data/file" ||
		directive != ofNothing {
		t.Errorf("a single file is followed by a space: %q %s", values, directive)
	}
	for _, line := range []string{"dump a ", "explain a ", "explain a b ", "version ", "formats ", "convert a b "} {
		if values, directive := completed(t, append(strings.Fields(line), "")...); len(values) > 0 || directive != ofNothing {
			t.Errorf("%s: %q %s", line, values, directive)
		}
	}
	if values, directive := completed(t, "dump", "--wal-dir", filepath.Join(dir, "d")); len(values) > 0 || directive != ofDirs {
		t.Error(values, directive)
	}
}

// TestDatasetsCompleteEverywhere checks that every command completes each of its datasets alike.
func TestDatasetsCompleteEverywhere(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("file.rdb", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("data", 0o755); err != nil {
		t.Fatal(err)
	}
	sources, _ := completed(t, "dump", "")
	for _, want := range []string{"rdb:\t", "aof:\t", "redis://\t", "parquet:\t", "s3://\t", "file.rdb", "data/"} {
		if !slices.ContainsFunc(sources, func(s string) bool { return strings.HasPrefix(s, want) }) {
			t.Errorf("no %s in %q", want, sources)
		}
	}
	datasets := 0
	for _, cmd := range testApp().Root().Commands() {
		line := []string{cmd.Name()}
		for _, name := range cli.ArgNames(cmd) {
			values, directive := completed(t, append(line, "")...)
			switch {
			case cli.IsSource(name) && (!slices.Equal(values, sources) || directive != ofPlaces):
				t.Errorf("%s %s completes %q %s", line, name, values, directive)
			case name == "FORMAT:DST" && !slices.ContainsFunc(values, func(s string) bool { return strings.HasPrefix(s, "pika4:\t") }):
				t.Errorf("%s %s completes %q", line, name, values)
			case name == "FILE" && directive != ofFiles:
				t.Errorf("%s %s completes %q %s", line, name, values, directive)
			case name == "redis://SERVER" && (len(values) != len(addressSchemes) || directive != ofPlaces):
				t.Errorf("%s %s completes %q %s", line, name, values, directive)
			}
			line = append(line, "x")
			if cli.IsSource(name) {
				datasets++
			}
		}
	}
	if datasets < 12 {
		t.Errorf("%d datasets", datasets)
	}
}

// TestNamesAreCompleted checks that --db, --keyspace and --map-db complete names of the datasets before them, and read
// nothing else.
func TestNamesAreCompleted(t *testing.T) {
	rows, bw, file := golden(t, "kvrocks-mixed"), golden(t, "bw-basic"), filepath.Join(t.TempDir(), "file.json")
	ok(t, "fingerprint", rows, "-o", file)
	damaged := filepath.Join(t.TempDir(), "cut.rdb")
	if err := os.WriteFile(damaged, []byte("REDIS0009\xfe\x07\x00\x01a\x01b\xfe\x0c\x00\x01a"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"dump", rows, "--db", ""}, "__namespace ns1 " + strings.Repeat("z", 100) + " космос :38"},
		{[]string{"diff", "kvrocks:" + rows, damaged, "--db", "ns1,__"}, "ns1,__namespace :38"},
		{[]string{"get", damaged, "key", "--db", ""}, "7 :38"},
		{[]string{"get", filepath.Dir(damaged), "--db", ""}, ":38"},
		{[]string{"dump", "--raw", bw, "--keyspace", "sets/"}, "sets/default sets/member_cf :38"},
		{[]string{"diff", rows, damaged, "--map-db", "n"}, "ns1= :38"},
		{[]string{"diff", rows, damaged, "--map-db", "ns1="}, "ns1=7 :36"},
		{[]string{"diff", rows, "--map-db", "n"}, ":4"},
		{[]string{"verify", "--against", damaged, rows, "--map-db", "ns1="}, "ns1=7 :36"},
		{[]string{"fingerprint", "--check", file, damaged, "--map-db", "n"}, "ns1= :38"},
		{[]string{"fingerprint", "--check", file, damaged, "--map-db", "ns1="}, "ns1=7 :36"},
		{[]string{"fingerprint", "--check", "-", damaged, "--map-db", ""}, ":38"},
		{[]string{"dump", "--column", "k"}, "key= :38"},
		{[]string{"dump", "redis://127.0.0.1:1", "--db", ""}, ":38"},
		{[]string{"dump", "-", "--db", ""}, ":38"},
		{[]string{"dump", "--db", ""}, ":4"},
	} {
		values, directive := completed(t, c.args...)
		if got := strings.Join(append(values, directive), " "); got != c.want {
			t.Errorf("%q: %s, want %s", c.args, got, c.want)
		}
	}
}
