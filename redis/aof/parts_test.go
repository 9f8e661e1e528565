package aof

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kvferry/internal/testkit/redistest"
	"kvferry/record"
)

// unlistedLog returns a directory with files of Redis 8.6, whose manifest is missing, and more files. A file without
// content is left out.
func unlistedLog(t *testing.T, more map[string]string) string {
	t.Helper()
	files := map[string]string{}
	for _, name := range []string{"appendonly.aof.2.base.rdb", "appendonly.aof.2.incr.aof"} {
		data, err := os.ReadFile(filepath.Join("testdata", "no-manifest", name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(data)
	}
	maps.Copy(files, more)
	maps.DeleteFunc(files, func(_, text string) bool { return text == "" })
	return tree(t, files)
}

// TestNoManifest: without a manifest the names of the files say what belongs together, which is not proved. An increment is
// never read without its base.
func TestNoManifest(t *testing.T) {
	const base, increment = "appendonly.aof.2.base.rdb", "appendonly.aof.2.incr.aof"
	more := commandsOf("INCR n")
	for _, x := range []struct {
		name, location string
		files          map[string]string
		refused        string // part of the error without salvage; "": it is read
		n              string // with salvage
		found          string
	}{
		{"both", "", nil, "restore it, or name one of the files to read", "6", "error"},
		{"the increment", increment, nil, "", "6", "warning"},
		{"the base", base, nil, "", "6", "warning"},
		{"two increments", "", map[string]string{"appendonly.aof.3.incr.aof": more, "temp-rewriteaof-7.aof": more, "temp-appendonly.aof.manifest": "x"}, "appendonly.aof.3.incr.aof", "7", "error"},
		{"an increment that is in the base", increment, map[string]string{"appendonly.aof.1.incr.aof": more}, "", "6", "warning"},
		{"a gap", increment, map[string]string{"appendonly.aof.4.incr.aof": more}, "without increment 3; restore it", "7", "error"},
		{"no base", increment, map[string]string{base: ""}, "without the base", "1", "error"},
		{"a backup", "", map[string]string{increment: ""}, "", "5", "note"},
		{"a backup of a server", "", map[string]string{increment: "", base: "", "backupdir/" + base: "same"}, "", "5", "note"},
		{"no increment", "appendonlydir", map[string]string{increment: "", base: "", "appendonlydir/" + base: "same"}, "without the increments", "5", "error"},
		{"not in the manifest", increment, map[string]string{"appendonly.aof.manifest": "file " + base + " seq 2 type b\n"}, "", "6", "warning"},
		{"by the manifest", base, map[string]string{"appendonly.aof.manifest": "file " + base + " seq 2 type b\nfile " + increment + " seq 2 type i\n"}, "", "6", ""},
	} {
		files := maps.Clone(x.files)
		for name, text := range files {
			if text == "same" {
				data, err := os.ReadFile(filepath.Join("testdata", "no-manifest", base))
				if err != nil {
					t.Fatal(err)
				}
				files[name] = string(data)
			}
		}
		dir := filepath.Join(unlistedLog(t, files), x.location)
		for _, salvage := range []bool{false, true} {
			src, findings, err := open(t, dir, salvage)
			if !salvage && x.refused != "" {
				if err == nil || !strings.Contains(err.Error(), x.refused) {
					t.Errorf("%s: %v, want %s", x.name, err, x.refused)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", x.name, err)
				continue
			}
			found := ""
			for _, f := range findings {
				if f.Kind == FindManifest {
					found += f.Severity.String()
				}
				_, missing, _ := strings.Cut(x.refused, "without ")
				if f.Severity == record.Error && (f.Sure == "" || !strings.Contains(f.Lost, strings.Split(missing, ";")[0])) {
					t.Errorf("%s: lost %q, %q", x.name, f.Lost, f.Sure)
				}
			}
			got := contents(t, src, 1)["0/n"]
			if want := redistest.Form("string", 0, []string{x.n}); got != want || found != x.found {
				t.Errorf("%s, salvage %v: n %s, want %s; %s, want %s", x.name, salvage, got, want, found, x.found)
			}
			if err := src.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	for name, files := range map[string]map[string]string{
		"files of several logs":  {"other.aof.2.incr.aof": more},
		"neither a manifest nor": {base: "", increment: "", "temp-rewriteaof-7.aof": more, "temp-1.aof": more},
		"has several manifests":  {"a.manifest": "x", "b.manifest": "x"},
		"has several logs, in":   {base: "", increment: "", "a/x.manifest": "x", "b/y.1.incr.aof": more},
	} {
		if _, _, err := open(t, unlistedLog(t, files), true); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %s", err, name)
		}
	}
}

// TestLeftOut: files that the manifest does not list are reported, newer ones as a sign of an old manifest.
func TestLeftOut(t *testing.T) {
	const manifest = "file a.aof.2.base.aof seq 2 type b\nfile a.aof.2.incr.aof seq 2 type i\nfile a.aof.1.base.aof seq 1 type h\n"
	dir := tree(t, map[string]string{"a.aof.manifest": manifest, "a.aof.2.base.aof": commandsOf("SET k v"),
		"a.aof.2.incr.aof": commandsOf("SET l v"),
		"a.aof.1.base.aof": "x", "a.aof.1.incr.aof": "x", "a.aof.3.incr.aof": commandsOf("SET m v"), "a.aof.4.incr.aof": "", "b.aof.5.incr.aof": "x"})
	src, findings, err := open(t, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var got []string
	for _, f := range findings {
		got = append(got, f.Severity.String()+" "+f.Place.File)
	}
	want := []string{"note a.aof.1.incr.aof", "warning a.aof.3.incr.aof"}
	if !slices.Equal(got, want) || len(contents(t, src, 1)) != 2 {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestFindOfServer: in the directory of a server its own log counts, not a backup, and without a manifest the file of an
// older server.
func TestFindOfServer(t *testing.T) {
	const manifest = "file a.1.incr.aof seq 1 type i\n"
	log := func(dir string) map[string]string {
		return map[string]string{dir + "/a.manifest": manifest, dir + "/a.1.incr.aof": "x"}
	}
	for want, list := range map[string][]map[string]string{
		"appendonlydir": {log("appendonlydir"), log("another"), log("backupdir"), {"appendonly.aof": "x"}},
		"logs":          {log("logs"), log("backupdir")},
		"backupdir":     {log("backupdir")},
		".":             {{"appendonly.aof": "x", "appendonlydir/a.1.incr.aof": "x"}, log("backupdir")},
	} {
		files := map[string]string{}
		for _, some := range list {
			maps.Copy(files, some)
		}
		dir := tree(t, files)
		b, err := FindDumpOf(dir)
		if err != nil || b.Log.Dir != filepath.Join(dir, want) || len(b.Others) != len(list)-1 && want != "." {
			t.Errorf("%s: %+v, %v", want, b, err)
		}
		if want == "." && (err != nil ||
			!slices.Equal(b.Others, []string{filepath.Join(dir, "appendonlydir"), filepath.Join(dir, "backupdir")})) {
			t.Errorf("%s: %s, %v", want, fmt.Sprint(b.Others), err)
		}
	}
}
