package redistest

import "syscall"

// diesWithTest ends a server when the test that started it is killed.
func diesWithTest() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
