//go:build !linux

package redistest

import "syscall"

// diesWithTest is a no-op: only Linux can tie a process to the death of its parent.
func diesWithTest() *syscall.SysProcAttr { return nil }
