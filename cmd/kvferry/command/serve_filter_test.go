package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kvferry/cmd/kvferry/cli"
	"kvferry/internal/shared/keyslot"
)

// listed is a record as kvferry keys lists it.
type listed struct {
	DB, Type, Keyless string
	Key               listedKey
}

type listedKey string

func (k *listedKey) UnmarshalJSON(b []byte) error {
	if b[0] != '{' {
		return json.Unmarshal(b, (*string)(k))
	}
	var binary struct{ Base64 []byte }
	err := json.Unmarshal(b, &binary)
	*k = listedKey(binary.Base64)
	return err
}

// listedTypes returns the type that clients see of each key, by database and key.
func listedTypes(t *testing.T, args ...string) map[[2]string]string {
	t.Helper()
	order := []string{"string", "hash", "list", "set", "zset", "stream"}
	out := map[[2]string]string{}
	for line := range strings.Lines(ok(t, append([]string{"keys", "--format", "jsonl"}, args...)...)) {
		var l listed
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		at := [2]string{l.DB, string(l.Key)}
		if has := out[at]; l.Keyless == "" && (has == "" || slices.Index(order, l.Type) < slices.Index(order, has)) {
			out[at] = l.Type
		}
	}
	return out
}

// TestServeFilters: clients see the keys that kvferry keys lists with the same flags, by every command.
func TestServeFilters(t *testing.T) {
	dir := t.TempDir()
	names := filepath.Join(dir, "names")
	if err := os.WriteFile(names, []byte("s1:h1\ns1:s3\nhex:00\nnone\nstr:bin:9\nset:bin\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	nemo, file := golden(t, "nemo-basic"), filepath.Join(dir, "dump.rdb")
	ok(t, "convert", "--on-conflict", "rename", "--now", "1600000000", nemo, "rdb:"+file)
	for name, path := range map[string]string{"rows": nemo, "file": file} {
		now := []string{"--now", "2100000000", path}
		all := listedTypes(t, append(slices.Clone(now), "--expired", "keep")...)
		shorter := 0
		for _, flags := range []string{"", "--match *1*", "--exclude *1*", "--type hash,zset", "--type string", "--db 0", "--no-expiry",
			"--min-bytes 100", "--max-bytes 100", "--min-elements 5", "--range h..s1:m", "--regex 1$", "--sample 3", "--expired keep",
			"--key-file " + names, "--match *1* --exclude *2* --type list,set,string --min-bytes 20 --max-bytes 200 --expired keep",
			"--slots 0-9000 --db 0", "--slots 0-9000 --db 0 --match *1* --type string,set --min-bytes 20 --no-expiry"} {
			args := strings.Fields(flags)
			if len(args) <= 4 && os.Getenv("KVFERRY_SERVE_COMMANDS") == "" { // a long run has each filter alone, too
				continue
			}
			slots, first := strings.HasPrefix(flags, "--slots"), 0
			if slots {
				first = 2
			}
			want := listedTypes(t, slices.Concat(args[first:], now)...)
			if slots {
				maps.DeleteFunc(want, func(at [2]string, _ string) bool { return keyslot.Of([]byte(at[1])) > 9000 })
			}
			if len(want) == 0 {
				t.Errorf("%s %s: no key", name, flags)
			}
			if len(want) < len(all) {
				shorter++
			}
			s := serveOn(t, slices.Concat(args, now)...)
			if diff := servedOtherwise(t, s.dial(t), all, want, slots); len(diff) > 0 {
				t.Errorf("%s %s: %d differences: %.2000q", name, flags, len(diff), diff[:min(len(diff), 5)])
			}
			if code := s.stop(); code != cli.ExitOK {
				t.Errorf("exit code %d", code)
			}
		}
		if shorter < 2 {
			t.Errorf("%s: only %d filters leave keys out", name, shorter)
		}
	}
}

// servedOtherwise compares what commands show with the keys of want, of all that the dataset has.
func servedOtherwise(t *testing.T, p *peer, all, want map[[2]string]string, cluster bool) (out []string) {
	t.Helper()
	check := func(what string, at [2]string, got, want string) {
		if got != want {
			out = append(out, fmt.Sprintf("%s %q: %.100s, want %s", what, at, got, want))
		}
	}
	dbs := map[string]int{}
	for at := range all {
		dbs[at[0]] += 0
	}
	for at := range want {
		dbs[at[0]]++
	}
	for db, n := range dbs {
		if cluster && db != "0" {
			continue
		}
		p.do(t, "SELECT", db)
		for strings.Contains(p.do(t, "INFO", "keyspace").Text, "estimated") {
		}
		check("DBSIZE", [2]string{db}, p.do(t, "DBSIZE").Text, strconv.Itoa(n))
		seen := map[[2]string]string{}
		for _, key := range p.do(t, "SCAN", "0", "COUNT", "100000").Items[1].Items {
			seen[[2]string{db, key.Text}] = "here"
		}
		check("SCAN", [2]string{db}, strconv.Itoa(len(seen)), strconv.Itoa(n))
		for at := range all {
			typ := want[at]
			if at[0] != db || len(at[1])%4 != 0 && !strings.Contains(at[1], "1") { // half of them
				continue
			}
			check("SCAN", at, seen[at], map[bool]string{true: "here"}[typ != ""])
			get, exists := p.do(t, "GET", at[1]), p.do(t, "EXISTS", at[1]).Text
			switch {
			case cluster && keyslot.Of([]byte(at[1])) > 9000:
				check("EXISTS", at, exists, "CLUSTERDOWN Hash slot not served")
				check("GET", at, get.Text, exists)
				continue
			case typ == "":
				check("GET", at, get.String(), `$"-1"`)
			case typ == "string":
				check("GET", at, strconv.FormatBool(get.Kind == '$' && get.Text != "-1"), "true")
			default:
				check("GET", at, string(get.Kind), "-")
			}
			check("EXISTS", at, exists, map[bool]string{true: "1", false: "0"}[typ != ""])
			check("TYPE", at, p.do(t, "TYPE", at[1]).Text, cmp.Or(typ, "none"))
		}
	}
	return out
}
