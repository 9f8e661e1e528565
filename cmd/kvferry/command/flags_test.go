package command

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"kvferry/internal/filter"
	"kvferry/record"
)

func TestParseLocation(t *testing.T) {
	for s, want := range map[string]Location{
		"/data/dump":          {Path: "/data/dump"},
		"nemo:/data":          {Format: "nemo", Path: "/data"},
		"ardb+leveldb:x":      {Format: "ardb", Store: "leveldb", Path: "x"},
		"./a:b":               {Path: "./a:b"},
		"/a:b":                {Path: "/a:b"},
		"nemo:a:b":            {Format: "nemo", Path: "a:b"},
		"C:/x":                {Path: "C:/x"},
		"+leveldb:x":          {Path: "+leveldb:x"},
		"pika4+rocksdb:./x y": {Format: "pika4", Store: "rocksdb", Path: "./x y"},
	} {
		got, err := ParseLocation(s)
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v", s, got, err)
		}
		if got.String() != s {
			t.Errorf("%q came back as %q", s, got)
		}
	}
	for _, s := range []string{"", "nemo:", "nemo+rocksdb:"} {
		if _, err := ParseLocation(s); err == nil {
			t.Errorf("%q: no error", s)
		}
	}
}

func TestSizes(t *testing.T) {
	for s, want := range map[string]int64{
		"0": 0, "512MiB": 512 << 20, "512 mib": 512 << 20, "1g": 1 << 30, "1GB": 1e9, "64K": 64 << 10, "1.5k": 1536, "7b": 7, "1000": 1000, "2TiB": 2 << 40,
	} {
		var f sizeFlag
		if err := f.Set(s); err != nil || int64(f) != want {
			t.Errorf("%q: %d, %v", s, f, err)
		}
	}
	for _, s := range []string{"", "MiB", "-1", "1x", "1e30", "99999999TiB", "0x10"} {
		var f sizeFlag
		if err := f.Set(s); err == nil {
			t.Errorf("%q: %d, no error", s, f)
		}
	}
	for n, want := range map[sizeFlag]string{0: "0", 1 << 20: "1MiB", 3 << 30: "3GiB", 1536: "1536", 2048: "2KiB"} {
		if got := n.String(); got != want {
			t.Errorf("%d: %s", int64(n), got)
		}
	}
}

func TestTimes(t *testing.T) {
	for s, want := range map[string]int64{
		"1700000000": 1700000000000, "1700000000.5": 1700000000500, "2023-11-14T22:13:20Z": 1700000000000,
		"2023-11-14T23:13:20+01:00": 1700000000000, "0": 0,
	} {
		var f timeFlag
		if err := f.Set(s); err != nil || f.UnixMilli() != want {
			t.Errorf("%q: %v, %v", s, f, err)
		}
	}
	for _, s := range []string{"", "yesterday", "1700000000000000", "2023-11-14"} {
		var f timeFlag
		if err := f.Set(s); err == nil {
			t.Errorf("%q: no error", s)
		}
	}
	if s := (&timeFlag{}).String(); s != "" {
		t.Errorf("the zero time prints %q", s)
	}
	f := timeFlag{time.Unix(1, 0).UTC()}
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
		{nil, ExitOK},
		{errors.New("x"), ExitFailed},
		{usagef("x"), ExitUsage},
		{fmt.Errorf("wrapped: %w", &ExitError{Code: ExitFindings}), ExitFindings},
		{fmt.Errorf("wrapped: %w", context.Canceled), ExitCancelled},
		{&ExitError{Code: ExitLossy, Err: errors.New("x")}, ExitLossy},
	} {
		if got := ExitCode(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
	if text := (&ExitError{Code: 3}).Error(); text != "exit code 3" {
		t.Error(text)
	}
	if err := errors.Join(errors.New("a"), errors.New("b")); oneLine(err) != "a; b" {
		t.Error(oneLine(err))
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
		// The same moment again, as the flag writes it.
		var again momentFlag
		if err := again.Set(f.String()); err != nil || *again.moment != *f.moment {
			t.Errorf("%q is written as %q: %v", s, f.String(), err)
		}
		before, after := filter.Selection{ExpireFrom: f.moment, ExpireTo: &filter.Moment{At: time.UnixMilli(want)}}, filter.Selection{ExpireFrom: f.moment, ExpireTo: &filter.Moment{At: time.UnixMilli(want + 1)}}
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
