package command

import (
	"strings"
	"testing"
)

func TestDidYouMean(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string // "": no suggestion
	}{
		{[]string{"convret", "a", "b"}, `"convert"`},
		{[]string{"fingerprnt", "a"}, `"fingerprint"`},
		{[]string{"frobnicate"}, ""},
		{[]string{"dump", "--formt", "csv", "a"}, `"--format"`},
		{[]string{"dump", "--format", "cvs", "a"}, `"csv"`},
		{[]string{"dump", "--zzzzzz", "a"}, ""},
		{[]string{"convert", "a", "blackwidw:b"}, `"blackwidow"`},
		{[]string{"convert", "a", "pika5:b"}, `did you mean "pika2", "pika3" or "pika4"?`},
		{[]string{"convert", "a", "ardb+lvldb:b"}, `"leveldb"`},
		{[]string{"convert", "a", "blackwidow:b", "--allow-loss", "damged"}, `"damaged"`},
		{[]string{"convert", "a", "blackwidow:b", "--on-conflict", "renam"}, `"rename"`},
		{[]string{"convert", "a", "blackwidow:b", "--on-conflict", "keep=hahs"}, `"hash"`},
		{[]string{"dump", "--type", "hahs", "a"}, `did you mean "hash"?`},
		{[]string{"dump", "--format", "jsno", "a"}, `did you mean "json"?`},
		{[]string{"completion", "bsh"}, `"bash"`},
		{[]string{"hlep"}, `"help"`},
		{[]string{"help", "format"}, `did you mean "formats"?`},
	} {
		r := kvferry(t, c.args...)
		if r.code != ExitUsage || !strings.Contains(r.stderr, c.want) || (c.want == "") == strings.Contains(r.stderr, "did you mean") {
			t.Errorf("%q: exit %d, %s", c.args, r.code, r.stderr)
		}
	}
}
