package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"kvferry/blackwidow"
	"kvferry/fixtures"
	"kvferry/format"
	"kvferry/internal/sys/disk"
	"kvferry/store/rocks"
	"kvferry/store/rocks/build"
)

// job is a command to disturb: a conversion, a dump into a file, or verify.
type job struct {
	src    string
	name   string
	target string // "" for commands that read

	known bool
	sound *outcome
	tree  string        // hash of the output
	calls int           // number of file operations
	took  time.Duration // duration in a separate process
}

// made lists the formats of the small datasets on which each file operation fails in turn; one of each store.
var made = []string{"blackwidow", "nemo", "pika4", "ardb", "ardb+leveldb", "kvrocks", "rdb"}

// makeSmall writes these datasets below dir.
func (h *harness) makeSmall() error {
	dir := filepath.Join(h.dir, "made")
	if err := h.make(dir, 600, made); err != nil {
		return err
	}
	for _, from := range made {
		src := filepath.Join(dir, from)
		for _, to := range made {
			h.small = append(h.small, &job{src: src, name: from + " to " + to, target: to})
		}
		h.small = append(h.small, &job{src: src, name: "dump of " + from}, &job{src: src, name: "verify of " + from})
	}
	for _, s := range h.sources {
		switch s.name {
		case "bw-basic", "nemo-basic", "ardb-lmdb-basic", "ardb-leveldb-basic":
			for _, to := range []string{"blackwidow", "rdb", "kvrocks"} {
				h.large = append(h.large, &job{src: s.dir, name: s.name + " to " + to, target: to})
			}
		}
	}
	return nil
}

// tinySize is the size of the golden databases of which a case takes little time.
const tinySize = 1 << 20

// makeTiny writes datasets to forge, so small that a case takes milliseconds, and adds the smallest golden databases.
func (h *harness) makeTiny() error {
	dir := filepath.Join(h.dir, "tiny")
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	formats := []string{"blackwidow", "nemo", "pika3.5", "pika4", "ardb", "ardb+leveldb", "kvrocks"}
	if err := h.make(dir, 40, formats); err != nil {
		return err
	}
	for _, f := range formats {
		s := &source{name: "tiny " + f, dir: filepath.Join(dir, f), target: f}
		var err error
		if s.files, err = filesOf(s.dir); err != nil {
			return err
		}
		if h.chosen(s.name) {
			h.tiny = append(h.tiny, s)
		}
	}
	for _, s := range h.sources {
		if n := s.size(); n > 0 && n <= tinySize {
			h.tiny = append(h.tiny, s)
		}
	}
	return nil
}

// make writes a dataset with a number of records in each of the formats, of which the first is blackwidow.
func (h *harness) make(dir string, records int64, formats []string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	first := filepath.Join(dir, "blackwidow")
	ctx := context.Background()
	target, err := blackwidow.New().Create(ctx, first, &format.CreateOptions{Create: build.Create, Layout: format.LayoutFlat,
		DBs: []string{"0"}, Memory: 16 << 20, Now: time.Unix(1700000000, 0), Reopen: &format.OpenOptions{Store: rocks.Open}})
	if err != nil {
		return err
	}
	if err := fixtures.Mix(h.seed, records).Build(ctx, target, 16<<20); err != nil {
		return err
	}
	for _, f := range formats[1:] {
		if o := h.run.run(nil, new(sums), "convert", "--now", clock, first, f+":"+filepath.Join(dir, f)); o.code != 0 {
			return fmt.Errorf("making %s: %s", f, o.stderr)
		}
	}
	return nil
}

// output returns the path of the job's output.
func (j *job) output(work string) string { return filepath.Join(work, "out", "dst") }

// allowed lists the losses of sound datasets between formats.
const allowed = "score-range,key-too-long,empty-key,stream,stream-groups,stream-expiry,hyperloglog,module,int-span,inner-nul,expiry-2038,expiry-ms"

