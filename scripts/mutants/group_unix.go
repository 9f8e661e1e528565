//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the end of a command that of the processes it started, too.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
