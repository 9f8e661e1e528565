package command

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"kvferry/cmd/kvferry/cli"
	"kvferry/internal/pass/filter"
	"kvferry/record"
)

func TestSizes(t *testing.T) {
	for s, want := range map[string]int64{
		"0": 0, "512MiB": 512 << 20, "512 mib": 512 << 20, "1g": 1 << 30, "1GB": 1e9, "64K": 64 << 10, "1.5k": 1536, "7b": 7, "1000": 1000, "2TiB": 2 << 40,
	} {
		var f cli.SizeFlag
		if err := f.Set(s); err != nil || int64(f) != want {
			t.Errorf("%q: %d, %v", s, f, err)
		}
	}
	for _, s := range []string{"", "MiB", "-1", "1x", "nan", "nanMiB", "inf", "1e30", "99999999TiB", "0x10"} {
		var f cli.SizeFlag
		if err := f.Set(s); err == nil {
			t.Errorf("%q: %d, no error", s, f)
		}
	}
	for n, want := range map[cli.SizeFlag]string{0: "0", 1 << 20: "1MiB", 3 << 30: "3GiB", 1536: "1536", 2048: "2KiB"} {
		if got := n.String(); got != want {
			t.Errorf("%d: %s", int64(n), got)
		}
	}
}

func TestTimes(t *testing.T) {
	for s, want := range map[string]int64{
		"1700000000": 1700000000000, "1700000000.5": 1700000000500, "2023-11-14T22:13:20Z": 1700000000000,
		"2023-11-14T23:13:20+01:00": 1700000000000, "0": 0, "2023-11-14": 1699920000000,
	} {
		var f cli.TimeFlag
		if err := f.Set(s); err != nil || f.UnixMilli() != want {
			t.Errorf("%q: %v, %v", s, f, err)
		}
	}
	for _, s := range []string{"", "yesterday", "nan", "1700000000000000", "2023-11-32", "0001-01-01T00:00:00Z"} {
		var f cli.TimeFlag
		if err := f.Set(s); err == nil {
			t.Errorf("%q: no error", s)
		}
	}
	if s := (&cli.TimeFlag{}).String(); s != "" {
		t.Errorf("the zero time prints %q", s)
	}
	f := cli.TimeFlag{Time: time.Unix(1, 0).UTC()}
	if f.String() != "1970-01-01T00:00:01Z" {
		t.Error(f.String())
	}
}

