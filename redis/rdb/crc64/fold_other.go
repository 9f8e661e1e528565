//go:build !amd64

package crc64

const canFold = false

func fold([]byte, uint64, *[4]uint64) (lo, hi uint64) { panic("crc64: this processor does not fold") }
