package command

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"kvferry/internal/disk"
)

// TestClusterResume: the conversion into a node of a cluster, whose rows become tables in the end, dies there and at the proof; it is
// continued with the rows that it has, and writes the same bytes as one that did not die.
func TestClusterResume(t *testing.T) {
	src, dir := golden(t, "bw-basic"), fastDir(t)
	args := []string{"convert", "--cluster", "--on-conflict", "rename", "--workers", "1", src, "kvrocks:" + filepath.Join(dir, "whole")}
	ok(t, args...)
	want := treeBytes(t, filepath.Join(dir, "whole"))
	dst := filepath.Join(dir, "dst")
	args = append(args[:len(args)-1], "--resume", "kvrocks:"+dst)
	errPulled := errors.New("the disk is pulled out")
	for _, at := range []string{"write run-", "remove slots", "sync MANIFEST-"} {
		op, name, _ := strings.Cut(at, " ")
		hit := 0
		restore := disk.Inject(func(o, path string) error {
			if hit == 0 && o == op && strings.HasPrefix(path, dst+".kvferry") && strings.Contains(path, name) {
				hit++
			}
			if hit > 0 { // and stays out
				return errPulled
			}
			return nil
		})
		r := kvferry(t, args...)
		restore()
		if hit == 0 || r.code != ExitFailed || !strings.Contains(r.stderr, errPulled.Error()) {
			t.Fatalf("%s: %d hits, exit %d, %s", at, hit, r.code, r.stderr)
		}
		if left := entries(t, dir); left != "dst.kvferry whole whole.kvferry-report.json" {
			t.Fatalf("%s: left %s", at, left)
		}
	}
	ok(t, args...)
	if rep := report(t, dst); !rep.Timings.Resumed || !rep.Proof.Done {
		t.Errorf("resumed %v, proved %v", rep.Timings.Resumed, rep.Proof.Done)
	}
	if treeBytes(t, dst) != want {
		t.Error("the resumed run wrote something else")
	}
	if left := entries(t, dst); left != "db" {
		t.Errorf("the target holds %s", left)
	}
}
