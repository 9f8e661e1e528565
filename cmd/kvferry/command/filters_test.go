package command

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
)

// TestConvertTakesWhatDumpTakes checks for every filter that convert writes the records that dump shows and accounts
// for the others.
func TestConvertTakesWhatDumpTakes(t *testing.T) {
	t.Parallel()
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte("s1:bigh\ns1:bigz\ns1:ttlh\nhash:big\nzset:big\ns1:wal0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	filters := []string{"--min-bytes 200", "--min-elements 40", "--min-elements 129 --min-bytes 4k", "--ttl-from 1d", "--ttl-to 2040-01-01T00:00:00Z",
		"--ttl-from 0s --ttl-to 100000d", "--sample 5", "--match *1*", "--regex [02]$", "--sample 2 --min-elements 3 --match *[0-9]", "--expired keep --ttl-to 0s",
		"--key-file " + keys, "--max-bytes 20", "--min-bytes 40 --max-bytes 3k --exclude *z*", "--no-expiry --exclude *2* --exclude s1:*"}
	pairs := []struct {
		golden, to string
		each       []string // filters to add, one at a time
		args       []string
		of         int // the short form runs one case in this number; the pairs from Ardb share the cases
	}{
		{"nemo-basic", "blackwidow", []string{"--db 0"}, nil, 1},
		{"bw-basic", "ardb", []string{"--type string", "--type hash", "--type list", "--type set", "--type zset"}, nil, 2}, // Ardb has one type per name
		{"ardb-rocksdb-basic", "blackwidow", []string{"--db 0 --type string,hash,list,set,zset"}, []string{"--allow-loss", "expiry-ms"}, 3},
		{"ardb-leveldb-basic", "blackwidow", []string{"--db 0 --type string,hash,list,set,zset"}, []string{"--allow-loss", "expiry-ms"}, 3},
		{"ardb-lmdb-basic", "ardb+leveldb", []string{"--type string,hash,list,set,zset"}, nil, 3},
	}
	for i, p := range pairs {
		src := golden(t, p.golden)
		nothing, cases := 0, 0
		for j, f := range filters {
			for k, more := range p.each {
				if !long() && (j+k)%p.of != i%p.of {
					continue
				}
				cases++
				args := strings.Fields(f + " " + more)
				if !convertsAsDumped(t, src, p.to, args, p.args) {
					nothing++
				}
			}
		}
		if nothing > cases/2 {
			t.Errorf("%s to %s: nothing passed in %d cases of %d", p.golden, p.to, nothing, cases)
		}
	}
}

// long reports whether tests with a short and a long form run in the long form.
func long() bool { return os.Getenv("KVFERRY_LONG") != "" }

// convertsAsDumped converts the records that a filter selects. It reports whether the selection was not empty.
func convertsAsDumped(t *testing.T, src, to string, args, more []string) bool {
	t.Helper()
	dst := filepath.Join(fastDir(t), "dst")
	want := strings.Count(ok(t, append([]string{"dump", src, "--keys-only"}, args...)...), "\n")
	convert := slices.Concat([]string{"convert", src, to + ":" + dst}, args, more)
	if want == 0 {
		if r := kvferry(t, convert...); r.code != cli.ExitFailed || !strings.Contains(r.stderr, "no record of "+src+" passes the filter") {
			t.Errorf("%v: exit %d, %s", args, r.code, r.stderr)
		}
		return false
	}
	dry := ok(t, append(convert, "--dry-run")...)
	ok(t, convert...)
	rep := reportOf(t, dst)
	if int(rep.Records()) != want || !rep.Proof.Done {
		t.Errorf("%s %v: %d records, dump has %d; proof %+v", src, args, rep.Records(), want, rep.Proof)
	}
	// In a dry run, --sample only limits how much is read: the plan covers the conversion without it.
	if !slices.Contains(args, "--sample") && !strings.Contains(dry, fmt.Sprintf(" %d  ", want)) {
		t.Errorf("%s %v: the dry run does not say %d:\n%s", src, args, want, dry)
	}
	filtered := int64(0)
	for _, a := range rep.Ledger {
		var sum int64
		for _, n := range a.Classes {
			sum += n
		}
		filtered += a.Classes["filtered"]
		if sum != a.Rows || a.Rows != a.Entries.Visible || a.Check != "ok" {
			t.Errorf("%s %v: ledger %+v", src, args, a)
		}
	}
	if filtered == 0 {
		t.Errorf("%s %v: nothing was filtered", src, args)
	}
	if r := kvferry(t, append([]string{"diff", src, dst}, args...)...); r.code != cli.ExitOK {
		t.Errorf("%s %v: exit %d\n%.600s%s", src, args, r.code, r.stdout, r.stderr)
	}
	return true
}

// TestNothingPasses checks that every command reports an empty selection in the same words, and prints no such
// message if records remain or no filter is given.
func TestNothingPasses(t *testing.T) {
	t.Parallel()
	const note = "kvferry: no record passes the filter\n"
	src := golden(t, "nemo-basic")
	sum := filepath.Join(t.TempDir(), "sum")
	for _, c := range []struct {
		filter string
		none   bool
	}{{"", false}, {"--match s1:bigh", false}, {"--match S1:*", true}, {"--regex ^x", true}, {"--type stream", true},
		{"--type set --min-elements 99999", true}, {"--ttl-from 9000d", true}, {"--db 0", false}} {
		filter := strings.Fields(c.filter)
		for _, args := range [][]string{{"verify", src}, {"verify", "--format", "json", src}, {"verify", src, "--against", src},
			{"diff", src, src},
			{"diff", "--direct", src, src}, {"fingerprint", "-o", sum, src}, {"fingerprint", "--check", sum, src}, {"inspect", src}, {"dump", src}} {
			args = slices.Concat(args, filter)
			r := kvferry(t, args...)
			if want := map[bool]string{true: note}[c.none]; r.code != cli.ExitOK || r.stderr != want {
				t.Errorf("%s: exit %d, %q, want %q", args, r.code, r.stderr, want)
			}
		}
	}
}
