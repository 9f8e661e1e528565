// Package aof reads and writes the append-only files of Redis and Valkey: logs of commands that a server replays
// when it starts.
//
//	one file (to 6.2)    appendonly.aof
//	several (from 7.0)   appendonlydir/appendonly.aof.manifest
//	                     appendonlydir/appendonly.aof.2.base.rdb    or …base.aof
//	                     appendonlydir/appendonly.aof.2.incr.aof
//
// The content of a file, not its name, decides how to read it: a file that begins with REDIS or VALKEY is an RDB file,
// and commands may follow; any other file holds commands. Each file begins in database 0.
//
// Targets are directories of the second kind, with a base and no other file.
//
// The records are the result of a replay: package commands applies the commands to a state on disk (package state).
// Expired keys stay until the end, because later commands may refer to them.
package aof
