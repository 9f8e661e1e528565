package crc64

import "golang.org/x/sys/cpu"

var canFold = cpu.X86.HasPCLMULQDQ

// fold reduces b to 16 bytes that, summed from 0, have the same checksum as b summed from sum. It uses carry-less
// multiplication to move four pieces of 16 bytes onto the next four. The length of b is a positive multiple of foldLen.
//
//go:noescape
func fold(b []byte, sum uint64, folds *[4]uint64) (lo, hi uint64)
