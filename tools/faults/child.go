package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"kvferry/fixtures"
)

// child is kvferry in a separate process.
type child struct {
	cmd    *exec.Cmd
	stderr bytes.Buffer
	ended  chan error
}

// start starts the program with a command line.
func start(stdout io.Writer, args ...string) (*child, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	k := &child{cmd: exec.Command(exe, args...), ended: make(chan error, 1)}
	k.cmd.Env = append(os.Environ(), asKvferry+"=1")
	k.cmd.Stdout, k.cmd.Stderr = stdout, &k.stderr
	if err := k.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { k.ended <- k.cmd.Wait() }()
	return k, nil
}

// within waits up to d for the end.
func (k *child) within(d time.Duration) (ended bool) {
	select {
	case <-k.ended:
		return true
	case <-time.After(d):
		return false
	}
}

// outcome returns its exit code, -1 after a signal, and standard error.
func (k *child) outcome() *outcome {
	return &outcome{code: k.cmd.ProcessState.ExitCode(), stderr: k.stderr.String()}
}

// finish waits for a process to end and kills it after patience.
func (k *child) finish() *outcome {
	if !k.within(patience) {
		k.cmd.Process.Kill()
		<-k.ended
		return &outcome{code: -1, slow: true, stderr: k.stderr.String()}
	}
	return k.outcome()
}

// learnTime runs the job in a process to measure its duration.
func (j *job) learnTime(h *harness) error {
	if j.known {
		return nil
	}
	if err := j.learn(h); err != nil {
		return err
	}
	os.RemoveAll(filepath.Dir(j.output(h.run.work)))
	os.MkdirAll(filepath.Dir(j.output(h.run.work)), 0o755)
	began := time.Now()
	k, err := start(nil, j.args(h.run.work)...)
	if err != nil {
		return err
	}
	if o := k.finish(); o.code != 0 {
		return fmt.Errorf("%s: exit %d: %s", j.name, o.code, o.stderr)
	}
	j.took = time.Since(began)
	os.RemoveAll(filepath.Dir(j.output(h.run.work)))
	return nil
}

// moment returns a random time within the job's duration, or occasionally after it.
func (j *job) moment(r *fixtures.Rand) time.Duration {
	return time.Duration(r.Uint64() % uint64(j.took+j.took/8))
}

// kill kills a conversion at random moments and resumes it until it is done.
func (h *harness) kill(c *class, n int) error {
	r := fixtures.NewRand(h.seed, 'k', uint64(n))
	j := fixtures.Pick(r, h.large)
	if err := j.learnTime(h); err != nil {
		return err
	}
	label := fmt.Sprintf("kill/%d %s", n, j.name)
	h.now(label)
	before, err := listing(j.src)
	if err != nil {
		return err
	}
	dst := j.output(h.run.work)
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return err
	}
	args := j.args(h.run.work, "--resume", "--workers", strconv.Itoa(1+r.Intn(3)))
	kills, most := 0, 1+r.Intn(6)
	for done := false; !done; {
		k, err := start(nil, args...)
		if err != nil {
			return err
		}
		if kills < most && !k.within(j.moment(r)) {
			k.cmd.Process.Kill()
			<-k.ended
			kills++
			label += ", killed"
		} else if o := k.finishEnded(kills < most); o.code != 0 {
			c.count("not resumed")
			c.fail("%s: resumed: exit %d: %s", label, o.code, o.stderr)
			return nil
		} else {
			done = true
		}
		tree, err := hashOf(dst)
		if err != nil || tree != "" && tree != j.tree {
			c.count("wrong target")
			c.fail("%s: the target differs from the target of an undisturbed run: %v", label, err)
			return nil
		}
		if _, err := os.Lstat(dst + ".kvferry"); tree != "" && errors.Is(err, os.ErrNotExist) {
			done = true // killed after its last step
		}
	}
	j.check(h, c, label, &outcome{}, true)
	if after, err := listing(j.src); err != nil || !slices.Equal(before, after) {
		c.fail("%s: the source was changed: %v", label, err)
	}
	c.counts["kills"] += kills
	c.count("equal to the byte")
	return nil
}

