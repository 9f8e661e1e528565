package crc64

import "golang.org/x/sys/cpu"

var canFold = cpu.X86.HasPCLMULQDQ

// fold returns 16 bytes that have the checksum of b after sum when theirs is taken from 0 on: multiplied without carries, four
// pieces of 16 bytes at a time go on to the next four. b has one or several times foldLen bytes.
//
//go:noescape
func fold(b []byte, sum uint64, folds *[4]uint64) (lo, hi uint64)
