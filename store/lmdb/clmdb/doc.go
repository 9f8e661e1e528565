// Package clmdb writes and reads LMDB environments with the C library. It is the oracle of the tests of
// package lmdb and exists only with the build tag lmdb, which needs cgo and liblmdb.
package clmdb
