package command

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"kvferry/convert"
	"kvferry/internal/sys/disk"
	"kvferry/internal/testkit/redistest"
)

// stopEnv makes the test binary, as kvferry, stop for good when it writes its first table, if it is the first process to
// create the file that stopEnv names.
const stopEnv = "KVFERRY_TEST_STOP"

func stopAt(marker string) {
	if marker == "" {
		return
	}
	first := firstAt("write /run-")
	disk.Inject(func(op, path string) error {
		if !first(op, path) {
			return nil
		}
		if f, err := os.OpenFile(marker, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
			fmt.Fprintln(f, path)
			select {}
		}
		return nil
	})
}

// slurmConf is a cluster of one node, which claims more processors than it has.
const slurmConf = `ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket=DIR/munge.sock,cred_expire=5
CredType=cred/munge
SlurmUser=USER
SlurmdUser=USER
SlurmctldPort=PORT1
SlurmdPort=PORT2
SlurmctldPidFile=DIR/slurmctld.pid
SlurmdPidFile=DIR/slurmd.pid
SlurmdSpoolDir=DIR/spool
StateSaveLocation=DIR/state
PluginDir=ENGINE/plugins
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
KillWait=1
NodeName=localhost NodeAddr=127.0.0.1 CPUs=16 RealMemory=64000 State=UNKNOWN
PartitionName=all Nodes=localhost Default=YES MaxTime=INFINITE State=UP
`

// slurm is a Slurm on loopback.
type slurm struct {
	t   *testing.T
	dir string
	env []string
}

// newSlurm starts munged, slurmctld and slurmd, which end with the test.
func newSlurm(t *testing.T) *slurm {
	t.Helper()
	engine := os.Getenv("KVFERRY_SLURM")
	if engine == "" {
		t.Skip("SKIPPED: KVFERRY_SLURM names no Slurm: make slurm unpacks one")
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	s := &slurm{t: t, dir: fastDir(t)}
	conf := strings.NewReplacer("DIR", s.dir, "USER", me.Username, "ENGINE", engine, "PORT1", fmt.Sprint(redistest.FreePort(t)),
		"PORT2", fmt.Sprint(redistest.FreePort(t))).Replace(slurmConf)
	key := make([]byte, 1024)
	rand.Read(key)
	for _, err := range []error{os.Chmod(s.dir, 0o711), os.Mkdir(s.path("state"), 0o700), os.Mkdir(s.path("spool"), 0o755),
		os.WriteFile(s.path("munge.key"), key, 0o600), os.WriteFile(s.path("slurm.conf"), []byte(conf), 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(engine, "run")
	s.env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "SLURM_CONF="+s.path("slurm.conf"))
	s.start(filepath.Join(bin, "munged"), "--foreground", "--num-threads=2", "--key-file="+s.path("munge.key"),
		"--socket="+s.path("munge.sock"),
		"--pid-file="+s.path("munged.pid"), "--log-file="+s.path("munged.log"), "--seed-file="+s.path("munge.seed"))
	s.wait("munged", func() bool { _, err := os.Stat(s.path("munge.sock")); return err == nil })
	s.start(filepath.Join(bin, "slurmctld"), "-D", "-c")
	s.start(filepath.Join(bin, "slurmd"), "-D", "-N", "localhost", "-d", filepath.Join(bin, "slurmstepd"))
	s.wait("slurmd", func() bool { out, _ := s.run("sinfo", "-h", "-o", "%T"); return strings.TrimSpace(out) == "idle" })
	return s
}

func (s *slurm) path(name string) string { return filepath.Join(s.dir, name) }

// start starts a daemon.
func (s *slurm) start(name string, args ...string) {
	s.t.Helper()
	cmd := exec.Command(name, args...)
	log, err := os.Create(s.path(filepath.Base(name) + ".out"))
	if err != nil {
		s.t.Fatal(err)
	}
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, log, log
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
		log.Close()
	})
}

