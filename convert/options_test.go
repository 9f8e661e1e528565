package convert

import (
	"errors"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/convert/work"
	"kvferry/format"
	"kvferry/internal/pass/filter"
	"kvferry/internal/testkit/fake"
	"kvferry/record"
)

// TestNoPlaceForWork checks that the error for an unwritable directory names the target's directory, or the working
// directory if the target is a server.
func TestNoPlaceForWork(t *testing.T) {
	place := &work.NoPlaceError{Dir: ".", Err: fs.ErrPermission}
	o := &Options{Target: Output{Path: "redis-h"}}
	if err := o.noPlace(place); err != error(place) {
		t.Error(err)
	}
	o.Target.Address = "redis://h"
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	err = o.noPlace(place)
	text := err.Error()
	if !strings.HasPrefix(text, dir+": cannot write to the working directory (permission denied)") ||
		!errors.Is(err, fs.ErrPermission) {
		t.Error(text)
	}
	if err := o.noPlace(fs.ErrExist); err != fs.ErrExist {
		t.Error(err)
	}
}

// TestOptionsInReports checks that the report lists every option that affects the result, by its name on the command
// line, and no defaults.
func TestOptionsInReports(t *testing.T) {
	b := newBench(t, nil)
	b.o.Version, b.o.Selection = 3, new(filter.Selection)
	few := map[string]string{"source": "fake+files", "target": "fake+files", "layout": "db", "version-epoch": "3", "expired": "drop"}
	if got := optionTexts(&b.o); !maps.Equal(got, few) {
		t.Errorf("%v, want %v", got, few)
	}
	b.o.Namespace, b.o.MaxBitmap, b.o.Cluster, b.o.SST, b.o.Source.WALDir, b.o.Rename = "n", 5, true, true, "/wal", true
	b.o.Selection = &filter.Selection{KeepExpired: true}
	b.o.Layout, b.to.Bounds.Instances, b.to.Bounds.Slots = format.LayoutAuto, 3, 1024
	all := map[string]string{"source": "fake+files", "target": "fake+files", "layout": "auto", "version-epoch": "3",
		"expired": "keep", "namespace": "n", "max-bitmap": "5",
		"cluster": "yes", "sst": "yes", "wal-dir": "/wal", "on-conflict": "rename", "instances": "3", "slots": "1024"}
	if got := optionTexts(&b.o); !maps.Equal(got, all) {
		t.Errorf("%v, want %v", got, all)
	}
	b.o.Instances, b.o.Slots, b.o.Target.Address, b.o.Rename, b.o.Prefer = 5, 7, "redis://h", false, []record.Type{record.Set,
		record.Hash}
	all["instances"], all["slots"], all["target"], all["on-conflict"] = "5", "7", "redis://h", "keep=[set hash]"
	if got := optionTexts(&b.o); !maps.Equal(got, all) {
		t.Errorf("%v, want %v", got, all)
	}
}

// TestNormalize checks that unset options get their defaults and that others are unchanged.
func TestNormalize(t *testing.T) {
	if n, err := (&Options{Now: testNow}).normalize(); err != nil || n.Workers != 1 || n.Version != 1 || n.Memory != 512<<20 ||
		n.Selection == nil || n.crash == nil {
		t.Errorf("%+v, %v", n, err)
	}
	if n, err := (&Options{Now: testNow, Workers: 7, Version: 5, Memory: 9, Resume: true}).normalize(); err != nil ||
		n.Workers != 7 || n.Version != 5 || n.Memory != 9 ||
		n.storeMemory() != 1 {
		t.Errorf("%+v, %v", n, err)
	}
	for version, ok := range map[int32]bool{-1: false, 0xfe: true, 0xff: false, 0x100: true, 0x1ff: false, math.MaxInt32: false,
		math.MinInt32: false} {
		if _, err := (&Options{Version: version}).normalize(); (err == nil) != ok {
			t.Errorf("version %d: %v", version, err)
		}
	}
	if _, err := (&Options{Resume: true, Discard: true}).normalize(); err == nil {
		t.Error("a conversion is resumed and discarded")
	}
}

// TestReadBack checks that a target is reopened for the proof, and also to list its files.
func TestReadBack(t *testing.T) {
	for _, c := range []struct {
		address         string
		verify, noProve bool
		place           format.Place
		want            bool
	}{
		{place: format.InDirectory, want: true}, {noProve: true, place: format.InDirectory, want: true}, {place: format.InFile, want: true},
		{noProve: true, place: format.InFile}, {address: "a", place: format.OnServer}, {address: "a", verify: true, place: format.OnServer, want: true},
	} {
		f := fake.NewFormat()
		f.Bounds.Place = c.place
		o := &Options{NoProve: c.noProve, Target: Output{Format: f, Address: c.address, Verify: c.verify}}
		if o.readBack() != c.want {
			t.Errorf("%+v", c)
		}
		a := &attempt{run: &run{o: o, work: &work.Dir{Path: "/w"}}}
		if open := a.reopen(); (open != nil) != c.want {
			t.Errorf("%+v: opened with %+v", c, open)
		}
	}
}

// TestCheckedTargets lists the reasons to refuse a target before any data is read.
func TestCheckedTargets(t *testing.T) {
	dir := t.TempDir()
	source, file := filepath.Join(dir, "source"), filepath.Join(dir, "file")
	must(t, os.Mkdir(source, 0o755), os.WriteFile(file, nil, 0o644))
	for target, want := range map[string][2]string{ // for a conversion, and for a plan
		filepath.Join(dir, "new"):            {},
		filepath.Join(dir, "none", "new"):    {"does not exist; make it first"},
		filepath.Join(file, "new"):           {"is not a directory", "is not a directory"},
		filepath.Join(source, "new"):         {"source", "source"},
		filepath.Join(source, "none", "new"): {"does not exist; make it first", "source"},
		file:                                 {"exists", "exists"},
	} {
		for i, plan := range []bool{false, true} {
			o := &Options{Source: Input{Path: source}, Target: Output{Path: target}, Plan: plan}
			if err := o.checkPaths(); (err == nil) != (want[i] == "") || err != nil && !strings.Contains(err.Error(), want[i]) {
				t.Errorf("%s: %v, want %q", target, err, want[i])
			}
		}
	}
}
