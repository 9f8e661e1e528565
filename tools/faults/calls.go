package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"kvferry/fixtures"
	"kvferry/internal/sys/disk"
)

// errnos are the possible errors of calls.
var errnos = map[string][]syscall.Errno{
	"open":    {syscall.EIO, syscall.EACCES, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM},
	"create":  {syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.EACCES, syscall.EMFILE, syscall.EROFS},
	"read":    {syscall.EIO, syscall.ENOMEM, syscall.ESTALE},
	"write":   {syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG},
	"sync":    {syscall.EIO, syscall.ENOSPC, syscall.EDQUOT},
	"mkdir":   {syscall.EIO, syscall.ENOSPC, syscall.EACCES, syscall.EROFS},
	"rename":  {syscall.EIO, syscall.ENOSPC, syscall.EACCES},
	"link":    {syscall.EIO, syscall.EPERM, syscall.EMLINK, syscall.ENOSPC},
	"symlink": {syscall.EIO, syscall.EPERM, syscall.ENOSPC},
	"remove":  {syscall.EIO, syscall.EACCES, syscall.EBUSY},
	"readdir": {syscall.EIO, syscall.EACCES, syscall.EMFILE},
	"stat":    {syscall.EIO, syscall.EACCES, syscall.ENOMEM},
}

// onFullDisk lists the calls that a full disk refuses.
var onFullDisk = []string{"create", "write", "sync", "mkdir", "link", "symlink", "truncate"}

// call makes call n/jobs of job n%jobs fail, once or from then on, so that ascending numbers reach every call.
func (h *harness) call(c *class, n int) error {
	r := fixtures.NewRand(h.seed, 'c', uint64(n))
	j := h.small[n%len(h.small)]
	if err := j.learn(h); err != nil {
		return err
	}
	at, stays, resume := int64(n/len(h.small)%j.calls)+1, r.Chance(30), j.target != "" && r.Chance(30)
	return h.disturb(c, j, resume, fmt.Sprintf("call/%d %s: call %d of %d", n, j.name, at, j.calls), stays,
		func(call int64, op string) syscall.Errno {
			if call != at && (!stays || call < at) {
				return 0
			}
			kinds := errnos[op]
			if len(kinds) == 0 {
				return syscall.EIO
			}
			kind := kinds[int(uint64(at)%uint64(len(kinds)))]
			if kind == syscall.EACCES && !stays && (op == "readdir" || op == "stat") { // permissions do not fail only once
				return syscall.EIO
			}
			return kind
		})
}

// full simulates a full disk from some call on.
func (h *harness) full(c *class, n int) error {
	r := fixtures.NewRand(h.seed, 'f', uint64(n))
	j := fixtures.Pick(r, h.small)
	for j.target == "" && !strings.HasPrefix(j.name, "dump") {
		j = fixtures.Pick(r, h.small)
	}
	if err := j.learn(h); err != nil {
		return err
	}
	at := int64(r.Intn(j.calls)) + 1
	return h.disturb(c, j, j.target != "" && r.Chance(70),
		fmt.Sprintf("full/%d %s: no space from call %d of %d", n, j.name, at, j.calls), true,
		func(call int64, op string) syscall.Errno {
			if call >= at && slices.Contains(onFullDisk, op) {
				return syscall.ENOSPC
			}
			return 0
		})
}

// disturb runs a job while calls fail, and checks its output. With resume, it then resumes the job without faults.
func (h *harness) disturb(c *class, j *job, resume bool, label string, stays bool,
	fault func(call int64, op string) syscall.Errno) error {
	h.now(label)
	flags := kept(j, resume)
	before, err := listing(j.src)
	if err != nil {
		return err
	}
	var calls, hits atomic.Int64
	var first atomic.Pointer[string]
	restore := disk.Inject(func(op, path string) error {
		if !h.concerns(path) {
			return nil
		}
		if no := fault(calls.Add(1), op); no != 0 {
			hits.Add(1)
			what := fmt.Sprintf("%s %s: %v", op, strings.TrimPrefix(path, h.dir), no)
			first.CompareAndSwap(nil, &what)
			return no
		}
		return nil
	})
	o := j.attempt(h, false, flags...)
	restore()
	if what := first.Load(); what != nil {
		label += " (" + *what + ")"
	}
	if stays {
		label += ", and all that follow"
	}
	if after, err := listing(j.src); err != nil || !slices.Equal(before, after) {
		c.fail("%s: the source was changed: %v", label, err)
	}
	if hits.Load() == 0 {
		c.count("not reached")
	}
	if j.target == "" && strings.HasPrefix(j.name, "verify") {
		c.compareOutcomes("verify", o, j.sound, label, func() string { return "" })
		return nil
	}
	there := j.check(h, c, label, o, !stays && !resume && !strings.Contains(o.stderr, "could not be removed"))
	switch {
	case there:
		c.count("complete")
	case resume:
		h.resume(c, j, label)
	default:
		c.count("nothing left")
	}
	return nil
}

// kept returns the flag that makes a conversion keep or discard its work.
func kept(j *job, resume bool) []string {
	switch {
	case j.target == "":
		return nil
	case resume:
		return []string{"--resume"}
	}
	return []string{"--discard"}
}

// resume continues a disturbed run.
func (h *harness) resume(c *class, j *job, label string) {
	o := j.attempt(h, true, "--resume")
	if o.code != 0 {
		c.count("not resumed")
		c.fail("%s: resumed: exit %d: %s", label, o.code, o.stderr)
		return
	}
	j.check(h, c, label+", resumed", o, true)
	c.count("resumed")
	if _, err := os.Stat(filepath.Join(j.output(h.run.work) + ".kvferry-report.json")); err != nil {
		c.fail("%s, resumed: %v", label, err)
	}
}