// finishEnded returns the outcome of a process that may already have ended.
func (k *child) finishEnded(ended bool) *outcome {
	if ended {
		return k.outcome()
	}
	return k.finish()
}

// signals are the usual signals for ending programs.
var signals = []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE}

// signal sends signals to a job at a random moment, once or twice.
func (h *harness) signal(c *class, n int) error {
	r := fixtures.NewRand(h.seed, 's', uint64(n))
	j := fixtures.Pick(r, h.large)
	if err := j.learnTime(h); err != nil {
		return err
	}
	sig, resume, twice := fixtures.Pick(r, signals), r.Chance(40), r.Chance(20)
	label := fmt.Sprintf("signal/%d %s: %v", n, j.name, sig)
	h.now(label)
	if err := os.MkdirAll(filepath.Dir(j.output(h.run.work)), 0o755); err != nil {
		return err
	}
	k, err := start(nil, j.args(h.run.work, kept(j, resume)...)...)
	if err != nil {
		return err
	}
	if !k.within(j.moment(r)) {
		k.cmd.Process.Signal(sig)
		if twice {
			time.Sleep(time.Duration(r.Intn(5)) * time.Millisecond)
			k.cmd.Process.Signal(sig)
		}
		// SIGPIPE concerns writers to pipes: the conversion continues.
		if limit := map[bool]time.Duration{true: patience, false: patience / 3}[sig == syscall.SIGPIPE]; !k.within(limit) {
			c.count("hung")
			c.fail("%s: goes on for %v", label, limit)
			k.cmd.Process.Kill()
			<-k.ended
		}
	}
	o := k.outcome()
	switch {
	case o.code == 0:
		c.count("done before")
	case sig == syscall.SIGPIPE && (o.code != -1 || begun(j.output(h.run.work))): // else the handler was not installed yet
		c.fail("%s: exit %d: %s", label, o.code, o.stderr)
	case o.code == 130:
		c.count("cancelled")
	case o.code == -1: // before the handler was installed, or by the second signal
		c.count("ended by the signal")
	default:
		c.fail("%s: exit %d: %s", label, o.code, o.stderr)
	}
	if o.code == -1 {
		o.stderr = "is complete" // it wrote no message
	}
	there := j.check(h, c, label, o, o.code == 0 || o.code == 130 && !resume)
	if resume && !there {
		h.resume(c, j, label)
	}
	return nil
}

// begun reports whether a conversion into dst has written anything.
func begun(dst string) bool {
	for _, path := range []string{dst, dst + ".kvferry"} {
		if _, err := os.Lstat(path); err == nil {
			return true
		}
	}
	return false
}

// pipe closes the standard output of a dump after some bytes, as head does.
func (h *harness) pipe(c *class, n int) error {
	r := fixtures.NewRand(h.seed, 'p', uint64(n))
	s := fixtures.Pick(r, h.sources)
	for !s.learn(h.run) {
		s = fixtures.Pick(r, h.sources)
	}
	label := fmt.Sprintf("pipe/%d %s", n, s.name)
	h.now(label)
	in, out, err := os.Pipe()
	if err != nil {
		return err
	}
	k, err := start(out, "dump", "--now", clock, s.dir)
	out.Close()
	if err != nil {
		return err
	}
	io.CopyN(io.Discard, in, int64(r.Intn(1<<20)))
	in.Close()
	o := k.finish()
	switch {
	case o.slow:
		c.fail("%s: hung", label)
	case o.code == 0:
		c.count("done before")
	case o.code == 141, k.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() == syscall.SIGPIPE:
		c.count("ended by the pipe")
	default:
		c.fail("%s: exit %d: %s", label, o.code, o.stderr)
	}
	return nil
}