// args returns the job's command line.
func (j *job) args(work string, more ...string) []string {
	out := []string{"--now", clock, "--temp-dir", work, j.src}
	switch {
	case j.target != "":
		out = append([]string{"convert", "--allow-loss", allowed, "--on-conflict", "rename"},
			append(out, j.target+":"+j.output(work))...)
	case strings.HasPrefix(j.name, "dump"):
		out = append([]string{"dump", "-o", j.output(work)}, out...)
	default:
		out = append([]string{"verify", "--format", "json"}, out...)
	}
	return append(out, more...)
}

// attempt runs the job in this process, on an empty directory unless keep is set.
func (j *job) attempt(h *harness, keep bool, more ...string) *outcome {
	out := filepath.Dir(j.output(h.run.work))
	if !keep {
		os.RemoveAll(out)
		os.MkdirAll(out, 0o755)
	}
	if j.target == "" && strings.HasPrefix(j.name, "verify") {
		return h.run.verify(j.src)
	}
	return h.run.run(nil, new(sums), j.args(h.run.work, more...)...)
}

// learn runs the job undisturbed and counts its calls.
func (j *job) learn(h *harness) error {
	if j.known {
		return nil
	}
	var calls atomic.Int64
	restore := disk.Inject(func(_, path string) error {
		if h.concerns(path) {
			calls.Add(1)
		}
		return nil
	})
	began := time.Now()
	j.sound = j.attempt(h, false)
	restore()
	j.took, j.calls, j.known = time.Since(began), int(calls.Load()), true
	if j.sound.code != 0 {
		return fmt.Errorf("%s: exit %d: %s", j.name, j.sound.code, j.sound.stderr)
	}
	var err error
	j.tree, err = hashOf(j.output(h.run.work))
	return err
}

// concerns reports whether a path belongs to the datasets or the output.
func (h *harness) concerns(path string) bool { return strings.HasPrefix(path, h.dir) }

// hashOf returns a hash of the names and bytes of a tree, or "" if it has no files.
func hashOf(dir string) (string, error) {
	files, err := filesOf(dir)
	if err != nil || len(files) == 0 {
		return "", err
	}
	sum := sha256.New()
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%q %x\n", f, sha256.Sum256(data))
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

// check checks the output of a disturbed job: it must be complete or absent, and complete after exit 0. With clean, no
// other files may be beside it.
func (j *job) check(h *harness, c *class, label string, o *outcome, clean bool) (complete bool) {
	dst := j.output(h.run.work)
	tree, err := hashOf(dst)
	_, missing := os.Lstat(dst)
	there := !errors.Is(missing, fs.ErrNotExist)
	switch {
	case o.panic != "" || o.slow:
		c.count("panicked or hung")
		c.fail("%s: panicked or hung: %s", label, o.panic)
	case err != nil:
		c.fail("%s: %v", label, err)
	case there && tree != j.tree:
		c.count("wrong target")
		c.fail("%s: exit %d: the output differs from the output of an undisturbed run: %s", label, o.code, o.stderr)
	case o.code == 0 && !there:
		c.count("no target")
		c.fail("%s: exit 0 without a target", label)
	case o.code != 0 && there && j.target != "" && !strings.Contains(o.stderr, "is complete"):
		c.count("denied target")
		c.fail("%s: exit %d, but the target exists: %s", label, o.code, o.stderr)
	case o.code != 0 && o.stderr == "":
		c.count("no message")
		c.fail("%s: exit %d without a word", label, o.code)
	}
	if left := leftovers(dst); clean && len(left) > 0 {
		c.count("leftovers")
		c.fail("%s: exit %d: %q left behind: %s", label, o.code, left, o.stderr)
	}
	return there
}

// leftovers lists the files beside a target and its report.
func leftovers(dst string) (out []string) {
	entries, _ := os.ReadDir(filepath.Dir(dst))
	for _, e := range entries {
		if name := e.Name(); name != filepath.Base(dst) && name != filepath.Base(dst)+".kvferry-report.json" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