// run runs a command of Slurm.
func (s *slurm) run(args ...string) (string, error) {
	cmd := exec.Command("/usr/bin/env", args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// wait waits until something holds, and shows what all processes wrote if it never does.
func (s *slurm) wait(what string, holds func() bool) {
	s.t.Helper()
	for end := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().Before(end) {
			continue
		}
		queue, _ := s.run("squeue")
		logs, _ := filepath.Glob(s.path("*.out"))
		for _, log := range logs {
			text, _ := os.ReadFile(log)
			s.t.Logf("%s\n%s", log, text[max(0, len(text)-3000):])
		}
		s.t.Fatalf("%s: not after two minutes\n%s", what, queue)
	}
}

// partOfPath matches the path of a file of an attempt at a part.
var partOfPath = regexp.MustCompile(`many\.kvferry/parts/([0-9]+)-of-8\..*/run-.*\n`)

// TestSlurm converts in 8 parts, as an array job of a Slurm. One is requeued, and so killed, while it writes. The
// target is that of one run, byte for byte. So is that of the jobs that kvferry fleet prints, with a proof in parts.
func TestSlurm(t *testing.T) {
	s := newSlurm(t)
	t.Cleanup(func() { s.run("scancel", "--signal=KILL", "--full", "1", "2") }) // if the test fails, a job waits for good
	src := golden(t, "nemo-basic")
	args := []string{"--now", "2026-01-01T00:00:00Z", src, "blackwidow:" + s.path("one")}
	ok(t, append([]string{"convert"}, args...)...)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	stopped, many := s.path("stopped"), s.path("many")
	wrapper := fmt.Sprintf("#!/bin/sh\nexport %s=1 %s=%s\nexec %s \"$@\"\n", mainEnv, stopEnv, stopped, exe)
	if err := os.WriteFile(s.path("kvferry"), []byte(wrapper), 0o755); err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs(filepath.Join(examplesDir, "slurm/convert.sh"))
	if err != nil {
		t.Fatal(err)
	}
	args[3] = "blackwidow:" + many
	out, err := s.run(append([]string{"PARTS=8", "KVFERRY=" + s.path("kvferry"), script}, args...)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var at []string
	s.wait("a part that is in the middle", func() bool {
		text, _ := os.ReadFile(stopped)
		at = partOfPath.FindStringSubmatch(string(text))
		return at != nil
	})
	if out, err := s.run("scontrol", "requeue", "1_"+at[1]); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.wait("the requeue", func() bool {
		out, _ := s.run("squeue", "-h", "-r", "-t", "PD", "-o", "%F_%K")
		return strings.Contains(out, "1_"+at[1]+"\n")
	})
	if out, err := s.run("scontrol", "update", "JobId=1_"+at[1], "StartTime=now"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.wait("the target", func() bool { _, err := os.Stat(many); return err == nil })
	fleet := fmt.Sprintf("{part: 800KiB, options: {now: %s}, datasets: [{source: %s, target: 'blackwidow:%s', name: x}]}",
		args[1], src, s.path("fleet"))
	if err := os.WriteFile(s.path("fleet.yaml"), []byte(fleet), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := s.run("KVFERRY="+s.path("kvferry"), "sh", "-c",
		ok(t, "fleet", "--as", "slurm", s.path("fleet.yaml"))); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.wait("the target of the fleet", func() bool { _, err := os.Stat(s.path("fleet")); return err == nil })
	report, err := convert.ReadReport(convert.ReportPath(s.path("fleet")))
	if err != nil || report.Proof.Parts != report.InParts || report.InParts < 2 {
		t.Errorf("%+v, %v", report, err)
	}
	for _, dir := range []string{many, s.path("fleet")} {
		if treeBytes(t, dir) != treeBytes(t, s.path("one")) {
			t.Errorf("%s: the parts make something else", dir)
		}
	}
}
