package command

import (
	"bytes"
	"context"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"kvferry/blackwidow"
	"kvferry/record"
	"kvferry/store"
)

// TestResortedResume checks that the report of a resumed run lists findings about tables that only finished tasks
// have read, once, like the report of an uninterrupted run.
func TestResortedResume(t *testing.T) {
	noise := make([]byte, 5000) // so that the lists are first
	rand.New(rand.NewSource(1)).Read(noise)
	long := string(noise)
	src := build(t, blackwidow.New(), smallRecord(record.List, "aa", long, "y"), smallRecord(record.List, "b", long),
		smallRecord(record.Set, "s", "m"))
	alter(t, filepath.Join(src, "lists"), func(r *rows) {
		r.order["data_cf"] = store.Comparer{Name: blackwidow.ListsDataKeyComparator.Name, Compare: bytes.Compare}
	})
	unchanged(t, src)
	for _, flag := range []string{"--resort", "--resort=false"} { // sorted from the start, or after a first attempt
		whole := filepath.Join(t.TempDir(), "dst")
		args := []string{"convert", flag, "--workers", "1", src, "blackwidow:" + whole}
		ok(t, args...)
		want := report(t, whole)
		unordered := 0
		for _, f := range want.Findings {
			if f.Kind == record.FindUnorderedTable {
				unordered++
			}
		}
		if unordered != 1 {
			t.Fatalf("%s: the findings are %+v", flag, want.Findings)
		}
		dst := filepath.Join(t.TempDir(), "dst")
		args[len(args)-1] = "blackwidow:" + dst
		resume := append(args, "--resume")
		app := testApp()
		for i, f := range app.Formats {
			if f.Name() == "blackwidow" {
				app.Formats[i] = failing{f, func(_ string, t record.TypeSet) bool { return t.Has(record.Set) }}
			}
		}
		var out bytes.Buffer
		if code := app.Run(context.Background(), resume, &out, &out); code != ExitFailed || !strings.Contains(out.String(), errPlanned.Error()) {
			t.Fatalf("exit %d, %s", code, &out)
		}
		journal, err := os.ReadFile(filepath.Join(dst+".kvferry", "journal"))
		if err != nil || !bytes.Contains(journal, []byte(`"task":{`)) {
			t.Fatalf("no task is done: %v\n%s", err, journal)
		}
		ok(t, resume...)
		rep := report(t, dst)
		if !rep.Timings.Resumed || !reflect.DeepEqual(rep.Findings, want.Findings) || !reflect.DeepEqual(rep.Losses, want.Losses) {
			t.Errorf("%s: resumed %t, the findings are\n%+v\nwant\n%+v", flag, rep.Timings.Resumed, rep.Findings, want.Findings)
		}
		if treeBytes(t, dst) != treeBytes(t, whole) {
			t.Error("the resumed run wrote something else")
		}
	}
}
