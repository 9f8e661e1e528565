//go:build !linux

package main

import (
	"errors"
	"os"
)

// Measurements need Linux: programs compared on one core are kept on it, and their memory is asked of the kernel.

func peak(*os.ProcessState) int64 { return 0 }

func pin() (restore func(), err error) {
	return nil, errors.New("the benchmark runs on Linux only")
}
