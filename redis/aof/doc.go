// Package aof reads and writes the append-only files of Redis and Valkey: logs of commands that a server replays
// when it starts.
//
//	one file (to 6.2)    appendonly.aof
//	several (from 7.0)   appendonlydir/appendonly.aof.manifest
//	                     appendonlydir/appendonly.aof.2.base.rdb    or …base.aof
//	                     appendonlydir/appendonly.aof.2.incr.aof
//
// What a file is tells its first bytes and not its name: one that begins with REDIS or VALKEY is an RDB file, perhaps
// with commands behind it; any other is commands. Each file begins in database 0.
//
// What is written is a directory of the second kind, with a base and nothing behind it.
//
// The records are what replaying gives, so the commands (package commands) are applied to a state on disk (package state). Keys that have
// expired stay until the end: the log speaks of them.
package aof
