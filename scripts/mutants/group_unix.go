//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup makes cancelling a command kill the processes it started, too.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
