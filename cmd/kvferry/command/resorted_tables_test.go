package command

import (
	"bytes"
	"context"
	"errors"
	"math/rand"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"kvferry/blackwidow"
	"kvferry/cmd/kvferry/cli"
	"kvferry/inspect"
	"kvferry/record"
	"kvferry/store"
)

// TestResortedResume checks that the report of a resumed run lists findings about tables that only finished tasks
// have read, once, like the report of an uninterrupted run.
func TestResortedResume(t *testing.T) {
	noise := make([]byte, 5000) // so that the lists are first
	rand.New(rand.NewSource(1)).Read(noise)
	long := string(noise)
	src := buildSmall(t, blackwidow.New(), smallRecord(record.List, "aa", long, "y"), smallRecord(record.List, "b", long),
		smallRecord(record.Set, "s", "m"))
	alter(t, filepath.Join(src, "lists"), func(r *rows) {
		r.order["data_cf"] = store.Comparer{Name: blackwidow.ListsDataKeyComparator.Name, Compare: bytes.Compare}
	})
	unchanged(t, src)
	for _, flag := range []string{"--resort", "--resort=false"} { // sorted from the start, or after a first attempt
		whole := filepath.Join(t.TempDir(), "dst")
		args := []string{"convert", flag, "--workers", "1", src, "blackwidow:" + whole}
		ok(t, args...)
		want := reportOf(t, whole)
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
		code := app.Run(context.Background(), resume, &out, &out)
		if code != cli.ExitFailed || !strings.Contains(out.String(), errPlanned.Error()) {
			t.Fatalf("exit %d, %s", code, &out)
		}
		journal, err := os.ReadFile(filepath.Join(dst+".kvferry", "journal"))
		if err != nil || !bytes.Contains(journal, []byte(`"task":{`)) {
			t.Fatalf("no task is done: %v\n%s", err, journal)
		}
		ok(t, resume...)
		rep := reportOf(t, dst)
		if !rep.Timings.Resumed || !reflect.DeepEqual(rep.Findings, want.Findings) ||
			!reflect.DeepEqual(rep.Losses, want.Losses) {
			t.Errorf("%s: resumed %t, the findings are\n%+v\nwant\n%+v", flag, rep.Timings.Resumed, rep.Findings, want.Findings)
		}
		if treeBytes(t, dst) != treeBytes(t, whole) {
			t.Error("the resumed run wrote something else")
		}
	}
}

// TestHeldBack: the findings of a pass are dropped if the tables turn out to be out of order, and told otherwise. Beyond
// maxHeld they are told at once.
func TestHeldBack(t *testing.T) {
	boom := errors.New("boom")
	for _, c := range []struct {
		n    int
		err  error
		want int
	}{{3, nil, 3}, {3, boom, 3}, {3, &store.OrderError{}, 0}, {maxHeld, &store.OrderError{}, 0},
		{maxHeld + 2, &store.OrderError{}, maxHeld + 1}, {maxHeld + 2, nil, maxHeld + 2}} {
		told := 0
		d := &Dataset{Scan: &inspect.Scan{Report: func(record.Finding) { told++ }}}
		err := d.heldBack(func() error {
			for range c.n {
				d.Scan.Report(record.Finding{})
			}
			if c.n <= maxHeld && told > 0 {
				t.Errorf("%d findings are told before the pass is done", told)
			}
			return c.err
		})
		if told != c.want || err != c.err {
			t.Errorf("%d findings, %v: %d are told, %v", c.n, c.err, told, err)
		}
		d.Scan.Report(record.Finding{})
		if told != c.want+1 {
			t.Error("findings are held back after the pass")
		}
	}
	d := &Dataset{Scan: &inspect.Scan{}}
	if err := d.heldBack(func() error { return boom }); err != boom || d.Scan.Report != nil {
		t.Errorf("without a report: %v", err)
	}
}

// TestUnorderedReadAlike: where the tables of a list are out of order, reading commands give one warning; verify says
// which table it is.
func TestUnorderedReadAlike(t *testing.T) {
	recs := []small{smallRecord(record.List, "aa", "x", "y"), smallRecord(record.List, "b", "z"),
		smallRecord(record.List, "c", "1", "2", "3")}
	sound := buildSmall(t, blackwidow.New(), recs...)
	src := buildSmall(t, blackwidow.New(), recs...)
	alter(t, filepath.Join(src, "lists"), func(r *rows) {
		r.order["data_cf"] = store.Comparer{Name: blackwidow.ListsDataKeyComparator.Name,
			Compare: func(a, b []byte) int { return bytes.Compare(b, a) }}
	})
	for _, args := range [][]string{{"dump", src}, {"inspect", src}, {"fingerprint", src}, {"diff", sound, src}} {
		var out, errs bytes.Buffer
		code := testApp().Run(context.Background(), args, &out, &errs)
		if code != 0 || strings.Count(errs.String(), record.FindUnorderedTable) != 1 ||
			strings.Contains(errs.String()+out.String(), "error ") {
			t.Errorf("%q: exit %d\n%s%s", args, code, &out, &errs)
		}
	}
	const values = `*3[$"1" $"2" $"3"]`
	if got := serveOn(t, src).dial(t).do(t, "LRANGE", "c", "0", "-1").String(); !strings.HasPrefix(got, `-"ERR `) &&
		got != values {
		// the count of all keys may have sorted them
		t.Errorf("serve: %s", got)
	}
	if got := serveOn(t, "--resort", src).dial(t).do(t, "LRANGE", "c", "0", "-1").String(); got != values {
		t.Errorf("serve --resort: %s", got)
	}
	var out bytes.Buffer
	if code := testApp().Run(context.Background(), []string{"verify", src}, &out, &out); code == 0 ||
		!strings.Contains(out.String(), "key-order") || strings.Contains(out.String(), "missing") {
		t.Errorf("verify: exit %d\n%s", code, &out)
	}
}
