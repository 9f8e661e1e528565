//go:build !linux

package redistest

import "syscall"

// diesWithTest changes nothing: only Linux can tie a process to another one's end.
func diesWithTest() *syscall.SysProcAttr { return nil }
