package redistest

import "syscall"

// diesWithTest kills a server when the test process that started it dies.
func diesWithTest() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
