// Package live reads and writes servers of Redis and Valkey: package server connects to them and sends commands.
//
// A source copies a server to a temporary RDB file, as a replica does or key by key, and reads that file.
//
// A target sends a small record as one RESTORE of a payload built here in the newest RDB version that the server
// accepts, which costs the server a third less time than commands. A large record goes as commands of bounded size to a
// temporary name in the same slot, then RENAME: clients never see a partial value, and the server can serve them between
// commands.
package live
