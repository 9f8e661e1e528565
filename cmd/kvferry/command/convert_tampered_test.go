package command

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"kvferry/cmd/kvferry/cli"
	"kvferry/internal/sys/disk"
	"kvferry/nemo"
	"kvferry/record"
)

// meddlings are ways to tamper with a file.
var meddlings = map[string]func(path string) error{
	"removed":   os.Remove,
	"truncated": func(path string) error { return os.Truncate(path, 3) },
	"replaced": func(path string) error { // by a file of the same size
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path+".new", bytes.Repeat([]byte{'x'}, int(info.Size())), 0o644); err != nil {
			return err
		}
		if err := os.Chtimes(path+".new", time.Time{}, testNow); err != nil {
			return err
		}
		return os.Rename(path+".new", path)
	},
}

// meddled converts a dataset repeatedly and numbers the calls on files in the work directory.
type meddled struct {
	t        *testing.T
	src, dst string
	location string
}

func (m *meddled) work() string   { return m.dst + ".kvferry" }
func (m *meddled) report() string { return m.dst + ".kvferry-report.json" }

// moment is the nth call of an operation on a file. Calls are not numbered across files: how many calls lie between
// two of them depends on how goroutines meet.
type moment struct {
	call string
	n    int
}

// convert runs a conversion and calls at before each call.
func (m *meddled) convert(at func(moment)) result {
	var mu sync.Mutex
	calls := map[string]int{}
	restore := disk.Inject(func(op, path string) error {
		if rel, found := strings.CutPrefix(path, m.work()+"/"); found {
			mu.Lock()
			defer mu.Unlock()
			call := op + " " + filepath.ToSlash(rel)
			at(moment{call, calls[call]})
			calls[call]++
		}
		return nil
	})
	defer restore()
	return kvferry(m.t, "convert", m.src, m.location, "--workers", "1")
}

// around returns the calls directly before, during and directly after the proof, found by the last two lines of the
// journal: target complete, and target proved. The report is published before the target.
func (m *meddled) around(calls []moment) map[string]moment {
	var lines []int
	read := 0
	for i, call := range calls {
		if call.call == "write journal" {
			lines = append(lines, i)
		}
	}
	written, proved := lines[len(lines)-2], lines[len(lines)-1]
	for i := written; i < proved; i++ {
		if strings.HasPrefix(calls[i].call, "read data") {
			read = i
		}
	}
	published := slices.Index(calls, moment{call: "link report.json"})
	if read == 0 || published < proved {
		m.t.Fatalf("the calls are %v", calls)
	}
	return map[string]moment{"before": calls[written], "during": calls[read], "after": calls[published]}
}

// published reports whether a file of the work directory will be published.
func (m *meddled) published(path string) bool {
	rel, _ := filepath.Rel(m.work(), path)
	return strings.HasPrefix(rel, "data") || rel == "report.json"
}

// files lists the work directory, or only files that will be published.
func (m *meddled) files(all bool) (out []string) {
	err := filepath.WalkDir(m.work(), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && (all || m.published(path)) {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		m.t.Error(err)
	}
	return out
}

// meddle tampers with the nth file of the work directory at a call and returns its name; "" if nth is too large.
func (m *meddled) meddle(when moment, nth int, all bool, how func(string) error) (result, string) {
	file := ""
	r := m.convert(func(now moment) {
		if now != when {
			return
		}
		if files := m.files(all); nth < len(files) {
			file = files[nth]
			if err := how(file); err != nil {
				m.t.Error(err)
			}
		}
	})
	return r, file
}

// clear removes the files left by a conversion.
func (m *meddled) clear() {
	for _, path := range []string{m.dst, m.work(), m.report()} {
		if err := os.RemoveAll(path); err != nil {
			m.t.Fatal(err)
		}
	}
}

// judge expects no target and a message naming the file if a published file was changed, else a complete target.
func (m *meddled) judge(r result, file, what, whole string) {
	m.t.Helper()
	_, err := os.Lstat(m.dst)
	if !m.published(file) {
		if r.code != 0 || err != nil || treeBytes(m.t, m.dst) != whole {
			m.t.Errorf("%s %s: exit %d, %v: %s", file, what, r.code, err, r.stderr)
		}
		return
	}
	_, reported := os.Lstat(m.report())
	if r.code != cli.ExitFailed || err == nil || reported == nil || !strings.Contains(r.stderr, filepath.Base(file)) {
		m.t.Errorf("%s %s: exit %d, %v, %v: %s", file, what, r.code, err, reported, r.stderr)
	}
}

// TestMeddled checks that no target is published if a file of the work directory was tampered with around the proof,
// unless the target is what was proved, and that the message names the file.
func TestMeddled(t *testing.T) {
	src := datasetOf(t, nemo.New(), given{record.Hash, "h", 0, one("f", "v")}, given{record.String, "s", 0, one("", "value")})
	for _, to := range []string{"kvrocks", "ardb+leveldb", "rdb", "aof"} {
		m := &meddled{t: t, src: src, dst: filepath.Join(t.TempDir(), "dst")}
		m.location = to + ":" + m.dst
		var calls []moment
		if r := m.convert(func(now moment) { calls = append(calls, now) }); r.code != 0 {
			t.Fatal(r.stderr)
		}
		whole := treeBytes(t, m.dst)
		m.clear()
		for name, when := range m.around(calls) {
			for what, how := range meddlings {
				// Unpublished files may be removed. Truncating a link to a table truncates the table.
				all := name == "before" && what == "removed"
				for nth, file := 0, m.work(); file != ""; nth++ {
					var r result
					if r, file = m.meddle(when, nth, all, how); file != "" {
						m.judge(r, file, what+" "+name+" the proof", whole)
					}
					m.clear()
				}
			}
		}
	}
}
