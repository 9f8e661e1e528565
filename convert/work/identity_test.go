package work

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestContinues checks that a run continues only a run of the same identity, and that the error names the difference.
func TestContinues(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	now := time.Unix(1700000000, 0).UTC()
	src, wal := filepath.Join(dir, "src"), filepath.Join(dir, "wal")
	must(t, os.Mkdir(src, 0o755), os.Mkdir(wal, 0o755), os.WriteFile(filepath.Join(src, "row"), []byte("1"), 0o644),
		os.WriteFile(filepath.Join(wal, "log"), nil, 0o644))
	options := map[string]string{"target": "nemo+", "layout": "db"}
	was, err := NewIdentity(src, wal, options, now)
	must(t, err)
	if len(was.Files) != 2 || was.Files[1].Path != "wal-dir:log" || was.Source != src || was.Began.IsZero() ||
		was.Version != journalVersion {
		t.Errorf("%+v", was)
	}
	for want, change := range map[string]func(*Identity){
		"<nil>": func(id *Identity) { id.Began = now },
		"it was written by another version of kvferry":                                                func(id *Identity) { id.Version++ },
		"it converts " + src + ", not /other":                                                         func(id *Identity) { id.Source = "/other" },
		"its --now is 2023-11-14T22:13:20Z, not 2023-11-14T22:13:21Z: leave out --now to continue it": func(id *Identity) { id.Now = now.Add(time.Second) },
		"it converts to nemo, not to ardb+lmdb: name the same target to continue it":                  func(id *Identity) { id.Options["target"] = "ardb+lmdb" },
		"it has layout db, not flat: pass the same value to continue it":                              func(id *Identity) { id.Options["layout"] = "flat" },
		"it has layout db, not (none): pass the same value to continue it":                            func(id *Identity) { delete(id.Options, "layout") },
		"it was started without --sst; leave out the flag to continue it":                             func(id *Identity) { id.Options["sst"] = "yes" },
		"the source has changed: row has 7 bytes, had 1":                                              func(id *Identity) { id.Files[0].Size = 7 },
	} {
		is := *was
		is.Options, is.Files = maps.Clone(was.Options), slices.Clone(was.Files)
		change(&is)
		if got := fmt.Sprint(was.Continues(&is)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for _, none := range [][2]string{{filepath.Join(dir, "none"), ""}, {src, filepath.Join(dir, "none")}} {
		if _, err := NewIdentity(none[0], none[1], nil, now); err == nil {
			t.Errorf("%q has files", none)
		}
	}
}

// TestName checks that the name of a run depends on its source files, clock and options, but not on the location or
// modification times.
func TestName(t *testing.T) {
	dir := t.TempDir()
	now := time.Unix(1700000000, 0).UTC()
	var names []string
	for _, sub := range []string{"a", "b"} {
		src := filepath.Join(dir, sub)
		must(t, os.Mkdir(src, 0o755), os.WriteFile(filepath.Join(src, "row"), []byte("1"), 0o644),
			os.Chtimes(filepath.Join(src, "row"), now, now.Add(time.Duration(len(names))*time.Hour)))
		id, err := NewIdentity(src, "", map[string]string{"target": "nemo"}, now)
		must(t, err)
		names = append(names, id.Name())
		id.Now = now.Add(1)
		if id.Name() == names[0] {
			t.Error("another time has the same name")
		}
	}
	if names[0] != names[1] {
		t.Errorf("%s and %s", names[0], names[1])
	}
}
