//go:build !linux

package main

import (
	"errors"
	"os"
)

// Measurements need Linux: programs are pinned to one CPU, and the kernel reports their memory.

func peak(*os.ProcessState) int64 { return 0 }

func pin() (restore func(), err error) {
	return nil, errors.New("the benchmark runs on Linux only")
}