func TestTypes(t *testing.T) {
	var f typesFlag
	for _, s := range []string{"hash", "zset, set"} {
		if err := f.Set(s); err != nil {
			t.Fatal(err)
		}
	}
	if record.TypeSet(f) != record.Of(record.Hash, record.Set, record.ZSet) || f.String() != "hash,set,zset" {
		t.Errorf("%v", &f)
	}
	if err := f.Set("hash,"); err == nil {
		t.Error("an empty type")
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, cli.ExitOK},
		{errors.New("x"), cli.ExitFailed},
		{cli.Usagef("x"), cli.ExitUsage},
		{fmt.Errorf("wrapped: %w", &cli.ExitError{Code: cli.ExitFindings}), cli.ExitFindings},
		{fmt.Errorf("wrapped: %w", context.Canceled), cli.ExitCancelled},
		{&cli.ExitError{Code: cli.ExitLossy, Err: errors.New("x")}, cli.ExitLossy},
	} {
		if got := ExitCode(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
	if text := (&cli.ExitError{Code: 3}).Error(); text != "exit code 3" {
		t.Error(text)
	}
	if err := errors.Join(errors.New("a"), errors.New("b")); cli.OneLine(err) != "a; b" {
		t.Error(cli.OneLine(err))
	}
}

func TestMoments(t *testing.T) {
	now := time.Unix(1700000000, 0)
	for s, want := range map[string]int64{
		"0s": 1700000000000, "0": 1700000000000, "90m": 1700005400000, "7d": 1700604800000, "0.5d": 1700043200000, "-1h": 1699996400000,
		"1700000001": 1700000001000, "2023-11-14T22:13:20.5Z": 1700000000500, "1970-01-01T00:00:00Z": 0,
	} {
		var f momentFlag
		if err := f.Set(s); err != nil {
			t.Errorf("%q: %v", s, err)
			continue
		}
		// Parse the flag's own output.
		var again momentFlag
		if err := again.Set(f.String()); err != nil || *again.moment != *f.moment {
			t.Errorf("%q is written as %q: %v", s, f.String(), err)
		}
		before, after := filter.Selection{ExpireFrom: f.moment, ExpireTo: &filter.Moment{At: time.UnixMilli(want)}},
			filter.Selection{ExpireFrom: f.moment, ExpireTo: &filter.Moment{At: time.UnixMilli(want + 1)}}
		if before.Validate(now) == nil || after.Validate(now) != nil {
			t.Errorf("%q is not %d", s, want)
		}
	}
	for _, s := range []string{"", "soon", "d", "300000d", "infd", "nand", "1e300d", "0001-01-01T00:00:00Z", "9999999h99999999h"} {
		var f momentFlag
		if err := f.Set(s); err == nil {
			t.Errorf("%q: %v, no error", s, f.moment)
		}
	}
	if s := (&momentFlag{}).String(); s != "" {
		t.Errorf("no moment prints %q", s)
	}
}

// TestNumbersSayWhatNothingMeans checks that the help of every number flag explains 0, or that the flag refuses 0.
// All refuse negative numbers.
func TestNumbersSayWhatNothingMeans(t *testing.T) {
	numbers := map[string]int{}
	for _, cmd := range testApp().Root().Commands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if typ := f.Value.Type(); typ != "n" && typ != "size" {
				if typ == "int" || typ == "int64" || typ == "int32" || typ == "uint" {
					t.Errorf("%s --%s has no bounds: make it a numberFlag", cmd.Name(), f.Name)
				}
				return
			}
			numbers[f.Name]++
			if cmd.Flags().Set(f.Name, "-1") == nil {
				t.Errorf("%s --%s takes -1", cmd.Name(), f.Name)
			}
			said := regexp.MustCompile(`\b0(: | for | to | lists | chooses )`)
			if cmd.Flags().Set(f.Name, "0") != nil {
				said = regexp.MustCompile(`\b(1|32MiB)( for all| to| or more)\b`)
			}
			if !said.MatchString(f.Usage) {
				t.Errorf("%s --%s: the help does not say what 0 means or what the least is: %s", cmd.Name(), f.Name, f.Usage)
			}
		})
	}
	for name, want := range map[string]int{"workers": 8, "memory": 12, "sample": 9, "top": 1, "limit": 3, "max": 1,
		"max-findings": 1,
		"min-bytes":    9, "min-elements": 9, "prefix-depth": 1, "version-epoch": 2, "port": 1, "max-clients": 1} {
		if numbers[name] != want {
			t.Errorf("--%s is a number of %d commands, want %d", name, numbers[name], want)
		}
	}
}

// TestSharedFlagsAreTheSame checks that a flag has the same help and default in every command. convert has more
// memory, and its help shows that.
func TestSharedFlagsAreTheSame(t *testing.T) {
	type meaning struct{ usage, def string }
	seen := map[string]meaning{}
	for _, cmd := range testApp().Root().Commands() {
		own := []string{"help", "format", "on-conflict", "json"}
		if cmd.Name() == "convert" || cmd.Name() == "plan" {
			own = append(own, "memory", "temp-dir")
		}
		if cmd.Name() == "patch" { // it applies operations and does not convert
			own = append(own, "dry-run", "resume")
		}
		if cmd.Name() == "serve" { // to replicas, of a cluster, while it runs
			own = append(own, "allow-loss", "rate", "rdb-version", "slots", "salvage")
		}
		if cmd.Name() == "convert" || cmd.Name() == "dump" { // whose parts share a directory
			own = append(own, "part", "finish")
		}
		if cmd.Name() == "keys" || cmd.Name() == "explain" { // one has no rows, the other nothing else
			own = append(own, "limit")
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			now := meaning{f.Usage, f.DefValue}
			if before, shared := seen[f.Name]; shared && now != before && !slices.Contains(own, f.Name) {
				t.Errorf("%s --%s: %q, another command has %q", cmd.Name(), f.Name, now, before)
			}
			if !slices.Contains(own, f.Name) {
				seen[f.Name] = now
			}
		})
	}
	if got := seen["memory"].def; got != "256MiB" {
		t.Errorf("--memory is %s unless it is given", got)
	}
}

// TestTopFitsMemory checks that a --top that does not fit in --memory is refused, with working alternatives.
func TestTopFitsMemory(t *testing.T) {
	src := golden(t, "nemo-basic")
	r := kvferry(t, "inspect", "--memory", "32MiB", "--top", "100000", src)
	if r.code != cli.ExitUsage || !strings.Contains(r.stderr, "use --memory 220MiB, or --top 4096") {
		t.Errorf("exit %d: %s", r.code, r.stderr)
	}
	ok(t, "inspect", "--memory", "32MiB", "--top", "4096", src)
	ok(t, "inspect", "--memory", "220MiB", "--top", "100000", src)
	ok(t, "inspect", "--top", "100000", src)
}
